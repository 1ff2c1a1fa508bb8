"""The context of a repository: committer, clock, randomness. Passed in, so that tests can fix them."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from nessie_cli.model.progress import Progress
from nessie_cli.repository.notes import NoNotes, Notes


class Context(Struct, frozen=True):
    """Committer (a name, or a function that finds it out), clock (microseconds since 1970) and randomness.

    The kernel has none of its own. `progress` is called during long verbs, `notes` is the on-disk
    cache of facts about commits.
    """

    committer: str | Callable[[], str]
    clock: Callable[[], int]
    random: Callable[[int], bytes]
    progress: Progress | None = None
    notes: Notes = NoNotes()

    @property
    def who(self) -> str:
        """The name of the committer."""
        return self.committer if isinstance(self.committer, str) else self.committer()

    def new_content_id(self) -> bytes:
        """A random UUID (version 4), as bytes."""
        raw = bytearray(self.random(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        return bytes(raw)
