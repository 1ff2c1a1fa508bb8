"""The recent writes of a process to a store with other writers.

They save round trips. No decision depends on them: a commit names the state that it was drafted on,
and is refused if that has changed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import Lock

from nessie_cli.kernel.forms import Id
from nessie_cli.store.base import LEASE
from nessie_cli.store.records import Basis, Settings, StoredReference, Write


class Recent:
    """The positions where this process left references, and the contested ones.

    A reference is contested after a lost race, and after a move by others: the next writers of this
    process take its lease at once.
    """

    def __init__(self) -> None:
        self._contested: dict[str, float] = {}
        self._left: dict[str, tuple[float, StoredReference]] = {}
        self._settings: Settings | None = None
        self._lock = Lock()

    def contest(self, name: str) -> None:
        """Records that others have moved a reference."""
        now = time.monotonic()
        with self._lock:
            self._contested = {one: until for one, until in self._contested.items() if until > now}
            self._contested[name] = now + LEASE

    def is_contested(self, name: str) -> bool:
        """Returns whether others have moved a reference lately."""
        return self._contested.get(name, 0) > time.monotonic()

    def wrote(self, done: Sequence[Write], settings: Settings | None) -> None:
        """Remembers committed writes, and the settings that they began with, if known."""
        if any(write.settings for write in done):
            self._settings = None
        elif settings is not None:
            self._settings = settings
        until = time.monotonic() + LEASE
        with self._lock:
            for move in (move for write in done for move in write.moves):
                # The newest are the last, so the oldest are found at once.
                self._left.pop(move.name, None)
                if move.after is not None:
                    left = StoredReference(move.name, move.kind, move.after)
                    self._left[move.name] = (until, left)
            self._forget(until - LEASE)

    def _forget(self, now: float) -> None:
        while self._left:
            name, (until, _) = next(iter(self._left.items()))
            if until > now:
                return
            del self._left[name]

    def heads(self, begin: Sequence[tuple[str, str]]) -> dict[str, Id]:
        """Returns where this process has left the contested ones of these references."""
        return {
            name: left[1].target
            for name, _ in begin
            if self.is_contested(name) and (left := self._left.get(name)) is not None
        }

    def bases(self, begin: Sequence[tuple[str, str]]) -> list[Basis] | None:
        """Returns the assumed state for plans, or None if others probably wrote."""
        now = time.monotonic()
        if self._settings is None:
            return None
        found = []
        for name, _ in begin:
            until, reference = self._left.get(name, (0.0, None))
            if until <= now or self.is_contested(name):
                return None
            found.append(Basis(reference, self._settings, None))
        return found
