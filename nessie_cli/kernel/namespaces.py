"""The rules of namespaces: new keys need a parent, and only empty namespaces are deleted.

They apply to HEAD together with the operations of the same commit, never to the expected hash.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from nessie_cli.kernel import tree
from nessie_cli.kernel.forms import Id, below, content_id_of, is_namespace
from nessie_cli.kernel.objects import Objects
from nessie_cli.kernel.outcome import KeyConflict
from nessie_cli.model import ConflictType

_SEPARATOR = b"\x00"
Edits = Mapping[bytes, bytes | None]


def namespace_conflicts(
    objects: Objects,
    head: Id,
    edits: Edits,
    *,
    created: Sequence[bytes],
    removed: Sequence[bytes],
    gone: Collection[bytes],
) -> list[KeyConflict]:
    """Returns all violations by the edits of a commit on the state `head`.

    `created` are keys that are new, recreated or the target of a rename. `removed` are keys of
    namespaces at HEAD that the commit deletes or replaces. `gone` are deleted keys, including those
    that the commit creates again.
    """
    not_empty = _not_empty(objects, head, gone, removed)
    staying = {conflict.key for conflict in not_empty}
    conflicts: dict[tuple[ConflictType, bytes], KeyConflict] = {}
    # A namespace that cannot be deleted is not missing for the keys below it.
    missing = [c for c in _missing_parents(objects, head, edits, created) if c.key not in staying]
    for conflict in [*missing, *not_empty]:
        conflicts.setdefault((conflict.type, conflict.key), conflict)
    return list(conflicts.values())


def conflicts_of_edits(objects: Objects, head: Id, edits: Edits) -> list[KeyConflict]:
    """Returns all violations by key edits on the state `head`."""
    before = tree.get(objects, head, edits)
    created = [
        key
        for key, record in edits.items()
        if record is not None
        and (key not in before or content_id_of(before[key]) != content_id_of(record))
    ]
    removed = [
        key
        for key, record in edits.items()
        if is_namespace(before.get(key)) and not is_namespace(record)
    ]
    gone = {key for key, record in edits.items() if record is None}
    return namespace_conflicts(objects, head, edits, created=created, removed=removed, gone=gone)


def _parent(key: bytes) -> bytes | None:
    return key.rpartition(_SEPARATOR)[0] or None


def _missing_parents(
    objects: Objects, head: Id, edits: Edits, created: Sequence[bytes]
) -> list[KeyConflict]:
    parents = dict.fromkeys(parent for key in created if (parent := _parent(key)) is not None)
    new = {key for key in created if is_namespace(edits.get(key))}
    # An update of a namespace requires that it exists.
    unchecked = [parent for parent in parents if parent not in new]
    at_head = tree.get(objects, head, unchecked)
    conflicts: list[KeyConflict] = []
    for parent in unchecked:
        put, existing = edits.get(parent), at_head.get(parent)
        state = existing if parent not in edits or existing is None else put
        if state is None:
            conflicts += _absent(objects, head, parent)
        elif not is_namespace(state):
            conflicts.append(KeyConflict(ConflictType.NOT_A_NAMESPACE, parent, actual=state))
    return conflicts


def _absent(objects: Objects, head: Id, key: bytes) -> list[KeyConflict]:
    """Returns conflicts for a missing namespace and its missing ancestors, deepest first."""
    conflicts = [KeyConflict(ConflictType.NAMESPACE_ABSENT, key)]
    ancestor = _parent(key)
    while ancestor is not None:
        state = tree.get(objects, head, [ancestor]).get(ancestor)
        if state is not None:
            return (
                conflicts
                if is_namespace(state)
                else [*conflicts, KeyConflict(ConflictType.NOT_A_NAMESPACE, ancestor, actual=state)]
            )
        conflicts.append(KeyConflict(ConflictType.NAMESPACE_ABSENT, ancestor))
        ancestor = _parent(ancestor)
    return conflicts


def _not_empty(
    objects: Objects, head: Id, gone: Collection[bytes], removed: Sequence[bytes]
) -> list[KeyConflict]:
    conflicts = []
    for key in removed:
        if has_others_below(objects, head, key, gone.__contains__):
            before = tree.get(objects, head, [key]).get(key)
            conflicts.append(
                KeyConflict(ConflictType.NAMESPACE_NOT_EMPTY, key, expected=before, actual=before)
            )
    return conflicts


def has_others_below(
    objects: Objects, head: Id, key: bytes, is_deleted: Callable[[bytes], bool]
) -> bool:
    """Returns whether a state has a key below another one that is not deleted.

    Costs O(deleted keys below it).
    """
    start, stop = below(key + _SEPARATOR)[0], below(key)[1]
    return any(not is_deleted(child) for child, _ in tree.scan(objects, head, start, stop))
