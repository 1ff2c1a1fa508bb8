"""Reads whose answers are cached, valid as long as their state is the current one.

A read depends only on its request and the store, and most reads on nothing but the commits that
they name. Engines often repeat the requests of others. The state on which an answer depends, the
heads of its references or the version of the whole store, is read for each request, so no answer is
older than the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from nessie_cli.model import Reference
from nessie_cli.server.auth.gate import Catalog
from nessie_cli.server.http.messages import Reply
from nessie_cli.server.pipeline.targets import DETACHED, Target
from nessie_cli.server.runtime.threads import Threads

if TYPE_CHECKING:
    from nessie_cli.iceberg.warehouses.metadata_files import LocalFile
    from nessie_cli.server.auth.gate import Admission
    from nessie_cli.server.pipeline.call import Call
    from nessie_cli.server.pipeline.exchange import Exchange
    from nessie_cli.server.pipeline.table import Endpoint

MOST_BYTES = 64 << 20
"""Bytes of all cached answers and their requests."""
MOST_OF_ONE = 256 << 10
"""The largest answer in bytes, including its request, that is cached."""
_OVERHEAD = 1000
"""Bytes that an answer needs besides its text and that of its request."""
_FAILED = 400
"""Answers from this status on are not cached."""


class Made(NamedTuple):
    """An answer, and the local file from which it was made.

    `is_cacheable`: other requests may get it.
    """

    reply: Reply
    file: LocalFile | None = None
    is_cacheable: bool = True


class Read(NamedTuple):
    """A request whose answer may be cached.

    `key` is everything on which the answer depends besides the store, and `size` its bytes.
    `targets` are the commits on which alone the answer depends; None if it depends on more. `make`
    runs the handler on a catalog. A short read has `make_at_once`, which runs it on the event loop
    and returns None if it needs something that is not in memory.
    """

    key: Hashable
    size: int
    targets: Sequence[Target] | None
    make: Callable[[Catalog], Awaitable[Made]]
    make_at_once: Callable[[Catalog], Made | None] | None = None


def read_key(
    exchange: Exchange, endpoint: Endpoint, variant: Hashable, admission: Admission | None
) -> Hashable:
    """Returns everything on which the answer to a request depends, besides the store."""
    scope = None if admission is None else admission.scope
    path, query = exchange.scope["raw_path"], exchange.scope["query_string"]
    return path, query, endpoint.method, variant, scope


def may_be_cached(reply: Reply, endpoint: Endpoint, call: Call) -> bool:
    """Returns whether other requests may get an answer."""
    return reply.status < _FAILED and reply.chunks is None and endpoint.takes(call.parameters)


class Reads:
    """Answers reads from the cache, or by their handlers. Only for the event loop."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._answers = Answers()
        self._running: dict[Hashable, asyncio.Future[Reply | None]] = {}
        """The running reads, by the keys and states of their answers."""

    async def answer(self, read: Read, catalog: Catalog) -> Reply:
        """Returns the answer of a read."""
        if read.targets is None:
            state, heads = await self._threads.version(), None
        else:
            state, heads = await self._heads(read.targets)
        cached = self._answers.find(read.key, state)
        if cached is not None and (
            cached.file is None or await self._threads.unchanged.ask(cached.file)
        ):
            return cached.reply
        if heads is not None:
            # Passing a short read to a thread and back takes longer than the read itself.
            if heads and read.make_at_once is not None:
                made = read.make_at_once(_at_heads(catalog, heads, in_memory=True))
                if made is not None:
                    if made.is_cacheable:
                        self._answers.keep(read.key, state, made, read.size)
                    return made.reply
            catalog = _at_heads(catalog, heads)
        if state is None:
            return (await read.make(catalog)).reply
        return await self._shared(read, state, catalog)

    async def _heads(
        self, targets: Sequence[Target]
    ) -> tuple[Hashable, Sequence[Reference] | None]:
        """Returns the state of a read, and the references that it names; None if one is missing.

        A handler must read them there. Otherwise its answer could be of a later state, and be used
        for this one if the reference is moved back.
        """
        named = [target for target in targets if target.name not in (None, DETACHED)]
        heads = await self._threads.heads([target.name or "" for target in named])
        references = [head for head in heads or () if head is not None]
        if heads is None or len(references) < len(heads):
            return None, None
        # A read at a hash depends on the existence of its reference.
        state = tuple(
            head if target.hash is None else (head.type, head.name)
            for head, target in zip(references, named, strict=True)
        )
        return state, references

    async def _shared(self, read: Read, state: Hashable, catalog: Catalog) -> Reply:
        """Runs the handler of a read, once for equal requests in the same state."""
        running = self._running.get((read.key, state))
        if running is not None and (reply := await asyncio.shield(running)) is not None:
            return reply
        future: asyncio.Future[Reply | None] = asyncio.get_running_loop().create_future()
        self._running[read.key, state] = future
        shared = None
        try:
            made = await read.make(catalog)
            if made.is_cacheable:
                self._answers.keep(read.key, state, made, read.size)
                shared = made.reply if made.file is None else None
        finally:
            if self._running.get((read.key, state)) is future:
                del self._running[read.key, state]
            future.set_result(shared)
        return made.reply


def _at_heads(catalog: Catalog, heads: Sequence[Reference], *, in_memory: bool = False) -> Catalog:
    repository = catalog.repository.at_heads(heads, in_memory=in_memory)
    return catalog._replace(repository=repository)


class Answers:
    """The newest answer to each request, with its state. Only for one thread."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._cached: dict[Hashable, tuple[Hashable, Made]] = {}

    def find(self, request: Hashable, state: Hashable | None) -> Made | None:
        """Returns the cached answer to a request in this state."""
        made_at, made = self._cached.get(request, (None, None))
        return made if state is not None and made_at == state else None

    def keep(
        self, request: Hashable, state: Hashable | None, made: Made, request_bytes: int = 0
    ) -> None:
        """Caches an answer made in a state, instead of an earlier one."""
        size = len(made.reply.body) + request_bytes + _OVERHEAD
        if state is None or size > MOST_OF_ONE:
            return
        if self._bytes + size > self._most:
            self._cached, self._bytes = {}, 0
        replaced = self._cached.get(request)
        if replaced is not None:
            self._bytes -= len(replaced[1].reply.body) + request_bytes + _OVERHEAD
        self._cached[request] = state, made
        self._bytes += size
