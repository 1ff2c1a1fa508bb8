"""Cached answers of reads, valid as long as their state is the current one.

A read depends only on its request and the store, and most reads on nothing but the commits that
they name. Engines often repeat the requests of others. The state on which an answer depends, the
heads of its references or the version of the whole store, is read for each request, so no answer is
older than the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from typing import Generic, Protocol, TypeVar

from nessie_cli.errors import StoreUnavailable
from nessie_cli.model import Reference
from nessie_cli.repository.store_repository import StoreRepository
from nessie_cli.server.runtime.batches import Batches

MOST_BYTES = 64 << 20
"""Bytes of all cached answers and their requests."""
MOST_OF_ONE = 256 << 10
"""The largest answer in bytes, including its request, that is cached."""
_OVERHEAD = 1000
"""Bytes that an answer needs besides its text and that of its request."""


Heads = tuple[Reference | None, ...]
"""References as they are, in the order of their names."""


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

    def close(self) -> None:
        """Ends the threads."""
        self._versions.close()
        self._heads.close()

    def _read_version(self, asked: Sequence[None]) -> Sequence[Hashable | None]:
        return [_unless_failing(self._repository.version)] * len(asked)

    def _read_heads(self, asked: Sequence[Sequence[str]]) -> Sequence[Heads | None]:
        names = list({name for each in asked for name in each})
        heads = _unless_failing(lambda: self._repository.heads(names))
        if heads is None:
            return [None] * len(asked)
        references = dict(zip(names, heads, strict=True))
        return [tuple(references[name] for name in each) for each in asked]


T = TypeVar("T")


def _unless_failing(read: Callable[[], T | None]) -> T | None:
    try:
        return read()
    except StoreUnavailable:
        raise
    except Exception:  # noqa: BLE001 - then the request itself meets the error of the store
        return None


class Cacheable(Protocol):
    """An answer, or what holds one."""

    @property
    def body(self) -> bytes:
        """The bytes of the answer."""


A = TypeVar("A", bound=Cacheable)


class Answers(Generic[A]):
    """The newest answer to each request, with its state. Only for one thread."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._kept: dict[Hashable, tuple[Hashable, A]] = {}

    def find(self, request: Hashable, state: Hashable | None) -> A | None:
        """Returns the cached answer to a request in this state."""
        made_at, answer = self._kept.get(request, (None, None))
        return answer if state is not None and made_at == state else None

    def keep(
        self, request: Hashable, state: Hashable | None, answer: A, request_bytes: int = 0
    ) -> None:
        """Caches an answer made in a state, instead of an earlier one."""
        size = len(answer.body) + request_bytes + _OVERHEAD
        if state is None or size > MOST_OF_ONE:
            return
        if self._bytes + size > self._most:
            self._kept, self._bytes = {}, 0
        replaced = self._kept.get(request)
        if replaced is not None:
            self._bytes -= len(replaced[1].body) + request_bytes + _OVERHEAD
        self._kept[request] = state, answer
        self._bytes += size
