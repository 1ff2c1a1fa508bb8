"""The tables of a SQLite store file: creation, and migration from older formats.

The header of the file has two numbers: SQLite's `application_id` identifies it, `user_version` is
the format version. Tables have row ids on purpose: object ids are random, and random keys of a
`WITHOUT ROWID` table would scatter whole objects over the file.
"""

# os.path: importing pathlib costs a tenth of a command's start-up.
# ruff: noqa: PTH104, PTH108, PTH112, PTH120, PTH123

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

import apsw

from nessie_cli.errors import DamagedObject, StoreUnavailable, UnsupportedFormat
from nessie_cli.store.codec import resealed, row_check
from nessie_cli.store.records import STORE_FORMAT
from nessie_cli.store.sqlite_errors import failure
from nessie_cli.store.sqlite_pages import (
    VFS,
    has_page_checks,
    load_page_checks,
    request_page_checks,
)
from nessie_cli.store.sqlite_session import Session, connect
from nessie_cli.store.sqlite_tables import check_tables

APPLICATION_ID = 0x6E657373
"""`ness` in ASCII: the identifier of our files."""

Migrations = Mapping[int, Callable[[apsw.Cursor], object]]
"""The step from each older format to the next one.

Steps run in a transaction, and do not end it.
"""


# 4096 against 8192 bytes per page, 20,000 commits of 2.6 KB: 3.8 against 3.5 KB per commit, 0.16
# against 0.22 ms.
_PAGE_SIZE = 4096

# Numbers of objects and of reflog rows are explicit, so that VACUUM keeps them. The highest one is
# never deleted, so none is used twice. The column `packed` has had the name `data` in format 1: a
# program of that time that still has the file open cannot write rows that this one could not read.
# `refs_by_kind` does not hold the target, so moving a reference does not touch it. A setting that
# was removed keeps its row, without a value: the highest version is the version of all settings.
TABLES: Mapping[str, str] = {
    "objects": """CREATE TABLE objects (number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, kind INTEGER NOT NULL,
        written INTEGER NOT NULL, packed BLOB NOT NULL)""",
    "object_index": """CREATE TABLE object_index (entry BLOB NOT NULL, object INTEGER NOT NULL, PRIMARY KEY (entry, object))
        WITHOUT ROWID""",
    "refs": """CREATE TABLE refs (name TEXT NOT NULL PRIMARY KEY, kind TEXT NOT NULL, target BLOB NOT NULL,
        check_sum INTEGER NOT NULL) WITHOUT ROWID""",
    "refs_by_kind": "CREATE INDEX refs_by_kind ON refs (kind, name)",
    "reflog": """CREATE TABLE reflog (number INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, before BLOB,
        after BLOB, time INTEGER NOT NULL, who TEXT NOT NULL, operation TEXT NOT NULL, message TEXT NOT NULL,
        request_id TEXT NOT NULL, check_sum INTEGER NOT NULL)""",
    "reflog_by_name": "CREATE INDEX reflog_by_name ON reflog (name)",
    "requests": """CREATE TABLE requests (id TEXT NOT NULL PRIMARY KEY, caller TEXT NOT NULL, digest BLOB NOT NULL,
        result BLOB NOT NULL, time INTEGER NOT NULL, check_sum INTEGER NOT NULL) WITHOUT ROWID""",
    "settings": """CREATE TABLE settings (name TEXT NOT NULL PRIMARY KEY, value TEXT, version INTEGER NOT NULL,
        check_sum INTEGER NOT NULL) WITHOUT ROWID""",
    "leases": (
        "CREATE TABLE leases (number INTEGER PRIMARY KEY, name TEXT NOT NULL, token TEXT NOT"
        " NULL, ends REAL NOT NULL)"
    ),
}
"""The statements that create the tables and indexes of the current format."""


def _from_format_1(cursor: apsw.Cursor) -> None:
    """Copies every table but the index; rows come in order, so memory stays bounded."""
    connection = cursor.connection
    functions: Mapping[str, Callable[..., int | bytes]] = {
        "row_check": row_check,
        "resealed": resealed,
    }
    for name, function in functions.items():
        connection.create_scalar_function(name, function, deterministic=True)
    cursor.execute(
        "DROP INDEX refs_by_kind; DROP INDEX reflog_by_name; DROP INDEX reflog_by_request"
    ).fetchall()
    for table in ("objects", "refs", "reflog", "settings"):
        cursor.execute(f"ALTER TABLE {table} RENAME TO {table}_1")
    cursor.execute("ALTER TABLE marks RENAME TO object_index")
    cursor.execute("ALTER TABLE object_index RENAME COLUMN mark TO entry")
    for table in ("objects", "refs", "reflog", "requests", "settings", "leases"):
        cursor.execute(TABLES[table])
    for statement in _COPY_FORMAT_1:
        cursor.execute(statement)
    for table in ("objects", "refs", "reflog", "settings"):
        cursor.execute(f"DROP TABLE {table}_1")
    for index in ("refs_by_kind", "reflog_by_name"):
        cursor.execute(TABLES[index])
    for name in functions:
        connection.create_scalar_function(name, None)


_COPY_FORMAT_1 = (
    """INSERT INTO objects (number, id, kind, written, packed)
    SELECT rowid, id, kind, written, resealed(id, kind, data) FROM objects_1 ORDER BY rowid""",
    """INSERT INTO refs (name, kind, target, check_sum)
    SELECT name, kind, target, row_check(name, kind, target) FROM refs_1""",
    """INSERT INTO reflog (number, name, kind, before, after, time, who, operation, message, request_id, check_sum)
    SELECT *, row_check(number, name, kind, before, after, time, who, operation, message, request_id)
    FROM reflog_1 ORDER BY number""",
    # Format 1 stored neither a digest nor a result. An empty digest matches any.
    """INSERT OR IGNORE INTO requests (id, caller, digest, result, time, check_sum)
    SELECT request_id, who, x'', x'', time, row_check(request_id, who, x'', x'', time)
    FROM reflog_1 WHERE request_id <> '' ORDER BY number""",
    """INSERT INTO settings (name, value, version, check_sum)
    SELECT name, value, 1, row_check(name, value, 1) FROM settings_1""",
)


def _from_format_2(cursor: apsw.Cursor) -> None:
    """Does nothing: the pages got their checksums before; see `_migrate`."""


MIGRATIONS: Migrations = {1: _from_format_1, 2: _from_format_2}
_WITH_PAGE_CHECKS = 3
"""The first format whose pages have checksums."""


def create_file(path: str) -> None:
    """Creates an empty store file, unless there is a file. Raises `StoreUnavailable`."""
    if not os.path.lexists(path):
        with suppress(FileExistsError), new_file(path):
            pass


@contextmanager
def new_file(path: str) -> Iterator[str]:
    """Yields an empty store file under another name, which the block opens, writes and closes.

    At the end it gets its name, complete and durable, so two processes that create at once cannot
    disturb each other. After an error nothing is left. Raises `StoreUnavailable`, and
    `FileExistsError` if there is a file with this name by then. Until then the file is in SQLite's
    rollback mode, in which new pages are written once.
    """
    unfinished = f"{path}.{os.urandom(6).hex()}.new"
    try:
        with _errors_of_creation(path):
            _fill(unfinished)
        yield unfinished
        with _errors_of_creation(path):
            _run(unfinished, "PRAGMA synchronous = FULL; PRAGMA journal_mode = WAL")
            _publish(unfinished, path)
    finally:
        for leftover in (
            unfinished,
            unfinished + "-wal",
            unfinished + "-shm",
            unfinished + "-journal",
        ):
            if os.path.lexists(leftover):
                os.unlink(leftover)


@contextmanager
def _errors_of_creation(path: str) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise
    except (apsw.Error, OSError) as error:
        raise _cannot_create(path, error) from error


def _fill(path: str) -> None:
    setup = f"PRAGMA page_size = {_PAGE_SIZE}; PRAGMA synchronous = FULL"
    header = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {STORE_FORMAT}"
    _run(path, f"{setup}; BEGIN; {'; '.join(TABLES.values())}; {header}; COMMIT")


def _run(path: str, statements: str) -> None:
    load_page_checks()
    connection = apsw.Connection(path, vfs=VFS)
    try:
        request_page_checks(connection)
        # fetchall: apsw runs a statement only after the rows of the one before were read.
        connection.execute(statements).fetchall()
    finally:
        connection.close()


def _publish(unfinished: str, path: str) -> None:
    """Gives the finished file its name durably. Raises `FileExistsError` after a lost race."""
    with open(unfinished, "rb") as file:
        os.fsync(file.fileno())
    try:
        os.link(unfinished, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(path):
            raise FileExistsError(path) from None
        os.rename(unfinished, path)
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _cannot_create(path: str, error: apsw.Error | OSError) -> StoreUnavailable:
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        return StoreUnavailable(
            f"store {path} cannot be created: there is no folder {folder}; make it first"
        )
    if isinstance(error, apsw.CantOpenError | OSError):
        return StoreUnavailable(
            f"store {path} cannot be created: files in {folder} cannot be written; check its"
            " permissions"
        )
    return failure(path, error)


def open_session(path: str, patience: float, format_: int, migrations: Migrations) -> Session:
    """Opens a store file, and migrates it if it is older than `format_`.

    Raises `UnsupportedFormat`, `StoreUnavailable`.
    """
    session = connect(path, patience)
    try:
        _check(session, path, format_, migrations)
    except (apsw.NotADBError, apsw.SQLError) as error:
        session.close()
        raise UnsupportedFormat(f"store {path}: this file is not a nessie store") from error
    except apsw.Error as error:
        session.close()
        raise failure(path, error) from error
    except BaseException:
        session.close()
        raise
    # After a migration: SQLite checks when it opens a file whether the pages have checksums.
    return session if session.connection is not None else connect(path, patience)


def _check(session: Session, path: str, format_: int, migrations: Migrations) -> None:
    if session.number("application_id") != APPLICATION_ID:
        raise UnsupportedFormat(f"store {path}: this file is not a nessie store")
    found = session.number("user_version")
    if found > format_:
        raise UnsupportedFormat(
            f"store {path} has format {found}; this program supports formats up to {format_}."
            " Hint: upgrade nessie-cli"
        )
    if found < format_:
        if session.read_only:
            raise UnsupportedFormat(
                f"store {path} has the older format {found} and cannot be migrated to {format_},"
                " it is read-only"
            )
        check_tables(session.cursor, path, ())
        _migrate(session, path, format_, migrations)
        check_tables(session.cursor, path, TABLES)
        session.close()
    elif session.connection is not None and not has_page_checks(session.connection):
        raise DamagedObject(
            f"store {path}: the file is damaged (its pages carry no checksums); restore it from a"
            " backup"
        )
    else:
        check_tables(session.cursor, path, TABLES)


def _migrate(session: Session, path: str, format_: int, migrations: Migrations) -> None:
    _take_steps(session, path, min(format_, _WITH_PAGE_CHECKS - 1), migrations)
    if (
        format_ >= _WITH_PAGE_CHECKS
        and session.connection is not None
        and not has_page_checks(session.connection)
    ):
        # This cannot be done in a transaction. Programs of format 1 can no longer write to the
        # file.
        request_page_checks(session.connection)
        session.cursor.execute("VACUUM").fetchall()
    _take_steps(session, path, format_, migrations)


def _take_steps(session: Session, path: str, format_: int, migrations: Migrations) -> None:
    """Migrates in one transaction."""
    with session as cursor:
        # Another process may have migrated meanwhile, wholly or in part.
        for found in range(session.number("user_version"), format_):
            if found not in migrations:
                raise UnsupportedFormat(
                    f"store {path} has the unknown format {found}; restore it from a backup"
                )
            migrations[found](cursor)
            cursor.execute(f"PRAGMA user_version = {found + 1}")
