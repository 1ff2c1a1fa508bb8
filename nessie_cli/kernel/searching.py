"""Finds keys that contain a text, in several states. Shared leaves are searched once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nessie_cli.kernel.forms import SEPARATOR, Id, Node
from nessie_cli.kernel.objects import Objects
from nessie_cli.kernel.tree import EMPTY, READ_AHEAD, Item

_DOT = "."


class KeySearch:
    """A search for a text in keys whose elements are joined by dots, in any case of letters.

    Memory grows with the number of leaves that were searched, and of their matches.
    """

    def __init__(self, objects: Objects, text: str) -> None:
        self._objects = objects
        self._text = text.lower()
        self._leaves: dict[Id, Sequence[Item]] = {}

    def items(self, root: Id) -> Iterator[Item]:
        """Yields the matching keys of a map with their records, ascending.

        Cost: its inner nodes, and the leaves that were not searched before.
        """
        return self._below([root]) if root != EMPTY else iter(())

    def _below(self, ids: Sequence[Id]) -> Iterator[Item]:
        for start in range(0, len(ids), READ_AHEAD):
            batch = ids[start : start + READ_AHEAD]
            unread = [id_ for id_ in batch if id_ not in self._leaves]
            nodes = dict(zip(unread, self._objects.nodes(unread), strict=True)) if unread else {}
            for id_ in batch:
                node = nodes.get(id_)
                if node is not None and node.level:
                    yield from self._below(node.children())
                    continue
                if node is not None:
                    self._leaves[id_] = self._matches(node)
                yield from self._leaves[id_]

    def _matches(self, leaf: Node) -> Sequence[Item]:
        return [
            (key, leaf.slice(index))
            for index, key in enumerate(leaf.keys)
            if self._text in key.decode().replace(SEPARATOR, _DOT).lower()
        ]
