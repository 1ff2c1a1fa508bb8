"""Printed command lines use the store, the workspace and the branch of the command."""

import shlex
from pathlib import Path

import pytest

from nessie_cli.cli.app.global_options import GlobalOptions, with_carried
from nessie_cli.model import IcebergTable, Put
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


def test_hints_of_messages_name_the_workspace_and_the_branch(nessie, catalog, elsewhere) -> None:
    catalog.branch("dev")
    there = ["nessie", "-C", elsewhere]
    on_dev = [*there, "--ref", "dev"]

    def hints(*words: str) -> list[list[str]]:
        return lines(nessie(*on_dev[1:], *words).err)

    assert hints("commit", "-m", "m") == [[*on_dev, "content", "put", "KEY", "..."]]
    assert hints("branch", "a*") == [[*there, "branch", "-l", "a*"]]
    assert hints("branch", "-d", "main") == []
    assert hints("tag", "main") == []
    assert hints("switch", "main~1") == [[*there, "switch", "-c", "NAME", "main~1"]]
    assert hints("content", "put", "db.orders", "--type", "namespace") == [
        [*on_dev, "content", "replace"]
    ]
    nessie(*on_dev[1:], "content", "put", "db.orders", "--snapshot-id", "3")
    assert hints("content", "unmodified", "db.orders") == [[*on_dev, "reset", "db.orders"]]
    assert hints("stash") == [[*there, "stash", "pop"]]
    assert hints("stash", "pop") == [[*on_dev, "status"]]


def test_the_status_of_a_branch_that_is_gone_names_the_workspace(
    nessie, catalog, elsewhere
) -> None:
    catalog.branch("dev")
    nessie("switch", "dev")
    catalog.repository.delete_reference("dev", expected_hash=catalog.head("dev"))
    ran = nessie("-C", elsewhere, "status")
    assert lines(ran.err) == [
        ["nessie", "-C", elsewhere, "switch", "REF"],
        ["nessie", "-C", elsewhere, "undo", "dev"],
    ]


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_the_advice_of_an_audit_names_the_branch(nessie, catalog, elsewhere, form) -> None:
    catalog.branch("dev")
    lost = IcebergTable(metadata_location=f"file:{elsewhere}/lost.json", snapshot_id=1)
    catalog.commit("dev", "lost", Put(key("db.lost"), lost))
    ran = nessie("-C", elsewhere, "--ref", "dev", "audit", "--prefix", "db.lost", *form)
    text = ran.json["findings"][0]["advice"] if form else ran.err
    assert [line[:5] for line in lines(text)] == [
        ["nessie", "-C", elsewhere, "--ref", "dev"],
        ["nessie", "-C", elsewhere, "--ref", "dev"],
    ]


@pytest.mark.parametrize(
    "text",
    [
        "`nessie init --store URL` creates a store",
        "`nessie help log`",
        "`nessie --ref main commit`",
        "`nessie fsck --store sqlite:b` checks it",
    ],
)
def test_a_command_line_with_its_own_store_is_left_alone(text: str) -> None:
    options = GlobalOptions()
    options.take("store", "sqlite:a")
    assert with_carried(text, options) == text


def test_a_hint_names_the_store_if_the_command_did() -> None:
    options = GlobalOptions()
    options.take("store", "sqlite:a b")
    options.take("ref", "dev")
    text = "`nessie undo main` or `nessie commit`"
    assert with_carried(text, options) == (
        "`nessie --store 'sqlite:a b' undo main` or `nessie --store 'sqlite:a b' --ref dev commit`"
    )
