"""Metadata files in `nessie diff --deep`, `nessie show --deep` and conflicts."""

import json
import sys
from pathlib import Path

import pytest

from nessie_cli.model import IcebergTable, Put
from tests.command.process import run

from .conftest import key


def metadata(path: Path, *columns: str, rows: int) -> str:
    fields = [
        {"id": number, "name": name, "type": "long"} for number, name in enumerate(columns, 1)
    ]
    snapshot = {
        "snapshot-id": rows,
        "summary": {"operation": "append", "total-records": str(rows), "total-data-files": "2"},
    }
    document = {
        "format-version": 2,
        "table-uuid": "x",
        "location": "s3://lake/t",
        "last-column-id": 9,
        "current-schema-id": 0,
        "schemas": [{"schema-id": 0, "fields": fields}],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "snapshots": [snapshot],
    }
    path.write_text(json.dumps(document))
    return str(path)


@pytest.fixture
def deep(catalog, tmp_path):
    """`db.t` in two states with readable metadata files, `db.items` in two without files."""
    found = None
    for number, columns in enumerate((("id",), ("id", "amount")), 1):
        location = metadata(tmp_path / f"{number}.metadata.json", *columns, rows=number * 10)
        table = IcebergTable(
            id=found and found.id, metadata_location=location, snapshot_id=number * 10
        )
        catalog.commit("main", f"state {number}", Put(key("db.t"), table))
        found = catalog.repository.content("main", key("db.t"))
    return catalog


def test_the_fields_of_the_metadata_files_follow_those_of_the_content(nessie, deep) -> None:
    rows = nessie("diff", "main~1", "main", "--deep").fields
    assert rows["db.t", "snapshot-id"] == ["10", "20"]
    assert rows["db.t", "column amount"] == ["", "long"]
    assert rows["db.t", "rows"] == ["10", "20"]
    assert ("db.t", "data-files") not in rows


def test_an_unreadable_file_is_reported_with_its_key_and_the_rest_is_shown(
    nessie, deep, tmp_path
) -> None:
    items = deep.repository.content("main", key("db.items"))
    deep.commit(
        "main",
        "elsewhere",
        Put(key("db.items"), IcebergTable(id=items.id, metadata_location="nowhere.json")),
    )
    third = IcebergTable(
        id=deep.repository.content("main", key("db.t")).id,
        metadata_location=metadata(tmp_path / "3.json", "id", rows=30),
    )
    far = IcebergTable(id=items.id, metadata_location="nofs://bucket/t.json")
    deep.commit("main", "far away", Put(key("db.items"), far), Put(key("db.t"), third))
    ran = nessie("diff", "main~1", "main", "--deep")
    rows = ran.fields
    assert ran.code == 0
    assert rows["db.t", "column amount"] == ["long", ""]
    problems = [line for line in ran.lines if line.startswith("  metadata  ")]
    assert len(problems) == 2
    assert "nofs://bucket/t.json" in problems[1]
    assert rows["db.items", "metadata-location"] == ["nowhere.json", "nofs://bucket/t.json"]


def test_the_document_has_facts_and_problems(nessie, deep) -> None:
    (entry,) = nessie("diff", "main~1", "main", "--deep", "--json").json["diffs"]
    assert {"what": "column", "name": "amount", "from": None, "to": "long"} in entry["metadata"]
    assert entry["metadataProblems"] == []
    assert "metadata" not in nessie("diff", "main~1", "main", "--json").json["diffs"][0]


def test_show_deep(nessie, deep) -> None:
    assert any(
        line.split() == ["column", "amount", "->", "long"]
        for line in nessie("show", "--deep").lines
    )
    assert nessie("show", "--deep", "--json").json["diffs"][0]["metadata"]


def test_a_rename_shows_its_new_key(nessie, deep) -> None:
    deep.rename("main", "db.t", "db.renamed")
    ran = nessie("diff", "main~2", "main", "--deep", "--json")
    old, new = ran.json["diffs"]
    assert "metadata" not in old
    assert new["renamedFrom"] == {"elements": ["db", "t"]}
    assert new["metadata"]


def test_log_deep_shows_what_each_commit_changed_inside_its_tables(nessie, deep) -> None:
    ran = nessie("log", "--deep", "-n", "2")
    lines = [line.split() for line in ran.lines]
    assert (ran.code, lines.count(["column", "amount", "->", "long"])) == (0, 1)
    assert ["rows", "10", "->", "20"] in lines
    assert ["rows", "->", "10"] in lines


def test_log_deep_continues_after_an_unreadable_file(nessie, deep) -> None:
    items = deep.repository.content("main", key("db.items"))
    deep.commit(
        "main",
        "elsewhere",
        Put(key("db.items"), IcebergTable(id=items.id, metadata_location="nowhere.json")),
    )
    ran = nessie("log", "--deep", "-n", "2")
    assert ran.code == 0
    assert any(line.split()[:1] == ["metadata"] for line in ran.lines)
    assert any(line.split() == ["rows", "10", "->", "20"] for line in ran.lines)
    first, second = nessie("log", "--deep", "-n", "2", "--json").json["logEntries"]
    assert first["diffs"][0]["metadataProblems"]
    assert second["diffs"][0]["metadata"]
    assert nessie("log", "--deep", "-n", "2", "--jsonl").lines


def test_a_rename_without_a_change_needs_no_metadata_file(nessie, deep) -> None:
    deep.rename("main", "db.items", "db.moved")
    ran = nessie("log", "--deep", "-n", "1", "--json")
    (_, new) = ran.json["logEntries"][0]["diffs"]
    assert (new["metadata"], new["metadataProblems"]) == ([], [])


def test_deep_shows_fields_and_excludes_summaries(nessie, deep) -> None:
    for option in ("--stat", "--name-status", "--name-only"):
        ran = nessie("diff", "main~1", "main", "--deep", option)
        ran.expect(2, "omit --stat, --name-status and --name-only")


def test_local_files_are_read_without_pyiceberg(nessie, deep) -> None:
    program = (
        "import sys; from nessie_cli.cli.main import run; run(['show', '--deep']);"
        " print(*sys.modules, file=sys.stderr)"
    )
    ran = run(program, program=(sys.executable, "-c")).expect(0)
    assert not {"pyiceberg", "pyarrow", "pydantic"} & set(ran.err.split())
    assert "column amount" in ran.out


@pytest.fixture
def widened(catalog, tmp_path):
    """`db.t` on main with one column, on feature with two and more rows."""
    location = metadata(tmp_path / "base.json", "id", rows=10)
    catalog.commit(
        "main", "new", Put(key("db.t"), IcebergTable(metadata_location=location, snapshot_id=10))
    )
    catalog.branch("feature")
    found = catalog.repository.content("main", key("db.t"))
    location = metadata(tmp_path / "wide.json", "id", "amount", rows=20)
    catalog.commit(
        "feature",
        "wide",
        Put(key("db.t"), IcebergTable(id=found.id, metadata_location=location, snapshot_id=20)),
    )
    return catalog


@pytest.mark.parametrize("verb", ["merge", "transplant"])
def test_a_dry_run_shows_rows_and_schema_of_each_changed_table(nessie, widened, verb) -> None:
    head = widened.head("main")
    ran = nessie(verb, "feature", "--dry-run", "--deep")
    ran.expect(0, "dry run, no conflicts")
    assert ran.err.startswith("dry run, no conflicts")
    assert widened.head("main") == head
    assert ran.changed == [("updated", "db.t")]
    assert ran.fields["db.t", "rows"] == ["10", "20"]
    assert ran.fields["db.t", "column amount"] == ["", "long"]
    assert ran.out == nessie("diff", "main", "feature", "--deep").out


@pytest.mark.parametrize("verb", ["merge", "transplant"])
def test_the_document_of_a_deep_dry_run_has_the_entries_of_a_deep_diff(
    nessie, widened, verb
) -> None:
    found = nessie(verb, "feature", "--dry-run", "--deep", "--json").json
    assert found["diffs"] == nessie("diff", "main", "feature", "--deep", "--json").json["diffs"]
    assert [detail["key"] for detail in found["details"]] == [{"elements": ["db", "t"]}]
    assert "diffs" not in nessie(verb, "feature", "--dry-run", "--json").json


def test_deep_needs_a_dry_run(nessie, widened) -> None:
    head = widened.head("main")
    ran = nessie("merge", "feature", "--deep")
    ran.expect(2, "--dry-run")
    assert widened.head("main") == head


@pytest.fixture
def parted(deep, tmp_path):
    """`db.t` with other rows and columns on `main` and on `dev`."""
    deep.branch("dev")
    for branch, columns, rows in (("main", ("id", "amount"), 30), ("dev", ("id", "total"), 1500)):
        change(deep, branch, metadata(tmp_path / f"{branch}.json", *columns, rows=rows), rows)
    return deep


def change(catalog, branch, location, snapshot) -> None:
    now = catalog.repository.content(branch, key("db.t"))
    table = IcebergTable(id=now.id, metadata_location=location, snapshot_id=snapshot)
    catalog.commit(branch, "change db.t", Put(key("db.t"), table))


def test_a_conflict_shows_rows_files_and_columns_that_differ(nessie, parted) -> None:
    found = nessie("merge", "dev").states
    assert found["rows"] == ["20", "30", "1,500"]
    assert found["column amount"] == ["long", "long", ""]
    assert found["column total"] == ["", "", "long"]
    assert list(found).index("rows") < list(found).index("metadata-location")
    assert not {"data-files", "column id"} & set(found), "they are equal"


@pytest.mark.parametrize("location", ["nowhere.json", "s3://lake/nowhere.json"])
def test_a_conflict_without_its_metadata_files_shows_the_contents(nessie, parted, location) -> None:
    change(parted, "dev", location, 7)
    found = nessie("merge", "dev").states
    assert found["snapshot-id"] == ["20", "30", "7"]
    assert "rows" not in found


def test_a_conflict_shows_only_the_number_of_many_columns(nessie, parted, tmp_path) -> None:
    wide = metadata(tmp_path / "wide.json", *(f"c{n}" for n in range(30)), rows=9)
    change(parted, "dev", wide, 9)
    found = nessie("merge", "dev").states
    assert found["columns"] == ["2", "2", "30"]
    assert not [label for label in found if label.startswith("column ")]
