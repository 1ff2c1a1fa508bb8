"""The schema of a store: how one is created, and how one of an older format is migrated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import psycopg
from psycopg import sql

from nessie_cli.errors import StoreNotFound, UnsupportedFormat
from nessie_cli.store.postgres.location import Location
from nessie_cli.store.postgres.pool import Connection
from nessie_cli.store.records import STORE_FORMAT

Migrations = Mapping[int, Callable[[Connection], object]]
"""For each older format the step to the next one.

Steps run in one transaction and must not end it.
"""


def _from_format_2(_: Connection) -> None:
    """Nothing differs here: format 3 is about pages of SQLite."""


MIGRATIONS: Migrations = {2: _from_format_2}

OLDEST_SERVER = 140000
"""PostgreSQL 14: the first one with `idle_session_timeout`, by which a lease ends."""

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('nessie store ' || %s, 0))"
_HERE = Path(__file__).parent


def create_schema(connection: Connection, location: Location) -> None:
    """Creates the tables and functions, unless they exist. Two processes may do so at once."""
    _check_server(connection, location)
    with connection.transaction():
        connection.execute(_LOCK, (location.schema,))
        if _has_table(connection, location.schema):
            return
        identifier = sql.Identifier(location.schema)
        if not _exists(connection, location.schema):
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(identifier))
        elif not _is_empty(connection, location.schema):
            raise UnsupportedFormat(
                f"store {location.url}: schema {location.schema} holds other tables; choose"
                " another one by ?schema=NAME"
            )
        connection.execute(_script("tables.sql"))
        connection.execute(_script("functions.sql"))
        connection.execute("INSERT INTO store (format) VALUES (%s)", (STORE_FORMAT,))


def check_schema(
    connection: Connection, location: Location, format_: int, migrations: Migrations
) -> None:
    """Migrates an older store; raises `StoreNotFound`, `UnsupportedFormat`, `StoreUnavailable`."""
    _check_server(connection, location)
    found = _format(connection, location)
    if found != format_:
        _migrate(connection, location, format_, migrations)
    elif not _has_functions(connection, location.schema):
        _add_functions(connection, location)


def _check_server(connection: Connection, location: Location) -> None:
    if connection.info.server_version < OLDEST_SERVER:
        raise UnsupportedFormat(f"store {location.url} needs PostgreSQL 14 or newer")
    if (encoding := connection.info.parameter_status("server_encoding")) != "UTF8":
        raise UnsupportedFormat(
            f"store {location.url}: the database's encoding is {encoding}; create one by createdb"
            " --encoding=UTF8 --template=template0"
        )


def _format(connection: Connection, location: Location) -> int:
    schema, url = location.schema, location.url
    if not _has_table(connection, schema):
        if _exists(connection, schema) and not _is_empty(connection, schema):
            raise UnsupportedFormat(f"store {url}: schema {schema} does not hold a nessie store")
        raise StoreNotFound(f"store {url}: there is no store in schema {schema}", url)
    try:
        rows = connection.execute("SELECT format FROM store").fetchall()
    except psycopg.errors.UndefinedColumn:
        rows = []
    if not rows:
        raise UnsupportedFormat(f"store {url}: schema {schema} does not hold a nessie store")
    return int(rows[0][0])


def _migrate(
    connection: Connection, location: Location, format_: int, migrations: Migrations
) -> None:
    with connection.transaction():
        connection.execute(_LOCK, (location.schema,))
        # Another process may have done it while this one waited for the lock.
        found = _format(connection, location)
        if found > format_:
            raise UnsupportedFormat(
                f"store {location.url} has format {found}; this program supports formats up to"
                f" {format_}. Hint: upgrade nessie-cli"
            )
        for step in range(found, format_):
            if step not in migrations:
                raise UnsupportedFormat(
                    f"store {location.url} has the unknown format {step}; restore it from a backup"
                )
            migrations[step](connection)
            connection.execute("UPDATE store SET format = %s", (step + 1,))


def _add_functions(connection: Connection, location: Location) -> None:
    """Adds the functions of this version to a store that a program of another version created."""
    with connection.transaction():
        connection.execute(_LOCK, (location.schema,))
        if not _has_functions(connection, location.schema):
            connection.execute(_script("functions.sql"))


def _script(name: str) -> bytes:
    return (_HERE / name).read_bytes()


def _has_table(connection: Connection, schema: str) -> bool:
    query = """SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = %s AND c.relname = 'store' AND c.relkind = 'r'"""
    return connection.execute(query, (schema,)).fetchone() is not None


def _has_functions(connection: Connection, schema: str) -> bool:
    query = """SELECT 1 FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE n.nspname = %s AND p.proname = 'commit_1'"""
    return connection.execute(query, (schema,)).fetchone() is not None


def _exists(connection: Connection, schema: str) -> bool:
    query = "SELECT 1 FROM pg_namespace WHERE nspname = %s"
    return connection.execute(query, (schema,)).fetchone() is not None


def _is_empty(connection: Connection, schema: str) -> bool:
    query = """SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = %s LIMIT 1"""
    return connection.execute(query, (schema,)).fetchone() is None
