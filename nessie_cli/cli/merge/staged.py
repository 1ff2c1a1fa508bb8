"""Applies a decision to staged operations."""

from __future__ import annotations

from nessie_cli.cli.merge.decisions import Choice, Decision
from nessie_cli.model import Conflict, ConflictType, Content, ContentKey, KeyRange, Namespace
from nessie_cli.repository.base import Repository
from nessie_cli.workspace.staging import (
    StagedList,
    delete,
    put,
    rename,
    renames,
    replace,
    restore,
    unmodified,
    without,
)


def resolved(
    repository: Repository, head: str, staged: StagedList, conflict: Conflict, decision: Decision
) -> StagedList:
    """Returns the staged operations with one conflict resolved.

    `OURS` keeps the state at `head`, `THEIRS` stages the operation again on that state.
    """
    key = conflict.key
    if key is None:
        return staged
    if decision.content is not None:
        return _upon(repository, head, without(staged, [key]), key, decision.content)
    if conflict.type in (ConflictType.NAMESPACE_ABSENT, ConflictType.NOT_A_NAMESPACE):
        below = [item.key for item in staged if item.key != key and item.key.starts_with(key)]
        return (
            without(staged, below)
            if decision.choice is Choice.OURS
            else _upon(repository, head, staged, key, Namespace(elements=key.elements))
        )
    if decision.choice is Choice.OURS:
        return without(staged, [key])
    if conflict.type is ConflictType.NAMESPACE_NOT_EMPTY:
        return _emptied(repository, head, staged, key)
    return _again(repository, head, staged, key, conflict)


def _again(
    repository: Repository, head: str, staged: StagedList, key: ContentKey, conflict: Conflict
) -> StagedList:
    moved = renames(staged)
    old = key if key in moved else next((old for old, new in moved.items() if new == key), None)
    if old is not None:
        known = repository.contents(head, [old, moved[old]])
        bare = without(staged, [old])
        return (
            rename(bare, old, moved[old], known.get)
            if old in known and moved[old] not in known
            else bare
        )
    if conflict.proposed is not None and conflict.proposed == conflict.expected:
        bare = without(staged, [key])
        return (
            unmodified(bare, key, repository.contents(head, [key]).get) if conflict.actual else bare
        )
    return _upon(repository, head, without(staged, [key]), key, conflict.proposed)


def _upon(
    repository: Repository, head: str, staged: StagedList, key: ContentKey, wanted: Content | None
) -> StagedList:
    """Stages a content for a key on its state at `head`."""
    state = repository.contents(head, [key]).get
    current = state(key)
    if wanted is None:
        return restore(staged, key, None, state)
    if current is None:
        return put(staged, key, wanted.with_id(None), state)
    if current.type_name == wanted.type_name and wanted.id in (None, current.id):
        return put(staged, key, wanted, state)
    return replace(staged, key, wanted, state)


def _emptied(repository: Repository, head: str, staged: StagedList, key: ContentKey) -> StagedList:
    known = {
        entry.key: entry.content
        for entry in repository.entries(head, KeyRange(prefix=key), content=True)
    }
    gone = {item.key for item in staged}
    for below in known:
        if below not in gone:
            staged = delete(staged, below, known.get)
    return staged
