"""`nessie import` from a catalog that others made."""

from __future__ import annotations

import shlex
from contextlib import closing
from pathlib import Path

import pytest

from nessie_cli.iceberg.catalog import NessieCatalog
from tests.cli.importing.sql_lake import SqlLake, document, elements, rows
from tests.command.in_process import InProcess

ALL = ["hr.people", "sales.items", "sales.orders"]
KEEPS = {"gc.enabled": "false", "write.metadata.delete-after-commit.enabled": "false"}


def ids(tmp_path: Path, name: str, ref: str = "main") -> list[int]:
    store = str(tmp_path / ".nessie" / "store.sqlite")
    with closing(NessieCatalog("ours", uri=store, ref=ref)) as catalog:
        return sorted(catalog.load_table(name).scan().to_arrow()["id"].to_pylist())


def write_here(tmp_path: Path, name: str, *numbers: int, ref: str = "main") -> None:
    store = str(tmp_path / ".nessie" / "store.sqlite")
    with closing(NessieCatalog("ours", uri=store, ref=ref, author="etl")) as catalog:
        catalog.load_table(name).append(rows(*numbers))


def heads(nessie: InProcess) -> list[str]:
    return [entry["commitMeta"]["hash"] for entry in nessie("log", "--json").json["logEntries"]]


def location(nessie: InProcess, key: str) -> str:
    shown: str = nessie("content", "show", key, "--json").json["content"]["metadataLocation"]
    return shown


def test_everything_comes_in_one_commit(ours: InProcess, theirs: SqlLake, tmp_path: Path) -> None:
    before = {name: theirs.metadata(name).read_bytes() for name in ALL}
    ran = ours("import", theirs.uri)
    assert ran.code == 0, ran.err
    assert ran.lines[0] == f"{theirs.uri}: 3 new tables, 2 new namespaces"
    assert ran.lines[1].startswith("main ")
    assert ran.lines[1].endswith(" 5 keys")
    assert len(heads(ours)) == 1
    assert ours("log", "--json").json["logEntries"][0]["commitMeta"]["message"] == (
        f"import 3 tables from {theirs.uri}"
    )
    listed = ours("content", "list", "--json").json["entries"]
    assert [".".join(entry["name"]["elements"]) for entry in listed] == [
        "hr", "hr.people", "sales", "sales.items", "sales.orders",
    ]  # fmt: skip
    assert listed[0]["content"]["properties"]["owner"] == "ann"
    assert ids(tmp_path, "sales.orders") == [1]
    assert {name: theirs.metadata(name).read_bytes() for name in ALL} == before
    assert ours("audit").code == 0


def test_the_copy_keeps_files_and_names_its_original(ours: InProcess, theirs: SqlLake) -> None:
    original = theirs.metadata("sales.orders")
    assert ours("import", theirs.uri).code == 0
    copy = document(location(ours, "sales.orders"))
    before = document(original)
    assert copy["properties"].items() >= KEEPS.items()
    assert copy["metadata-log"][-1]["metadata-file"] == f"file://{original}"
    same = ("table-uuid", "location", "last-updated-ms", "current-snapshot-id", "snapshots")
    assert {name: copy[name] for name in same} == {name: before[name] for name in same}
    assert len(theirs.copies()) == 3
    # A reader of the folder that takes its newest version does not take the copy.
    folder = str(original.parent.parent)
    shown = ours("content", "put", "x", "--from-metadata", folder, "--json").json
    assert str(original.name) in str(shown)


def test_a_repetition_does_nothing(ours: InProcess, theirs: SqlLake) -> None:
    assert ours("import", theirs.uri).code == 0
    files, head = theirs.files(), heads(ours)
    ran = ours("import", theirs.uri)
    assert (ran.code, ran.lines) == (
        0,
        [f"{theirs.uri}: 3 unchanged", "nothing to import into main"],
    )
    assert (theirs.files(), heads(ours)) == (files, head)
    theirs.create("sales.extra")
    ran = ours("import", theirs.uri, "--json")
    assert ran.json["counts"]["imported"] == 1
    assert elements(ran.json["foreign"] and [{"key": key} for key in ran.json["foreign"]]) == [
        "sales.extra"
    ]


def test_a_dry_run_shows_everything_and_writes_nothing(ours: InProcess, theirs: SqlLake) -> None:
    files, settings = theirs.files(), ours("config", "list").out
    ran = ours("import", theirs.uri, "--dry-run")
    assert ran.code == 0, ran.err
    table = [line.split() for line in ran.lines[:-2]]
    assert table[0] == ["KEY", "TYPE", "ACTION", "SOURCE", "FILE"]
    assert table[1] == ["hr", "namespace", "create"]
    assert table[2] == ["hr.people", "table", "import", theirs.metadata("hr.people").name]
    assert ran.lines[-1] == "would commit 5 keys to main; nothing was written"
    assert heads(ours) == []
    assert (theirs.files(), ours("config", "list").out) == (files, settings)
    whole = ours("import", theirs.uri, "--dry-run", "--json").json
    assert elements(whole["contents"]) == ALL
    assert (whole["wasApplied"], whole["counts"]["imported"]) == (False, 3)
    assert whole["contents"][0]["sourceMetadata"] == f"file://{theirs.metadata('hr.people')}"


def test_two_writers_are_warned_about_once(ours: InProcess, theirs: SqlLake) -> None:
    theirs.create(*(f"many.t{number}" for number in range(4)))
    ran = ours("import", theirs.uri)
    (warning,) = [line for line in ran.err.splitlines() if "may still write" in line]
    assert "7 tables: hr.people, many.t0, many.t1 and 4 more" in warning
    ran = ours("import", "--list", "--json")
    assert {(row["state"], row["adopted"]) for row in ran.json["tables"]} == {
        ("as imported", False)
    }
    assert ours("import", "--adopt", "many").code == 0
    adopted = [row for row in ours("import", "--list", "--json").json["tables"] if row["adopted"]]
    assert elements(adopted) == ["many.t0", "many.t1", "many.t2", "many.t3"]
    ours("import", "--adopt", "nothing.here").expect(4, "no imported table matches 'nothing.here'")


def test_tables_are_adopted_from_the_start(ours: InProcess, theirs: SqlLake) -> None:
    ran = ours("import", theirs.uri, "--adopt", "sales.*")
    assert "may still write 1 table: hr.people" in ran.err
    rows_ = ours("import", "--list", "--json").json["tables"]
    assert {".".join(row["key"]["elements"]): row["adopted"] for row in rows_} == {
        "hr.people": False, "sales.items": True, "sales.orders": True,
    }  # fmt: skip


def test_properties_that_are_set_need_no_copy(ours: InProcess, theirs: SqlLake) -> None:
    theirs.create("own.t", properties=KEEPS)
    assert ours("import", theirs.uri, "--include", "own").code == 0
    assert location(ours, "own.t") == f"file://{theirs.metadata('own.t')}"
    assert theirs.copies() == set()


def test_pointers_only_writes_nothing_and_says_what_that_risks(
    ours: InProcess, theirs: SqlLake
) -> None:
    files = theirs.files()
    ran = ours("import", theirs.uri, "--pointers-only")
    assert ran.code == 0, ran.err
    assert "gc.enabled is as at the source" in ran.err
    assert theirs.files() == files
    assert location(ours, "hr.people") == f"file://{theirs.metadata('hr.people')}"
    # Both forms know the other one.
    assert ours("import", theirs.uri).lines[0].endswith(": 3 unchanged")


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        (("sales",), ["sales.items", "sales.orders"]),
        (("--include", "sales.o*"), ["sales.orders"]),
        (("--include", "sales", "--include", "hr.people"), ALL),
        (("--exclude", "sales.items"), ["hr.people", "sales.orders"]),
        (("--exclude", "s*"), ["hr.people"]),
        (("--include", "*.o*", "--prefix", "old.lake"), ["old.lake.sales.orders"]),
    ],
)
def test_contents_are_selected(
    ours: InProcess, theirs: SqlLake, options: tuple[str, ...], keys: list[str]
) -> None:
    assert ours("import", theirs.uri, *options).code == 0
    listed = ours("content", "list", "--json").json["entries"]
    tables = [entry for entry in listed if entry["type"] == "ICEBERG_TABLE"]
    assert [".".join(entry["name"]["elements"]) for entry in tables] == keys


def test_an_empty_selection_is_a_failure(ours: InProcess, theirs: SqlLake) -> None:
    ours("import", theirs.uri, "--include", "salse.*").expect(4, "matches 'salse.*'")
    ours("import", theirs.uri, "--exclude", "*").expect(4, "the options select no table")
    ours("import", theirs.uri, "nowhere").expect(2, "nowhere")
    assert heads(ours) == []


def test_another_branch_and_message(ours: InProcess, theirs: SqlLake) -> None:
    assert ours("branch", "staging").code == 0
    assert ours("import", theirs.uri, "--into", "staging", "-m", "move in").code == 0
    assert heads(ours) == []
    (entry,) = ours("log", "staging", "--json").json["logEntries"]
    assert entry["commitMeta"]["message"] == "move in"
    assert ours("tag", "v1").code == 0
    ours("import", theirs.uri, "--into", "v1").expect(2, "v1")


# -- problems --------------------------------------------------------------------------------------


@pytest.fixture
def faulty(ours: InProcess, theirs: SqlLake) -> SqlLake:
    """A lake with a fault of every kind, and a branch that is in its way."""
    theirs.create("bad.torn", "bad.gone", "bad.twice", "bad.wrong", "taken.t", "below.t", "bad.ok")
    torn = theirs.metadata("bad.torn")
    torn.write_bytes(torn.read_bytes()[:100])
    theirs.metadata("bad.gone").unlink()
    theirs.register("bad.again", f"file://{theirs.metadata('bad.twice')}")
    wrong = theirs.metadata("bad.wrong")
    wrong.write_text(wrong.read_text().replace('"long"', '"lang"'))
    theirs.register("bad.t\x01", f"file://{theirs.metadata('bad.ok')}x")
    put = ("content", "put", "--metadata-location", "s3://x/1.json", "--snapshot-id", "1")
    table = ("--type", "iceberg-table", "-m", "other")
    namespace = ("content", "put", "taken", "--type", "namespace", "-m", "other")
    assert ours(*namespace).code == 0
    assert ours(*put, "taken.t", *table).code == 0
    assert ours(*put, "below", *table).code == 0
    return theirs


FAULTS = {
    "bad.torn: ": "cannot load this table",
    "bad.gone: ": "No such file",
    "bad.again, bad.twice: ": "under 2 names",
    "bad.wrong: ": "cannot load this table",
    "bad.t\\x01: ": "cannot load this table",
    "taken.t: ": "another content with this key (iceberg-table)",
    "below: ": "iceberg-table here",
}


def test_all_problems_are_found_at_once(ours: InProcess, faulty: SqlLake) -> None:
    head, files = heads(ours), faulty.files()
    ran = ours("import", faulty.uri)
    assert ran.code == 2
    problems = [line.removeprefix("nessie: ") for line in ran.err.splitlines()]
    for start, part in FAULTS.items():
        (line,) = [line for line in problems if line.startswith(start)]
        assert part in line, line
    assert "nothing was imported: 7 problems, and 4 contents without one" in ran.err
    assert (heads(ours), faulty.files()) == (head, files)
    whole = ours("import", faulty.uri, "--json")
    assert whole.code == 2
    kinds = sorted(problem["kind"] for problem in whole.json["problems"])
    assert kinds == ["conflict"] * 2 + ["invalid"] * 5
    assert ours("import", faulty.uri, "--dry-run").code == 2


def test_the_rest_is_imported(ours: InProcess, faulty: SqlLake) -> None:
    ran = ours("import", faulty.uri, "--skip-invalid")
    assert ran.code == 8
    assert len([line for line in ran.err.splitlines() if line.startswith("nessie: ")]) == 7
    assert elements(ours("import", "--list", "--json").json["tables"]) == ["bad.ok", *ALL]
    assert ours("import", faulty.uri).code == 2


def test_conflicts_alone_have_their_own_exit_code(ours: InProcess, faulty: SqlLake) -> None:
    assert ours("import", faulty.uri, "taken").code == 3
    assert ours("import", faulty.uri, "below").code == 3
    assert ours("import", faulty.uri, "taken", "below", "--prefix", "theirs").code == 0


# -- repetition ------------------------------------------------------------------------------------


def test_an_update_is_asked_for(ours: InProcess, theirs: SqlLake, tmp_path: Path) -> None:
    assert ours("import", theirs.uri).code == 0
    id_ = ours("content", "show", "sales.orders", "--json").json["content"]["id"]
    theirs.append("sales.orders", 2)
    ran = ours("import", theirs.uri)
    assert ran.lines[0].endswith(": 2 unchanged, 1 newer at the source")
    assert "newer at the source, which --update brings: sales.orders" in ran.err
    assert ids(tmp_path, "sales.orders") == [1]
    assert ours("import", theirs.uri, "--update").code == 0
    assert ids(tmp_path, "sales.orders") == [1, 2]
    assert ours("content", "show", "sales.orders", "--json").json["content"]["id"] == id_
    assert ours("import", theirs.uri, "--update").lines[0].endswith(": 3 unchanged")


def test_an_update_follows_a_rename(ours: InProcess, theirs: SqlLake, tmp_path: Path) -> None:
    assert ours("import", theirs.uri).code == 0
    assert ours("content", "rename", "sales.orders", "sales.moved", "-m", "x").code == 0
    assert ours("import", theirs.uri).lines[0].endswith(": 3 unchanged")
    theirs.append("sales.orders", 2)
    assert ours("import", theirs.uri, "--update").code == 0
    assert ids(tmp_path, "sales.moved") == [1, 2]


@pytest.mark.parametrize("renamed", [False, True])
def test_a_table_that_both_changed_is_a_conflict(
    ours: InProcess, theirs: SqlLake, tmp_path: Path, renamed: bool
) -> None:
    assert ours("import", theirs.uri).code == 0
    write_here(tmp_path, "sales.orders", 9)
    assert ours("import", theirs.uri, "--update").lines[0].endswith("1 changed here only")
    if renamed:
        assert ours("content", "rename", "sales.orders", "sales.moved", "-m", "x").code == 0
    theirs.append("sales.orders", 2)
    theirs.append("sales.items", 2)
    assert ours("import", theirs.uri).lines[0].endswith("2 newer at the source")
    head = heads(ours)
    ours("import", theirs.uri, "--update").expect(3, "sales.orders: it was changed here")
    assert heads(ours) == head
    assert ours("import", theirs.uri, "--update", "--skip-invalid").code == 8
    assert ids(tmp_path, "sales.items") == [1, 2]


def test_an_update_after_a_discarded_branch(
    ours: InProcess, theirs: SqlLake, tmp_path: Path
) -> None:
    assert ours("import", theirs.uri).code == 0
    assert ours("branch", "staging").code == 0
    theirs.append("sales.orders", 2)
    assert ours("import", theirs.uri, "--update", "--into", "staging").code == 0
    assert ours("branch", "-D", "staging").code == 0
    theirs.append("sales.orders", 3)
    ran = ours("import", theirs.uri, "--update")
    assert ran.code == 0, ran.err
    assert ids(tmp_path, "sales.orders") == [1, 2, 3]


def test_a_pointer_of_a_discarded_branch(ours: InProcess, theirs: SqlLake, tmp_path: Path) -> None:
    assert ours("import", theirs.uri, "--pointers-only").code == 0
    assert ours("branch", "staging").code == 0
    theirs.append("sales.orders", 2)
    update = ("import", theirs.uri, "--update", "--pointers-only")
    assert ours(*update, "--into", "staging").code == 0
    theirs.append("sales.orders", 3)
    assert ours(*update).code == 0
    assert ids(tmp_path, "sales.orders") == [1, 2, 3]


def test_a_branch_with_an_earlier_import_is_updated(
    ours: InProcess, theirs: SqlLake, tmp_path: Path
) -> None:
    """The record has the last import into any branch."""
    assert ours("import", theirs.uri).code == 0
    assert ours("branch", "staging").code == 0
    theirs.append("sales.orders", 2)
    assert ours("import", theirs.uri, "--update", "--into", "staging").code == 0
    assert ours("import", theirs.uri).lines[0].endswith("2 unchanged, 1 newer at the source")
    assert ours("import", theirs.uri, "--update").lines[0].endswith("1 updated, 2 unchanged")
    assert ids(tmp_path, "sales.orders") == [1, 2]


def test_tables_that_were_swapped_at_the_source(
    ours: InProcess, theirs: SqlLake, tmp_path: Path
) -> None:
    theirs.append("sales.orders", 2)
    assert ours("import", theirs.uri).code == 0
    moves = (("orders", "t"), ("items", "orders"), ("t", "items"))
    with theirs.catalog() as catalog:
        for old, new in moves:
            catalog.rename_table(f"sales.{old}", f"sales.{new}")
    refused = ours("import", theirs.uri, "--update")
    refused.expect(3, "the branch has this table as sales.items, imported with another name")
    assert "delete" not in refused.err
    theirs.append("sales.orders", 3)
    ours("import", theirs.uri, "--update").expect(3, "sales.orders: ", "the source renamed it")
    for old, new in moves:
        assert ours("content", "rename", f"sales.{old}", f"sales.{new}").code == 0
    assert ours("commit", "-m", "as the source").code == 0
    assert ours("import", theirs.uri, "--update").lines[0].endswith("1 updated, 2 unchanged")
    theirs.append("sales.items", 4)
    assert ours("import", theirs.uri, "--update").lines[0].endswith("1 updated, 2 unchanged")
    assert ids(tmp_path, "sales.orders") == [1, 3]
    assert ids(tmp_path, "sales.items") == [1, 2, 4]


def test_a_table_that_was_renamed_at_the_source(
    ours: InProcess, theirs: SqlLake, tmp_path: Path
) -> None:
    assert ours("import", theirs.uri).code == 0
    id_ = ours("content", "show", "sales.orders", "--json").json["content"]["id"]
    with theirs.catalog() as catalog:
        catalog.rename_table("sales.orders", "sales.with space")
    theirs.append("sales.with space", 2)
    ran = ours("import", theirs.uri).expect(3, "the source renamed it")
    hint = ran.err.partition("`nessie ")[2].partition("`")[0]
    assert ours(*shlex.split(hint.replace("MSG", "follow"))).code == 0
    assert ours("import", theirs.uri, "--update").lines[0].endswith("1 updated, 2 unchanged")
    assert ids(tmp_path, "sales.with space") == [1, 2]
    shown = ours("content", "show", "sales.with space", "--json").json
    assert shown["content"]["id"] == id_


def test_a_table_that_was_made_again_at_the_source(ours: InProcess, theirs: SqlLake) -> None:
    assert ours("import", theirs.uri).code == 0
    with theirs.catalog() as catalog:
        catalog.drop_table("sales.orders")
    theirs.create("sales.orders")
    ran = ours("import", theirs.uri, "--update").expect(3, "another table with this name now")
    hint = ran.err.partition("Hint: `nessie ")[2].partition(" -m MSG`")[0]
    assert ours(*hint.split(), "-m", "make room").code == 0
    ran = ours("import", theirs.uri, "--update")
    assert ran.code == 0, ran.err


def test_a_deleted_table_comes_back(ours: InProcess, theirs: SqlLake, tmp_path: Path) -> None:
    assert ours("import", theirs.uri).code == 0
    assert ours("content", "delete", "sales.orders", "-m", "x").code == 0
    assert ours("import", theirs.uri, "--exclude", "sales.orders").lines[0].endswith("2 unchanged")
    assert ours("import", theirs.uri).code == 0
    assert ids(tmp_path, "sales.orders") == [1]


def test_a_table_of_another_import_is_a_conflict(ours: InProcess, theirs: SqlLake) -> None:
    assert ours("import", theirs.uri).code == 0
    ours("import", theirs.uri, "--as", "again", "--prefix", "x").expect(
        3, "sales.orders: the branch has this table as sales.orders"
    )
    theirs.append("sales.orders", 2)
    ours("import", theirs.uri, "sales", "--as", "again", "--prefix", "x").expect(
        3, "sales.orders: the branch has this table as sales.orders", "--as NAME"
    )


def test_the_same_table_joins_the_record(ours: InProcess, theirs: SqlLake) -> None:
    """It was staged by hand before, so nothing knows that another catalog writes it."""
    assert ours("content", "put", "sales", "--type", "namespace", "-m", "x").code == 0
    file = str(theirs.metadata("sales.orders"))
    put = ("content", "put", "sales.orders", "--from-metadata", file, "-m", "x")
    assert ours(*put).code == 0
    ran = ours("import", theirs.uri)
    assert ran.code == 0, ran.err
    assert ran.lines[0].endswith("1 unchanged")
    assert elements(ours("import", "--list", "--json").json["tables"]) == ALL


def test_a_guess_never_brings_what_a_branch_here_wrote(
    ours: InProcess, theirs: SqlLake, tmp_path: Path
) -> None:
    folder = str(theirs.folder)
    assert ours("import", folder, "--guess").code == 0
    assert ours("branch", "dev").code == 0
    theirs.append("sales.items", 2)
    # Their newest file is 00001. Files that continue a copy begin with 00000.
    for number in (7, 8, 9):
        write_here(tmp_path, "sales.orders", number, ref="dev")
    ran = ours("import", folder, "--guess", "--update", "--json")
    assert ran.code == 0
    assert ran.json["counts"]["updated"] == 1
    left_out = "metadata files that were written after an import of the table do not count"
    assert f"sales.orders: {left_out}" in ran.err
    assert ids(tmp_path, "sales.orders") == [1]
    assert ids(tmp_path, "sales.items") == [1, 2]
