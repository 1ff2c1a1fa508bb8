"""Roots of the garbage collection: references, and positions that `nessie undo` can restore.

A position is the commit before or after a move of the reflog that has not expired.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from msgspec import Struct

from nessie_cli.errors import InvalidInput, NotAllowed, NotFound
from nessie_cli.gc.run import Pinned
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
        self._known: set[Root] = set()
        self.references: list[Pinned] = []
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
        references = self._repository.references()
        found = [Pinned(one.name, one.type.value, one.hash) for one in references]
        self.references += [one for one in found if one not in self.references]
        roots = dict.fromkeys(Root(one.name, one.hash) for one in found)
        # References are read first. A move after that is in the reflog.
        positions = dict.fromkeys(self._positions())
        new = [root for root in [*roots, *positions] if root not in self._known]
        self._known.update(new)
        at = {(one.name, one.hash) for one in self.references}
        self.positions += sum(one.is_position and (one.name, one.hash) not in at for one in new)
        return new

    def is_gone(self, root: Root) -> bool:
        """Whether a reference was deleted, or the move of a position has left the reflog."""
        if root.is_position:
            return all(root.hash not in (one.before, one.after) for one in self._moves(0))
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
