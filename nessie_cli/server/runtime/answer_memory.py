"""The memory of large answers: one limit for all connections.

An answer stays in memory until its client has read it. So a large one takes its share of a common
limit before it is sent, and returns it afterwards.
"""

from __future__ import annotations

import asyncio

from nessie_cli.server.http.failures import Unavailable
from nessie_cli.server.http.messages import SMALL

_EXCESS = 2
"""How many times the limit answers may hold that cannot wait: they are made or sent already."""
BUSY = "Too many large answers are being sent; come again later"


class AnswerMemory:
    """The bytes that large answers hold, of all connections. Only for the event loop.

    `most` is their limit, and `seconds` the longest wait for a share. A single answer may have any
    size, and waits for all others.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self.held = 0
        self.waiting = 0
        """The number of answers that wait for their bytes."""
        self._most = most
        self._seconds = seconds
        self._turn = asyncio.Lock()
        self._released = asyncio.Event()

    def share(self) -> Share:
        """Returns the share of an answer, which is empty."""
        return Share(self)

    def take(self, size: int) -> bool:
        """Takes bytes if they are free, and no other answer waits. Returns whether it did."""
        if self.waiting or not self._fits(size):
            return False
        self.held += size
        return True

    def replace(self, size: int, new: int) -> bool:
        """Replaces bytes, by more of them also beyond the limit. Returns whether it did."""
        others = self.held - size
        if new > size and others and others + new > _EXCESS * self._most:
            return False
        self.held = others + new
        if new < size:
            self._released.set()
        return True

    async def wait(self, size: int) -> None:
        """Takes bytes when they are free, after earlier answers. Raises `Unavailable`."""
        self.waiting += 1
        try:
            async with asyncio.timeout(self._seconds), self._turn:
                while not self._fits(size):
                    self._released.clear()
                    await self._released.wait()
                self.held += size
        except TimeoutError:
            raise Unavailable(BUSY) from None
        finally:
            self.waiting -= 1

    def _fits(self, size: int) -> bool:
        return not self.held or self.held + size <= self._most


class Share:
    """The bytes that one answer has taken."""

    def __init__(self, memory: AnswerMemory) -> None:
        self._memory = memory
        self._size = 0

    def take(self, size: int) -> bool:
        """Takes bytes if they are free. Returns whether it did."""
        assert not self._size
        if size > SMALL:
            if not self._memory.take(size):
                return False
            self._size = size
        return True

    async def wait(self, size: int) -> None:
        """Takes bytes when they are free. Raises `Unavailable` after some time."""
        assert not self._size
        await self._memory.wait(size)
        self._size = size

    def resize(self, size: int) -> None:
        """Changes the share of an answer that cannot wait. Raises `Unavailable`."""
        size = size if size > SMALL else 0
        if size != self._size and not self._memory.replace(self._size, size):
            raise Unavailable(BUSY)
        self._size = size

    def release(self) -> None:
        """Returns all bytes."""
        self.resize(0)
