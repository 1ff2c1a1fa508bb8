"""How long one call keeps the other threads of this process from running."""

from __future__ import annotations

import threading
import time
from typing import Self

MOST_SECONDS = 0.05
"""The longest call of a server."""
ATTEMPTS = 4


class LongestCall:
    """The longest time, in seconds of this process, in which another thread did not run.

    The time of the processor counts, because other programs on the machine only take turns.
    """

    def __enter__(self) -> Self:
        self.seconds = 0.0
        self._ended = False
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        before = time.process_time()
        while not self._ended:
            time.sleep(0.0005)
            now = time.process_time()
            self.seconds = max(self.seconds, now - before)
            before = now

    def __exit__(self, *_: object) -> None:
        self._ended = True
        self._thread.join()
