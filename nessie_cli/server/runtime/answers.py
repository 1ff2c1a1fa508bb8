"""Cached answers of reads, valid as long as the store has not changed.

A read depends only on its request and the store. Engines often repeat the requests of others, on a
catalog that changes rarely. The version of the store is checked for each request, so no answer is
older than the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from typing import Generic, Protocol, TypeVar

from nessie_cli.errors import StoreUnavailable
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.server.runtime.batches import Batches

MOST_BYTES = 64 << 20
"""Bytes of all cached answers and their requests."""
MOST_OF_ONE = 256 << 10
"""The largest answer in bytes, including its request, that is cached."""
_OVERHEAD = 1000
"""Bytes that an answer needs besides its text and that of its request."""


class Versions:
    """The version of a remote store, read on a thread for all requests that wait.

    A request never gets a version that was read before it arrived, which could miss earlier writes
    of its client.
    """

    def __init__(self, repository: ReadableRepository) -> None:
        self._repository = repository
        self._batches: Batches[None, Hashable | None] = Batches(self._read, name="version")

    def ask(self) -> asyncio.Future[Hashable | None]:
        """Returns the version, or None if it is unavailable. Only for the event loop.

        The future raises `StoreUnavailable` for all requests that wait: each of them would wait as
        long for its own error.
        """
        return self._batches.ask(None)

    def close(self) -> None:
        """Ends the thread."""
        self._batches.close()

    def _read(self, asked: Sequence[None]) -> Sequence[Hashable | None]:
        try:
            version = self._repository.version()
        except StoreUnavailable:
            raise
        except Exception:  # noqa: BLE001 - then the request itself meets the error of the store
            version = None
        return [version] * len(asked)


class Cacheable(Protocol):
    """An answer, or what holds one."""

    @property
    def body(self) -> bytes:
        """The bytes of the answer."""


A = TypeVar("A", bound=Cacheable)


class Answers(Generic[A]):
    """Answers by request. Only for one thread."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._version: Hashable | None = None
        self._bytes = 0
        self._kept: dict[Hashable, A] = {}

    def find(self, request: Hashable, version: Hashable | None) -> A | None:
        """Returns the cached answer to a request at this version of the store."""
        if version is None or version != self._version:
            return None
        return self._kept.get(request)

    def keep(
        self, request: Hashable, version: Hashable | None, answer: A, request_bytes: int = 0
    ) -> None:
        """Caches an answer made after reading the version, instead of an earlier one."""
        size = len(answer.body) + request_bytes + _OVERHEAD
        if version is None or size > MOST_OF_ONE:
            return
        if version != self._version or self._bytes + size > self._most:
            self._kept, self._bytes, self._version = {}, 0, version
        replaced = self._kept.get(request)
        if replaced is not None:
            self._bytes -= len(replaced.body) + request_bytes + _OVERHEAD
        self._kept[request] = answer
        self._bytes += size
