"""The two catalogs of an export: a workspace with real tables, and the one that gets them."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError

from tests.command.in_process import InProcess
from tests.command.outcome import Outcome
from tests.iceberg.lake import ROWS, Lake

TAG, BRANCH = "exported/other", "exporting/other"
PREFIX = "PYICEBERG_CATALOG__OTHER__"
VIEW_SQL = "select 1 as one"

sql_only = pytest.mark.parametrize("place", ["sql"], indirect=True)
rest_only = pytest.mark.parametrize("place", ["rest"], indirect=True)


class Place:
    """A workspace with real tables on main, and the other catalog, named `other`."""

    def __init__(
        self, nessie: InProcess, folder: Path, other: dict[str, str], stack: ExitStack
    ) -> None:
        self.nessie = nessie
        self.folder = folder
        self.warehouse = folder / "warehouse"
        self._other = other
        self.lake = Lake(str(folder / ".nessie" / "store.sqlite"), folder, stack)
        self.repository = self.lake.repository
        self.here = self.lake.catalog("main")
        self.is_sql = other["type"] == "sql"

    @property
    def there(self) -> Catalog:
        return load_catalog("other", **self._other)

    def create(self, *names: str, **properties: str) -> None:
        for name in names:
            self.here.create_namespace_if_not_exists(name.rpartition(".")[0])
            location = f"{self.warehouse}/{name.replace('.', '/')}"
            self.here.create_table(name, ROWS.schema, location, properties=properties).append(ROWS)

    def append(self, *names: str) -> None:
        for name in names:
            self.here.load_table(name).append(ROWS)

    def export(self, *options: str, code: int = 0) -> Outcome:
        ran = self.nessie("export", "--to", "other", "--allow-gap", *options)
        assert ran.code == code, ran
        return ran

    def actions(self, *options: str, code: int = 0) -> dict[str, str]:
        """Exports, and returns what is done by name, without unchanged names."""
        contents = self.export("--json", *options, code=code).json["contents"]
        return {
            ".".join(one["name"]["elements"]): one["action"]
            for one in contents
            if one["action"] != "unchanged"
        }

    def rows(self, name: str) -> int | None:
        """The number of rows in the other catalog; None without the table."""
        try:
            return len(self.there.load_table(name).scan().to_arrow())
        except NoSuchTableError:
            return None

    def location(self, name: str) -> str:
        return self.there.load_table(name).metadata_location

    def references(self) -> set[str]:
        return {reference.name for reference in self.repository.references()} - {
            self.lake.branch,
            "main",
        }


def create_view(place: Place, name: str = "db.v") -> None:
    from pyiceberg.schema import Schema
    from pyiceberg.types import IntegerType, NestedField
    from pyiceberg.view.metadata import SQLViewRepresentation, ViewVersion

    schema = Schema(NestedField(1, "one", IntegerType(), required=False))
    representation = SQLViewRepresentation(type="sql", sql=VIEW_SQL, dialect="spark")
    version = ViewVersion(
        version_id=1,
        timestamp_ms=1,
        schema_id=0,
        summary={},
        default_namespace=["db"],
        representations=[representation],
    )
    place.here.create_view(name, schema, version, f"{place.warehouse}/views/v")
