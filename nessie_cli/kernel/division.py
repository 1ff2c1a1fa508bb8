"""Divides a key tree into parts of about equal size, by the key counts in its inner nodes."""

from __future__ import annotations

from typing import NamedTuple

from nessie_cli.kernel import tree
from nessie_cli.kernel.forms import Id, Node
from nessie_cli.kernel.objects import Objects


def divide(
    objects: Objects, root: Id, most: int, start: bytes = b"", stop: bytes | None = None
) -> list[bytes]:
    """Returns the last key of each piece but the final one, for pieces of at most `most` keys.

    Pieces have at least half as many keys if nodes are small in comparison. Only nodes with more
    than `most` keys are read: O(pieces + log N), one round trip per level.
    """
    parts = _node_pieces(tree.root_node(objects, root), start, stop)
    while large := [piece.node for piece in parts if piece.node and piece.held > most]:
        read = dict(zip(large, objects.nodes(large), strict=True))
        parts = [
            part
            for piece in parts
            for part in (
                _node_pieces(read[piece.node], start, stop) if piece.node in read else [piece]
            )
        ]
    cuts: list[bytes] = []
    size, last = 0, b""
    for piece in parts:
        if size and size + piece.held > most:
            cuts.append(last)
            size = 0
        size, last = size + piece.held, piece.last
    return cuts


class _Piece(NamedTuple):
    """Some keys of a map: their node (empty for a single key), the last key, and their number."""

    node: Id
    last: bytes
    held: int


def _node_pieces(node: Node, start: bytes, stop: bytes | None) -> list[_Piece]:
    """Returns the children of an inner node, or the keys of a leaf, that lie in a range."""
    if not node.level:
        return [
            _Piece(b"", key, 1)
            for key in node.keys
            if key >= start and (stop is None or key < stop)
        ]
    first, last = tree.child_range(node, start, stop)
    return [
        _Piece(node.child(i), node.keys[i], node.count_of(i))
        for i in range(first, min(last, len(node.keys)))
    ]
