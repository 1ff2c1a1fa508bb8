"""The objects that some commits need: their ancestors, the trees of all of these, and the values in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import MsgspecError

from nessie_cli.errors import DamagedObject
from nessie_cli.kernel import tree
from nessie_cli.kernel.forms import NO_COMMIT, Commit, Id, Kind, Node, decode_commit, decode_node, value_id_of
from nessie_cli.kernel.objects import Fetch

_BATCH = 500
"""Objects that are fetched at a time."""


class Reachable:
    """A growing set of reachable ids. Each object is read once, whatever shares it.

    Takes about 110 bytes of memory for each id. `in` tells whether an id was reached. `progress` is
    called with the number of ids.
    """

    def __init__(self, fetch: Fetch, progress: Callable[[int], None] | None = None) -> None:
        self._fetch = fetch
        self._progress = progress
        self._ids: set[Id] = {NO_COMMIT, tree.EMPTY}
        self._waiting: list[tuple[Kind, Id]] = []

    def __contains__(self, id_: object) -> bool:
        """Return whether an id was reached."""
        return id_ in self._ids

    def __len__(self) -> int:
        """Return how many ids were reached."""
        return len(self._ids)

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
        found = self._fetch([id_ for _, id_ in batch])
        for kind, id_ in batch:
            if id_ not in found:
                raise DamagedObject(f"{kind.name.lower()} {id_.hex()[:16]} is missing from the store; nessie fsck lists what is affected", id_.hex())
            try:
                if kind is Kind.COMMIT:
                    self._follow_commit(decode_commit(found[id_]))
                else:
                    self._follow_node(decode_node(found[id_]))
            except MsgspecError:
                raise DamagedObject(f"{kind.name.lower()} {id_.hex()[:16]} is damaged; nessie fsck lists what is affected", id_.hex()) from None

    def _reach(self, kind: Kind, ids: Iterable[Id]) -> None:
        new = [id_ for id_ in ids if id_ not in self._ids]
        self._ids.update(new)
        if kind is not Kind.VALUE:
            self._waiting.extend((kind, id_) for id_ in dict.fromkeys(new))

    def _follow_commit(self, commit: Commit) -> None:
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
            self._reach(Kind.VALUE, [value_id_of(node.slice(index)) for index in range(len(node.keys))])
