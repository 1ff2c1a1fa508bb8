"""A lake of the original server is imported with its history, branched, merged and exported.

`make test-original` runs it.
"""

from __future__ import annotations

from pathlib import Path

from nessie_cli import connect
from nessie_cli.model import Content, IcebergTable
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
    contents = {name: _content(theirs, name) for name in tables}
    areas = sorted({name.partition(".")[0] for name in tables})
    source.commit("main", *(put(area, namespace(area)) for area in areas))
    for number in range(COMMITS):
        source.commit("main", *(put(name, contents[name]) for name in tables[number::COMMITS]))
    source.tag("v1")
    source.branch("load")
    theirs.append(tables[1], 2)
    _change(source, "load", tables[1], theirs)
    source.rename("main", tables[2], f"{areas[0]}.renamed")
    source.merge("load")

    url = f"{server.url}/api/v2"
    newcomer = Newcomer(tmp_path / "ours", {})
    (tmp_path / "moved").mkdir()
    planned = newcomer("import", url, "--dry-run", "--json").json["counts"]
    assert (planned["imported"], planned["namespaces"]) == (len(tables), len(areas))
    counted = newcomer("import", url, "--history", "--json", code=5).json
    assert "main" in counted["message"]

    moved = Newcomer(tmp_path / "history", {})
    moved("branch", "spare")
    assert moved.seconds
    newcomer.report()


def _content(theirs: SqlLake, name: str) -> Content:
    table = theirs.table(name)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return IcebergTable(
        metadata_location=table.metadata_location,
        snapshot_id=snapshot.snapshot_id,
        schema_id=table.schema().schema_id,
        spec_id=table.spec().spec_id,
        sort_order_id=table.sort_order().order_id,
    )
