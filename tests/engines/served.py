"""`nessie serve` with a warehouse, and the clients that reach its Iceberg REST catalog."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import duckdb

from nessie_cli import connect, create
from nessie_cli.model import LogEntry
from tests.command.process import run
from tests.server.processes import started

WAREHOUSE = "lake"
EXTENSIONS = ("avro", "httpfs", "iceberg")


class Served:
    """A running server, the store behind it, and the folder of its warehouse."""

    def __init__(self, url: str, store: str, warehouse: Path) -> None:
        self.url = url
        self.store = store
        self.warehouse = warehouse

    def rest(self, ref: str) -> str:
        """Returns the URI of the Iceberg REST catalog on a reference."""
        return f"{self.url}/iceberg/{quote(ref, safe='')}"

    def nessie(self, *line: str) -> str:
        """Returns what our command line prints about this server."""
        outcome = run("--store", f"{self.url}/api/v2", *line)
        assert outcome.code == 0, (line, outcome)
        return outcome.out

    def hash_of(self, ref: str) -> str:
        """Returns the hash of a reference."""
        with connect(self.store) as repository:
            return repository.reference(ref).hash

    def log(self, ref: str) -> list[LogEntry]:
        """Returns the commits of a reference, newest first."""
        with connect(self.store) as repository:
            return list(repository.log(ref, operations=True))

    def pyiceberg(self, ref: str, **options: str) -> dict[str, str]:
        """Returns what PyIceberg's `load_catalog` takes."""
        return {"type": "rest", "uri": self.rest(ref), "warehouse": WAREHOUSE, **options}

    def embedded(self, ref: str) -> dict[str, str]:
        """Returns the options of our catalog for PyIceberg, which opens the store itself."""
        return {
            "py-catalog-impl": "nessie_cli.iceberg.catalog.NessieCatalog",
            "uri": self.store,
            "warehouse": str(self.warehouse),
            "ref": ref,
        }

    def duckdb(self, *refs: str) -> Duck:
        """Returns a DuckDB with a catalog for each reference; `feature/x` is `feature_x` there."""
        return Duck({ref.replace("/", "_"): self.rest(ref) for ref in refs})


class Duck:
    """A DuckDB in memory."""

    def __init__(self, catalogs: dict[str, str]) -> None:
        self._connection = duckdb.connect()
        for name in EXTENSIONS:
            self._connection.execute(f"LOAD '{extension(name)}'")
        for name, uri in catalogs.items():
            self.attach(name, uri, WAREHOUSE)

    def attach(self, name: str, uri: str, warehouse: str) -> None:
        """Attaches a warehouse of a catalog."""
        self(f"""
            ATTACH '{warehouse}' AS {name} (TYPE iceberg, ENDPOINT '{uri}',
            AUTHORIZATION_TYPE 'none', SUPPORT_NESTED_NAMESPACES true)
        """)

    def __call__(self, statement: str) -> list[tuple[Any, ...]]:
        """Returns the rows of the answer."""
        return self._connection.execute(statement).fetchall()

    def close(self) -> None:
        self._connection.close()


def extension(name: str) -> Path:
    """Returns where a wheel has put an extension of DuckDB."""
    found = find_spec(f"duckdb_extension_{name}")
    assert found is not None
    assert found.origin is not None
    (path,) = Path(found.origin).parent.glob("extensions/*/*.duckdb_extension")
    return path


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Served]:
    """A server over a new SQLite store, while the block lasts."""
    store, warehouse = f"sqlite:///{folder}/catalog.sqlite", folder / "warehouse"
    create(store).close()
    place = f"{WAREHOUSE}=file:{warehouse}"
    with started("--store", store, "--warehouse", place, *options) as (_, url):
        yield Served(url, store, warehouse)
