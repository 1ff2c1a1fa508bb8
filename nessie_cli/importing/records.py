"""The records of imports: which tables of this repository another catalog may still write.

Each source has one setting of the repository, `import.NAME`, with a row for each table. A row is
written before the table is committed, so garbage collection never sees the table without it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence

from msgspec import structs

from nessie_cli.errors import InvalidInput, NotAllowed, NotFound, ReferenceConflict
from nessie_cli.model import IMPORT_PREFIX, ContentKey, ImportedTable, ImportRecord
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import PutSettings

__all__ = ["ImportRecord", "ImportRecords", "ImportedTable"]

_TRIES = 50
"""How often a record is changed again after another process has changed it."""
_LONGEST_PAUSE = 0.1
"""Seconds between two tries."""


class ImportRecords:
    """The records of a repository. Each method reads its settings once."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    def all(self) -> list[ImportRecord]:
        """Returns the records of all sources. Raises `InvalidInput` for a damaged one.

        A server without settings has none. Raises `NotAllowed` if the caller may not read settings.
        """
        return _records(self._settings())

    def get(self, name: str) -> ImportRecord | None:
        """Returns the record of a source, or None. Raises `NotAllowed` as `all` does."""
        setting = _setting(name)
        value = self._settings().get(setting)
        return None if value is None else ImportRecord.decode(setting, value)

    def put(self, name: str, source: str, tables: Sequence[ImportedTable]) -> None:
        """Adds rows to the record of a source, or replaces those with the same name and location.

        A row with the same name and another location stays before the new one, because the source
        may still need its files. Rows that another process adds meanwhile are kept. Raises
        `NotAllowed`: `SettingsUnsupported` on a server that has no settings.
        """

        def added(records: Sequence[ImportRecord]) -> list[ImportRecord]:
            earlier = next((record for record in records if record.name == name), None)
            replaced = {(table.name, table.location) for table in tables}
            rows = [
                row
                for row in (earlier.tables if earlier else ())
                if (row.name, row.location) not in replaced
            ]
            return [ImportRecord(name, source, (*rows, *tables))]

        _setting(name)
        self._change(added)

    def adopt(self, keys: Sequence[ContentKey]) -> list[ImportedTable]:
        """Marks tables as adopted, and returns them. Raises `NotFound` for a key of none.

        Rows with the location of one of these tables are adopted, too: they are the same table
        under an earlier name.
        """
        adopted: list[ImportedTable] = []

        def marked(records: Sequence[ImportRecord]) -> list[ImportRecord]:
            rows = [row for record in records for row in record.tables]
            for key in keys:
                if all(row.key != key for row in rows):
                    raise NotFound(
                        f"'{key}' was not imported under this key",
                        str(key),
                        hint="`nessie import --list` lists the imported tables",
                    )
            locations = {row.location for row in rows if row.key in keys}
            adopted[:] = [
                structs.replace(row, adopted=True) for row in rows if row.location in locations
            ]
            return [
                structs.replace(
                    record,
                    tables=tuple(
                        structs.replace(row, adopted=row.adopted or row.location in locations)
                        for row in record.tables
                    ),
                )
                for record in records
            ]

        self._change(marked)
        return adopted

    def foreign_tables(self) -> list[tuple[str, ImportedTable]]:
        """Returns the tables that are not adopted, each after the label of its source.

        Raises `NotAllowed` if the caller may not read settings.
        """
        return [
            (record.source, table)
            for record in self.all()
            for table in record.tables
            if not table.adopted
        ]

    def _settings(self) -> Mapping[str, str]:
        """Returns the settings. A record that is hidden would look like one that is missing."""
        config = self._repository.config()
        if config.hides_settings:
            raise NotAllowed(
                "you may not read which tables are imported",
                hint="the rules of the server must allow READ_REPOSITORY_CONFIG",
            )
        return config.settings

    def _change(self, change: Callable[[Sequence[ImportRecord]], list[ImportRecord]]) -> None:
        """Stores the records that `change` makes of the current ones; others stay."""
        for attempt in range(_TRIES):
            settings = self._settings()
            values = {record.setting: record.encode() for record in change(_records(settings))}
            values = {name: value for name, value in values.items() if settings.get(name) != value}
            if not values:
                return
            expected = {name: settings.get(name) for name in values}
            try:
                self._repository.submit(PutSettings(values, expected))
            except ReferenceConflict:
                if attempt == _TRIES - 1:
                    raise
                time.sleep(random.uniform(0, _LONGEST_PAUSE))  # noqa: S311 - only a pause
            else:
                return


def _records(settings: Mapping[str, str]) -> list[ImportRecord]:
    return [
        ImportRecord.decode(name, value)
        for name, value in sorted(settings.items())
        if name.startswith(IMPORT_PREFIX)
    ]


def _setting(name: str) -> str:
    """Returns the name of a source's setting. Raises `InvalidInput` for an invalid name."""
    if not name or not name.isprintable() or name != name.strip():
        raise InvalidInput(f"{name!r} cannot be the name of a source")
    return IMPORT_PREFIX + name
