"""Cached answers of reads, valid as long as the store has not changed.

A read depends only on its request and the store. Engines often repeat the requests of others, on a
catalog that changes rarely. The version of the store is checked for each request, so no answer is
older than the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable

from nessie_cli.repository.base import Repository
from nessie_cli.server.http import Reply
from nessie_cli.server.runtime.thread_pool import ThreadPool

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

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._thread = ThreadPool(1, name="version")
        self._waiting: list[asyncio.Future[Hashable | None]] = []
        self._asked: list[asyncio.Future[Hashable | None]] = []

    def ask(self) -> asyncio.Future[Hashable | None]:
        """Returns the version, or None if it is unavailable. Only for the event loop."""
        future: asyncio.Future[Hashable | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        if not self._asked:
            self._send()
        return future

    def _send(self) -> None:
        self._asked, self._waiting = self._waiting, []
        self._thread.submit(self._repository.version).add_done_callback(self._answer)

    def _answer(self, found: asyncio.Future[Hashable | None]) -> None:
        asked, self._asked = self._asked, []
        version = None if found.cancelled() or found.exception() is not None else found.result()
        for future in asked:
            if not future.done():
                future.set_result(version)
        if self._waiting:
            self._send()

    def close(self) -> None:
        """Ends the thread."""
        self._thread.close()


class Answers:
    """Replies by request. Only for one thread. Reading the version takes microseconds."""

    def __init__(self, repository: Repository, most_bytes: int = MOST_BYTES) -> None:
        self._repository = repository
        self._most = most_bytes
        self._version: Hashable | None = None
        self._bytes = 0
        self._kept: dict[Hashable, Reply] = {}

    def version(self) -> Hashable | None:
        """Returns a value that changes with every write, or None if it is unavailable."""
        return self._repository.version()

    def find(self, request: Hashable, version: Hashable | None) -> Reply | None:
        """Returns the cached answer to a request at this version of the store."""
        if version is None or version != self._version:
            return None
        return self._kept.get(request)

    def keep(
        self, request: Hashable, version: Hashable | None, reply: Reply, request_bytes: int = 0
    ) -> None:
        """Caches an answer made after reading the version; the request has `size` bytes."""
        size = len(reply.body) + request_bytes + _OVERHEAD
        if version is None or size > MOST_OF_ONE:
            return
        if version != self._version or self._bytes + size > self._most:
            self._kept, self._bytes, self._version = {}, 0, version
        if request not in self._kept:
            self._kept[request] = reply
            self._bytes += size
