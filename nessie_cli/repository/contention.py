"""The references that other processes move as well.

Correctness does not depend on it: a commit names the state that it was drafted on, and is refused
if that has changed.
"""

from __future__ import annotations

import time
from threading import Lock

from nessie_cli.store.base import LEASE


class Contention:
    """The contested references: those on which this process has lost a race lately.

    The next writers of this process take their lease at once.
    """

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        self._lock = Lock()

    def add(self, name: str) -> None:
        """Records a lost race."""
        now = time.monotonic()
        with self._lock:
            self._until = {one: until for one, until in self._until.items() if until > now}
            self._until[name] = now + LEASE

    def __contains__(self, name: str) -> bool:
        return self._until.get(name, 0) > time.monotonic()
