"""A server that reads the changed rows of real tables in its warehouse."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from msgspec import structs

from nessie_cli import connect
from nessie_cli.iceberg.row_diff.answer import RowAnswer
from nessie_cli.iceberg.warehouses.warehouse import Warehouse, Warehouses
from nessie_cli.model import CommitMeta, ContentKey, IcebergTable, Put
from nessie_cli.repository.base import Repository
from nessie_cli.repository.opening import create
from nessie_cli.server.auth.gate import Security, open_gate
from nessie_cli.server.pipeline.pipeline import Parts
from nessie_cli.server.running import application
from nessie_cli.server.runtime.row_request import RowLimits
from tests.cli.lake import Lake
from tests.server.client import Client
from tests.server.guarding import Guarded, write_rules
from tests.server.serving import serving

DIFF = "op in ['VIEW_REFERENCE', 'READ_ENTRIES', 'READ_CONTENT_KEY', 'READ_ENTITY_VALUE']"
OURS = {"nessie-cli": "1"}
ROWS = "/api/v2/trees/main/rows/dev?key=db.t"
LIMITS = RowLimits()
KEY = ContentKey.parse("db.t")


class RowServer:
    """A server with a lake in its warehouse."""

    def __init__(self, url: str, lake: Lake, repository: Repository, client: Client) -> None:
        self.url, self.lake, self.repository, self.client = url, lake, repository, client

    def answer(self, more: str = "", path: str = ROWS) -> RowAnswer:
        answer = self.client.get(path + more, **OURS)
        answer.expect(200)
        return RowAnswer(answer.raw, self.url)

    def rows(self, more: str = "", path: str = ROWS) -> list[dict[str, Any]]:
        return self.answer(more, path).read_all().to_pylist()

    def table(self, ref: str = "main") -> IcebergTable:
        found = self.repository.content(ref, KEY)
        assert isinstance(found, IcebergTable)
        return found

    def move(self, ref: str, location: str) -> None:
        """Gives the table another metadata file."""
        table = structs.replace(self.table(ref), metadata_location=location)
        self.repository.commit(ref, [Put(KEY, table)], CommitMeta("moved"))


@contextmanager
def row_server(folder: Path, limits: RowLimits = LIMITS, **more: Any) -> Iterator[RowServer]:
    """main has the rows 1, 2, 3 and dev the rows 1, 3, 7, 8."""
    with lake_server(folder, limits, **more) as server:
        server.lake.append("dev", 7, 8)
        server.lake.delete("dev", 2)
        yield server


@contextmanager
def lake_server(
    folder: Path, limits: RowLimits = LIMITS, key: Sequence[str] = (), **more: Any
) -> Iterator[RowServer]:
    """main and dev have the rows 1, 2, 3, with the identifier fields `key`."""
    folder.mkdir(exist_ok=True)
    store = str(folder / "store.sqlite")
    create(store).close()
    lake = Lake(store, folder, *key)
    place = f"file://{lake.folder}"
    warehouses = more.pop("warehouses", None) or Warehouses(
        [Warehouse(name="w", location=place, allowed=(place,), **more.pop("warehouse", {}))]
    )
    with connect(store) as repository:
        app = application(repository, Parts(warehouses=warehouses, rows=limits, **more))
        with serving(app=app) as url:
            client = Client(url)
            try:
                yield RowServer(url, lake, repository, client)
            finally:
                client.close()


@contextmanager
def guarded_rows(
    folder: Path,
    *rules: str,
    served: Callable[..., AbstractContextManager[RowServer]] = row_server,
    **more: Any,
) -> Iterator[tuple[Guarded, RowServer]]:
    folder.mkdir(exist_ok=True)
    (folder / "tokens").touch(0o600)
    write_rules(folder, rules)
    security = Security(tokens=folder / "tokens", rules=folder / "rules")
    with served(folder, gate=open_gate(security), **more) as server:
        guarded = Guarded(server.url, folder, server.repository)
        try:
            yield guarded, server
        finally:
            guarded.close()
