"""Operations that give keys other contents: the fewest that a commit accepts.

A content that moves keeps its id. Every other content that is new to a key is created, because only
the repository assigns ids.
"""

from __future__ import annotations

from collections.abc import Mapping

from nessie_cli.model import Content, ContentKey, Delete, Namespace, Put
from nessie_cli.workspace.batch import Staged
from nessie_cli.workspace.staging import StagedList

Edits = Mapping[ContentKey, Content | None]
"""The new content of each key; None if it has none."""


def operations_for(edits: Edits, state: Mapping[ContentKey, Content]) -> StagedList:
    """Returns the operations that lead from a state to the one after the edits.

    `state` has the current content of each key that is edited. An id that leaves one key may be put
    under another one. Creations precede such moves, because a commit refuses to create a key again
    whose content has moved before.
    """
    origins = {content.id: key for key, content in state.items() if key in edits}
    moved = {
        content.id
        for key, content in edits.items()
        if content is not None and origins.get(content.id, key) != key
    }
    deletions: list[Staged] = []
    creations: list[Staged] = []
    updates: list[Staged] = []
    for key, content in edits.items():
        seen = state.get(key)
        if content is None:
            deletions += [Staged(Delete(key), seen)] if seen else []
        elif seen is None and content.id not in origins:
            creations.append(Staged(Put(key, content.with_id(None))))
        elif content.id in origins and (seen is None or _keeps_id(content, seen, moved)):
            updates += [] if content == seen else [_put(key, content, seen)]
        elif seen is not None and seen.id not in moved and _is_same(content, seen):
            merged = content.with_id(seen.id)
            updates += [] if merged == seen else [_put(key, merged, seen)]
        else:
            creations += [Staged(Delete(key), seen), Staged(Put(key, content.with_id(None)))]
    return (*deletions, *creations, *updates)


def _put(key: ContentKey, content: Content, seen: Content | None) -> Staged:
    return Staged(Put(key, content, seen), seen)


def _keeps_id(content: Content, seen: Content, moved: set[str | None]) -> bool:
    """Returns whether a key can be given a content under its own id, over the one that it has."""
    return content.id in moved or (content.id == seen.id and content.type_name == seen.type_name)


def _is_same(content: Content, seen: Content) -> bool:
    """Returns whether a key already has a content, apart from the id.

    Two namespaces with one key are one.
    """
    return content.with_id(seen.id) == seen or (
        isinstance(content, Namespace) and isinstance(seen, Namespace)
    )
