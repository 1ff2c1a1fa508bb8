"""`nessie import` with a server as the store: the command itself reads and writes the files."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import ForbiddenError

from nessie_cli import connect
from nessie_cli.errors import NotAllowed
from nessie_cli.iceberg.warehouses.configuration import from_options, from_toml
from nessie_cli.importing.records import ImportRecords
from nessie_cli.model import Secret
from nessie_cli.repository.access import Access, Bearer
from nessie_cli.repository.store_repository import require_store
from nessie_cli.server.pipeline.pipeline import Parts
from nessie_cli.server.running import application
from tests.cli.importing.sql_lake import SqlLake, elements
from tests.cli.importing.test_import import ALL
from tests.command.in_process import InProcess
from tests.server.guarding import guarded
from tests.server.iceberg_rest.lake import lake
from tests.server.serving import serving


def test_rest_serves_the_tables_once_their_folder_is_allowed(
    nessie: InProcess, theirs: SqlLake, tmp_path: Path
) -> None:
    file = tmp_path / "warehouses.toml"
    ours = f"file://{tmp_path}/ours"
    file.write_text(f'# ours\n[warehouse.lake]\nlocation = "{ours}"\n')
    with lake(tmp_path / "ours", from_options([ours])) as served:
        assert nessie("init", "--store", served.url).code == 0
        ran = nessie("import", theirs.uri)
        assert ran.code == 0, ran.err
        option = ran.err.splitlines()[-1].partition("needs: ")[2]
        assert option == f"--allow-location file://{theirs.folder}"
        rest = RestCatalog("ours", uri=f"{served.url}/iceberg")
        with pytest.raises(ForbiddenError):
            rest.load_table("sales.orders")
        assert nessie("undo", "--yes").code == 0
        ran = nessie("import", theirs.uri, "--write-warehouses", str(file))
        assert ran.code == 0, ran.err
        assert f"{file} allows file://{theirs.folder}" in ran.err
        assert "# ours\n" in file.read_text()
        allowed, _ = from_toml(file.read_bytes())
        with serving(
            app=application(require_store(served.repository, ""), Parts(warehouses=allowed))
        ) as url:
            rest = RestCatalog("ours", uri=f"{url}/iceberg")
            table = rest.load_table("sales.orders")
            assert table.properties["gc.enabled"] == "false"
            assert table.scan().to_arrow()["id"].to_pylist() == [1]


def test_a_new_file_of_warehouses(nessie: InProcess, theirs: SqlLake, tmp_path: Path) -> None:
    assert nessie("init").code == 0
    file = tmp_path / "warehouses.toml"
    dry = nessie("import", theirs.uri, "--write-warehouses", str(file), "--dry-run", "--json")
    assert (dry.json["warehousesFile"], file.exists()) == (None, False)
    assert nessie("import", theirs.uri, "--write-warehouses", str(file)).code == 0
    made, has_secrets = from_toml(file.read_bytes())
    assert [warehouse.location for warehouse in made.all] == [f"file://{theirs.folder}"]
    assert not has_secrets
    theirs.create("sales.extra")
    text = file.read_text()
    ran = nessie("import", theirs.uri, "--write-warehouses", str(file), "--json")
    assert ran.json["allowLocations"] == []
    assert file.read_text() == text
    file.write_text("[warehouse")
    nessie("import", theirs.uri, "--write-warehouses", str(file)).expect(2, "not TOML")


class WithoutExtensions:
    """An application for clients that send no header of ours: a server of plain REST v2."""

    def __init__(self, app: Any) -> None:
        self._app = app

    def __getattr__(self, name: str) -> Any:
        return getattr(self._app, name)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if "headers" in scope:
            headers = [each for each in scope["headers"] if each[0].lower() != b"nessie-cli"]
            scope = {**scope, "headers": headers}
        await self._app(scope, receive, send)


def test_a_server_without_settings_takes_adopted_tables_only(
    nessie: InProcess, theirs: SqlLake
) -> None:
    with (
        connect("memory:") as repository,
        serving(app=WithoutExtensions(application(require_store(repository, "")))) as url,
    ):
        assert nessie("init", "--store", url).code == 0
        ran = nessie("import", theirs.uri)
        ran.expect(6, "gc", "--adopt '*'")
        assert theirs.copies() == set()
        assert list(repository.entries("main")) == []
        ran = nessie("import", theirs.uri, "--adopt", "*", "--json")
        assert ran.code == 0, ran.err
        assert elements(ran.json["contents"]) == ALL
        assert ran.json["foreign"] == []
        assert len(theirs.copies()) == 3
        assert ImportRecords(repository).all() == []
        # The names of copies alone say what was imported.
        assert nessie("import", theirs.uri, "--adopt", "*").lines[0].endswith(": 3 unchanged")


def test_advice_with_hostile_locations_is_quoted(
    nessie: InProcess, theirs: SqlLake, tmp_path: Path
) -> None:
    hostile = f"file://{tmp_path}/a b $(touch x)'"
    with theirs.catalog() as catalog:
        catalog.create_namespace("odd", {"location": hostile})
    theirs.create("odd.t")
    assert nessie("init").code == 0
    ran = nessie("import", theirs.uri)
    assert ran.code == 0, ran.err
    words = shlex.split(ran.err.splitlines()[-1].partition("needs: ")[2])
    assert words[::2] == ["--allow-location"] * 2
    assert set(words[1::2]) == {hostile, f"file://{theirs.folder}"}


def test_hidden_records_are_not_taken_for_missing_ones(tmp_path: Path, theirs: SqlLake) -> None:
    with guarded(tmp_path, "op != 'READ_REPOSITORY_CONFIG'") as server:
        server.repository.put_setting("own", "1")
        token = server.as_("kim", "keeper").token
        with connect(f"{server.url}/api/v2", access=Access(Bearer(Secret(token)))) as repository:
            records = ImportRecords(repository)
            for use in (records.all, lambda: records.get("x"), lambda: records.adopt([])):
                with pytest.raises(NotAllowed, match="imported"):
                    use()
