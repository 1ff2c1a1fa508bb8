"""Large and compressed bodies, of all APIs: one is read as JSON at a time.

JSON takes many times the memory of its text, and the interpreter runs nothing else while a text is
parsed. So a large body keeps its turn until its request is answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from nessie_cli.server.failures import Unavailable
from nessie_cli.server.runtime.thread_pool import BUSY, ThreadPool

T = TypeVar("T")
LARGE = 1 << 18
"""The size of a text from which on its request is answered alone."""


class Bodies:
    """The turns of large and compressed bodies. At most `most_waiting` bytes wait."""

    def __init__(self, most_waiting: int) -> None:
        self._most_waiting = most_waiting
        self._waiting = 0
        self._turn = asyncio.Lock()
        self._thread = ThreadPool(1, name="unpacker")

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
                    return await answer(True)
        finally:
            self._waiting -= size
        return await answer(False)

    def submit(self, function: Callable[[], object]) -> None:
        """Runs a function between two bodies."""
        self._thread.submit(function)

    def close(self) -> None:
        """Ends the thread."""
        self._thread.close()
