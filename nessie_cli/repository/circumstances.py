"""What the kernel must not know by itself: who writes, the clock, randomness. They come in by argument, so a test can fix them."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from nessie_cli.model.progress import Progress
from nessie_cli.repository.judging import Judge
from nessie_cli.repository.notes import NoNotes, Notes


class Circumstances(Struct, frozen=True):
    """What the kernel must not know by itself: who writes, the clock (microseconds), randomness.

    `judge` decides about what is written; `progress` hears how far a long verb is; in `notes` facts are kept for the next process.
    """

    who: str
    clock: Callable[[], int]
    random: Callable[[int], bytes]
    judge: Judge | None = None
    progress: Progress | None = None
    notes: Notes = NoNotes()

    def new_content_id(self) -> bytes:
        """A random UUID (version 4), as bytes."""
        raw = bytearray(self.random(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        return bytes(raw)
