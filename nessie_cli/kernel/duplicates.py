"""Finds content ids that several keys of one state have.

No commit adds a second key for a content id. States of older versions and of loads may have some.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import NamedTuple

from nessie_cli.kernel import tree
from nessie_cli.kernel.commits import is_deletion, operations_of, root_of
from nessie_cli.kernel.forms import NO_COMMIT, Id, StoredCommit, below, content_id_of, is_namespace
from nessie_cli.kernel.objects import Objects
from nessie_cli.model.batches import batched

_READ_AHEAD = 256
"""The number of commits that are read together."""


class Duplicate(NamedTuple):
    """A content id that several keys of a commit's state have.

    `is_added` is true if the commit gives the id to more keys than its first parent.
    """

    commit: Id
    content_id: bytes
    keys: tuple[bytes, ...]
    is_added: bool


def duplicates(
    objects: Objects, first_parents: Mapping[Id, Id], heads: Container[Id]
) -> Iterator[Duplicate]:
    """Yields each duplicate at the commits that add it, and all duplicates of the heads.

    `first_parents` contains every commit. All states are one map that follows the first parents:
    one commit's operations lead to its child, and a difference of trees leads to the next branch.
    O(operations of all commits); the memory grows with the largest state.
    """
    state = _KeyState()
    root = tree.EMPTY
    for id_, commit in _read(objects, _in_order(first_parents)):
        parent_root = root_of(objects, first_parents[id_])
        state.apply((key, after) for key, _, after in tree.diff(objects, root, parent_root))
        added = state.apply(
            (key, None if is_deletion(record) else record)
            for key, record in operations_of(objects, commit)
        )
        root = commit.root
        for content_id in sorted(state.shared if id_ in heads else added):
            keys = tuple(sorted(state.shared[content_id]))
            yield Duplicate(id_, content_id, keys, content_id in added)


def replaceable_key(objects: Objects, duplicate: Duplicate) -> bytes | None:
    """Returns a key whose content can be deleted and created again with a new id.

    This is impossible for a namespace with keys below it. Returns None if all keys are such.
    """
    root = root_of(objects, duplicate.commit)
    records = tree.get(objects, root, duplicate.keys)
    for key in reversed(duplicate.keys):
        if not is_namespace(records[key]) or all(
            other == key for other, _ in tree.scan(objects, root, *below(key))
        ):
            return key
    return None


def _in_order(first_parents: Mapping[Id, Id]) -> Iterator[Id]:
    """Yields every commit after its first parent, and a line without branches in one go."""
    children: dict[Id, list[Id]] = {}
    for id_, parent in first_parents.items():
        children.setdefault(parent, []).append(id_)
    waiting = children.get(NO_COMMIT, [])
    while waiting:
        id_ = waiting.pop()
        yield id_
        waiting += children.pop(id_, ())


def _read(objects: Objects, ids: Iterator[Id]) -> Iterator[tuple[Id, StoredCommit]]:
    for group in batched(ids, _READ_AHEAD):
        yield from zip(group, objects.commits(group), strict=True)


class _KeyState:
    """The content id of each key, and the keys of each content id.

    `shared` contains the ids with several keys, `_only_key` the others.
    """

    def __init__(self) -> None:
        self._ids: dict[bytes, bytes] = {}
        self._only_key: dict[bytes, bytes] = {}
        self.shared: dict[bytes, set[bytes]] = {}

    def apply(self, edits: Iterable[tuple[bytes, bytes | None]]) -> set[bytes]:
        """Applies edits. Returns the ids that have several keys, and more than before."""
        before: dict[bytes, int] = {}
        for key, record in edits:
            old = self._ids.get(key)
            new = None if record is None else content_id_of(record)
            if old == new:
                continue
            if old is not None:
                before.setdefault(old, self._count(old))
                self._remove(key, old)
            if new is not None:
                before.setdefault(new, self._count(new))
                self._add(key, new)
        return {
            content_id
            for content_id in self.shared.keys() & before
            if self._count(content_id) > before[content_id]
        }

    def _count(self, content_id: bytes) -> int:
        if content_id in self.shared:
            return len(self.shared[content_id])
        return 1 if content_id in self._only_key else 0

    def _add(self, key: bytes, content_id: bytes) -> None:
        self._ids[key] = content_id
        if content_id in self.shared:
            self.shared[content_id].add(key)
        elif content_id in self._only_key:
            self.shared[content_id] = {self._only_key.pop(content_id), key}
        else:
            self._only_key[content_id] = key

    def _remove(self, key: bytes, content_id: bytes) -> None:
        del self._ids[key]
        if content_id not in self.shared:
            del self._only_key[content_id]
            return
        keys = self.shared[content_id]
        keys.remove(key)
        if len(keys) == 1:
            del self.shared[content_id]
            self._only_key[content_id] = keys.pop()
