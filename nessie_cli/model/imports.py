"""The record of an import from another catalog, and its short form in listings of settings."""

from __future__ import annotations

from typing import Self

from msgspec import MsgspecError, Struct, json

from nessie_cli.errors import InvalidInput
from nessie_cli.model.keys import ContentKey

IMPORT_PREFIX = "import."
"""The beginning of the names of settings that are records of imports."""
_FORMAT = 1
_LONGEST_VALUE = 200
"""The most characters of a setting in a listing for people."""


class ImportedTable(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A table or view that was imported.

    `name` is its name in the source, `key` the key that it was imported under, `location` the
    folder of its files, `source_metadata` the metadata file of the source, and `metadata` the one
    that was committed here: the same one, or a copy with other properties. `adopted` says that no
    other catalog writes it. `uuid` is that of the table or view, None if it is unknown.
    """

    name: tuple[str, ...]
    key: ContentKey
    location: str
    source_metadata: str
    metadata: str
    adopted: bool = False
    uuid: str | None = None


class _Stored(Struct, frozen=True, kw_only=True):
    """The value of the setting, as JSON."""

    format: int
    source: str
    tables: tuple[ImportedTable, ...]


class ImportRecord(Struct, frozen=True):
    """The imports from one source: its name in this repository, and what messages call it."""

    name: str
    source: str
    tables: tuple[ImportedTable, ...] = ()

    @property
    def setting(self) -> str:
        """The name of the setting with this record."""
        return IMPORT_PREFIX + self.name

    @property
    def summary(self) -> str:
        """The record in a few words: `300 tables of thrift://hive:9083, 12 adopted`."""
        number, adopted = len(self.tables), sum(table.adopted for table in self.tables)
        tables = "1 table" if number == 1 else f"{number:,} tables"
        return f"{tables} of {self.source}" + (f", {adopted:,} adopted" if adopted else "")

    def encode(self) -> str:
        """Returns the value of the setting."""
        stored = _Stored(format=_FORMAT, source=self.source, tables=self.tables)
        return json.encode(stored).decode()

    @classmethod
    def decode(cls, setting: str, value: str) -> Self:
        """Returns the record in a setting. Raises `InvalidInput` for a damaged one."""
        try:
            stored = json.decode(value, type=_Stored)
        except (MsgspecError, InvalidInput, RecursionError) as error:
            raise InvalidInput(
                f"setting {setting} is not a record of an import: {error}",
                hint=f"`nessie undo setting:{setting}` takes back its last change",
            ) from None
        if stored.format != _FORMAT:
            raise InvalidInput(
                f"setting {setting} has format {stored.format}; this program supports format"
                f" {_FORMAT}"
            )
        return cls(setting.removeprefix(IMPORT_PREFIX), stored.source, stored.tables)


def described_setting(name: str, value: str | None) -> str:
    """Returns the value of a repository's setting for people: short, on one line.

    The record of an import is its summary, and another long value its beginning.
    """
    if value is None:
        return "nothing"
    if name.startswith(IMPORT_PREFIX):
        try:
            return ImportRecord.decode(name, value).summary
        except InvalidInput:
            pass
    return value if len(value) <= _LONGEST_VALUE else f"{value[:_LONGEST_VALUE]}..."
