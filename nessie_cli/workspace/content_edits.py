"""The staged batch as changes of contents, each with its key and value before and after.

A content is found by its id. So a rename with a new value is one edit, and a swap is two.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from nessie_cli.model import Content, ContentKey, Delete, Namespace, Put, Unchanged
from nessie_cli.workspace.batch import Staged
from nessie_cli.workspace.staging import StagedList, State


class ContentEdit(NamedTuple):
    """The change of one content. It is created if `before` is None, deleted if `after` is None."""

    old: ContentKey | None
    new: ContentKey | None
    before: Content | None
    after: Content | None

    @property
    def keys(self) -> set[ContentKey]:
        """The keys before and after the edit."""
        return {key for key in (self.old, self.new) if key is not None}

    @property
    def is_rename(self) -> bool:
        """Whether the content gets another key."""
        return self.old is not None and self.new is not None and self.old != self.new

    @property
    def changes_value(self) -> bool:
        """Whether the content gets another value. The elements of a namespace are its key."""
        before, after = self.before, self.after
        if isinstance(before, Namespace) and isinstance(after, Namespace):
            return before.properties != after.properties
        return before != after


def content_edits(staged: StagedList) -> list[ContentEdit]:
    """Returns the edits of a batch, without the checks that a key is unmodified."""
    first: dict[ContentKey, Content | None] = {}
    last: dict[ContentKey, Put | Delete] = {}
    for item in staged:
        if not isinstance(item.operation, Unchanged):
            first.setdefault(item.key, item.seen)
            last[item.key] = item.operation
    before = {key: content for key, content in first.items() if content is not None}
    origins = {content.id: key for key, content in before.items()}
    for key, operation in last.items():
        content = before.get(key)
        if content and isinstance(operation, Put) and operation.content.id == content.id:
            # A store can have one id at two keys. The content of this key stays at it.
            origins[content.id] = key
    edits: list[ContentEdit] = []
    for key, operation in last.items():
        if not isinstance(operation, Put):
            continue
        id_ = operation.content.id
        own = before.get(key)
        old = key if own and id_ and own.id == id_ else origins.get(id_) if id_ else None
        edits.append(ContentEdit(old, key, before.get(old) if old else None, operation.content))
    moved_from = {edit.old for edit in edits}
    deleted = [ContentEdit(key, None, before[key], None) for key in before if key not in moved_from]
    return [*edits, *deleted]


def connected(edits: Sequence[ContentEdit], keys: Collection[ContentKey]) -> set[ContentKey]:
    """Returns some keys, and those that edits connect with them, such as the keys of a swap."""
    reached = set(keys)
    size = 0
    while size != len(reached):
        size = len(reached)
        for edit in edits:
            if edit.keys & reached:
                reached |= edit.keys
    return reached


def components(edits: Sequence[ContentEdit]) -> dict[ContentKey, list[ContentEdit]]:
    """Returns the edits that are connected with each key. Cost: O(edits · log edits)."""
    groups_by_key: dict[ContentKey, list[ContentEdit]] = {}
    for edit in edits:
        groups = {
            id(groups_by_key[key]): groups_by_key[key] for key in edit.keys if key in groups_by_key
        }
        largest = max(groups.values(), key=len, default=[])
        others = [other for group in groups.values() if group is not largest for other in group]
        largest += [*others, edit]
        groups_by_key |= dict.fromkeys(
            (key for other in (*others, edit) for key in other.keys), largest
        )
    return groups_by_key


def operations_of(edits: Sequence[ContentEdit], state: State) -> StagedList:
    """Returns the operations of edits on the present contents of their keys.

    A content that no edit moves away is deleted if an edit gives its key to another one. Creations
    precede renames, because a commit refuses to create a key again whose content has moved before.
    """
    arriving = {edit.new: edit for edit in edits if edit.new is not None}
    deletions: list[Staged] = []
    creations: list[Staged] = []
    updates: list[Staged] = []
    for key in dict.fromkeys(key for edit in edits for key in (edit.old, edit.new) if key):
        seen, edit = state(key), arriving.get(key)
        gone = [Staged(Delete(key), seen)] if seen else []
        if edit is None or edit.after is None:
            deletions += gone
        elif edit.old is None:
            creations += [*gone, Staged(Put(key, edit.after))]
        elif edit.after != seen:
            updates.append(Staged(Put(key, edit.after, seen), seen))
    return (*deletions, *creations, *updates)


def with_edits(
    staged: StagedList, keys: Collection[ContentKey], operations: StagedList
) -> StagedList:
    """Replaces the operations of some keys by others, at the place of the first one."""
    place = next((at for at, item in enumerate(staged) if item.key in keys), len(staged))
    others = [item for item in staged[place:] if item.key not in keys]
    return (*staged[:place], *operations, *others)


def without_keys(
    staged: StagedList, keys: Collection[ContentKey]
) -> tuple[StagedList, list[ContentEdit]]:
    """Returns a batch without the edits that touch some keys, and the edits that were removed.

    A content whose edit is removed stays at its key. So an edit that gives this key to another
    content is removed as well, and so is a deletion that made room for it.
    """
    staged = tuple(
        item for item in staged if item.key not in keys or not isinstance(item.operation, Unchanged)
    )
    edits = content_edits(staged)
    removed = [edit for edit in edits if edit.keys & set(keys)]
    left = [edit for edit in edits if not edit.keys & set(keys)]
    size = -1
    while size != len(removed):
        size = len(removed)
        occupied = {edit.old for edit in removed if edit.old is not None}
        free = {edit.new for edit in removed if edit.new is not None}
        impossible = [
            edit for edit in left if edit.new in occupied or (edit.new is None and edit.old in free)
        ]
        removed += impossible
        left = [edit for edit in left if edit not in impossible]
    affected = connected(edits, {key for edit in removed for key in edit.keys})
    left = [edit for edit in left if edit.keys & affected]
    before = {edit.old: edit.before for edit in edits if edit.old is not None}
    return with_edits(staged, affected, operations_of(left, before.get)), removed
