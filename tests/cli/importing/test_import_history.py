"""`nessie import --history`: the command around the import of a whole repository."""

from __future__ import annotations

from pathlib import Path

from nessie_cli import connect
from nessie_cli.importing.records import ImportRecords
from nessie_cli.model import ReferenceType
from nessie_cli.repository.opening import create
from tests.cli.conftest import Catalog
from tests.command.in_process import InProcess
from tests.server.serving import serving


def test_a_history_comes_from_a_server(nessie: InProcess, catalog: Catalog, tmp_path: Path) -> None:
    catalog.update("main", "db.orders", 2)
    store = str(tmp_path / "new.sqlite")
    create(store).close()
    with serving(catalog.repository) as server:
        url = f"{server}/api/v2"
        dry = nessie("import", url, "--history", "--dry-run", "--store", store)
        assert dry.code == 0, dry.err
        assert dry.lines == [
            f"would import 3 commits, 1 branch, 1 tag, 2 iceberg-table, 1 namespace from {url}"
        ]
        assert "gc" not in dry.err
        with connect(store) as target:
            assert ImportRecords(target).foreign_tables() == []
        with connect(store) as target:
            assert list(target.log("main")) == []
        ran = nessie("import", url, "--history", "--json", "--store", store)
        assert ran.code == 0, ran.err
        assert (ran.json["commits"], ran.json["wasApplied"]) == (3, True)
        other = str(tmp_path / "other.sqlite")
        create(other).close()
        told = nessie("import", url, "--history", "--store", other)
        adoption = f"nessie --store {other} import --adopt '*'"
        assert f"until `{adoption}` says" in told.err
        listed = nessie("import", "--list", "--store", other, "--json").json["tables"]
        assert {table["adopted"] for table in listed} == {False}
        with connect(other) as target:
            foreign = ImportRecords(target).foreign_tables()
        assert len({table.location for _, table in foreign}) == len(listed) > 0
        assert {source for source, _ in foreign} == {url}
        assert nessie("import", "--adopt", "*", "--store", other).code == 0
        with connect(other) as target:
            assert ImportRecords(target).foreign_tables() == []
        nessie("import", url, "--history", "--store", store).expect(5, "taken")
        nessie("import", url, "--history", "--into", "main").expect(2, "takes no --into")
        nessie("import", url, "--history", "--store", url).expect(2, "the store itself")
    with connect(store) as target:
        assert [entry.meta.message for entry in target.log("main")] == [
            entry.meta.message for entry in catalog.repository.log("main")
        ]
        (tag,) = target.references(ReferenceType.TAG)
    assert tag.name == "v1"


def test_what_is_no_export_is_refused(nessie: InProcess, tmp_path: Path) -> None:
    assert nessie("init").code == 0
    (tmp_path / "x.zip").write_text("no ZIP")
    nessie("import", "x.zip", "--history").expect(2, "x.zip is not an export")
