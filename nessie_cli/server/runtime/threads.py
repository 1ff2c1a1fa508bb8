"""The threads of a server: the event loop never waits for a store or a file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from nessie_cli.errors import StoreUnavailable
from nessie_cli.model import Reference
from nessie_cli.repository.store_repository import StoreRepository
from nessie_cli.server.http.messages import Headers, Limits, Reply, compressed
from nessie_cli.server.runtime.memory import Bodies
from nessie_cli.server.runtime.thread_pool import Batches, ThreadPool, Writer

if TYPE_CHECKING:
    from nessie_cli.iceberg.warehouses.metadata_files import LocalFile

T = TypeVar("T")
LONG_READERS = 1
"""Threads for long reads, such as filters, so that short reads do not wait."""
FILE_WRITERS = 16
"""Threads for requests that write files.

They wait for their commits, so that many share one.
"""
PAGE_READERS = 2
PACKED_ON_LOOP = 16 << 10
"""The most bytes of an answer that the event loop compresses itself."""
PREVIEWERS = 1
"""Threads for large previews, which need seconds and much memory."""
DRAFTERS = 4
"""Threads that draft merges and large writes, which can take seconds, beside other writers."""


Heads = tuple[Reference | None, ...]
"""References as they are, in the order of their names."""


class Threads:
    """The threads that all dialects share."""

    def __init__(self, repository: StoreRepository, limits: Limits) -> None:
        self.long_readers = ThreadPool(
            LONG_READERS, name="long-reader", most_waiting=limits.long_reads
        )
        self.file_writers = ThreadPool(FILE_WRITERS, name="file-writer", most_waiting=limits.writes)
        self.drafters = ThreadPool(DRAFTERS, name="drafter", most_waiting=limits.writes)
        self.writer = Writer(repository, most_waiting=limits.writes)
        self.bodies = Bodies(most_waiting=limits.most_drained)
        self.unchanged: Batches[LocalFile, bool] = Batches(
            _unchanged, name="local-file", most_waiting=limits.reads
        )
        self.row_readers = ThreadPool(1, name="row-reader", most_waiting=limits.reads)
        """Finds the tables of requests for rows, which other processes read."""
        self.page_readers = ThreadPool(
            PAGE_READERS, name="page-reader", most_waiting=limits.long_reads
        )
        """Makes the pages that read metadata files or search, which can wait for a storage."""
        self.previewers = ThreadPool(PREVIEWERS, name="previewer", most_waiting=limits.long_reads)
        """Previews large merges and reverts, and carries them out."""
        self.checker = ThreadPool(1, name="checker")
        """Reads the store for health checks, apart from all other requests."""
        self.meter = ThreadPool(1, name="meter")
        """Makes the text of the metrics."""
        self._packer = ThreadPool(1, name="packer")
        self._repository = repository
        self._remote = RemoteState(repository) if repository.version_waits else None

    async def packed(self, reply: Reply, headers: Headers) -> Reply:
        """Returns a reply of the event loop, compressed if that pays and the client accepts it."""
        pack = partial(compressed, reply, headers)
        return await self._packer.submit(pack) if len(reply.body) > PACKED_ON_LOOP else pack()

    async def version(self) -> Hashable | None:
        """Returns a value that changes with every write, or None if it is unavailable."""
        return self._repository.version() if self._remote is None else await self._remote.version()

    async def heads(self, names: Sequence[str]) -> Heads | None:
        """Returns the references with these names, or None if they are unavailable."""
        if not names:
            return ()
        return (
            self._repository.heads(names)
            if self._remote is None
            else await self._remote.heads(names)
        )

    def close(self, until: float) -> None:
        """Finishes running requests and ends the threads. See `ThreadPool.close`."""
        # Threads that write files wait for the writing thread.
        self.file_writers.close(until)
        self.previewers.close(until)
        self.drafters.close(until)
        self.writer.close(until)
        for threads in (
            self.unchanged,
            self.bodies,
            self.long_readers,
            self.row_readers,
            self.page_readers,
            self.checker,
            self.meter,
            self._packer,
            self._remote,
        ):
            if threads is not None:
                threads.close(until)


def _unchanged(files: Sequence[LocalFile]) -> list[bool]:
    looked_at = {file: file.is_unchanged() for file in set(files)}
    return [looked_at[file] for file in files]


class RemoteState:
    """The version and the heads of a remote store, each read for all requests that wait.

    A request never gets what was read before it arrived, which could miss earlier writes of its
    client. The futures are for the event loop. They raise `StoreUnavailable` for all requests that
    wait: each of them would wait as long for its own error.
    """

    def __init__(self, repository: StoreRepository) -> None:
        self._repository = repository
        self._versions: Batches[None, Hashable | None] = Batches(self._read_version, name="version")
        self._heads: Batches[Sequence[str], Heads | None] = Batches(self._read_heads, name="heads")

    def version(self) -> asyncio.Future[Hashable | None]:
        """Returns the version, or None if it is unavailable."""
        return self._versions.ask(None)

    def heads(self, names: Sequence[str]) -> asyncio.Future[Heads | None]:
        """Returns the references with these names, or None if they are unavailable."""
        return self._heads.ask(names)

    def close(self, until: float) -> None:
        """Ends the threads. See `ThreadPool.close`."""
        self._versions.close(until)
        self._heads.close(until)

    def _read_version(self, asked: Sequence[None]) -> Sequence[Hashable | None]:
        return [_unless_failing(self._repository.version)] * len(asked)

    def _read_heads(self, asked: Sequence[Sequence[str]]) -> Sequence[Heads | None]:
        names = list({name for each in asked for name in each})
        heads = _unless_failing(lambda: self._repository.heads(names))
        if heads is None:
            return [None] * len(asked)
        references = dict(zip(names, heads, strict=True))
        return [tuple(references[name] for name in each) for each in asked]


def _unless_failing(read: Callable[[], T | None]) -> T | None:
    try:
        return read()
    except StoreUnavailable:
        raise
    except Exception:  # noqa: BLE001 - then the request itself meets the error of the store
        return None
