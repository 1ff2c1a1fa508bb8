"""The context of a repository: committer, clock, randomness. Tests can fix it."""

from __future__ import annotations

import time
from collections.abc import Callable

from msgspec import Struct

from nessie_cli.model.progress import Progress


def now() -> int:
    """Returns the time in microseconds since 1970."""
    return time.time_ns() // 1000


class Context(Struct, frozen=True):
    """The committer, the clock and the randomness that a repository uses.

    `committer` is a name, or a function that returns it. `clock` returns microseconds since 1970.
    `progress` is called during long operations.
    """

    committer: str | Callable[[], str]
    clock: Callable[[], int]
    random: Callable[[int], bytes]
    progress: Progress | None = None

    @property
    def who(self) -> str:
        """The name of the committer."""
        return self.committer if isinstance(self.committer, str) else self.committer()

    def new_content_id(self) -> bytes:
        """Returns a random UUID (version 4), as bytes."""
        raw = bytearray(self.random(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        return bytes(raw)
