"""The threads of a server: the event loop never waits for a store or a file."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol

from nessie_cli.repository.store_repository import StoreRepository
from nessie_cli.server.http.messages import Limits
from nessie_cli.server.runtime.answers import Heads, RemoteState
from nessie_cli.server.runtime.batches import Batches
from nessie_cli.server.runtime.bodies import Bodies
from nessie_cli.server.runtime.thread_pool import ThreadPool
from nessie_cli.server.runtime.writer import Writer

LONG_READERS = 1
"""Threads for long reads, such as filters, so that short reads do not wait."""
FILE_WRITERS = 16
"""Threads for requests that write files.

They wait for their commits, so that many share one.
"""


class File(Protocol):
    """A file on which an answer depends."""

    def is_unchanged(self) -> bool:
        """Returns whether the file is the one from which the answer was made."""

    def __hash__(self) -> int:
        """Files are looked at once for all requests that wait."""


class Threads:
    """The threads that all dialects share."""

    def __init__(self, repository: StoreRepository, limits: Limits) -> None:
        self.long_readers = ThreadPool(
            LONG_READERS, name="long-reader", most_waiting=limits.long_reads
        )
        self.file_writers = ThreadPool(FILE_WRITERS, name="file-writer", most_waiting=limits.writes)
        self.writer = Writer(repository, most_waiting=limits.writes)
        self.bodies = Bodies(most_waiting=limits.most_drained)
        self.unchanged: Batches[File, bool] = Batches(
            _unchanged, name="local-file", most_waiting=limits.reads
        )
        self.checker = ThreadPool(1, name="checker")
        """Reads the store for health checks, apart from all other requests."""
        self._repository = repository
        self._remote = RemoteState(repository) if repository.version_waits else None

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

    def close(self) -> None:
        """Finishes running requests and ends the threads."""
        # Threads that write files wait for the writing thread.
        self.file_writers.close()
        self.writer.close()
        for threads in (
            self.unchanged,
            self.bodies,
            self.long_readers,
            self.checker,
            self._remote,
        ):
            if threads is not None:
                threads.close()


def _unchanged(files: Sequence[File]) -> list[bool]:
    looked_at = {file: file.is_unchanged() for file in set(files)}
    return [looked_at[file] for file in files]
