"""Dumps a SQLite store, and loads a dump into one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from itertools import count
from typing import Any, TypeVar

import apsw

from nessie_cli.model.progress import Progress
from nessie_cli.store.base import Dump
from nessie_cli.store.chain import broken_chains
from nessie_cli.store.dump import (
    LoadProgress,
    batches,
    checked,
    loaded_runs,
    packed_size,
    require_empty,
    setting_rows,
)
from nessie_cli.store.records import (
    Counts,
    Move,
    PackedObject,
    RequestRecord,
    StoredReference,
    StoredRun,
    StoredSettings,
)
from nessie_cli.store.rows import (
    ANCHOR,
    REFERENCE,
    REFLOG,
    REQUEST,
    SETTINGS,
    DamagedRow,
    Row,
    check_types,
    log_rows,
    reference_of,
    reference_row,
    reflog_row_of,
    request_of,
    request_row,
    settings_of,
    with_check,
)
from nessie_cli.store.sqlite.commit import ADD_ANCHOR, CREATE, LOG, RECORD, SET
from nessie_cli.store.sqlite.errors import failure
from nessie_cli.store.sqlite.later_tables import EXISTS, create_later_table
from nessie_cli.store.sqlite.session import connect

T = TypeVar("T")

_COUNTS = """SELECT (SELECT count(*) FROM objects), (SELECT count(*) FROM refs),
(SELECT count(*) FROM reflog), (SELECT count(*) FROM requests)"""
_OBJECTS = """SELECT number, CAST(id AS BLOB), kind, CAST(packed AS BLOB)
FROM objects ORDER BY number"""
_ENTRIES = "SELECT object, entry FROM object_index ORDER BY object"
_CLEAR = (
    "DELETE FROM refs",
    "DELETE FROM reflog",
    "DELETE FROM anchors",
    "DELETE FROM requests",
)
_RUNS = "SELECT id, state, CAST(data AS BLOB), version FROM runs ORDER BY id"
_LAST = 2**63 - 1

_PUT = "INSERT INTO objects (number, id, kind, written, packed) VALUES (?, ?, ?, ?, ?)"
_INDEX = "INSERT INTO object_index (entry, object) VALUES (?, ?)"
_PUT_RUN = "INSERT INTO runs (id, state, data, version) VALUES (?, ?, ?, ?)"


@contextmanager
def open_dump(path: str, patience: float) -> Iterator[SQLiteDump]:
    """Opens the dump of a store file, on its own connection.

    Closing the store leaves it open.
    """
    session = connect(path, patience)
    try:
        # While it is locked, a fork does not touch it.
        with session.lock:
            assert session.connection is not None
            yield SQLiteDump(path, session.connection)
    finally:
        session.close()


class SQLiteDump:
    """A `Dump` of a SQLite store: one read transaction."""

    def __init__(self, path: str, connection: apsw.Connection) -> None:
        self._path = path
        self._connection = connection
        list(self._rows("BEGIN"))
        # The first statement that reads determines which state the transaction shows.
        list(self._rows("SELECT 1 FROM settings LIMIT 1"))

    def problems(self) -> Iterator[str]:
        """Yields the problems of the file: its pages, tables and indexes, and `broken_chains`."""
        for (line,) in self._rows("PRAGMA integrity_check"):
            if line != "ok":
                yield str(failure(self._path, DamagedRow(line)))
        try:
            for line in self._broken_chains():
                yield f"store {self._path}: {line}"
        except DamagedRow as error:
            raise failure(self._path, error) from error

    def _broken_chains(self) -> Iterator[str]:
        return broken_chains(
            self._rows(ANCHOR),
            self._rows(f"{REFLOG} ORDER BY number"),
            self._rows(REFERENCE),
            self._rows(SETTINGS),
        )

    @cached_property
    def counts(self) -> Counts:
        """The number of rows of each iterator."""
        [counts] = self._rows(_COUNTS)
        return Counts(*counts)

    def settings(self) -> StoredSettings:
        """Returns all settings. Raises `DamagedObject` if their checksum fails."""
        rows = list(self._rows(SETTINGS))
        try:
            return settings_of(rows)
        except DamagedRow as error:
            raise failure(self._path, error) from error

    def references(self) -> Iterator[StoredReference]:
        """Returns all references."""
        return self._read(reference_of, f"{REFERENCE} ORDER BY name")

    def moves(self) -> Iterator[Move]:
        """Returns the reflog, oldest first."""
        return self._read(lambda row: reflog_row_of(row).move, f"{REFLOG} ORDER BY number")

    def requests(self) -> Iterator[RequestRecord]:
        """Returns the committed requests."""
        return self._read(request_of, f"{REQUEST} ORDER BY id")

    def runs(self) -> Iterator[StoredRun]:
        """Returns the records of pipelines' runs."""
        if not list(self._rows(f"{EXISTS} 'runs'")):
            return iter(())
        return self._read(_run_of, _RUNS)

    def objects(self) -> Iterator[PackedObject]:
        """Yields all objects in the order of their numbers.

        SQLite sorts the index entries first, in a temporary file if there are many.
        """
        entries = self._read(_entry_of, _ENTRIES)
        of, entry = next(entries, (_LAST, b""))
        for number, id_, kind, packed in self._rows(_OBJECTS):
            index = []
            # An entry whose object is gone is left out.
            while of <= number:
                if of == number:
                    index.append(entry)
                of, entry = next(entries, (_LAST, b""))
            yield checked(self._path, id_, kind, packed, index)

    def _read(self, make: Callable[[Row], T], sql: str) -> Iterator[T]:
        for row in self._rows(sql):
            try:
                value = make(row)
            except DamagedRow as error:
                raise failure(self._path, error) from error
            yield value

    def _rows(self, sql: str) -> Iterator[Row]:
        try:
            yield from self._connection.cursor().execute(sql)
        except (apsw.Error, UnicodeDecodeError) as error:
            raise failure(self._path, error) from error


def _entry_of(row: Row) -> Row:
    return check_types("object_index", row, (int, bytes))


def _run_of(row: Row) -> StoredRun:
    return StoredRun(*check_types("runs", row, (str, str, bytes, int)))


def load(cursor: apsw.Cursor, url: str, dump: Dump, now: int, progress: Progress | None) -> None:
    """Writes everything in a dump, inside a transaction. Raises `StoreNotEmpty`."""
    before = _one_row(cursor, _COUNTS)
    [version, last_number] = _one_row(
        cursor,
        """SELECT (SELECT coalesce(max(version), 0) FROM settings),
        (SELECT coalesce(max(number), 0) FROM reflog)""",
    )
    require_empty(url, Counts(*before), version)
    tally = LoadProgress(dump.counts, progress)
    for statement in _CLEAR:
        cursor.execute(statement)
    settings = dump.settings()
    newest: dict[str, bytes] = {}
    for moves in batches(dump.moves()):
        cursor.executemany(LOG, log_rows(count(last_number + 1), moves, newest))
        last_number += len(moves)
        tally.add(len(moves))
    _load_settings(cursor, settings, version, newest)
    for references in batches(dump.references()):
        rows = [reference_row(r, newest.get(r.name, b"")) for r in references]
        cursor.executemany(CREATE, rows)
        # The entries of these have expired. An anchor shows that they exist.
        expired = [with_check("anchors", r.name, b"") for r in references if r.name not in newest]
        cursor.executemany(ADD_ANCHOR, expired)
        tally.add(len(references))
    for requests in batches(dump.requests()):
        rows = list(map(request_row, requests))
        cursor.executemany(RECORD, rows)
        tally.add(len(requests))
    _load_runs(cursor, loaded_runs(dump.runs()))
    number = 1
    for objects in batches(dump.objects(), packed_size):
        numbered = list(enumerate(objects, number))
        cursor.executemany(
            _PUT, [(n, stored.id, stored.kind, now, stored.packed) for n, stored in numbered]
        )
        cursor.executemany(_INDEX, [(entry, n) for n, stored in numbered for entry in stored.index])
        number += len(objects)
        tally.add(len(objects))


def _load_settings(
    cursor: apsw.Cursor, settings: StoredSettings, replaced: int, newest: Mapping[str, bytes]
) -> None:
    names = [str(name) for (name,) in cursor.execute("SELECT name FROM settings").fetchall()]
    rows, anchors = setting_rows(settings, names, replaced, newest)
    cursor.executemany(SET, rows)
    cursor.executemany(ADD_ANCHOR, anchors)


def _load_runs(cursor: apsw.Cursor, runs: Iterator[StoredRun]) -> None:
    create_later_table(cursor, "runs")
    cursor.execute("DELETE FROM runs")
    for run in runs:
        cursor.execute(_PUT_RUN, (run.id, run.state, run.data, run.version))


def _one_row(cursor: apsw.Cursor, sql: str) -> tuple[Any, ...]:
    return cursor.execute(sql).fetchall()[0]
