"""The closure of commits: their ancestors, and the trees and values of all of these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from nessie_cli.errors import DamagedObject
from nessie_cli.kernel import tree
from nessie_cli.kernel.forms import (
    NO_COMMIT,
    UNDECODABLE,
    Id,
    Kind,
    Node,
    StoredCommit,
    decode_commit,
    decode_node,
    decode_value,
    object_id,
    value_id_of,
)
from nessie_cli.kernel.objects import Fetch

_BATCH = 500
"""The number of objects that are fetched together."""
_NEVER_STORED = frozenset((NO_COMMIT, tree.EMPTY))


class Reachable:
    """A growing set of reachable ids. Each object is read once, whatever shares it.

    Takes about 110 bytes of memory for each id. `in` tests whether an id was reached. `progress` is
    called with the number of ids. Values are read as well, and the bytes of each object must have
    its id.
    """

    def __init__(self, fetch: Fetch, progress: Callable[[int], None] | None = None) -> None:
        self._fetch = fetch
        self._progress = progress
        self._ids: set[Id] = set(_NEVER_STORED)
        self._waiting: list[tuple[Kind, Id]] = []

    def __contains__(self, id_: object) -> bool:
        """Return whether an id was reached."""
        return id_ in self._ids

    def __len__(self) -> int:
        """Return how many objects were reached."""
        return len(self._ids) - len(_NEVER_STORED)

    def add(self, kind: Kind, ids: Iterable[Id]) -> None:
        """Adds objects of a kind with everything that they need.

        Raises `DamagedObject` if one of them is missing or damaged; the set is incomplete then.
        """
        self._reach(kind, ids)
        while self._waiting:
            batch, self._waiting = self._waiting[-_BATCH:], self._waiting[:-_BATCH]
            self._follow(batch)
            if self._progress is not None:
                self._progress(len(self._ids))

    def _follow(self, batch: Sequence[tuple[Kind, Id]]) -> None:
        raw = self._fetch([id_ for _, id_ in batch])
        for kind, id_ in batch:
            data = raw.get(id_)
            if data is None:
                raise damaged(kind, id_, "missing from the store")
            if object_id(kind, data) != id_:
                raise damaged(kind, id_, "damaged: its bytes do not have this id")
            try:
                if kind is Kind.COMMIT:
                    self._follow_commit(decode_commit(data))
                elif kind is Kind.NODE:
                    self._follow_node(decode_node(data))
                else:
                    decode_value(data, None)
            except UNDECODABLE:
                raise damaged(kind, id_, "damaged: it cannot be decoded") from None

    def _reach(self, kind: Kind, ids: Iterable[Id]) -> None:
        new = [id_ for id_ in ids if id_ not in self._ids]
        self._ids.update(new)
        self._waiting.extend((kind, id_) for id_ in dict.fromkeys(new))

    def _follow_commit(self, commit: StoredCommit) -> None:
        self._reach(Kind.COMMIT, commit.parents)
        self._reach(Kind.NODE, [commit.root])
        if len(commit.operations) == len(NO_COMMIT):
            self._reach(Kind.NODE, [commit.operations])
        elif commit.operations:
            self._follow_node(decode_node(commit.operations))

    def _follow_node(self, node: Node) -> None:
        if node.level:
            self._reach(Kind.NODE, node.children())
        else:
            self._reach(
                Kind.VALUE, [value_id_of(node.slice(index)) for index in range(len(node.keys))]
            )


def damaged(kind: Kind, id_: Id, reason: str) -> DamagedObject:
    """Returns the error for an object that is missing or damaged."""
    return DamagedObject(
        f"{kind.name.lower()} {id_.hex()[:16]} is {reason}; nessie fsck lists what is affected",
        id_.hex(),
    )
