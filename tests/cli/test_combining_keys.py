"""A combined table, or a new value, does not decide which key a table has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.lake import Lake, rows
from tests.command.in_process import InProcess


def rename(nessie: InProcess, old: str, new: str, ref: str) -> None:
    assert nessie("content", "rename", old, new, "--ref", ref, "-m", "rename").code == 0


def create(lake: Lake, ref: str, key: str, *ids: int) -> None:
    with lake.catalog(ref) as catalog:
        catalog.create_table(key, rows(1).schema).append(rows(*ids))


def append(lake: Lake, ref: str, key: str, *ids: int) -> None:
    with lake.catalog(ref) as catalog:
        catalog.load_table(key).append(rows(*ids))


def tables(lake: Lake, ref: str) -> dict[str, list[int]]:
    """Returns the ids in each table of a branch."""
    with lake.catalog(ref) as catalog:
        return {
            ".".join(name): sorted(catalog.load_table(name).scan().to_arrow()["id"].to_pylist())
            for name in catalog.list_tables("db")
        }


def conflicts(nessie: InProcess, *words: str) -> list[tuple[str, str]]:
    """Runs a command that fails with conflicts. Returns their keys and types."""
    ran = nessie(*words, "--json")
    assert ran.code == 3, ran.err
    found = ran.json["error"]["errorDetails"]["conflicts"]
    return [(".".join(each["key"]["elements"]), each["conflictType"]) for each in found]


def test_two_names_for_one_table_are_a_conflict(nessie: InProcess, lake: Lake) -> None:
    for ref, id_, name in (("main", 10, "db.e"), ("dev", 20, "db.c")):
        lake.append(ref, id_)
        rename(nessie, "db.t", name, ref)
    for source, target in (("dev", "main"), ("main", "dev")):
        before = lake.files()
        assert len(conflicts(nessie, "merge", source, "--into", target)) == 1
        assert lake.files() == before
    ran = nessie("merge", "dev")
    assert "its key is in conflict, too" in ran.err
    rename(nessie, "db.c", "db.e", "dev")
    assert nessie("merge", "dev").code == 0
    assert tables(lake, "main") == {"db.e": [1, 2, 3, 10, 20]}


def test_a_claim_for_the_key_of_another_table_is_decided_first(
    nessie: InProcess, lake: Lake
) -> None:
    lake.append("main", 10)
    lake.append("dev", 20)
    rename(nessie, "db.t", "db.x", "dev")
    create(lake, "main", "db.x", 77)
    ran = nessie("merge", "dev")
    assert ran.code == 3
    assert "changed on main and renamed and changed on dev" in ran.err
    assert "its key is in conflict, too" in ran.err
    assert nessie("content", "rename", "db.x", "db.y", "-m", "make room").code == 0
    assert nessie("merge", "dev").code == 0
    assert tables(lake, "main") == {"db.x": [1, 2, 3, 10, 20], "db.y": [77]}


def test_a_new_table_at_the_key_of_a_combined_one_is_a_conflict(
    nessie: InProcess, lake: Lake
) -> None:
    lake.append("main", 10)
    rename(nessie, "db.t", "db.c", "main")
    lake.append("dev", 20)
    create(lake, "dev", "db.c", 77)
    assert conflicts(nessie, "merge", "dev") == [("db.c", "KEY_EXISTS")]
    theirs = nessie("content", "show", "db.c", "--ref", "dev", "--json").json["content"]["id"]
    assert nessie("merge", "dev", "--theirs", theirs).code == 0
    assert tables(lake, "main") == {"db.t": [1, 2, 3, 10, 20], "db.c": [77]}


def test_another_table_renamed_to_the_key_of_a_combined_one_is_a_conflict(
    nessie: InProcess, lake: Lake
) -> None:
    create(lake, "main", "db.s", 50)
    assert nessie("merge", "main", "--into", "dev").code == 0
    lake.append("main", 10)
    rename(nessie, "db.t", "db.c", "main")
    lake.append("dev", 20)
    rename(nessie, "db.s", "db.c", "dev")
    assert conflicts(nessie, "merge", "dev") == [("db.c", "KEY_EXISTS")]


def test_a_decision_about_a_later_commit_that_replaces_the_table(
    nessie: InProcess, lake: Lake
) -> None:
    lake.append("main", 10)
    lake.append("dev", 20)
    fields = "--type iceberg-table --metadata-location /9.json --snapshot-id 9 --schema-id 0"
    words = [*fields.split(), "--spec-id", "0", "--sort-order-id", "0", "--ref", "dev", "-m", "new"]
    assert nessie("content", "replace", "db.t", *words).code == 0
    ran = nessie("transplant", "dev~2..dev", "--json")
    assert ran.code == 3
    (conflict,) = ran.json["error"]["errorDetails"]["conflicts"]
    name = f"{conflict['commit']}:{conflict['contentId']}"
    assert nessie("transplant", "dev~2..dev", "--ours", name).code == 0
    assert lake.ids("main") == [1, 2, 3, 10, 20]


@pytest.mark.parametrize("verb", ["merge", "resolve"])
def test_a_new_value_does_not_leave_out_another_table(
    nessie: InProcess, lake: Lake, tmp_path: Path, verb: str
) -> None:
    lake.append("main", 10)
    rename(nessie, "db.t", "db.c", "main")
    lake.append("dev", 20)
    create(lake, "dev", "db.c", 77)
    content = nessie("content", "show", "db.c", "--json").json["content"]
    value = tmp_path / "value.json"
    value.write_text(json.dumps({**content, "snapshotId": 5}))
    words = ("merge", "dev") if verb == "merge" else ("resolve", "merge", "dev")
    ran = nessie(*words, "--no-combine", "--resolve", f"db.c={value}")
    assert ran.code != 0
    assert tables(lake, "main") == {"db.c": [1, 2, 3, 10]}


def test_a_revert_restores_a_table_at_the_key_of_a_combined_one(
    nessie: InProcess, lake: Lake
) -> None:
    create(lake, "main", "db.x", 77)
    lake.append("main", 10)
    commit = nessie("log", "-n", "1", "--json").json["logEntries"][0]["commitMeta"]["hash"]
    assert nessie("content", "delete", "db.x", "-m", "drop").code == 0
    last = nessie("log", "-n", "1", "--json").json["logEntries"][0]["commitMeta"]["hash"]
    rename(nessie, "db.t", "db.x", "main")
    append(lake, "main", "db.x", 30)
    found = conflicts(nessie, "revert", f"{commit}~1..{last}")
    assert found == [("db.x", "KEY_EXISTS")]


def test_a_staged_inverse_of_a_combined_table_has_its_files(nessie: InProcess, lake: Lake) -> None:
    for key, id_ in (("db.q", 70), ("db.s", 80)):
        create(lake, "main", key, id_)
    assert nessie("merge", "main", "--into", "dev").code == 0
    lake.append("dev", 10)
    append(lake, "dev", "db.q", 71)
    append(lake, "dev", "db.s", 81)
    assert nessie("merge", "dev").code == 0
    lake.append("main", 30)
    words = ("--ours", "db.s", "--theirs", "db.q*")
    ran = nessie("revert", "main~1", "-n", *words)
    assert ran.code == 0, ran.err
    assert nessie("commit", "-m", "back").code == 0
    expected = {"db.q": [70], "db.s": [80, 81], "db.t": [1, 2, 3, 30]}
    assert tables(lake, "main") == expected


@pytest.mark.parametrize("side", ["ours", "theirs"])
@pytest.mark.parametrize("writer", ["main", "dev"])
def test_a_decision_about_two_names_keeps_the_rows(
    nessie: InProcess, lake: Lake, side: str, writer: str
) -> None:
    """Only one side changed the table, so its value is merged, whichever name it gets."""
    lake.append(writer, 10)
    rename(nessie, "db.t", "db.m", "main")
    rename(nessie, "db.t", "db.d", "dev")
    assert conflicts(nessie, "merge", "dev") == [("db.m", "KEY_CONFLICT")]
    assert nessie("merge", "dev", f"--{side}", "db.m").code == 0
    assert tables(lake, "main") == {"db.m" if side == "ours" else "db.d": [1, 2, 3, 10]}
