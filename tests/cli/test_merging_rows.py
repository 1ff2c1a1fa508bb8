"""`--rows`: tables whose files do not combine are merged row by row and cell by cell."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.lake import Lake
from tests.cli.rows import Rows, read, write
from tests.command.in_process import InProcess

START: Rows = {1: ("x", 1), 2: ("x", 1), 3: ("x", 1)}
BY_ID = ("--rows", "--key", "id")


@pytest.fixture
def edited(lake: Lake) -> Lake:
    """Both sides change different cells of row 1, delete another row each, and add one each."""
    write(lake, "main", {1: ("ours", 1), 3: ("x", 1), 10: ("ours", 10)})
    write(lake, "dev", {1: ("x", 2), 2: ("x", 1), 20: ("theirs", 20)})
    return lake


@pytest.fixture
def colliding(lake: Lake) -> Lake:
    """Both sides change one cell of row 1 differently; row 2 is changed here and deleted there."""
    write(lake, "main", {1: ("ours", 1), 2: ("ours", 1), 3: ("x", 1)})
    write(lake, "dev", {1: ("theirs", 2), 3: ("theirs", 1)})
    return lake


MERGED: Rows = {1: ("ours", 2), 10: ("ours", 10), 20: ("theirs", 20)}


def test_cells_merge(nessie: InProcess, edited: Lake) -> None:
    assert nessie("merge", "dev").code == 3
    ran = nessie("merge", "dev", *BY_ID)
    assert ran.code == 0
    assert ran.rows[0][:2] == ["db.t", "combined"]
    assert "rows were merged by their keys: 1 inserted, 1 updated, 1 deleted" in ran.err
    assert read(edited, "main") == MERGED
    assert nessie("fsck").code == nessie("audit").code == 0
    again = nessie("merge", "dev", *BY_ID)
    assert (again.code, again.err) == (0, "already up to date: nothing was merged into main\n")


def test_both_directions_give_the_same_rows(nessie: InProcess, edited: Lake) -> None:
    assert nessie("branch", "copy", "main").code == 0
    assert nessie("merge", "copy", "--into", "dev", *BY_ID).code == 0
    assert read(edited, "dev") == MERGED


def test_without_a_terminal_the_options_for_rows_are_named(
    nessie: InProcess, colliding: Lake
) -> None:
    ran = nessie("resolve", "merge", "dev", *BY_ID)
    assert ran.code == 2
    assert "--rows-ours KEY, --rows-theirs KEY or --decisions FILE decide about rows" in ran.err


def test_later_changes_merge_again(nessie: InProcess, edited: Lake) -> None:
    assert nessie("merge", "dev", *BY_ID).code == 0
    edited.append("main", 30)
    write(edited, "dev", {1: ("x", 3), 2: ("x", 1), 20: ("theirs", 20), 21: ("theirs", 21)})
    assert nessie("merge", "dev", *BY_ID).code == 0
    merged = {**MERGED, 1: ("ours", 3), 21: ("theirs", 21), 30: ("x", 1)}
    assert read(edited, "main") == merged
    assert nessie("merge", "main", "--into", "dev", *BY_ID).code == 0
    assert read(edited, "dev") == merged


def test_an_append_after_a_merge_of_rows_needs_no_rows(nessie: InProcess, edited: Lake) -> None:
    assert nessie("merge", "dev", *BY_ID).code == 0
    edited.append("dev", 40)
    ran = nessie("merge", "dev", *BY_ID)
    assert ran.code == 0
    assert read(edited, "main") == {**MERGED, 40: ("x", 1)}


def test_the_plain_conflict_offers_it(nessie: InProcess, edited: Lake) -> None:
    ran = nessie("merge", "dev")
    assert "merges the rows by their keys" in ran.err
    (line,) = (line for line in ran.err.splitlines() if line.endswith(" --rows"))
    command = line.split("nessie ", 1)[1].split()
    assert nessie(*command, "--key", "id").code == 0
    assert read(edited, "main") == MERGED


def test_a_conflict_that_rows_do_not_solve_does_not_offer_them(
    nessie: InProcess, edited: Lake
) -> None:
    for ref in ("main", "dev"):
        with edited.table(ref) as table, table.transaction() as transaction:
            transaction.set_properties(owner=ref)
    for options in ((), BY_ID):
        ran = nessie("merge", "dev", *options)
        assert ran.code == 3
        assert "both sides changed the property 'owner'" in " ".join(ran.err.split())
        assert "merges the rows by their keys" not in ran.err


def test_a_table_without_a_key_is_refused(nessie: InProcess, edited: Lake) -> None:
    before = edited.files()
    ran = nessie("merge", "dev", "--rows")
    assert ran.code == 3
    assert "the table has no identifier fields to find them by" in " ".join(ran.err.split())
    assert edited.files() == before


def test_conflicts_are_named_and_nothing_is_written(nessie: InProcess, colliding: Lake) -> None:
    before = colliding.files()
    ran = nessie("merge", "dev", *BY_ID)
    assert ran.code == 3
    assert "rows are in conflict (2)" in ran.err
    assert "id=1: v\n" in ran.err
    error = json.loads(nessie("merge", "dev", *BY_ID, "--json").out)["error"]
    ((collision,),) = (each["collisions"] for each in error["errorDetails"]["conflicts"])
    assert collision["rows"] == [
        {
            "kind": "UPDATE_UPDATE",
            "key": {"id": 1},
            "column": "v",
            "base": "x",
            "ours": "ours",
            "theirs": "theirs",
        },
        {
            "kind": "UPDATE_DELETE",
            "key": {"id": 2},
            "column": None,
            "base": {"id": 2, "v": "x", "n": 1},
            "ours": {"id": 2, "v": "ours", "n": 1},
            "theirs": None,
        },
    ]
    assert colliding.files() == before


@pytest.mark.parametrize(
    ("side", "expected"),
    [
        ("ours", {1: ("ours", 2), 2: ("ours", 1), 3: ("theirs", 1)}),
        ("theirs", {1: ("theirs", 2), 3: ("theirs", 1)}),
    ],
)
def test_a_side_for_the_rows_in_conflict(
    nessie: InProcess, colliding: Lake, side: str, expected: Rows
) -> None:
    assert nessie("merge", "dev", *BY_ID, f"--rows-{side}", "db.t").code == 0
    assert read(colliding, "main") == expected


def test_whole_rows(nessie: InProcess, edited: Lake) -> None:
    ran = nessie("merge", "dev", "--whole-rows", "--key", "id")
    assert ran.code == 3
    assert "rows are in conflict (1)" in ran.err
    decided = nessie("merge", "dev", "--whole-rows", "--key", "id", "--rows-theirs", "db.t")
    assert decided.code == 0
    assert read(edited, "main") == {**MERGED, 1: ("x", 2)}


@pytest.mark.parametrize("name", ["rows.csv", "rows.json"])
def test_a_file_of_decisions(nessie: InProcess, colliding: Lake, name: str) -> None:
    ran = nessie("merge", "dev", *BY_ID, "--write-decisions", name)
    assert ran.code == 3
    assert f"{name} has 2 rows and cells in conflict" in ran.err
    path = Path(name)
    if name.endswith(".csv"):
        with path.open(newline="") as file:
            entries = list(csv.DictReader(file))
    else:
        entries = json.loads(path.read_text())
    for entry in entries:
        entry["take"] = "theirs" if entry["column"] else "ours"
    if name.endswith(".csv"):
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(entries[0]))
            writer.writeheader()
            writer.writerows(entries)
    else:
        path.write_text(json.dumps(entries))
    assert nessie("merge", "dev", *BY_ID, "--decisions", name).code == 0
    assert read(colliding, "main") == {1: ("theirs", 2), 2: ("ours", 1), 3: ("theirs", 1)}


HEAD, LINES = "take,table,key,column", 'theirs,db.t,"{""id"":1}",v\nours,db.t,"{""id"":2}",\n'


@pytest.mark.parametrize("separator", [",", ";"])
def test_decisions_of_spreadsheets(nessie: InProcess, colliding: Lake, separator: str) -> None:
    text = f"\ufeff{HEAD}\n{LINES}".replace(",", separator)
    Path("rows.csv").write_text(text, encoding="utf-8")
    assert nessie("merge", "dev", *BY_ID, "--decisions", "rows.csv").code == 0
    assert read(colliding, "main") == {1: ("theirs", 2), 2: ("ours", 1), 3: ("theirs", 1)}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "names no column 'take'"),
        (f"{HEAD.replace('take', 'side')}\n{LINES}", "names no column 'take'"),
        (f"{HEAD}\n{LINES}{LINES.replace('theirs', 'ours')}", "entry 2: take: another entry takes"),
    ],
)
def test_a_wrong_table_of_decisions(
    nessie: InProcess, colliding: Lake, text: str, fault: str
) -> None:
    Path("bad.csv").write_text(text)
    nessie("merge", "dev", *BY_ID, "--decisions", "bad.csv").expect(2, fault)


def test_decisions_that_are_left_open_stay_in_conflict(nessie: InProcess, colliding: Lake) -> None:
    entries = [{"take": "ours", "table": "db.t", "key": {"id": 1}, "column": "v"}]
    Path("some.json").write_text(json.dumps(entries))
    ran = nessie("merge", "dev", *BY_ID, "--decisions", "some.json")
    assert ran.code == 3
    assert "rows are in conflict (1)" in ran.err


BAD: list[tuple[Any, str]] = [
    ([{"take": "both", "table": "db.t", "key": {"id": 1}}], "entry 0: take"),
    ([{"take": "ours", "table": "db.t"}], "entry 0: key"),
    ([{"take": "ours", "table": "db.t", "key": "{"}], "entry 0: key"),
    ([7], "entry 0"),
    ([{"take": "ours", "table": "db..t", "key": {"id": 1}}], "entry 0: table"),
]


@pytest.mark.parametrize(("entries", "place"), BAD)
def test_a_wrong_file_of_decisions(
    nessie: InProcess, colliding: Lake, entries: Any, place: str
) -> None:
    Path("bad.json").write_text(json.dumps(entries))
    ran = nessie("merge", "dev", *BY_ID, "--decisions", "bad.json")
    assert ran.code == 2
    assert place in ran.err


def test_a_decision_about_a_row_without_a_conflict(nessie: InProcess, edited: Lake) -> None:
    entries = [{"take": "ours", "table": "db.t", "key": {"id": 99}}]
    Path("other.json").write_text(json.dumps(entries))
    ran = nessie("merge", "dev", *BY_ID, "--decisions", "other.json")
    assert ran.code == 3
    assert 'a decision names the row {"id":99}, which is not in conflict' in " ".join(
        ran.err.split()
    )


def test_duplicate_keys_refuse_the_merge(nessie: InProcess, edited: Lake) -> None:
    edited.append("dev", 20)
    ran = nessie("merge", "dev", *BY_ID)
    assert ran.code == 3
    assert 'several rows have the same key: {"id":20} on theirs' in " ".join(ran.err.split())
    assert read(edited, "main") == {1: ("ours", 1), 3: ("x", 1), 10: ("ours", 10)}


def test_a_pick_and_a_revert(nessie: InProcess, edited: Lake) -> None:
    assert nessie("transplant", "dev", *BY_ID).code == 0
    assert read(edited, "main") == MERGED
    assert nessie("revert", "main", *BY_ID).code == 0
    assert read(edited, "main") == {1: ("ours", 1), 3: ("x", 1), 10: ("ours", 10)}


def test_a_dry_run_of_several_commits_reads_its_own_rows(nessie: InProcess, edited: Lake) -> None:
    write(edited, "dev", {1: ("x", 3), 2: ("x", 1), 20: ("theirs", 21)})
    before = edited.files()
    dry = nessie("transplant", "main..dev", *BY_ID, "--dry-run")
    assert (dry.code, edited.files()) == (0, before)
    assert nessie("transplant", "main..dev", *BY_ID).code == 0
    assert read(edited, "main") == {1: ("ours", 3), 10: ("ours", 10), 20: ("theirs", 21)}


def test_a_dry_run_writes_nothing(nessie: InProcess, edited: Lake) -> None:
    before = edited.files()
    dry = nessie("merge", "dev", *BY_ID, "--dry-run")
    assert dry.code == 0
    assert edited.files() == before
    assert nessie("merge", "dev", *BY_ID).rows[0][-3:] == dry.rows[0][-3:]


def test_options_that_need_rows(nessie: InProcess, edited: Lake) -> None:
    for option, value in (("--key", "id"), ("--rows-ours", "db.t"), ("--decisions", "f")):
        ran = nessie("merge", "dev", option, value)
        assert ran.code == 2
        assert ran.err == f"nessie: {option} needs --rows or --whole-rows\n"


def test_a_side_for_a_glob_is_refused(nessie: InProcess, edited: Lake) -> None:
    ran = nessie("merge", "dev", *BY_ID, "--rows-ours", "db.*")
    assert (ran.code, "take keys" in ran.err) == (2, True)


def test_a_column_of_the_key_that_is_missing(nessie: InProcess, edited: Lake) -> None:
    ran = nessie("merge", "dev", "--rows", "--key", "nr")
    assert ran.code == 3
    assert "there is no column 'nr'" in ran.err


def test_keys_of_single_tables(nessie: InProcess, edited: Lake) -> None:
    keys = ("--key", "nr", "--key", "db.t=id", "--key", "db.other=x")
    assert nessie("merge", "dev", "--rows", *keys).code == 0
    assert read(edited, "main") == MERGED


def test_a_column_of_the_key_of_a_table_that_is_missing(nessie: InProcess, edited: Lake) -> None:
    ran = nessie("merge", "dev", *BY_ID, "--key", "db.t=nr")
    assert ran.code == 3
    assert "there is no column 'nr'" in ran.err


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (("id", "n"), "--key n: the key of all tables is given twice"),
        (("db.t=id", "db.t=n"), "--key db.t=n: the key of db.t is given twice"),
        (("id,",), "--key id,: the name of a column is empty"),
    ],
)
def test_wrong_keys(nessie: InProcess, edited: Lake, keys: tuple[str, ...], message: str) -> None:
    ran = nessie("merge", "dev", "--rows", *(f"--key={key}" for key in keys))
    assert (ran.code, ran.err) == (2, f"nessie: {message}\n")


KILLED = """
import os, signal, sys
from nessie_cli.iceberg.files import Files
write, number = Files.write, int(sys.argv[1])
def counted(self, uri, data):
    global number
    if not number:
        os.kill(os.getpid(), signal.SIGKILL)
    number -= 1
    write(self, uri, data)
Files.write = counted
from nessie_cli.cli.main import main
sys.argv = ["nessie", "merge", "dev", "--rows", "--key", "id"]
main()
"""


@pytest.mark.parametrize("number", range(6))
def test_a_kill_leaves_the_old_state(nessie: InProcess, edited: Lake, number: int) -> None:
    before = read(edited, "main")
    done = subprocess.run([sys.executable, "-c", KILLED, str(number)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert read(edited, "main") == before
    assert nessie("merge", "dev", *BY_ID).code == 0
    assert read(edited, "main") == MERGED
    assert nessie("audit").code == 0


def test_a_serializable_table_stays_in_conflict(nessie: InProcess, lake: Lake) -> None:
    with lake.table("main") as table, table.transaction() as transaction:
        transaction.set_properties({"write.update.isolation-level": "serializable"})
    assert nessie("merge", "main", "--into", "dev").code == 0
    write(lake, "main", {1: ("ours", 1), 2: ("x", 1), 3: ("x", 1)})
    write(lake, "dev", {1: ("x", 2), 2: ("x", 1), 3: ("x", 1)})
    ran = nessie("merge", "dev", *BY_ID)
    assert ran.code == 3
    assert "the table is serializable" in ran.err
