"""Large and compressed bodies, of all APIs: one is read as JSON at a time.

JSON takes many times the memory of its text. So a large body keeps its turn until its request is
answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from nessie_cli.server.http.failures import Unavailable
from nessie_cli.server.http.messages import LARGE
from nessie_cli.server.runtime.large_files import LargeFiles
from nessie_cli.server.runtime.memory import give_back, is_cheap, set_aside
from nessie_cli.server.runtime.thread_pool import BUSY, ThreadPool

T = TypeVar("T")
FREED_AFTER = 1.0
"""Seconds after a large request until its memory is freed."""
_ATTEMPTS = 30
"""How often that is tried: a large answer that is still being sent has many objects."""
COLLECTED_EVERY = 3600.0
"""Seconds between full collections of garbage, which take some tens of milliseconds."""


def _freed() -> bool:
    """Frees memory, unless that takes long. Returns whether it did."""
    if cheap := is_cheap():
        give_back()
    return cheap


def _returned() -> bool:
    """Returns memory to the system. Garbage is left to the collection of the hour."""
    give_back(collect=False)
    return True


def _collected() -> bool:
    give_back()
    return True


class Bodies:
    """The turns of large and compressed bodies. At most `most_waiting` bytes wait.

    `files` are the turns of large metadata files, whose memory is freed, too.
    """

    def __init__(self, most_waiting: int) -> None:
        self.files = LargeFiles(self._free_later)
        self._most_waiting = most_waiting
        self._waiting = 0
        self._turn = asyncio.Lock()
        self._thread = ThreadPool(1, name="unpacker")
        self._freeing: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def answer(
        self, size: int, read: Callable[[], int], answer: Callable[[bool], Awaitable[T]]
    ) -> T:
        """Returns `answer(is_large)`, once `read` has read a body of `size` bytes on a thread.

        `read` returns the size of the expanded text. Raises `Unavailable` if too much waits.
        """
        if self._waiting and self._waiting + size > self._most_waiting:
            raise Unavailable(BUSY)
        self._waiting += size
        try:
            async with self._turn:
                if await self._thread.submit(read) >= LARGE:
                    return await self._answer_large(answer)
        finally:
            self._waiting -= size
        return await answer(False)

    async def _answer_large(self, answer: Callable[[bool], Awaitable[T]]) -> T:
        set_aside()
        try:
            return await answer(True)
        finally:
            self._free_soon()

    def _free_later(self) -> None:
        """Frees memory soon, from another thread."""
        # The event loop may have been closed.
        with suppress(RuntimeError):
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._free_soon)

    def _free_soon(self) -> None:
        if self._freeing is None:
            self._freeing = asyncio.create_task(self._free())

    async def _free(self) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            await asyncio.sleep(FREED_AFTER)
            if await self._give_back(_freed if attempt < _ATTEMPTS else _returned):
                break
        self._freeing = None

    async def keep_collecting(self) -> None:
        """Collects garbage now and then, until it is cancelled."""
        self._loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(COLLECTED_EVERY)
            await self._give_back(_collected)

    async def _give_back(self, free: Callable[[], bool]) -> bool:
        """Calls `free` if no large metadata file is being read. Returns whether it freed memory."""
        # No large body is in memory between two turns.
        async with self._turn:
            return await self._thread.submit(partial(self.files.between_turns, free))

    def close(self) -> None:
        """Ends the thread."""
        self._thread.close()
