"""A newcomer with a lake that others made, who uses the commands of the pages.

`NESSIE_TEST_TABLES=300` makes the lakes large; `pytest -s` then shows the seconds of each command.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

from nessie_cli.iceberg.catalog import NessieCatalog
from tests.command.outcome import Outcome
from tests.command.process import run

TABLES = int(os.environ.get("NESSIE_TEST_TABLES", "12"))
_BRANCHED = 10
"""A branch changes each table of this distance."""


def names(number: int = TABLES) -> list[str]:
    """The names of tables in six namespaces."""
    return [f"area_{index % 6}.table_{index:03}" for index in range(number)]


class Newcomer:
    """A workspace, with a configuration of PyIceberg for the catalogs to come from and go to.

    The catalog to go to is `other`. `store` is the path of the store, and `seconds` has the
    duration of each command.
    """

    def __init__(self, folder: Path, catalogs: Mapping[str, str] | None = None) -> None:
        """Makes the workspace; `catalogs` are URIs of SQL catalogs by name."""
        self.folder = folder
        self.seconds: dict[str, float] = {}
        self._other = f"sqlite:///{folder}/other.db"
        self.store = str(folder / ".nessie" / "store.sqlite")
        folder.mkdir()
        lines = [
            f"  {name}:\n    type: sql\n    uri: {uri}\n"
            for name, uri in {**(catalogs or {}), "other": self._other}.items()
        ]
        (folder / ".pyiceberg.yaml").write_text(f"catalog:\n{''.join(lines)}")
        self._environment = {
            **os.environ,
            "HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "NESSIE_AUTHOR": "ann",
        }
        self("init")

    def __call__(self, *args: str, code: int = 0) -> Outcome:
        """Runs a command line, which exits with `code`."""
        begin = time.monotonic()
        ran = run(*args, cwd=self.folder, env=self._environment)
        self.seconds[f"{len(self.seconds)} nessie {' '.join(args)}"] = time.monotonic() - begin
        assert ran.code == code, f"{args}: {ran.out}{ran.err}"
        return ran

    def catalog(self, ref: str = "main") -> NessieCatalog:
        return NessieCatalog("ours", uri=self.store, ref=ref, author="etl")

    def counts(self, ref: str = "main") -> dict[str, int]:
        """The number of rows of each table here."""
        with closing(self.catalog(ref)) as catalog:
            return _counts(catalog)

    def change_on_a_branch_and_merge(self, tables: Sequence[str], row: pa.Table) -> list[str]:
        """Appends a row to some tables on a branch, to the first one on main, too, and merges.

        Returns the names of the changed tables.
        """
        changed = list(tables[::_BRANCHED])
        self("branch", "dev")
        with closing(self.catalog("dev")) as catalog:
            for name in changed:
                catalog.load_table(name).append(row)
        with closing(self.catalog()) as catalog:
            catalog.load_table(changed[0]).append(row)
        merged = self("merge", "dev", "--into", "main", "--json").json["details"]
        assert sorted(_name(each["key"]) for each in merged) == sorted(changed)
        return changed

    def leave(self) -> dict[str, int]:
        """Exports `main`, and returns the number of rows of each table in the other catalog."""
        planned = self("export", "--to", "other", "--dry-run", "--json").json
        exported = self("export", "--to", "other", "--json").json
        assert exported["contents"] == planned["contents"]
        assert {each["action"] for each in exported["contents"]} == {"register"}
        again = self("export", "--to", "other", "--json").json
        assert {each["action"] for each in again["contents"]} == {"unchanged"}
        with closing(SqlCatalog("other", uri=self._other)) as catalog:
            locations = {
                _name(each["name"]): each["metadataLocation"] for each in exported["contents"]
            }
            for name, location in locations.items():
                assert catalog.load_table(name).metadata_location == location
            return _counts(catalog)

    def report(self) -> None:
        """Prints the duration of each command."""
        for command, seconds in self.seconds.items():
            print(f"{seconds:7.2f} s  {command}")


def _name(key: Mapping[str, Any]) -> str:
    return ".".join(key["elements"])


def _counts(catalog: Any) -> dict[str, int]:
    return {
        ".".join(name): catalog.load_table(name).scan().count()
        for namespace in catalog.list_namespaces()
        for name in catalog.list_tables(namespace)
    }
