"""A table that both sides renamed and changed gets a new value and the key of a side."""

from __future__ import annotations

import json
import shlex

import pytest

from nessie_cli.model import Namespace, Put

from .conftest import key


@pytest.fixture
def renamed_twice(nessie, catalog, tmp_path):
    catalog.create("main", "a")
    catalog.branch("x")
    for branch, name, snapshot in (("main", "a2", 3), ("x", "a9", 4)):
        catalog.rename(branch, "a", name)
        catalog.update(branch, name, snapshot)
    for branch, snapshot in (("main", 2), ("x", 3)):
        catalog.update(branch, "db.orders", snapshot)
    value = json.loads(nessie("content", "show", "a2", "--raw").out) | {"snapshotId": 77}
    (tmp_path / "f.json").write_text(json.dumps(value))
    return catalog


VERBS = [["merge"], ["resolve", "merge"]]


@pytest.mark.parametrize(("side", "name"), [("--theirs", "a9"), ("--ours", "a2")])
@pytest.mark.parametrize("verb", VERBS)
def test_a_value_and_a_side_are_given_together(nessie, renamed_twice, verb, side, name) -> None:
    content_id = renamed_twice.repository.content("main", key("a2")).id
    words = ("x", "--resolve", "a2=f.json", side, "a2", "--ours", "db.orders")
    ran = nessie(*verb, *words)
    assert ran.code == 0, ran
    assert renamed_twice.snapshot("main", name) == 77
    assert renamed_twice.repository.content("main", key(name)).id == content_id
    assert renamed_twice.snapshot("main", "a9" if name == "a2" else "a2") is None


def test_printed_lines_keep_the_value_and_decide_the_key(nessie, renamed_twice) -> None:
    words = ("merge", "x", "--resolve", "a2=f.json", "--ours", "db.orders")
    refused = nessie(*words, "--json")
    (conflict,) = refused.error["errorDetails"]["conflicts"]
    assert conflict["conflictType"] == "KEY_CONFLICT"
    assert all("--resolve a2=f.json" in line for line in conflict["resolutions"])
    assert "nessie resolve" not in nessie(*words).err
    line = conflict["resolutions"][0]
    assert nessie(*shlex.split(line)[1:]).code == 0
    assert renamed_twice.snapshot("main", "a9") == 77


def test_resolve_asks_for_the_side_of_a_value(nessie, renamed_twice) -> None:
    ran = nessie("resolve", "merge", "x", "--resolve", "a2=f.json", "--ours", "db.orders")
    ran.expect(2, "both sides renamed it", "--theirs a2 beside --resolve says which key it has")


def test_an_edit_that_cannot_work_is_not_offered_and_loses_no_answer(
    renamed_twice, answering
) -> None:
    seen = answering("e\nt\ne\no\n", "resolve", "merge", "x", EDITOR="false")
    assert seen.code == 0, seen
    assert renamed_twice.snapshot("main", "a9") == 4
    assert renamed_twice.snapshot("main", "db.orders") == 2
    shown = " ".join(seen.plain.split())
    assert "[e]dit not possible: both sides renamed it; --resolve a2=FILE and a side" in shown


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"type": "NAMESPACE", "elements": ["db", "orders"]}, "the type is not ICEBERG_TABLE"),
        ({"id": "00000000-0000-4000-8000-0000000000ff"}, "the content id is not"),
    ],
)
def test_a_wrong_edit_is_asked_again(  # noqa: PLR0917
    catalog, answering, tmp_path, nessie, change, reason
) -> None:
    catalog.branch("x")
    for branch, snapshot in (("main", 2), ("x", 3)):
        catalog.update(branch, "db.orders", snapshot)
    value = json.loads(nessie("content", "show", "db.orders", "--raw").out) | change
    (tmp_path / "wrong.json").write_text(json.dumps(value))
    editor = tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\ncp {tmp_path}/wrong.json "$1"\n')
    editor.chmod(0o755)
    seen = answering("e\ne\no\n", "resolve", "merge", "x", EDITOR=str(editor))
    assert seen.code == 0, seen
    assert seen.plain.count("not accepted: ") == 2
    assert reason in " ".join(seen.plain.split())
    assert catalog.snapshot("main", "db.orders") == 2


@pytest.mark.parametrize("verb", [["merge", "x"], ["transplant", "x"], ["resolve", "merge", "x"]])
def test_a_table_that_gives_its_key_to_a_namespace_is_named(nessie, catalog, verb) -> None:
    catalog.branch("x")
    catalog.create("main", "n", 5)
    catalog.commit("x", "n", Put(key("n"), Namespace(elements=("n",))))
    ran = nessie(*verb, "--theirs", "n")
    assert ran.code == 0, ran
    assert "n: the iceberg-table snapshot 5 of main is deleted" in ran.err
