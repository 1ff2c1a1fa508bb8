"""Converts PostgreSQL's errors: one line with the URL, the reason, and the way out."""

from __future__ import annotations

import psycopg
from psycopg import errors as pg

from nessie_cli.errors import DamagedObject, InvalidInput, StoreUnavailable
from nessie_cli.store.rows import DamagedRow

RETRIED = (pg.DeadlockDetected, pg.SerializationFailure, pg.UniqueViolation)
"""Races with other writers. Nothing was written; the same call may succeed the next time."""

TEXT = (pg.CharacterNotInRepertoire, pg.UntranslatableCharacter, UnicodeEncodeError)
"""Text that PostgreSQL cannot hold: a NUL, half a surrogate pair."""

_MEANING: tuple[tuple[tuple[type[psycopg.Error], ...], str], ...] = (
    (
        (pg.InvalidPassword, pg.InvalidAuthorizationSpecification),
        "login refused ({reason}); check the user, and PGPASSWORD or the password file",
    ),
    ((pg.InvalidCatalogName,), "{reason}; create it with createdb, encoding UTF8"),
    ((pg.InsufficientPrivilege,), "{reason}; grant the missing right to this user"),
    (
        (pg.ReadOnlySqlTransaction,),
        "the database is read-only, nothing was written; connect to the primary server",
    ),
    (
        (pg.DiskFull,),
        "the server's disk is full, nothing was written; free some space and try again",
    ),
    ((pg.LockNotAvailable,), "other writers hold a lock for too long; try again"),
    ((pg.QueryCanceled,), "the statement was cancelled ({reason}); try again"),
    (RETRIED, "it lost too many races with other writers; try again"),
    (
        (pg.TooManyConnections,),
        "the server has no free connections; lower pool_size or raise max_connections",
    ),
    ((pg.OutOfMemory, pg.InsufficientResources), "the server is short of resources ({reason})"),
    (
        (pg.CannotConnectNow, pg.AdminShutdown, pg.CrashShutdown),
        "the server is starting or stopping ({reason}); try again",
    ),
    (
        (pg.UndefinedTable, pg.InvalidSchemaName, pg.UndefinedColumn),
        "its tables are gone ({reason}); restore the schema from a backup",
    ),
    (
        (psycopg.OperationalError,),
        "no connection ({reason}); check that the server runs and can be reached",
    ),
)
_DAMAGE = (pg.DataCorrupted, pg.IndexCorrupted, DamagedRow)


def failure(url: str, error: Exception) -> StoreUnavailable:
    """Returns the error to raise for one of psycopg's."""
    if isinstance(error, _DAMAGE):
        return DamagedObject(
            f"store {url}: the database is damaged ({reason(error)}); restore it from a backup"
        )
    for kinds, meaning in _MEANING:
        if isinstance(error, kinds):
            return StoreUnavailable(f"store {url}: {meaning.format(reason=reason(error))}")
    return StoreUnavailable(f"store {url}: {reason(error)}")


def unstorable(url: str) -> InvalidInput:
    """Returns the error for text that PostgreSQL cannot hold."""
    return InvalidInput(f"store {url}: text with a NUL or half a surrogate pair cannot be stored")


def is_about_text(error: Exception) -> bool:
    """Returns whether an error means that a parameter holds text that PostgreSQL cannot hold."""
    # psycopg refuses a NUL itself, before anything is sent.
    return isinstance(error, TEXT) or (
        isinstance(error, psycopg.DataError) and error.sqlstate is None
    )


def reason(error: Exception) -> str:
    """Returns the text of an error on one line, without what psycopg and the server add to it."""
    primary = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    return " ".join((primary or str(error)).split()) or type(error).__name__
