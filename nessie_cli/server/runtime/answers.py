"""Answers of reads that are kept as they were sent, for as long as the store stands as it stood.

A read is a function of its request and of the store. Most requests of a data lake's engines ask for what somebody has just asked for, on a catalog
that changes once in a while. Whether it has changed is asked each time: nothing is answered that is older than what the store holds now.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable

from nessie_cli.repository.base import Repository
from nessie_cli.server.http import Reply
from nessie_cli.server.runtime.readers import Readers

MOST_BYTES = 64 << 20
"""Bytes of answers and their requests that are kept in all."""
MOST_OF_ONE = 256 << 10
"""An answer of more bytes, its request included, is not kept: who reads whole catalogs does not read them twice."""
_OVERHEAD = 1000
"""Bytes that an answer takes beside its text and that of its request."""


class Versions:
    """The version of a store that is asked over a network: on a thread of its own, once for all requests that wait.

    A request never gets a version that was asked for before it came: it would miss what its client was told meanwhile.
    """

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._thread = Readers(1, name="version")
        self._waiting: list[asyncio.Future[Hashable | None]] = []
        self._asked: list[asyncio.Future[Hashable | None]] = []

    def ask(self) -> asyncio.Future[Hashable | None]:
        """The version, None if it is unavailable; to be called on the event loop."""
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
        """Let the thread end."""
        self._thread.close()


class Answers:
    """Replies by request. To be used from one thread; asking the store for its version takes some microseconds and never waits."""

    def __init__(self, repository: Repository, most_bytes: int = MOST_BYTES) -> None:
        self._repository = repository
        self._most = most_bytes
        self._version: Hashable | None = None
        self._bytes = 0
        self._kept: dict[Hashable, Reply] = {}

    def version(self) -> Hashable | None:
        """A value that is another one once anything has been written; None where the store cannot tell, or not now."""
        return self._repository.version()

    def find(self, request: Hashable, version: Hashable | None) -> Reply | None:
        """The answer to a request at this version of the store, where it is kept."""
        if version is None or version != self._version:
            return None
        return self._kept.get(request)

    def keep(
        self, request: Hashable, version: Hashable | None, reply: Reply, request_bytes: int = 0
    ) -> None:
        """Remember an answer that was made after the store had been asked for its version; the request has so many bytes."""
        size = len(reply.body) + request_bytes + _OVERHEAD
        if version is None or size > MOST_OF_ONE:
            return
        if version != self._version or self._bytes + size > self._most:
            self._kept, self._bytes, self._version = {}, 0, version
        if request not in self._kept:
            self._kept[request] = reply
            self._bytes += size
