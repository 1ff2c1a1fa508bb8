"""Decides writes by their requirements, for every store that decides in Python."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from nessie_cli.store.records import (
    Done,
    Move,
    Outcome,
    Repeated,
    Request,
    Requirement,
    Stale,
    StoredReference,
    Write,
)

DONE = Done()


class Decision:
    """Decides writes in order, each on the state after those before it.

    The state is read once, before the first decision, for everything that `Needs` lists. After the
    last decision, `done` lists the writes to apply; `references` and `settings_version` are the new
    state.
    """

    def __init__(
        self,
        references: dict[str, StoredReference | None],
        requests: dict[str, Request],
        objects: set[bytes],
        settings_version: int,
    ) -> None:
        self.references = references
        self.settings_version = settings_version
        self.done: list[Write] = []
        self._requests = requests
        self._objects = objects

    def decide(self, write: Write) -> Outcome:
        """Returns the outcome of one write."""
        # First: the references of a repeated request have been moved by the first one.
        if recorded := self._requests.get(write.request.id):
            return Repeated(recorded)
        moved: dict[str, StoredReference | None] = {}
        for move in write.moves:
            name = move.name
            current = moved[name] if name in moved else self.references[name]
            if not _is_at(current, move):
                return Stale(Requirement.REFERENCE, name, current)
            moved[name] = (
                None if move.after is None else StoredReference(name, move.kind, move.after)
            )
        if write.required and not all(self._exists(id_, write) for id_ in write.required):
            return Stale(Requirement.OBJECT)
        if write.settings_version not in (None, self.settings_version):
            return Stale(Requirement.SETTINGS)
        self.references |= moved
        self.settings_version += bool(write.settings)
        if write.records_request:
            self._requests[write.request.id] = write.request
        self.done.append(write)
        return DONE

    def _exists(self, id_: bytes, write: Write) -> bool:
        added = chain.from_iterable(one.objects for one in (write, *self.done))
        return id_ in self._objects or any(id_ == stored.id for stored in added)


class Needs:
    """The part of the state that deciding some writes needs."""

    def __init__(self, writes: Sequence[Write]) -> None:
        self.references = {move.name for write in writes for move in write.moves}
        self.requests = {write.request.id for write in writes if write.records_request}
        self.objects = {id_ for write in writes for id_ in write.required}


def _is_at(current: StoredReference | None, move: Move) -> bool:
    """Returns whether a reference is where a move requires it."""
    if current is None:
        return move.before is None
    return current.target == move.before and current.kind == move.kind
