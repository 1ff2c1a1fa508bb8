"""Expires snapshots of the tables of a branch: reads and writes their metadata files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import msgspec
from msgspec import Struct

from nessie_cli.errors import NessieError
from nessie_cli.iceberg.expiration.branches import (
    OtherBranch,
    Tables,
    on_other_branches,
    tables_at,
)
from nessie_cli.iceberg.expiration.freed import freed_bytes
from nessie_cli.iceberg.expiration.retention import ExpiryRule
from nessie_cli.iceberg.expiration.table import Expiration, expired
from nessie_cli.iceberg.files import Files
from nessie_cli.model import ContentKey, IcebergTable, Put, Reference
from nessie_cli.model.progress import Progress
from nessie_cli.repository.base import Repository

MOST_AT_ONCE = 8
"""The most tables whose metadata is in memory at the same time."""


class ExpiredKey(Struct, frozen=True):
    """An expiry of the table of a key. `freed` are bytes, None if they were not computed."""

    key: ContentKey
    before: IcebergTable
    expiration: Expiration
    freed: int | None = None

    @property
    def operation(self) -> Put:
        """The operation that stores the new metadata file."""
        return Put(self.key, self.expiration.content, self.before)


class TableExpiry:
    """Expires the tables of a branch by one rule. `now` is in milliseconds since 1970.

    A dry run writes no file, and computes the bytes that no other branch or tag needs.
    """

    def __init__(
        self,
        repository: Repository,
        files: Files,
        rule: ExpiryRule,
        now: int,
        *,
        dry_run: bool = False,
    ) -> None:
        self._repository = repository
        self._files = files
        self._rule = rule
        self._now = now
        self._dry_run = dry_run
        self._written: list[str] = []

    def expire(
        self, branch: Reference, tables: Tables, progress: Progress | None = None
    ) -> list[ExpiredKey]:
        """Writes the new metadata files of the tables of a branch. Nothing names them yet.

        Raises `InvalidInput` or `StoreUnavailable`, which name the table; then no file stays.
        """
        branches = on_other_branches(self._repository, branch, tables)
        others = self._others(branch, tables) if self._dry_run else {}

        def expire(key: ContentKey) -> ExpiredKey:
            try:
                return self._expired(key, tables[key], branches[key], others.get(key, ()))
            except NessieError as error:
                error.message = f"{key}: {error.message}"
                raise

        results = []
        try:
            with ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="expire") as pool:
                for number, result in enumerate(pool.map(expire, tables), 1):
                    results.append(result)
                    if progress:
                        progress(number, len(tables))
        except BaseException:
            self.discard()
            raise
        return results

    def discard(self) -> None:
        """Removes the files that were written. A file that stays is left to garbage collection."""
        for location in self._written:
            with suppress(NessieError, OSError):
                self._files.remove(location)
        self._written.clear()

    def _expired(
        self,
        key: ContentKey,
        content: IcebergTable,
        branches: Mapping[str, OtherBranch],
        others: Iterable[str],
    ) -> ExpiredKey:
        table = expired(self._files, content, branches, self._rule, self._now)
        freed = None
        if self._dry_run:
            freed = freed_bytes(self._files, table, others)
        elif not table.expiration.is_empty:
            location = table.expiration.content.metadata_location
            self._written.append(location)
            self._files.write(location, msgspec.json.encode(table.after))
        return ExpiredKey(key, content, table.expiration, freed)

    def _others(self, branch: Reference, tables: Tables) -> dict[ContentKey, set[str]]:
        """Returns the metadata files of tables at all other branches and tags."""
        heads = {other.hash for other in self._repository.references() if other.name != branch.name}
        locations: dict[ContentKey, set[str]] = {}
        for head in heads:
            for key, content in tables_at(self._repository, head, tables).items():
                locations.setdefault(key, set()).add(content.metadata_location)
        return locations
