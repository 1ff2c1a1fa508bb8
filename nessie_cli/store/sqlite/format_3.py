"""Reads a SQLite store of format 3, whose reflog has no chains, for `nessie store load`.

This is where a program reads the formats before its own. The file is opened for reading only.
"""

# os.path: importing pathlib costs a tenth of a command's start-up.
# ruff: noqa: PTH100, PTH110

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import quote
from zlib import crc32

import apsw
from msgspec import msgpack

from nessie_cli.store.records import Move, RequestRecord, StoredReference, StoredRun, StoredSettings
from nessie_cli.store.rows import REQUEST, DamagedRow, Row, check_fields, settings_of_fields
from nessie_cli.store.sqlite.dump import SQLiteDump
from nessie_cli.store.sqlite.errors import failure
from nessie_cli.store.sqlite.schema import APPLICATION_ID, LOADED_FORMAT
from nessie_cli.store.sqlite.session import LONGEST_ROW

_SETTINGS = "SELECT name, value, version, check_sum FROM settings"
_REFERENCES = "SELECT name, kind, target, check_sum FROM refs ORDER BY name"
_MOVES = """SELECT number, name, kind, before, after, time, who, operation, message, request_id, check_sum
FROM reflog ORDER BY number"""


def has_format_3(path: str) -> bool:
    """Returns whether a file is a store of format 3."""
    with suppress(apsw.Error):
        connection = _open(path)
        try:
            numbers = [connection.pragma(name) for name in ("application_id", "user_version")]
        finally:
            connection.close()
        return numbers == [APPLICATION_ID, LOADED_FORMAT]
    return False


@contextmanager
def open_format_3(path: str) -> Iterator[SQLiteDump]:
    """Opens the dump of a store of format 3. Raises the errors of `Dump`."""
    try:
        connection = _open(path)
    except apsw.Error as error:
        raise failure(path, error) from error
    try:
        yield _Format3Dump(path, connection)
    finally:
        connection.close()


def _open(path: str) -> apsw.Connection:
    # Without a log file no program is writing, and SQLite need not create files beside it.
    idle = not os.path.exists(f"{path}-wal")
    url = f"file:{quote(os.path.abspath(path))}{'?immutable=1' if idle else ''}"
    connection = apsw.Connection(url, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    connection.set_busy_timeout(10_000)
    connection.limit(apsw.SQLITE_LIMIT_LENGTH, LONGEST_ROW)
    return connection


class _Format3Dump(SQLiteDump):
    def _broken_chains(self) -> Iterator[str]:
        return iter(())

    def settings(self) -> StoredSettings:
        """Returns all settings."""
        rows = self._read(lambda row: _checked_row("settings", row), _SETTINGS)
        return settings_of_fields(rows)

    def references(self) -> Iterator[StoredReference]:
        """Returns all references."""
        return self._read(_reference_of, _REFERENCES)

    def moves(self) -> Iterator[Move]:
        """Returns the reflog, oldest first."""
        return self._read(_move_of, _MOVES)

    def requests(self) -> Iterator[RequestRecord]:
        """Returns the committed requests."""
        return self._read(_request_of, f"{REQUEST} ORDER BY id")

    def runs(self) -> Iterator[StoredRun]:
        """Returns nothing: this format has no runs."""
        return iter(())


def _reference_of(row: Row) -> StoredReference:
    return StoredReference(*_checked_row("refs", row))


def _move_of(row: Row) -> Move:
    return Move(*_checked_row("reflog", row)[1:])


def _request_of(row: Row) -> RequestRecord:
    return RequestRecord(*_checked_row("requests", row))


def _checked_row(table: str, row: Row) -> Row:
    """Returns the fields of a row without its checksum, which does not cover the table's name."""
    *fields, check_sum = row
    if crc32(msgpack.encode(fields)) != check_sum:
        raise DamagedRow(f"table {table}, row {row[0]!r}: its checksum is wrong")
    return check_fields(table, tuple(fields))
