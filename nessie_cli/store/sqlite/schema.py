"""The tables of a SQLite store file, and how a file is created, checked and opened.

The header of the file has two numbers: SQLite's `application_id` identifies it, `user_version` is
the format version. Tables have row ids on purpose: object ids are random, and random keys of a
`WITHOUT ROWID` table would scatter whole objects over the file.
"""

# os.path: importing pathlib costs a tenth of a command's start-up.
# ruff: noqa: PTH104, PTH108, PTH112, PTH120, PTH123

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

import apsw

from nessie_cli.errors import DamagedObject, StoreUnavailable, UnsupportedFormat
from nessie_cli.store import STORE_FORMAT
from nessie_cli.store.sqlite.errors import failure
from nessie_cli.store.sqlite.session import Session, connect

APPLICATION_ID = 0x6E657373
"""`ness` in ASCII: the identifier of our files."""

LOADED_FORMAT = 3
"""The older format that `nessie store load` reads."""

# 4096 against 8192 bytes per page, 20,000 commits of 2.6 KB: 3.8 against 3.5 KB per commit, 0.16
# against 0.22 ms.
_PAGE_SIZE = 4096

# Numbers of objects and of reflog rows are explicit, so that VACUUM keeps them. The highest one is
# never deleted, so none is used twice. `refs_by_kind` does not hold the target, so moving a
# reference does not touch it. A setting that was removed keeps its row, without a value: the
# highest version is the version of all settings.
#
# The entries of a reference or setting are a chain: each has the digest of the one before it
# (`previous`), and the row of the reference or setting has that of its newest entry (`newest`).
# After an expiry, `anchors` has the digest of the last deleted entry, unless that is the deletion
# of the reference: then nothing is left of the chain.
TABLES: Mapping[str, str] = {
    "objects": """CREATE TABLE objects (number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, kind INTEGER NOT NULL,
        written INTEGER NOT NULL, packed BLOB NOT NULL)""",
    "object_index": """CREATE TABLE object_index (entry BLOB NOT NULL, object INTEGER NOT NULL, PRIMARY KEY (entry, object))
        WITHOUT ROWID""",
    "refs": """CREATE TABLE refs (name TEXT NOT NULL PRIMARY KEY, kind TEXT NOT NULL, target BLOB NOT NULL,
        newest BLOB NOT NULL, check_sum INTEGER NOT NULL) WITHOUT ROWID""",
    "refs_by_kind": "CREATE INDEX refs_by_kind ON refs (kind, name)",
    "reflog": """CREATE TABLE reflog (number INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT NOT NULL, before BLOB,
        after BLOB, time INTEGER NOT NULL, who TEXT NOT NULL, operation TEXT NOT NULL, message TEXT NOT NULL,
        request_id TEXT NOT NULL, previous BLOB NOT NULL, digest BLOB NOT NULL)""",
    "anchors": """CREATE TABLE anchors (name TEXT NOT NULL PRIMARY KEY, digest BLOB NOT NULL,
        check_sum INTEGER NOT NULL) WITHOUT ROWID""",
    "reflog_by_name": "CREATE INDEX reflog_by_name ON reflog (name)",
    "requests": """CREATE TABLE requests (id TEXT NOT NULL PRIMARY KEY, caller TEXT NOT NULL, digest BLOB NOT NULL,
        result BLOB NOT NULL, time INTEGER NOT NULL, check_sum INTEGER NOT NULL) WITHOUT ROWID""",
    "settings": """CREATE TABLE settings (name TEXT NOT NULL PRIMARY KEY, value TEXT, version INTEGER NOT NULL,
        newest BLOB NOT NULL, check_sum INTEGER NOT NULL) WITHOUT ROWID""",
    "leases": (
        "CREATE TABLE leases (number INTEGER PRIMARY KEY, name TEXT NOT NULL, token TEXT NOT"
        " NULL, ends REAL NOT NULL)"
    ),
}
"""The statements that create the tables and indexes of the current format."""

LATER_TABLES: Mapping[str, str] = {
    "sessions": """CREATE TABLE sessions (id BLOB NOT NULL PRIMARY KEY, data BLOB NOT NULL,
        ends INTEGER NOT NULL) WITHOUT ROWID""",
    "runs": """CREATE TABLE runs (id TEXT NOT NULL PRIMARY KEY, state TEXT NOT NULL, data BLOB NOT NULL,
        version INTEGER NOT NULL) WITHOUT ROWID""",
}
"""The statements of tables that stores of this format may lack: older versions made none."""

_SCHEMA = r"SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\_%' ESCAPE '\'"


def create_file(path: str) -> None:
    """Creates an empty store file, unless there is a file. Raises `StoreUnavailable`."""
    if not os.path.lexists(path):
        with suppress(FileExistsError), new_file(path):
            pass


def create_temporary_file(path: str) -> None:
    """Creates an empty store file that need not survive a power failure, in a folder of its own.

    Raises `StoreUnavailable`.
    """
    with _errors_of_creation(path):
        _fill(path, synchronous="OFF")
        _run(path, "PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL")


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


def _fill(path: str, *, synchronous: str = "FULL") -> None:
    setup = f"PRAGMA page_size = {_PAGE_SIZE}; PRAGMA synchronous = {synchronous}"
    header = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {STORE_FORMAT}"
    statements = "; ".join((*TABLES.values(), *LATER_TABLES.values()))
    _run(path, f"{setup}; BEGIN; {statements}; {header}; COMMIT")


def _run(path: str, statements: str) -> None:
    connection = apsw.Connection(path)
    try:
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


def open_session(path: str, patience: float) -> Session:
    """Opens a store file. Raises `UnsupportedFormat`, `StoreUnavailable`."""
    session = connect(path, patience)
    try:
        _check(session, path)
    except (apsw.NotADBError, apsw.SQLError) as error:
        session.close()
        raise UnsupportedFormat(f"store {path}: this file is not a nessie store") from error
    except (apsw.Error, UnicodeDecodeError) as error:
        session.close()
        raise failure(path, error) from error
    except BaseException:
        session.close()
        raise
    return session


def _check(session: Session, path: str) -> None:
    if session.number("application_id") != APPLICATION_ID:
        raise UnsupportedFormat(f"store {path}: this file is not a nessie store")
    format_ = session.number("user_version")
    if format_ > STORE_FORMAT:
        raise UnsupportedFormat(
            f"store {path} has format {format_}; this program supports format {STORE_FORMAT}",
            hint="upgrade nessie-cli",
        )
    if format_ == LOADED_FORMAT:
        raise UnsupportedFormat(
            f"store {path} has the older format {format_}",
            hint=(
                "copy it into a new store:"
                f" nessie store load {shlex.quote(path)} --store NEW.sqlite"
            ),
        )
    if format_ < STORE_FORMAT:
        raise UnsupportedFormat(
            f"store {path} has format {format_}, which no program supports any more"
        )
    _check_tables(session.cursor, path)


def _check_tables(cursor: apsw.Cursor, path: str) -> None:
    """Raises `DamagedObject` unless a file has the tables and indexes of `TABLES`.

    Those of `LATER_TABLES` must be ours if there are any.

    It may have other tables, but neither views nor triggers: they contain statements that the
    author of the file chose.
    """
    if reason := _difference_of_tables(cursor):
        raise DamagedObject(
            f"store {path}: this file is not a complete nessie store: {reason}",
            hint="restore it from a backup",
        )


def _difference_of_tables(cursor: apsw.Cursor) -> str:
    present = {
        str(name): (str(type_), str(sql)) for type_, name, sql in cursor.execute(_SCHEMA).fetchall()
    }
    later = {name: sql for name, sql in LATER_TABLES.items() if name in present}
    for name, statement in {**TABLES, **later}.items():
        type_, sql = present.get(name, ("", ""))
        if type_ not in ("table", "index"):
            return f"it has no table or index {name}"
        if _normal(sql) != _normal(statement):
            return f"its {type_} {name} differs from that of a nessie store"
    for name, (type_, _) in present.items():
        if type_ not in ("table", "index"):
            return f"it has the {type_} {name}, which no nessie store has"
    return ""


def _normal(statement: str) -> str:
    """Returns a statement without the spaces and quotes that other programs may change."""
    return "".join(statement.split()).replace('"', "")
