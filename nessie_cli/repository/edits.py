"""Operations that give keys other contents: the fewest that a commit accepts.

A content that moves keeps its id, and so does a deleted one that comes back. Every other content
that is new to a key is created, because only the repository assigns ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from nessie_cli.model import (
    Content,
    ContentKey,
    Delete,
    Namespace,
    Operation,
    Put,
    RestoredFrom,
)

Edits = Mapping[ContentKey, Content | None]
"""The new content of each key; None if it has none."""


class Edit(NamedTuple):
    """An operation, and the content that its key has before, or None."""

    operation: Operation
    before: Content | None = None


def operations_for(
    edits: Edits,
    state: Mapping[ContentKey, Content],
    origins: Mapping[str | None, RestoredFrom],
) -> list[Edit]:
    """Returns the operations that lead from a state to the one after the edits.

    `state` has the current content of each key that is edited. `origins` are earlier places of
    contents, by content id: one that the state does not have is restored from there. An id that
    leaves one key may be put under another one. Creations precede such moves, because a commit
    refuses to create a key again whose content has moved before.
    """
    present = {content.id: key for key, content in state.items() if key in edits}
    moved = {
        content.id
        for key, content in edits.items()
        if content is not None and present.get(content.id, key) != key
    }

    def creation(key: ContentKey, content: Content) -> Edit:
        origin = None if content.id in present else origins.get(content.id)
        return Edit(Put(key, content if origin else content.with_id(None), None, origin))

    deletions: list[Edit] = []
    creations: list[Edit] = []
    updates: list[Edit] = []
    for key, content in edits.items():
        seen = state.get(key)
        if content is None:
            deletions += [Edit(Delete(key), seen)] if seen else []
        elif seen is None and content.id not in present:
            creations.append(creation(key, content))
        elif content.id in present and (seen is None or _keeps_id(content, seen, moved)):
            updates += [] if content == seen else [_put(key, content, seen)]
        elif seen is not None and seen.id not in moved and is_same(content, seen):
            merged = content.with_id(seen.id)
            updates += [] if merged == seen else [_put(key, merged, seen)]
        else:
            creations += [Edit(Delete(key), seen), creation(key, content)]
    return [*deletions, *creations, *updates]


def _put(key: ContentKey, content: Content, seen: Content | None) -> Edit:
    return Edit(Put(key, content, seen), seen)


def _keeps_id(content: Content, seen: Content, moved: set[str | None]) -> bool:
    """Returns whether a key can be given a content under its own id, over the one that it has."""
    return content.id in moved or (content.id == seen.id and content.type_name == seen.type_name)


def is_same(content: Content, seen: Content) -> bool:
    """Returns whether a key already has a content, apart from the id.

    Two namespaces with one key are one.
    """
    return content.with_id(seen.id) == seen or (
        isinstance(content, Namespace) and isinstance(seen, Namespace)
    )
