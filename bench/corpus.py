"""The measured catalog: tables with realistic locations, in namespaces of a thousand."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nessie_cli.model import (
    CommitMeta,
    Content,
    ContentKey,
    IcebergTable,
    Namespace,
    Operation,
    Put,
)
from nessie_cli.repository.local import LocalRepository
from nessie_cli.repository.opening import create
from nessie_cli.repository.snapshot import Context
from nessie_cli.store.sqlite.store import SQLiteStore, open_sqlite

PER_NAMESPACE = 999
AUTHOR = "etl@example.org"
_CONTEXT = Context(AUTHOR, lambda: time.time_ns() // 1000, os.urandom)


def table_key(number: int) -> ContentKey:
    """Returns the key of the table with this number."""
    return ContentKey((f"area_{number // PER_NAMESPACE:04d}", f"table_{number:07d}"))


def table(number: int, version: int = 0) -> IcebergTable:
    """Returns a state of this table; versions differ in location and snapshot."""
    # Like the UUIDs in real file names, these digits do not compress.
    noise = (
        number * 0x9E3779B97F4A7C15F39CC0605CEDC835 + version * 0xC2B2AE3D27D4EB4F165667B19E3779F9
    ) % 2**122
    location = f"s3://lake/warehouse/area_{number // PER_NAMESPACE:04d}/table_{number:07d}/metadata/{version:05d}-{noise:032x}.metadata.json"
    return IcebergTable(metadata_location=location, snapshot_id=noise % 2**62)


def first_load(tables: int) -> Iterator[Operation]:
    """Yields the operations that create this many tables and their namespaces."""
    for number in range(tables):
        if number % PER_NAMESPACE == 0:
            namespace = (f"area_{number // PER_NAMESPACE:04d}",)
            yield Put(ContentKey(namespace), Namespace(elements=namespace))
        yield Put(table_key(number), table(number))


def meta(message: str) -> CommitMeta:
    """Returns metadata as a job writes it."""
    return CommitMeta(message, authors=(AUTHOR,))


def load(path: Path, tables: int) -> None:
    """Creates a store with this many tables on `main`."""
    with create(f"sqlite:///{path}", who=AUTHOR) as repository:
        repository.commit("main", first_load(tables), meta("first load"))


def open_repository(path: Path) -> tuple[LocalRepository, SQLiteStore]:
    """Returns a repository and its store."""
    store = open_sqlite(str(path))
    return forgetful(store), store


def forgetful(store: SQLiteStore) -> LocalRepository:
    """Returns a repository over an open store with empty caches, except SQLite's own."""
    return LocalRepository(store, _CONTEXT)


@contextmanager
def without_waiting(store: SQLiteStore) -> Iterator[None]:
    """Commits of this thread do not wait for the disk: for preparing data, not for measuring."""

    def synchronous(word: str) -> None:
        with store._session() as session:  # noqa: SLF001 - no program has a use for it
            session.cursor.execute(f"PRAGMA synchronous = {word}")

    synchronous("OFF")
    try:
        yield
    finally:
        synchronous("FULL")


def update(repository: LocalRepository, branch: str, number: int, version: int) -> Put:
    """Returns the operation of a typical writer.

    It reads the table, and writes its next state with the previous one as expected content.
    """
    found: Content = repository.content(branch, table_key(number))
    return Put(table_key(number), table(number, version).with_id(found.id), found)
