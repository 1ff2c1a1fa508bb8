"""The schema of a store: how one is created and opened."""

from __future__ import annotations

from pathlib import Path

import psycopg
from psycopg import sql

from nessie_cli.errors import StoreNotFound, UnsupportedFormat
from nessie_cli.store import STORE_FORMAT
from nessie_cli.store.postgres.location import Location
from nessie_cli.store.postgres.pool import PostgresConnection

OLDEST_SERVER = 140000
"""PostgreSQL 14: the first one with `idle_session_timeout`, by which a lease ends."""

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('nessie store ' || %s, 0))"
_TABLES = Path(__file__).parent / "tables.sql"
LATER_TABLES = {name: Path(__file__).parent / f"{name}.sql" for name in ("sessions", "runs")}
"""The statements of tables that stores of this format may lack: older versions made none."""


def create_schema(connection: PostgresConnection, location: Location) -> None:
    """Creates the tables, unless they exist. Two processes may do so at once."""
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
        connection.execute(_TABLES.read_bytes())
        for statements in LATER_TABLES.values():
            connection.execute(statements.read_bytes())
        connection.execute("INSERT INTO store (format) VALUES (%s)", (STORE_FORMAT,))


def check_schema(connection: PostgresConnection, location: Location) -> None:
    """Raises `StoreNotFound`, `UnsupportedFormat`, `StoreUnavailable`."""
    _check_server(connection, location)
    format_ = _format(connection, location)
    if format_ > STORE_FORMAT:
        raise UnsupportedFormat(
            (
                f"store {location.url} has format {format_}; this program supports format"
                f" {STORE_FORMAT}"
            ),
            hint="upgrade nessie-cli",
        )
    if format_ < STORE_FORMAT:
        raise UnsupportedFormat(
            f"store {location.url} has the older format {format_}",
            hint=(
                "back it up with the"
                " program that wrote it, and load the file into a new schema: nessie store load FILE"
            ),
        )
    if not _has_table(connection, location.schema, "attempts"):
        raise UnsupportedFormat(
            f"store {location.url} has the tables of an unreleased version",
            hint="create a new store, and load a backup: nessie store load FILE",
        )


def _check_server(connection: PostgresConnection, location: Location) -> None:
    if connection.info.server_version < OLDEST_SERVER:
        raise UnsupportedFormat(f"store {location.url} needs PostgreSQL 14 or newer")
    if (encoding := connection.info.parameter_status("server_encoding")) != "UTF8":
        raise UnsupportedFormat(
            f"store {location.url}: the database's encoding is {encoding}; create one by createdb"
            " --encoding=UTF8 --template=template0"
        )


def _format(connection: PostgresConnection, location: Location) -> int:
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


def _has_table(connection: PostgresConnection, schema: str, table: str = "store") -> bool:
    query = """SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = %s AND c.relname = %s AND c.relkind = 'r'"""
    return connection.execute(query, (schema, table)).fetchone() is not None


def _exists(connection: PostgresConnection, schema: str) -> bool:
    query = "SELECT 1 FROM pg_namespace WHERE nspname = %s"
    return connection.execute(query, (schema,)).fetchone() is not None


def _is_empty(connection: PostgresConnection, schema: str) -> bool:
    query = """SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = %s LIMIT 1"""
    return connection.execute(query, (schema,)).fetchone() is None
