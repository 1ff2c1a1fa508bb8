"""The memory that large requests take: turns of large bodies and files, and what frees it.

JSON takes many times the memory of its text, so one large body and one large metadata file are read
as JSON at a time. Python runs one thread at a time: requests that read large files at once would
share the time of every other request, too.

A full collection of garbage visits all objects while no other thread runs: for a second, if a large
body is in memory. So it takes place rarely, and after a large request for its objects only.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache, partial
from typing import TypeVar

from nessie_cli.server.http.failures import Unavailable
from nessie_cli.server.http.messages import LARGE
from nessie_cli.server.runtime.thread_pool import BUSY, LONGEST_QUEUED, ThreadPool

YOUNG = 5_000
"""The number of new objects after which they are searched for garbage."""
_OLDER, _NEVER = 5, 1 << 30
_OLDEST = 2
_CHEAP = 100_000
"""The number of objects that are searched in some tens of milliseconds."""


def collect_rarely() -> None:
    """Leaves full collections of garbage to `give_back`."""
    gc.set_threshold(YOUNG, _OLDER, _NEVER)


def set_aside() -> None:
    """Excludes all objects from collections until `give_back`, at no cost."""
    if not gc.get_freeze_count():
        gc.freeze()


def is_cheap() -> bool:
    """Returns whether few objects would be searched for garbage.

    An answer that is still being sent may have a million, which were made for a large request.
    """
    return len(gc.get_objects(generation=_OLDEST)) < _CHEAP


def give_back(*, collect: bool = True) -> None:
    """Collects the garbage of what was not set aside, and returns freed memory to the system.

    Only some C libraries can return memory; it takes some milliseconds.
    """
    if collect:
        gc.collect()
    gc.unfreeze()
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    # glibc keeps freed memory between used pieces: after a large commit, several times what the
    # server needs.
    return getattr(ctypes.CDLL(None), "malloc_trim", None)


MOST_WAITING = 64 << 20
"""The most bytes of files that wait for their turn, but one that waits may have any size.

So a few threads wait for large files, and the others answer requests without them.
"""


class LargeFiles:
    """The turns of large files. `ended` is called after each, on the thread that had it.

    None waits longer than `longest_queued` seconds for its turn.
    """

    def __init__(self, ended: Callable[[], None], longest_queued: float = LONGEST_QUEUED) -> None:
        self._ended = ended
        self._longest_queued = longest_queued
        self._turn = threading.Lock()
        self._counting = threading.Lock()
        self._waiting = 0

    def begin(self, size: int) -> None:
        """Begins a turn once no other thread has one.

        Raises `Unavailable` if too much waits, and after a long wait.
        """
        with self._counting:
            if self._waiting and self._waiting + size > MOST_WAITING:
                raise Unavailable(BUSY)
            self._waiting += size
        try:
            if not self._turn.acquire(timeout=self._longest_queued):
                raise Unavailable(BUSY)
        finally:
            with self._counting:
                self._waiting -= size
        set_aside()

    def end(self) -> None:
        """Ends the turn of this thread."""
        self._turn.release()
        self._ended()

    def between_turns(self, work: Callable[[], bool]) -> bool:
        """Returns what `work` returns, False without calling it if a large file is in memory."""
        if not self._turn.acquire(blocking=False):
            return False
        try:
            return work()
        finally:
            self._turn.release()


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
    """The turns of large bodies, of all APIs.

    At most `most_waiting` bytes wait, as they were sent, for up to `longest_queued` seconds.
    `files` are the turns of large metadata files, whose memory is freed, too.
    """

    def __init__(self, most_waiting: int, longest_queued: float = LONGEST_QUEUED) -> None:
        self.files = LargeFiles(self._free_later)
        self._most_waiting = most_waiting
        self._longest_queued = longest_queued
        self._waiting = 0
        self._turn = asyncio.Lock()
        self._thread = ThreadPool(1, name="unpacker")
        self._small = ThreadPool(1, name="small-unpacker")
        self._freeing: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def is_small(self, read: Callable[[], bool]) -> bool:
        """Whether `read` has read a small compressed body. It runs on a thread of its own."""
        return await self._small.submit(read)

    async def answer(
        self,
        size: int,
        read: Callable[[], int],
        answer: Callable[[bool], Awaitable[T]],
        free: Callable[[], None],
    ) -> T:
        """Returns `answer(is_large)`, once `read` has read a body of `size` bytes on a thread.

        `read` returns the size of the expanded text. `free` frees the values of a large one, on the
        same thread. Raises `Unavailable` if too much waits, and after a long wait.
        """
        if self._waiting and self._waiting + size > self._most_waiting:
            raise Unavailable(BUSY)
        self._waiting += size
        try:
            await self._begin_turn()
            try:
                if await self._thread.submit(read) >= LARGE:
                    return await self._answer_large(answer, free)
            finally:
                self._turn.release()
        finally:
            self._waiting -= size
        return await answer(False)

    async def _begin_turn(self) -> None:
        try:
            async with asyncio.timeout(self._longest_queued):
                await self._turn.acquire()
        except TimeoutError:
            raise Unavailable(BUSY) from None

    async def _answer_large(
        self, answer: Callable[[bool], Awaitable[T]], free: Callable[[], None]
    ) -> T:
        set_aside()
        try:
            return await answer(True)
        finally:
            self._free_soon()
            await self._thread.submit(free, begun=True)

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

    def close(self, until: float | None = None) -> None:
        """Ends the threads. See `ThreadPool.close`."""
        self._thread.close(until)
        self._small.close(until)
