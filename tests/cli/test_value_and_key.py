"""A new value for a content in conflict, together with a side that says which key it has."""

from __future__ import annotations

import json
import shlex

import pytest
from msgspec import structs

from nessie_cli.model import Delete, Namespace, Put

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


# -- a value and a side that contradict each other, or two contents with one key -------------------


def _value(tmp_path, **attributes) -> None:
    """Writes f.json: a table without an id, or another content."""
    value = attributes or {
        "type": "ICEBERG_TABLE",
        "metadataLocation": "s3://b/77.json",
        "snapshotId": 77,
        "schemaId": 0,
        "specId": 0,
        "sortOrderId": 0,
    }
    (tmp_path / "f.json").write_text(json.dumps(value))


@pytest.fixture
def created_twice(catalog, tmp_path):
    catalog.branch("x")
    for branch, snapshot in (("main", 6), ("x", 7)):
        catalog.create(branch, "c", snapshot)
    _value(tmp_path)
    return catalog


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "side", [["--ours", "c"], ["--theirs", "c"], ["--theirs", "*"], ["--ours", "*"], []]
)
def test_a_value_for_two_contents_with_one_key_is_refused(
    nessie, created_twice, verb, side
) -> None:
    head = created_twice.head("main")
    ran = nessie(*verb, "x", "--resolve", "c=f.json", *side)
    is_named = bool(side) or verb == ["merge"]
    reason = "different contents with this key" if is_named else "two contents have this key"
    ran.expect(2, reason)
    assert "nessie merge" not in ran.err
    assert created_twice.head("main") == head


@pytest.mark.parametrize("side", [["--ours", "d9"], ["--theirs", "d9"], ["--theirs", "*"], []])
def test_a_value_for_a_key_that_the_source_gave_to_another_table_is_refused(
    nessie, catalog, tmp_path, side
) -> None:
    catalog.create("main", "d")
    catalog.branch("x")
    catalog.update("main", "d", 16)
    catalog.rename("x", "d", "d9")
    catalog.create("main", "d9", 21)
    _value(tmp_path)
    ran = nessie("merge", "x", "--resolve", "d9=f.json", *side)
    ran.expect(2, "d9: a new value cannot be stored", "decide by --ours or --theirs")
    assert catalog.snapshot("main", "d9") == 21


@pytest.fixture
def dropped_there(catalog, tmp_path):
    catalog.branch("x")
    catalog.update("main", "db.orders", 5)
    catalog.drop("x", "db.orders")
    _value(tmp_path)
    return catalog


@pytest.mark.parametrize("verb", VERBS)
def test_a_value_and_the_side_that_deletes_the_table_are_refused(
    nessie, dropped_there, verb
) -> None:
    ran = nessie(*verb, "x", "--resolve", "db.orders=f.json", "--theirs", "db.orders")
    ran.expect(2, "db.orders: a new value cannot be stored, because theirs deletes it")
    assert dropped_there.snapshot("main", "db.orders") == 5


@pytest.mark.parametrize("side", [["--theirs", "*"], ["--behavior", "force"], []])
def test_a_value_counts_more_than_a_deletion_that_does_not_name_the_table(
    nessie, dropped_there, side
) -> None:
    ran = nessie("merge", "x", "--resolve", "db.orders=f.json", *side)
    assert ran.code == 0, ran
    assert dropped_there.snapshot("main", "db.orders") == 77


def test_a_value_and_the_deletion_of_a_renamed_table_are_refused(nessie, catalog, tmp_path) -> None:
    catalog.create("main", "b", 5)
    catalog.branch("x")
    catalog.rename("main", "b", "b2")
    catalog.drop("x", "b")
    _value(tmp_path)
    ran = nessie("merge", "x", "--resolve", "b2=f.json", "--theirs", "b2")
    ran.expect(2, "b2: a new value cannot be stored, because theirs deletes it")
    assert catalog.snapshot("main", "b2") == 5


def _move_namespace(catalog, branch, old, new, **properties) -> None:
    namespace = catalog.repository.content(branch, key(old))
    moved = structs.replace(namespace, elements=(new,), properties=properties)
    catalog.commit(branch, f"{old} to {new}", Delete(key(old)), Put(key(new), moved))


def test_a_value_for_a_namespace_whose_key_another_one_takes_is_refused(
    nessie, catalog, tmp_path
) -> None:
    catalog.commit("main", "a", Put(key("a"), Namespace(elements=("a",))))
    catalog.branch("x")
    _move_namespace(catalog, "main", "a", "m")
    catalog.drop("x", "a")
    catalog.commit("x", "m", Put(key("m"), Namespace(elements=("m",))))
    _value(tmp_path, type="NAMESPACE", elements=["m"], properties={"r": "77"})
    head = catalog.head("main")
    ran = nessie("merge", "x", "--resolve", "m=f.json")
    ran.expect(
        2, "m: a new value cannot be stored, because another content of theirs takes its key"
    )
    assert catalog.head("main") == head


@pytest.mark.parametrize(("side", "name"), [("--theirs", "m"), ("--ours", "k")])
def test_the_elements_of_a_given_namespace_follow_the_key(
    nessie, catalog, tmp_path, side, name
) -> None:
    catalog.commit("main", "a", Put(key("a"), Namespace(elements=("a",))))
    catalog.branch("x")
    _move_namespace(catalog, "main", "a", "k", p="1")
    _move_namespace(catalog, "x", "a", "m", p="2")
    _value(tmp_path, type="NAMESPACE", elements=["k"], properties={"r": "77"})
    refused = nessie("merge", "x", "--resolve", "k=f.json", "--json")
    (conflict,) = refused.error["errorDetails"]["conflicts"]
    (line,) = (each for each in conflict["resolutions"] if side in each)
    assert nessie(*shlex.split(line)[1:]).code == 0
    stored = catalog.repository.content("main", key(name))
    assert (stored.elements, stored.properties) == ((name,), {"r": "77"})


@pytest.mark.parametrize(
    ("side", "name", "snapshot"), [("--ours", "e2", 77), ("--theirs", "e3", 34)]
)
def test_printed_lines_keep_the_value_in_all_commits_of_a_transplant(  # noqa: PLR0917
    nessie, catalog, tmp_path, side, name, snapshot
) -> None:
    catalog.create("main", "e")
    catalog.branch("x")
    catalog.rename("main", "e", "e2")
    catalog.update("main", "e2", 33)
    catalog.rename("x", "e", "e3")
    catalog.update("x", "e3", 34)
    _value(tmp_path)
    ran = nessie("transplant", "main..x", "--resolve", "e2=f.json", "--json")
    for _ in range(3):
        if ran.code == 0:
            break
        (conflict,) = ran.error["errorDetails"]["conflicts"]
        assert all("--resolve e2=f.json" in line for line in conflict["resolutions"])
        lines = map(shlex.split, conflict["resolutions"])
        (words,) = (words for words in lines if words[-4] == side)
        ran = nessie(*words[1:], "--json")
    assert ran.code == 0, ran
    assert catalog.snapshot("main", name) == snapshot
