"""A lake of PyIceberg's SQL catalog is imported, branched, merged and exported."""

from __future__ import annotations

from pathlib import Path

from tests.cli.importing.sql_lake import SqlLake, rows
from tests.importing.newcomer import Newcomer, names


def test_a_lake_of_a_sql_catalog(tmp_path: Path) -> None:
    tables = names()
    theirs = SqlLake(tmp_path / "theirs")
    theirs.create(*tables)
    newcomer = Newcomer(tmp_path / "ours", {"theirs": theirs.uri})

    planned = newcomer("import", "theirs", "--dry-run", "--json").json
    assert newcomer("log", "--json").json["logEntries"] == []
    imported = newcomer("import", "theirs", "--json").json
    assert imported["contents"] == planned["contents"]
    assert imported["counts"]["imported"] == len(tables)
    assert (imported["counts"]["namespaces"], imported["counts"]["problems"]) == (6, 0)
    assert newcomer("audit").code == 0
    assert newcomer.counts() == dict.fromkeys(tables, 1)

    assert f"theirs: {len(tables)} unchanged" in newcomer("import", "theirs").out
    theirs.append(tables[1], 2)
    theirs.create("late.table")
    again = newcomer("import", "theirs", "--update", "--json").json["counts"]
    assert (again["imported"], again["updated"], again["unchanged"]) == (1, 1, len(tables) - 1)

    changed = newcomer.change_on_a_branch_and_merge(tables, rows(3))
    expected = {name: 1 + (name in changed) for name in tables}
    expected |= {tables[0]: 3, tables[1]: 2, "late.table": 1}
    assert newcomer.counts() == expected
    theirs.append(tables[0], 4)
    newcomer("import", "theirs", "--update", code=3)

    assert newcomer.leave() == expected
    assert theirs.ids(tables[0]) == [1, 4]
    assert theirs.ids(tables[10]) == [1]
    newcomer.report()
