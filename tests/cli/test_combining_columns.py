"""Tables whose columns or merge bases differ: what does not combine, and is not compared."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.types import LongType, StringType

from tests.cli.lake import SCHEMA, Lake, rows
from tests.command.in_process import InProcess


@pytest.mark.parametrize("change", ["add", "promote", "optional"])
@pytest.mark.parametrize("ours_has_other_columns", [False, True])
def test_a_picked_commit_with_other_columns_is_a_conflict(
    nessie: InProcess, lake: Lake, change: str, ours_has_other_columns: bool
) -> None:
    """The commit changes no column, but its files were written with the columns of its branch."""
    with lake.table("dev") as table, table.update_schema() as update:
        if change == "add":
            update.add_column("secret", StringType())
        elif change == "promote":
            update.update_column("n", LongType())
        else:
            update.make_column_optional("id")
    if ours_has_other_columns:
        with lake.table("main") as table, table.update_schema() as update:
            update.add_column("city", StringType())
    lake.append("main", 10)
    lake.append("dev", 20)
    ran = nessie("transplant", "dev")
    assert ran.code == 3
    reason = "the columns of ours do not come from those of the base"
    assert f"not combined       {reason}" in ran.err
    assert lake.ids("main") == [1, 2, 3, 10]


def test_a_picked_commit_fits_columns_that_were_added_on_the_target(
    nessie: InProcess, lake: Lake
) -> None:
    with lake.table("main") as table, table.update_schema() as update:
        update.add_column("city", StringType())
    lake.append("main", 10)
    lake.append("dev", 20)
    lake.append("dev", 21)
    assert nessie("transplant", "dev").code == 0
    assert lake.ids("main") == [1, 2, 3, 10, 21]


def test_rows_deleted_after_crossed_merges_do_not_come_back(nessie: InProcess, lake: Lake) -> None:
    lake.append("main", 10)
    lake.append("dev", 20)
    assert nessie("branch", "old-main", "main").code == 0
    assert nessie("merge", "dev").code == 0
    assert nessie("merge", "old-main", "--into", "dev").code == 0
    lake.delete("main", 10)
    lake.delete("main", 20)
    assert nessie("merge", "dev").code == 0
    assert lake.ids("main") == [1, 2, 3]


def test_after_crossed_merges_a_reverted_deletion_is_not_done_again(
    nessie: InProcess, lake: Lake
) -> None:
    with lake.table("main") as table:
        table.delete("id < 4")
    lake.append("dev", 20)
    assert nessie("branch", "old-main", "main").code == 0
    assert nessie("merge", "dev").code == 0
    assert nessie("merge", "old-main", "--into", "dev").code == 0
    assert nessie("revert", "main~1").code == 0
    assert lake.ids("main") == [1, 2, 3, 20]
    assert nessie("merge", "dev").code == 0
    assert lake.ids("main") == [1, 2, 3, 20]


def test_a_column_id_that_was_given_out_twice_is_a_conflict(nessie: InProcess, lake: Lake) -> None:
    """A revert takes back a column, and another one gets its id."""
    with lake.table("main") as table, table.update_schema() as update:
        update.add_column("salary", StringType())
    assert nessie("branch", "other", "main").code == 0
    assert nessie("--ref", "other", "revert", "other").code == 0
    with lake.table("other") as table, table.update_schema() as update:
        update.add_column("nickname", StringType())
    lake.append("main", 10)
    ran = nessie("merge", "other")
    reason = "the columns of theirs do not come from those of the base"
    assert (ran.code, reason in ran.err) == (3, True)


@pytest.mark.parametrize("verb", ["transplant", "revert"])
def test_a_mapping_of_names_that_files_need_is_not_lost(
    nessie: InProcess, lake: Lake, tmp_path: Path, verb: str
) -> None:
    """Files without ids of columns: the first one sets the property, both need it."""
    branch = "dev" if verb == "transplant" else "main"
    for number in (20, 21):
        file = tmp_path / f"{number}.parquet"
        pq.write_table(rows(number), file)
        with lake.table(branch) as table:
            table.add_files([file.as_uri()])
    lake.append("main", 10)
    ran = nessie("transplant", "dev") if verb == "transplant" else nessie("revert", "main~2")
    assert ran.code == 3
    assert "schema.name-mapping.default" in ran.err


def test_a_revert_takes_back_a_renamed_column(nessie: InProcess, lake: Lake) -> None:
    with lake.table("main") as table, table.update_schema() as update:
        update.rename_column("v", "text")
    with lake.table("main") as table:
        table.append(rows(10).rename_columns(["id", "text", "n"]))
    assert nessie("revert", "main~1", "--dry-run").code == 0
    ran = nessie("revert", "main~1")
    assert (ran.code, "only definitions change" in ran.err) == (0, True), ran
    with lake.table("main") as table:
        assert table.scan(row_filter="v == 'x'").to_arrow()["id"].to_pylist() == [10, 1, 2, 3]
    assert nessie("audit").code == 0
    lake.append("main", 11)
    assert nessie("revert", "main~1").code == 0
    with lake.table("main") as table:
        assert table.schema().column_names == ["id", "text", "n"]
    assert lake.ids("main") == [1, 2, 3, 10, 11]


def give_one_id_to_two_columns(lake: Lake) -> None:
    for branch, type_, name in (("main", LongType(), "city"), ("dev", StringType(), "secret")):
        with lake.table(branch) as table, table.update_schema() as update:
            update.add_column(name, type_)
    lake.append("main", 10)
    lake.append("dev", 20, 21)


def test_rows_of_columns_with_one_id_are_not_compared(nessie: InProcess, lake: Lake) -> None:
    """Two branches gave one id to different columns."""
    give_one_id_to_two_columns(lake)
    for columns in ((), ("--columns", "id,secret"), ("--key", "secret", "--columns", "id")):
        ran = nessie("diff", "main", "dev", "--rows", *columns)
        assert ran.code == 2
        reason = "column city of one state and column secret of the other one have the same id"
        assert reason in ran.err


def test_other_columns_are_compared(nessie: InProcess, lake: Lake) -> None:
    give_one_id_to_two_columns(lake)
    options = ("--key", "id", "--columns", "id,v", "--where", "id > 10")
    ran = nessie("diff", "main", "dev", "--rows", *options, "--json")
    assert ran.code == 0, ran
    assert [(row["change"], row["to"]) for row in ran.json["rows"]] == [
        ("INSERT", {"id": 20, "v": "x"}),
        ("INSERT", {"id": 21, "v": "x"}),
    ]
    ran = nessie("diff", "main", "dev", "--rows", "--columns", "id", "--where", "secret = 'x'")
    assert (ran.code, "among the compared columns" in ran.err) == (2, True)


def test_the_metadata_is_compared_without_columns(nessie: InProcess, lake: Lake) -> None:
    give_one_id_to_two_columns(lake)
    (table,) = nessie("diff", "main", "dev", "--rows", "--stat", "--json").json["tables"]
    assert (table["addedFiles"]["rows"], table["removedFiles"]["rows"]) == (2, 1)


def test_one_table_does_not_stop_the_others(nessie: InProcess, lake: Lake) -> None:
    with lake.catalog("dev") as catalog:
        for name in ("db.a", "db.z"):
            with catalog.create_table_transaction(name, SCHEMA) as transaction:
                transaction.append(rows(1))
    give_one_id_to_two_columns(lake)
    reason = "db.t: the rows cannot be compared: column city of one state"
    ran = nessie("diff", "main", "dev", "--rows")
    assert (ran.code, reason in ran.err) == (8, True)
    assert [line for line in ran.out.splitlines() if "db." in line] == [
        "created db.a",
        "created db.z",
    ]
    ran = nessie("diff", "main", "dev", "--rows", "--json")
    assert ran.code == 8
    assert [row["key"]["elements"][1] for row in ran.json["rows"]] == ["a", "z"]
    (error,) = ran.json["errors"]
    assert error["message"].startswith(reason)
    ran = nessie("diff", "main", "dev", "--rows", "--format", "csv")
    assert (ran.code, ran.out) == (2, "")
    ran = nessie("diff", "main", "dev", "--rows", "--stat")
    assert (ran.code, len(ran.rows)) == (0, 3)


def test_after_a_decision_about_columns_they_are_still_different(
    nessie: InProcess, lake: Lake
) -> None:
    """Ours was kept once, so the next base has the columns of theirs."""
    for branch, name in (("main", "city"), ("dev", "secret")):
        with lake.table(branch) as table, table.update_schema() as update:
            update.add_column(name, StringType())
    assert nessie("merge", "dev").code == 3
    assert nessie("merge", "dev", "--ours", "db.t").code == 0
    lake.append("dev", 20)
    lake.append("main", 10)
    assert nessie("merge", "dev").code == 3


def test_a_column_called_as_that_of_changes_is_named(nessie: InProcess, lake: Lake) -> None:
    with lake.table("main") as table, table.update_schema() as update:
        update.add_column("_change_type", StringType())
    lake.append("main", 10)
    ran = nessie("diff", "dev", "main", "--rows")
    assert (ran.code, "has a column _change_type" in ran.err) == (2, True)
    assert nessie("diff", "dev", "main", "--rows", "--columns", "id").code == 0


def test_after_crossed_merges_new_commits_combine_in_both_directions(
    nessie: InProcess, lake: Lake
) -> None:
    for number in range(2):
        lake.append("main", 10 + number)
        lake.append("dev", 20 + number)
        assert nessie("branch", f"old-{number}", "main").code == 0
        assert nessie("merge", "dev").code == 0
        assert nessie("merge", f"old-{number}", "--into", "dev").code == 0
    lake.delete("main", 20)
    lake.append("dev", 22)
    ran = nessie("merge", "dev", "--json")
    assert (ran.code, ran.json["details"][0]["combination"]["addedRows"]) == (0, 1)
    assert nessie("merge", "main", "--into", "dev").code == 0
    assert lake.ids("main") == lake.ids("dev") == [1, 2, 3, 10, 11, 21, 22]
    assert nessie("audit").code == 0


def test_after_crossed_merges_that_were_decided_differently_a_merge_asks_again(
    nessie: InProcess, lake: Lake
) -> None:
    lake.append("main", 10)
    lake.append("dev", 20)
    assert nessie("branch", "old-main", "main").code == 0
    assert nessie("merge", "dev", "--ours", "db.t").code == 0
    assert nessie("merge", "old-main", "--into", "dev").code == 0
    lake.append("main", 11)
    lake.append("dev", 21)
    ran = nessie("merge", "dev")
    assert (ran.code, "ours does not have the changes of all of them" in ran.err) == (3, True)


def test_crossed_merges_of_changes_that_do_not_combine_say_so(
    nessie: InProcess, lake: Lake
) -> None:
    lake.delete("main", 1)
    lake.delete("dev", 2)
    assert nessie("branch", "old-main", "main").code == 0
    assert nessie("merge", "dev", "--ours", "db.t").code == 0
    assert nessie("merge", "old-main", "--into", "dev", "--ours", "db.t").code == 0
    lake.append("main", 11)
    lake.append("dev", 21)
    ran = nessie("merge", "dev")
    assert (ran.code, "which do not combine (both sides removed" in ran.err) == (3, True)
    assert "transplant new commits" in ran.err


def change_columns(lake: Lake, ref: str, change: str) -> None:
    with lake.table(ref) as table, table.update_schema(allow_incompatible_changes=True) as update:
        verb, _, words = change.partition(" ")
        if verb == "add":
            update.add_column(words, StringType())
        elif verb == "rename":
            update.rename_column(*words.split())
        elif verb == "widen":
            update.update_column(words, LongType())
        elif verb == "drop":
            update.delete_column(words)
        elif verb == "first":
            update.move_first(words)
        else:
            update.make_column_optional(words)


def append_all(lake: Lake, ref: str, id_: int) -> None:
    """Appends a row with a value in each column."""
    with lake.table(ref) as table:
        fields = table.schema().as_arrow()
        values = {"id": id_, "n": id_}
        row = {name: [values.get(name, f"{name} of {id_}")] for name in fields.names}
        table.append(pa.table(row, schema=fields))


@pytest.mark.parametrize(
    ("one", "other", "columns"),
    [
        ("add city", "rename v w", ["id", "w", "n", "city"]),
        ("add city", "widen n", ["id", "v", "n", "city"]),
        ("drop n", "add city", ["id", "v", "city"]),
        ("drop n", "rename v w", ["id", "w"]),
        ("rename v w", "widen n", ["id", "w", "n"]),
        ("first n", "add city", ["n", "id", "v", "city"]),
        ("first n", "rename v w", ["n", "id", "w"]),
        ("optional id", "rename v w", ["id", "w", "n"]),
        ("drop v", "drop n", ["id"]),
    ],
)
def test_changes_of_different_columns_combine(
    nessie: InProcess, lake: Lake, one: str, other: str, columns: list[str]
) -> None:
    change_columns(lake, "main", one)
    append_all(lake, "main", 10)
    change_columns(lake, "dev", other)
    append_all(lake, "dev", 20)
    assert nessie("branch", "copy", "main").code == 0
    for source, target in (("dev", "main"), ("copy", "dev")):
        ran = nessie("merge", source, "--into", target)
        assert ran.code == 0, ran.err
    for ref in ("main", "dev"):
        with lake.table(ref) as table:
            assert table.schema().column_names == columns
            found = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
        assert [row["id"] for row in found] == [1, 2, 3, 10, 20]
        assert [row.get("n") for row in found] == (
            [1, 1, 1, 10, 20] if "n" in columns else [None] * 5
        )
        v = "w" if "w" in columns else "v"
        if v in columns:
            assert [row[v][0] for row in found][:3] == ["x"] * 3
            assert found[3][v].endswith("of 10")
            assert found[4][v].endswith("of 20")
        if "city" in columns:
            cities = {row["id"]: row["city"] for row in found}
            of = 10 if one == "add city" else 20
            assert cities == {1: None, 2: None, 3: None, 10: None, 20: None, of: f"city of {of}"}
        append_all(lake, ref, 30)
    assert nessie("audit").code == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("rename v w", "rename v x"),
        ("drop n", "widen n"),
        ("drop n", "rename n m"),
        ("add city", "add town"),
        ("add w", "rename v w"),
        ("first n", "first v"),
    ],
)
def test_changes_of_one_column_or_name_are_a_conflict(
    nessie: InProcess, lake: Lake, one: str, other: str
) -> None:
    change_columns(lake, "main", one)
    change_columns(lake, "dev", other)
    for source, target in (("dev", "main"), ("main", "dev")):
        ran = nessie("merge", source, "--into", target)
        assert ran.code == 3
        assert "columns" in ran.err
