"""Reverts and restores of states whose metadata files garbage collection has deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.lake import SCHEMA, Lake, rows
from tests.command.in_process import InProcess


def head(nessie: InProcess) -> str:
    hash_: str = nessie("log", "-n", "1", "--json").json["logEntries"][0]["commitMeta"]["hash"]
    return hash_


def metadata_at(nessie: InProcess, revision: str, key: str = "db.t") -> Path:
    shown = nessie("content", "show", key, "--at", revision, "--raw", "--json").json
    return Path(shown["metadataLocation"].removeprefix("file://"))


def delete_earlier(nessie: InProcess, lake: Lake) -> Path:
    """Appends to the table, and deletes the metadata file that it had before."""
    lake.append("main", 10)
    file = metadata_at(nessie, "main~1")
    file.unlink()
    return file


@pytest.mark.parametrize(
    "command",
    [
        ("revert", "main"),
        ("revert", "main", "--dry-run"),
        ("revert", "main", "-n"),
        ("revert", "main~1..main"),
        ("resolve", "revert", "main"),
        ("restore", "db.t", "--at", "main~1"),
        ("restore", "db.t", "--at", "main~1", "-m", "back"),
        ("restore", "db.*", "--at", "main~1"),
    ],
)
def test_an_earlier_state_without_its_metadata_file(
    nessie: InProcess, lake: Lake, command: tuple[str, ...]
) -> None:
    file = delete_earlier(nessie, lake)
    before = head(nessie)
    ran = nessie(*command)
    assert (ran.code, ran.out) == (2, "")
    assert f"db.t: {file}: no such file" in ran.err
    assert head(nessie) == before
    assert nessie("commit", "-m", "nothing").err.startswith("nessie: nothing is staged")
    assert lake.ids("main") == [1, 2, 3, 10]


def test_a_dropped_table_without_its_metadata_file(nessie: InProcess, lake: Lake) -> None:
    file = metadata_at(nessie, "main")
    assert nessie("content", "delete", "db.t", "-m", "drop").code == 0
    for each in file.parent.iterdir():
        each.unlink()
    for command in (("revert", "main"), ("restore", "db.t", "--at", "main~1")):
        ran = nessie(*command)
        assert (ran.code, ran.out) == (2, "")
        assert f"{file}: no such file" in ran.err


def test_a_revert_that_leaves_the_table_as_it_is(nessie: InProcess, lake: Lake) -> None:
    delete_earlier(nessie, lake)
    ran = nessie("revert", "main", "--ours", "db.t")
    assert ran.code == 0, ran
    assert lake.ids("main") == [1, 2, 3, 10]


def test_no_table_combines_before_the_refusal(nessie: InProcess, lake: Lake) -> None:
    with lake.catalog("main") as catalog:
        catalog.create_table("db.u", SCHEMA)
    start = head(nessie)
    lake.append("main", 10)
    with lake.catalog("main") as catalog:
        catalog.load_table("db.u").append(rows(1))
    end = head(nessie)
    metadata_at(nessie, start, "db.u").unlink()
    lake.append("main", 20)
    before = lake.files()
    ran = nessie("revert", f"{start}..{end}")
    assert (ran.code, ran.out) == (2, "")
    assert "db.u: " in ran.err
    assert lake.files() == before
    ran = nessie("revert", f"{start}..{end}", "--ours", "db.u")
    assert ran.code == 0, ran
    assert lake.ids("main") == [1, 2, 3, 20]


def test_a_rename_does_not_need_the_file(nessie: InProcess, lake: Lake) -> None:
    assert nessie("content", "rename", "db.t", "db.u", "-m", "rename").code == 0
    metadata_at(nessie, "main", "db.u").unlink()
    assert nessie("revert", "main").code == 0


def test_files_of_another_machine_are_not_missed(nessie: InProcess, lake: Lake) -> None:
    lake.append("main", 10)
    lake.folder.rename(lake.folder.with_name("elsewhere"))
    assert nessie("revert", "main").code == 0
    assert nessie("restore", "db.t", "--at", "main~1").code == 0
