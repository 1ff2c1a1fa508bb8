"""`nessie resolve` combines staged tables with what the branch has done to them since."""

from __future__ import annotations

import pytest

from nessie_cli.cli.merge.staged_tables import StagedTables
from tests.cli.lake import Lake
from tests.command.in_process import InProcess


@pytest.fixture
def staged(nessie: InProcess, lake: Lake) -> Lake:
    """A batch with an append of dev, and an append on main since."""
    lake.append("dev", 20)
    assert nessie("restore", "db.t", "--source", "dev").code == 0
    lake.append("main", 10)
    return lake


def test_a_staged_table_has_the_rows_of_both(nessie: InProcess, staged: Lake) -> None:
    before = staged.data_files()
    refused = nessie("commit", "-m", "load")
    assert refused.code == 3
    assert (
        "  resolve            nessie resolve   # combine tables, if that is safe\n" in refused.err
    )
    ran = nessie("resolve")
    assert (ran.code, ran.out) == (0, "update     db.t  iceberg-table\n")
    assert ran.err.endswith("db.t: combined with later changes: 1 file and 1 row added\n")
    assert staged.ids("main") == [1, 2, 3, 10]
    assert nessie("commit", "-m", "load").code == 0
    assert staged.ids("main") == [1, 2, 3, 10, 20]
    assert staged.data_files() == before
    assert nessie("fsck").code == nessie("audit").code == 0


def test_the_answer_and_the_commit_are_one_command(nessie: InProcess, staged: Lake) -> None:
    ran = nessie("resolve", "-m", "load")
    assert (ran.code, "db.t: combined with later changes" in ran.err) == (0, True)
    assert staged.ids("main") == [1, 2, 3, 10, 20]
    with staged.table("main") as table:
        snapshot = table.current_snapshot()
        assert snapshot is not None
        assert snapshot.summary is not None
        assert snapshot.summary["nessie.combined-by"] == "staged changes for main"


def test_the_document_says_what_was_combined(nessie: InProcess, staged: Lake) -> None:
    (operation,) = nessie("resolve", "--json").json["operations"]
    assert (operation["combination"]["addedRows"], operation["key"]) == (
        1,
        {"elements": ["db", "t"]},
    )
    (status,) = nessie("status", "--json").json["batch"]["operations"]
    assert status == {name: each for name, each in operation.items() if name != "combination"}


@pytest.mark.parametrize("by", ["option", "setting"])
def test_tables_are_not_combined_on_request(nessie: InProcess, staged: Lake, by: str) -> None:
    before = staged.files()
    options = ["--no-combine"] if by == "option" else []
    if by == "setting":
        assert nessie("config", "set", "merge.tables", "conflict").code == 0
        assert "# one by one" in nessie("commit", "-m", "load").err
    ran = nessie("resolve", *options)
    assert (ran.code, "these conflicts are not decided: db.t" in ran.err) == (2, True)
    assert staged.files() == before


@pytest.mark.parametrize(("side", "ids"), [("--proposed", [1, 2, 3, 20]), ("--current", None)])
def test_a_decision_comes_first(
    nessie: InProcess, staged: Lake, side: str, ids: list[int] | None
) -> None:
    before = staged.files()
    assert nessie("resolve", side, "db.t").code == 0
    assert staged.files() == before
    committed = nessie("commit", "-m", "load")
    if ids is None:
        assert "nothing is staged" in committed.err
    else:
        assert staged.ids("main") == ids


def test_the_reason_against_a_combination(nessie: InProcess, lake: Lake) -> None:
    lake.delete("dev", 1)
    assert nessie("restore", "db.t", "--source", "dev").code == 0
    lake.delete("main", 2)
    before = lake.files()
    ran = nessie("resolve")
    assert ran.code == 2
    assert "db.t is not combined: both sides removed or rewrote this file" in ran.err
    assert lake.files() == before


def test_files_of_a_batch_that_stays_in_conflict_are_removed(
    nessie: InProcess, staged: Lake
) -> None:
    def value(location: str) -> list[str]:
        options = ["--type", "iceberg-table", "--snapshot-id", "1", "--metadata-location", location]
        return ["db.v", *options]

    assert nessie("content", "put", *value("a")).code == 0
    other = [*value("b"), "-m", "other"]
    assert nessie("stash").code == 0
    assert nessie("content", "put", *other).code == 0
    assert nessie("stash", "pop").code == 0
    before = staged.files()
    ran = nessie("resolve")
    assert (ran.code, "these conflicts are not decided: db.v" in ran.err) == (2, True)
    assert staged.files() == before
    # With a decision about the other content, both are done.
    assert nessie("resolve", "--current", "db.v", "-m", "load").code == 0
    assert staged.ids("main") == [1, 2, 3, 10, 20]


@pytest.mark.parametrize("renamed", ["main", "batch"])
def test_a_renamed_table_combines(nessie: InProcess, lake: Lake, renamed: str) -> None:
    lake.append("dev", 20)
    assert nessie("restore", "db.t", "--source", "dev").code == 0
    if renamed == "batch":
        assert nessie("content", "rename", "db.t", "db.u").code == 0
        lake.append("main", 10)
    else:
        assert nessie("stash").code == 0
        lake.append("main", 10)
        assert nessie("content", "rename", "db.t", "db.u", "-m", "rename").code == 0
        assert nessie("stash", "pop").code == 0
    assert nessie("commit", "-m", "load").code == 3
    ran = nessie("resolve", "-m", "load")
    assert ran.code == 0, ran.err
    with lake.catalog("main") as catalog:
        read = catalog.load_table("db.u").scan().to_arrow()["id"].to_pylist()
    assert sorted(read) == [1, 2, 3, 10, 20]
    assert nessie("content", "show", "db.t").code == 4


def test_a_staged_revert_meets_a_later_change(nessie: InProcess, lake: Lake) -> None:
    lake.append("main", 666)
    assert nessie("revert", "main", "--no-commit").code == 0
    lake.append("main", 10)
    ran = nessie("resolve", "-m", "take out")
    assert ran.code == 0
    assert "db.t: combined with later changes: 1 file and 1 row removed\n" in ran.err
    assert lake.ids("main") == [1, 2, 3, 10]


def test_rows_that_the_branch_has_already(nessie: InProcess, staged: Lake) -> None:
    assert nessie("merge", "dev").code == 0
    before = staged.files()
    ran = nessie("resolve")
    assert (ran.code, "nothing is left to commit" in ran.err) == (0, True)
    assert staged.files() == before
    assert staged.ids("main") == [1, 2, 3, 10, 20]


def test_a_branch_that_moves_meanwhile_loses_no_row(
    nessie: InProcess, staged: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    combine = StagedTables.combine
    more = iter([30, 31])

    def after_another_append(self, error, decisions):
        keys = combine(self, error, decisions)
        for id_ in more:
            staged.append("main", id_)
            break
        return keys

    monkeypatch.setattr(StagedTables, "combine", after_another_append)
    assert nessie("resolve", "-m", "load").code == 0
    assert staged.ids("main") == [1, 2, 3, 10, 20, 30, 31]
