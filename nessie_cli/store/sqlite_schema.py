"""What a SQLite store file looks like, how one is made, and how one of an older format becomes one of today's.

The file carries two numbers in its header: SQLite's `application_id` says that it is ours, `user_version` is the format version. Tables have
row ids on purpose: object ids are random, and random keys of a `WITHOUT ROWID` table would scatter whole objects over the file.
"""

# os.path: importing pathlib costs a tenth of a command's start-up.
# ruff: noqa: PTH104, PTH108, PTH112, PTH120

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import apsw

from nessie_cli.errors import StoreUnavailable, UnsupportedFormat
from nessie_cli.store.base import STORE_FORMAT
from nessie_cli.store.sqlite_errors import failure
from nessie_cli.store.sqlite_session import Session, connect

APPLICATION_ID = 0x6E657373
"""`ness` in ASCII: the mark of our files."""

Migrations = Mapping[int, Callable[[apsw.Cursor], object]]
"""For each older format the step to the next one. Steps run in one transaction; they must not end it."""

MIGRATIONS: Migrations = {}

# 4096 against 8192 bytes per page, 20,000 commits of 2.6 KB: 3.8 against 3.5 KB per commit, 0.16 against 0.22 ms.
_PAGE_SIZE = 4096

# `refs_by_kind` does not hold the target, so moving a reference does not touch it.
_TABLES = f"""
CREATE TABLE objects (id BLOB NOT NULL UNIQUE, kind INTEGER NOT NULL, written INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE marks (mark BLOB NOT NULL, object INTEGER NOT NULL, PRIMARY KEY (mark, object)) WITHOUT ROWID;
CREATE TABLE refs (name TEXT NOT NULL PRIMARY KEY, kind TEXT NOT NULL, target BLOB NOT NULL) WITHOUT ROWID;
CREATE INDEX refs_by_kind ON refs (kind, name);
CREATE TABLE reflog (number INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, before BLOB, after BLOB, time INTEGER NOT NULL,
                     who TEXT NOT NULL, operation TEXT NOT NULL, message TEXT NOT NULL, request_id TEXT NOT NULL);
CREATE INDEX reflog_by_name ON reflog (name);
CREATE INDEX reflog_by_request ON reflog (request_id) WHERE request_id <> '';
CREATE TABLE settings (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {STORE_FORMAT};
"""


def create_file(path: str) -> None:
    """Make an empty store file; a file that is there already is not touched. Raises `StoreUnavailable`.

    The file is made under another name and appears complete, so two processes that create at once cannot disturb each other.
    """
    if os.path.lexists(path):
        return
    unfinished = f"{path}.{os.urandom(6).hex()}.new"
    try:
        _fill(unfinished)
        _publish(unfinished, path)
    except (apsw.Error, OSError) as error:
        raise _cannot_create(path, error) from error
    finally:
        for leftover in (unfinished, unfinished + "-wal", unfinished + "-shm", unfinished + "-journal"):
            if os.path.lexists(leftover):
                os.unlink(leftover)


def _fill(path: str) -> None:
    connection = apsw.Connection(path)
    try:
        setup = f"PRAGMA page_size = {_PAGE_SIZE}; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL"
        # fetchall: apsw runs a statement only when the rows of the one before have been taken.
        connection.execute(f"{setup}; BEGIN; {_TABLES} COMMIT").fetchall()
    finally:
        connection.close()


def _publish(unfinished: str, path: str) -> None:
    """Give the finished file its name, unless another process was faster, and make the name durable."""
    try:
        os.link(unfinished, path)
    except FileExistsError:
        return
    except OSError:  # a file system without hard links
        if not os.path.lexists(path):
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
        return StoreUnavailable(f"store {path}: cannot be created, there is no folder {folder}; make it first")
    if isinstance(error, apsw.CantOpenError | OSError):
        return StoreUnavailable(f"store {path}: cannot be created, files in {folder} cannot be written; check its permissions")
    return failure(path, error)


def open_session(path: str, patience: float, format_: int, migrations: Migrations) -> Session:
    """Open a store file, migrate it where it is older than `format_`; raises `UnsupportedFormat`, `StoreUnavailable`."""
    session = connect(path, patience)
    try:
        _check(session, path, format_, migrations)
    except (apsw.NotADBError, apsw.SQLError) as error:
        session.close()
        raise UnsupportedFormat(f"store {path}: this file is no nessie store") from error
    except apsw.Error as error:
        session.close()
        raise failure(path, error) from error
    except BaseException:
        session.close()
        raise
    return session


def _check(session: Session, path: str, format_: int, migrations: Migrations) -> None:
    if session.number("application_id") != APPLICATION_ID:
        raise UnsupportedFormat(f"store {path}: this file is no nessie store")
    found = session.number("user_version")
    if found == format_:
        return
    if found > format_:
        raise UnsupportedFormat(f"store {path}: has format {found}, this program knows formats up to {format_}; upgrade nessie-cli")
    if session.read_only:
        raise UnsupportedFormat(f"store {path}: has the older format {found} and cannot be migrated to {format_}, it is read-only")
    _migrate(session, path, format_, migrations)


def _migrate(session: Session, path: str, format_: int, migrations: Migrations) -> None:
    with session as cursor:
        # Another process may have done it, wholly or in part, while this one waited for the lock.
        for found in range(session.number("user_version"), format_):
            if found not in migrations:
                raise UnsupportedFormat(f"store {path}: has the unknown format {found}; restore it from a copy")
            migrations[found](cursor)
            cursor.execute(f"PRAGMA user_version = {found + 1}")
