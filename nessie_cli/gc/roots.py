"""Roots of the garbage collection: references, and positions that `nessie undo` can restore.

A position is the commit before or after a move of the reflog that has not expired.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from msgspec import Struct

from nessie_cli.errors import InvalidInput, NotAllowed, NotFound
from nessie_cli.gc.run import PinnedReference
from nessie_cli.model import ReflogEntry
from nessie_cli.repository.base import Repository
from nessie_cli.repository.expiry import expiry

EVER = datetime.min.replace(tzinfo=UTC)


class Root(Struct, frozen=True):
    """The commit of a reference, or an earlier one that it can be restored to."""

    name: str
    hash: str
    is_position: bool = False

    @property
    def id(self) -> bytes:
        """The hash as bytes."""
        return bytes.fromhex(self.hash)


def moves_since(repository: Repository, now: datetime) -> datetime:
    """Returns the time before which moves of the reflog have expired."""
    limit = expiry(repository.config().settings).moves
    return EVER if limit > now - EVER else now - limit


class Roots:
    """The roots of a repository. Reads each page of the reflog once."""

    def __init__(self, repository: Repository, since: datetime = EVER) -> None:
        """Moves before `since` have expired."""
        self._repository = repository
        self._since = since
        self._last_move = 0
        self._returned: set[Root] = set()
        self.references: list[PinnedReference] = []
        """All references with their commits."""
        self.positions = 0
        """The number of positions without a reference."""
        self.has_reflog = True
        """Whether the repository has a reflog. Other servers have none."""
        self.expired: dict[str, str] = {}
        """Commits before expired moves, each with its reference."""

    def new(self) -> list[Root]:
        """Returns the roots that were not returned before: references, then positions.

        Cost: the references, and the pages of the reflog since the last call.
        """
        current = [
            PinnedReference(reference.name, reference.type.value, reference.hash)
            for reference in self._repository.references()
        ]
        self.references += [pinned for pinned in current if pinned not in self.references]
        heads = dict.fromkeys(Root(pinned.name, pinned.hash) for pinned in current)
        # References are read first. A move after that is in the reflog.
        positions = dict.fromkeys(self._positions())
        new = [root for root in [*heads, *positions] if root not in self._returned]
        self._returned.update(new)
        pinned_heads = {(pinned.name, pinned.hash) for pinned in self.references}
        self.positions += sum(
            root.is_position and (root.name, root.hash) not in pinned_heads for root in new
        )
        return new

    def is_gone(self, root: Root) -> bool:
        """Whether a reference was deleted, or the move of a position has left the reflog."""
        if root.is_position:
            return all(root.hash not in (move.before, move.after) for move in self._moves(0))
        try:
            self._repository.reference(root.name)
        except NotFound:
            return True
        return False

    def _positions(self) -> Iterator[Root]:
        for move in self._moves(self._last_move):
            self._last_move = max(self._last_move, move.number)
            if move.time >= self._since:
                for hash_ in filter(None, (move.before, move.after)):
                    yield Root(move.reference, hash_, is_position=True)
            elif move.before:
                self.expired.setdefault(move.before, move.reference)

    def _moves(self, last: int) -> Iterator[ReflogEntry]:
        """Yields the moves with higher numbers, newest first."""
        try:
            moves = self._repository.reflog()
            move = next(moves, None)
        except (NotFound, NotAllowed, InvalidInput):
            self.has_reflog = False
            return
        while move is not None and move.number > last:
            yield move
            move = next(moves, None)
