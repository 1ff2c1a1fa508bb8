"""A lake of the original server is imported with its history, branched, merged and exported.

`make test-original` runs it.
"""

from __future__ import annotations

from pathlib import Path

from nessie_cli import connect
from nessie_cli.model import Content, IcebergTable
from nessie_cli.repository.store_repository import require_store
from tests.cli.importing.sql_lake import SqlLake, rows
from tests.importing.history.histories import assert_same
from tests.importing.newcomer import Newcomer, names
from tests.original.server import Original
from tests.repository.vocabulary import Catalog, namespace, put

COMMITS = 5


def test_a_lake_of_the_original(server: Original, source: Catalog, tmp_path: Path) -> None:
    tables = names()
    theirs = SqlLake(tmp_path / "theirs")
    theirs.create(*tables)
    areas = sorted({name.partition(".")[0] for name in tables})
    source.commit("main", *(put(area, namespace(area)) for area in areas))
    for number in range(COMMITS):
        part = tables[number::COMMITS]
        source.commit("main", *(put(name, _content(theirs, name)) for name in part))
    source.tag("v1")
    source.branch("load")
    theirs.append(tables[1], 2)
    before = source.content("load", tables[1])
    source.commit("load", put(tables[1], _content(theirs, tables[1], before.id), before))
    source.rename("main", tables[2], f"{areas[0]}.renamed")
    source.merge("load")
    url = f"{server.url}/api/v2"
    expected = {name: 1 + (name == tables[1]) for name in tables if name != tables[2]}
    expected[f"{areas[0]}.renamed"] = 1

    state = Newcomer(tmp_path / "state")
    counts = state("import", url, "--json").json["counts"]
    assert (counts["imported"], counts["namespaces"]) == (len(tables), len(areas))
    assert state.counts() == expected
    state.report()

    moved = Newcomer(tmp_path / "moved")
    planned = moved("import", url, "--history", "--dry-run", "--json").json
    imported = moved("import", url, "--history", "--json").json
    assert imported["commits"] == planned["commits"] == COMMITS + 4
    assert imported["contents"] == {"ICEBERG_TABLE": len(tables), "NAMESPACE": len(areas)}
    with connect(moved.store) as target:
        assert assert_same(source.repository, require_store(target, "")) == COMMITS + 4
    assert moved.counts() == expected
    assert moved.counts("v1") == dict.fromkeys(tables, 1)

    left = sorted(expected)
    for name in moved.change_on_a_branch_and_merge(left, rows(3)):
        expected[name] += 2 if name == left[0] else 1
    assert moved.leave() == expected
    moved.report()


def _content(theirs: SqlLake, name: str, content_id: str | None = None) -> Content:
    table = theirs.table(name)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return IcebergTable(
        id=content_id,
        metadata_location=table.metadata_location,
        snapshot_id=snapshot.snapshot_id,
        schema_id=table.schema().schema_id,
        spec_id=table.spec().spec_id,
        sort_order_id=table.sort_order().order_id,
    )
