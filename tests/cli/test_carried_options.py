"""Printed command lines use the store, the workspace and the branch of the command."""

import shlex
from pathlib import Path

import pytest

from nessie_cli.model import Put
from tests.cli.conftest import key


@pytest.fixture
def elsewhere(catalog) -> str:
    """The folder of the workspace, for `-C`."""
    return str(Path.cwd())


def lines(text: str) -> list[list[str]]:
    """Returns the words of the command lines in a text."""
    return [shlex.split(part) for part in text.split("`")[1::2]]


def test_a_hint_about_a_second_entry_names_the_branch(nessie, catalog) -> None:
    catalog.branch("dev")
    dropped = catalog.drop("dev", "db.orders")
    again = catalog.repository.content("main", key("db.orders")).with_id(None)
    catalog.commit("dev", "again", Put(key("db.again"), again))
    for words in (["revert", dropped], ["restore", "db.orders", "--at", "main"]):
        ran = nessie("--ref", "dev", *words)
        assert ran.code == 2
        assert lines(ran.err) == [
            ["nessie", "--ref", "dev", "content", "rename", "db.again", "db.orders"]
        ]


def test_hints_about_a_batch_name_the_workspace(nessie, catalog, elsewhere) -> None:
    assert nessie("-C", elsewhere, "content", "delete", "db.orders").code == 0
    catalog.rename("main", "db.orders", "db.moved")
    ran = nessie("-C", elsewhere, "resolve", "--proposed", "db.orders")
    assert ran.code == 2
    assert lines(ran.err) == [
        ["nessie", "-C", elsewhere, "reset", "db.orders"],
        ["nessie", "-C", elsewhere, "content", "delete", "db.moved"],
    ]
    catalog.branch("dev")
    ran = nessie("-C", elsewhere, "--ref", "dev", "commit", "-m", "m")
    assert ran.code == 2
    assert lines(ran.err) == [
        ["nessie", "-C", elsewhere, "--ref", "main", "commit"],
        ["nessie", "-C", elsewhere, "switch", "dev"],
        ["nessie", "-C", elsewhere, "stash"],
    ]
    ran = nessie("-C", elsewhere, "resolve", "--current", "db.orders")
    assert ran.code == 0
    nessie("-C", elsewhere, "content", "delete", "db.items")
    assert lines(nessie("-C", elsewhere, "stash").err) == [
        ["nessie", "-C", elsewhere, "stash", "pop"]
    ]


def test_hints_about_references_name_the_store(nessie, catalog, elsewhere) -> None:
    catalog.branch("dev")
    catalog.update("dev", "db.orders", 2)
    there = ["-C", elsewhere]
    ran = nessie(*there, "branch", "-f", "dev", "main", "--yes")
    assert lines(ran.err) == [["nessie", *there, "undo", "dev"]]
    ran = nessie(*there, "branch", "-D", "dev")
    assert lines(ran.err) == [["nessie", *there, "undo", "dev"]]
    ran = nessie(*there, "undo")
    assert lines(ran.err) == [["nessie", *there, "undo"]]


def test_a_staged_revert_is_committed_where_it_is_staged(nessie, catalog, elsewhere) -> None:
    changed = catalog.update("main", "db.orders", 2)
    ran = nessie("-C", elsewhere, "revert", changed, "--no-commit")
    assert lines(ran.err) == [["nessie", "-C", elsewhere, "commit", "-m", "MSG"]]
