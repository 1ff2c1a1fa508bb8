"""Large metadata files: one is read as JSON at a time, as large bodies are.

JSON takes many times the memory of its text, and Python runs one thread at a time: requests that
read large files at once would share the time of every other request, too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from nessie_cli.server.http.failures import Unavailable
from nessie_cli.server.runtime.memory import set_aside
from nessie_cli.server.runtime.thread_pool import BUSY

MOST_WAITING = 64 << 20
"""The most bytes of files that wait for their turn, but one that waits may have any size.

So a few threads wait for large files, and the others answer requests without them.
"""


class LargeFiles:
    """The turns of large files. `ended` is called after each, on the thread that had it."""

    def __init__(self, ended: Callable[[], None]) -> None:
        self._ended = ended
        self._turn = threading.Lock()
        self._counting = threading.Lock()
        self._waiting = 0

    def begin(self, size: int) -> None:
        """Begins a turn once no other thread has one. Raises `Unavailable` if too much waits."""
        with self._counting:
            if self._waiting and self._waiting + size > MOST_WAITING:
                raise Unavailable(BUSY)
            self._waiting += size
        try:
            self._turn.acquire()
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
