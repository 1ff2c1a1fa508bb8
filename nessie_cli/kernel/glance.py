"""What a keystroke of shell completion understands of commits and key trees: subjects, parents, and the next elements below a key.

The decoder that everybody else uses costs more to load than a keystroke may take; this one reads the same bytes (objects.py), and a test holds both
together. Raw bytes come from a `fetch` that gives None for what is not stored, such as the empty history.
"""

from __future__ import annotations

from bisect import bisect_left

# Importing `typing` takes longer than reading the rows; checkers know this name without the import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Fetch = Callable[[bytes], bytes | None]

COMMIT_KIND = 3
NAMESPACE = 4
"""The payload number of namespaces."""
_RECORD, _CHILD, _ID = 49, 36, 32
_PARENTS, _ROOT, _MESSAGE = 0, 4, 9
_LENGTHS = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4, 0xDC: 2, 0xDD: 4}
_NUMBERS = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}
_BYTES, _TEXTS, _ARRAYS = (0xC4, 0xC5, 0xC6), (0xD9, 0xDA, 0xDB), (0xDC, 0xDD)
_FIXED_TEXT, _FIXED_ARRAY, _FIXED_MAP, _NEGATIVE = 0xA0, 0x90, 0x80, 0xE0


def decode(data: bytes) -> Any:
    """The value of MessagePack bytes made of arrays, texts, bytes and natural numbers; raises `ValueError` for others."""
    return _decode(data, 0)[0]


def _decode(data: bytes, at: int) -> tuple[Any, int]:
    first = data[at]
    at += 1
    if first < _FIXED_MAP:
        return first, at
    if first in _NUMBERS:
        end = at + _NUMBERS[first]
        return int.from_bytes(data[at:end], "big"), end
    if _FIXED_ARRAY <= first < _FIXED_TEXT:
        return _decode_array(data, at, first - _FIXED_ARRAY)
    if _FIXED_TEXT <= first < 0xC0:  # noqa: PLR2004 - where texts of a fixed length end
        end = at + first - _FIXED_TEXT
        return data[at:end].decode(), end
    if first not in _LENGTHS:
        raise ValueError(first)
    length = int.from_bytes(data[at : at + _LENGTHS[first]], "big")
    at += _LENGTHS[first]
    if first in _ARRAYS:
        return _decode_array(data, at, length)
    value = data[at : at + length]
    return value.decode() if first in _TEXTS else value, at + length


def _decode_array(data: bytes, at: int, length: int) -> tuple[list[Any], int]:
    found = []
    for _ in range(length):
        value, at = _decode(data, at)
        found.append(value)
    return found, at


def subject(data: bytes) -> str:
    """The first line of a commit's message."""
    message: str = decode(data)[_MESSAGE]
    return message.partition("\n")[0]


def parents(data: bytes) -> list[bytes]:
    """The parents of a commit."""
    found: list[bytes] = decode(data)[_PARENTS]
    return found


def root(data: bytes) -> bytes:
    """The root of the key tree of a commit."""
    found: bytes = decode(data)[_ROOT]
    return found


def elements(fetch: Fetch, root: bytes, above: tuple[str, ...], begun: str) -> Iterator[tuple[str, int | None]]:
    """The elements right below a key that begin so, in order, each with the payload number of the content there, None where there is only more below.

    Costs a descent of the tree for each element that is not in the leaf of the one before; what lies below an element is passed over.
    """
    prefix = "".join(f"{element}\0" for element in above).encode()
    wanted = prefix + begun.encode()
    tree = _Tree(fetch, root)
    found = tree.seek(wanted)
    while found is not None and found[0].startswith(wanted):
        element, below, _ = found[0][len(prefix) :].partition(b"\0")
        yield element.decode(), None if below else found[1]
        found = tree.seek(prefix + element + b"\x01")


class _Tree:
    """Finds keys in ascending order; remembers the leaf of the last one."""

    def __init__(self, fetch: Fetch, root: bytes) -> None:
        self._fetch = fetch
        self._root = root
        self._nodes: dict[bytes, tuple[int, list[bytes], bytes] | None] = {}
        self._keys: list[bytes] = []
        self._payload = b""

    def seek(self, key: bytes) -> tuple[bytes, int] | None:
        """The first key that is not before this one, and its payload number."""
        if not self._keys or not self._keys[0] <= key <= self._keys[-1]:
            self._descend(key)
        index = bisect_left(self._keys, key)
        return (self._keys[index], self._payload[index * _RECORD]) if index < len(self._keys) else None

    def _descend(self, key: bytes) -> None:
        node = self._node(self._root)
        while node is not None and node[0]:
            index = bisect_left(node[1], key)
            node = self._node(node[2][index * _CHILD : index * _CHILD + _ID]) if index < len(node[1]) else None
        _, self._keys, self._payload = node or (0, [], b"")

    def _node(self, id_: bytes) -> tuple[int, list[bytes], bytes] | None:
        if id_ not in self._nodes:
            data = self._fetch(id_)
            self._nodes[id_] = decode(data) if data is not None else None
        return self._nodes[id_]
