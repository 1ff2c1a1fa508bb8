"""`diff --rows` and `show --rows`, on real tables in the folder of the workspace."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from nessie_cli.iceberg.catalog import NessieCatalog

KEYED = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "state", StringType()),
    identifier_field_ids=[1],
)
UNKEYED = Schema(*KEYED.fields)


def rows(*pairs: tuple[int, str | None]) -> pa.Table:
    ids, states = zip(*pairs, strict=True)
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("state", pa.string())])
    return pa.table([list(ids), list(states)], schema=schema)


@contextmanager
def catalog_of(folder: Path, branch: str) -> Iterator[NessieCatalog]:
    store, warehouse = folder / "lake.sqlite", folder / "warehouse"
    catalog = NessieCatalog("lake", uri=str(store), warehouse=str(warehouse), ref=branch)
    with closing(catalog):
        yield catalog


@pytest.fixture
def lake(nessie, tmp_path: Path) -> Any:
    """main and its branch feature: db.orders with a key and db.others without."""
    assert nessie("init", "--store", str(tmp_path / "lake.sqlite")).code == 0
    with catalog_of(tmp_path, "main") as catalog:
        catalog.create_namespace("db")
        for name, schema, first in (
            ("db.orders", KEYED, rows((1, "new"), (2, "paid"), (3, None))),
            ("db.others", UNKEYED, rows((1, "x"))),
        ):
            with catalog.create_table_transaction(name, schema) as transaction:
                transaction.append(first)
    assert nessie("branch", "feature").code == 0
    with catalog_of(tmp_path, "feature") as catalog:
        new = rows((1, "paid"), (3, None), (4, "a|b\n\x1b[1m"))
        catalog.load_table("db.orders").overwrite(new)
    with catalog_of(tmp_path, "main") as catalog:
        catalog.load_table("db.others").append(rows((2, "y")))
    return nessie


ORDERS = ("diff", "main", "feature", "--rows", "--", "db.orders")


def test_changed_cells_show_both_values(lake) -> None:
    ran = lake("diff", "main", "feature", "--rows")
    assert ran.code == 0
    assert ran.lines == [
        "updated db.orders",
        "   id  state",
        "~   1  new -> paid",
        "-   2  paid",
        "+   4  a|b\\n\\x1b[1m",
        "",
        "updated db.others",
        "   id  state",
        "-   2  y",
    ]
    assert ran.err.splitlines() == [
        "db.orders: 1 inserted, 1 deleted, 1 updated",
        "db.others: 1 deleted",
    ]


def test_keys_select_tables(lake) -> None:
    assert "db.others" not in lake(*ORDERS).out
    assert lake("diff", "main...feature", "--rows").out == lake(*ORDERS).out
    assert lake("diff", "main", "main", "--rows") == (0, "", "")


def test_the_metadata_has_totals(lake, tmp_path: Path) -> None:
    for file in (tmp_path / "warehouse").rglob("*.parquet"):
        file.unlink()
    ran = lake("diff", "main", "feature", "--rows", "--stat")
    heading, *lines = (line.split()[:6] for line in ran.lines)
    assert heading == ["KEY", "ADDED", "ROWS", "FILES", "REMOVED", "ROWS"]
    assert lines == [["db.orders", "3", "1", "3", "1", "0"], ["db.others", "0", "0", "1", "1", "0"]]
    orders = lake("diff", "main", "feature", "--rows", "--stat", "--json").json["tables"][0]
    assert (orders["columns"], orders["keyColumns"]) == (["id", "state"], ["id"])
    assert orders["addedFiles"]["rows"] == orders["removedFiles"]["rows"] == 3
    ran = lake(*ORDERS)
    assert (ran.code, ran.out) == (2, "")
    assert "no such file" in ran.err


def test_json_has_the_rows_by_column(lake) -> None:
    answer = lake("--json", *ORDERS).json
    assert [(row["change"], row["from"], row["to"]) for row in answer["rows"]] == [
        ("UPDATE", {"id": 1, "state": "new"}, {"id": 1, "state": "paid"}),
        ("DELETE", {"id": 2, "state": "paid"}, None),
        ("INSERT", None, {"id": 4, "state": "a|b\n\x1b[1m"}),
    ]
    lines = lake("--jsonl", *ORDERS).out.splitlines()
    assert len(lines) == 3


def test_markdown_is_a_table(lake) -> None:
    ran = lake("diff", "main", "feature", "--rows", "--format", "markdown", "--", "db.orders")
    assert ran.out.splitlines() == [
        "**db.orders**",
        "",
        "|  | id | state |",
        "| --- | --- | --- |",
        "| ~ | 1 | **new -> paid** |",
        r"| - | 2 | paid |",
        r"| + | 4 | a\|b\\n\\x1b\[1m |",
        "",
    ]


def test_a_zero_that_changes_its_sign_is_marked(lake, tmp_path: Path) -> None:
    def zero(id_: int, sign: float) -> pa.Table:
        value = 0.0 * sign
        return pa.table({"id": [id_], "x": [value], "y": [[1.0, value]], "z": [0.0]})

    with catalog_of(tmp_path, "main") as catalog:
        table = catalog.create_table("db.zeros", zero(1, 1).schema)
        table.append(zero(1, 1))
    assert lake("branch", "negative", "main").code == 0
    with catalog_of(tmp_path, "negative") as catalog:
        catalog.load_table("db.zeros").overwrite(zero(1, -1))
    command = ("diff", "main", "negative", "--rows", "--key", "id")
    assert lake(*command).out.splitlines()[2].split(maxsplit=2)[2].split("  ") == [
        "0.0 -> -0.0",
        "[1.0,0.0] -> [1.0,-0.0]",
        "0.0",
    ]
    markdown = lake(*command, "--format", "markdown").out.splitlines()[4]
    assert markdown == (r"| ~ | 1 | **0.0 -> -0.0** | **\[1.0,0.0\] -> \[1.0,-0.0\]** | 0.0 |")


def test_csv_has_two_rows_for_an_update(lake, tmp_path: Path) -> None:
    output = tmp_path / "rows.csv"
    command = ("diff", "main", "feature", "--rows", "--format", "csv")
    printed = lake(*command, "--", "db.orders").out
    assert lake(*command, "-o", str(output), "--", "db.orders").out == ""
    assert output.read_text() == printed
    with output.open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["_change_type", "id", "state"],
            ["UPDATE_BEFORE", "1", "new"],
            ["UPDATE_AFTER", "1", "paid"],
            ["DELETE", "2", "paid"],
            ["INSERT", "4", "a|b\n\x1b[1m"],
        ]
    ran = lake(*command)
    assert (ran.code, ran.out) == (2, "")
    assert "--format csv is for one table, but 2 differ" in ran.err


def test_csv_with_line_breaks_and_empty_texts(lake, tmp_path: Path) -> None:
    texts = ["a\rb", "\r", "a\nb", 'a"b', "a,b", "", None]
    assert lake("branch", "texts").code == 0
    with catalog_of(tmp_path, "texts") as catalog:
        catalog.load_table("db.others").append(rows(*enumerate(texts, 10)))
    output = tmp_path / "rows.csv"
    options = ("--rows", "--format", "csv", "-o", str(output))
    assert lake("diff", "main", "texts", *options).code == 0
    with output.open(newline="") as file:
        assert [row[2] for row in csv.reader(file)] == ["state", *(text or "" for text in texts)]
    assert output.read_text().endswith('INSERT,15,""\nINSERT,16,\n')


def test_a_file_without_rows_if_no_table_differs(lake, tmp_path: Path) -> None:
    for format_ in ("csv", "parquet"):
        output = tmp_path / f"rows.{format_}"
        output.write_text("of yesterday")
        ran = lake("diff", "main", "main", "--rows", "--format", format_, "-o", str(output))
        assert ran == (0, "", "no table differs\n")
    assert (tmp_path / "rows.csv").read_text() == "_change_type\n"
    table = pq.read_table(tmp_path / "rows.parquet")
    assert (table.column_names, table.num_rows) == (["_change_type"], 0)
    ran = lake("diff", "main", "main", "--rows", "--format", "csv")
    assert ran == (0, "_change_type\n", "no table differs\n")


def test_parquet_is_a_file(lake, tmp_path: Path) -> None:
    output = tmp_path / "rows.parquet"
    ran = lake(
        "diff",
        "main",
        "feature",
        "--rows",
        "--format",
        "parquet",
        "-o",
        str(output),
        "--",
        "db.orders",
    )
    assert ran == (0, "", "db.orders: 1 inserted, 1 deleted, 1 updated\n")
    table = pq.read_table(output)
    assert table["_change_type"].to_pylist() == [
        "UPDATE_BEFORE",
        "UPDATE_AFTER",
        "DELETE",
        "INSERT",
    ]
    assert table["id"].to_pylist() == [1, 1, 2, 4]


def test_the_rows_of_a_commit(lake) -> None:
    ran = lake("show", "feature", "--rows")
    assert ran.lines[0].startswith("commit ")
    assert ran.lines[-7:] == [
        "M db.orders",
        "",
        "updated db.orders",
        "   id  state",
        "~   1  new -> paid",
        "-   2  paid",
        "+   4  a|b\\n\\x1b[1m",
    ]
    answer = lake("show", "feature", "--rows", "--json").json
    assert answer["rows"] == lake("--json", *ORDERS).json["rows"]
    assert (
        answer["effectiveToReference"]["hash"]
        == lake("log", "feature", "-n1", "--json").json["logEntries"][0]["commitMeta"]["hash"]
    )
    assert lake("show", "feature", "--rows", "--format", "csv").lines[0] == "_change_type,id,state"


def test_the_rows_of_a_created_and_of_a_deleted_table(lake) -> None:
    assert lake("content", "delete", "db.others", "-m", "gone").code == 0
    assert lake("diff", "HEAD~1", "HEAD", "--rows").lines[2:] == ["-   1  x", "-   2  y"]
    assert lake("diff", "HEAD", "HEAD~1", "--rows").lines[0] == "created db.others"


def test_the_rows_of_staged_changes(lake, tmp_path: Path) -> None:
    assert lake("content", "delete", "db.others").code == 0
    ran = lake("diff", "--staged", "--rows")
    assert ran.lines == ["deleted db.others", "   id  state", "-   1  x", "-   2  y"]


def test_a_renamed_table_has_no_changed_rows(lake) -> None:
    assert lake("content", "rename", "db.others", "db.more", "-m", "rename").code == 0
    ran = lake("diff", "HEAD~1", "--rows")
    assert (ran.out, ran.err) == ("", "db.more: no row differs\n")


def test_the_exit_code_says_whether_rows_differ(lake) -> None:
    assert lake(*ORDERS[:4], "--exit-code").code == 1
    assert lake(*ORDERS[:4], "--exit-code", "--where", "id = 9").code == 0
    assert lake("-q", *ORDERS[:4]) == (1, "", "")
    assert lake("-q", *ORDERS[:4], "--where", "id = 9") == (0, "", "")


def test_rows_and_columns_are_selected(lake) -> None:
    def shown(*options: str) -> list[str]:
        return lake(*ORDERS[:4], *options, "--", "db.orders").lines[2:]

    assert shown("--where", "state = 'paid'") == ["~   1  new -> paid", "-   2  paid"]
    assert shown("--columns", "id") == ["-   2", "+   4"]
    assert shown("--limit", "1") == ["~   1  new -> paid"]
    assert shown("--key", "state") == [
        "+       4  a|b\\n\\x1b[1m",
        "-       1  new",
        "~  2 -> 1  paid",
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--key", "id"], "--key needs --rows"),
        (["--rows", "--deep"], "--rows and --deep cannot be used together"),
        (["--rows", "--name-only"], "--rows and --name-only cannot be used together"),
        (["--rows", "--key", "nothing"], "db.orders: there is no column 'nothing'"),
        (["--rows", "--where", "id <"], "db.orders: 'id <' is not a filter"),
        (["--rows", "--format", "parquet"], "--format parquet needs --output FILE"),
        (["--rows", "-o", "x"], "--output needs --format markdown, csv or parquet"),
        (["--rows", "--stat", "--format", "csv"], "--stat and --format cannot be used together"),
        (["--rows", "--stat", "--where", "id > 1"], "--stat and --where cannot be used together"),
        (["--rows", "--stat", "--limit", "1"], "--stat and --limit cannot be used together"),
    ],
)
def test_wrong_options(lake, options: list[str], said: str) -> None:
    ran = lake("diff", "main", "feature", *options)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert lake("diff", "main", "feature", "--rows", "--json", "--format", "csv").code == 2
    assert lake("show", "feature", "--rows", "--name-status").code == 2
    assert "--rows cannot be used" in lake("show", "feature:db.orders", "--rows").err


def test_tables_without_readable_metadata(nessie, catalog) -> None:
    """The tables of the fixture are on a bucket that does not exist."""
    catalog.update("main", "db.orders", 2)
    ran = nessie("diff", "v1", "main", "--rows")
    assert ran.code in (2, 7)
    assert "s3://lake" in ran.err
