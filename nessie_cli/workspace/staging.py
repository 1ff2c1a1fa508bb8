"""How one more operation changes what is staged: a key is touched once per commit, so staging it again has to combine both.

All functions are pure: staged operations and the state of the keys in, staged operations out. `State` tells the content of a key at the hash that
the new operation is staged on; what is staged already lies over it.

| staged before | put | delete | rename to NEW |
|---|---|---|---|
| nothing | update (or create) | delete | delete + put NEW, same content id |
| create | create | nothing is left | create NEW |
| update | update, first expectation kept | delete, first expectation kept | delete + put NEW with the new content |
| delete | delete + create | refused: it is gone | refused: it is gone |
| renamed to this key | put under the same id | delete of the old key only | rename from the first key to NEW |
| replaced | replaced by the new content | delete, first expectation kept | delete + create NEW |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from nessie_cli.errors import AlreadyExists, ContentNotFound, InvalidInput
from nessie_cli.model import Content, ContentKey, Delete, Namespace, Put, Unchanged, type_label
from nessie_cli.workspace.batch import Staged

State = Callable[[ContentKey], Content | None]
StagedList = tuple[Staged, ...]


def effective(staged: Iterable[Staged], key: ContentKey, state: State) -> Content | None:
    """The content of a key with the staged operations applied."""
    content = state(key)
    for item in staged:
        if item.key == key:
            content = proposed(item)
    return content


def proposed(item: Staged) -> Content | None:
    """The content that a staged operation leaves behind."""
    operation = item.operation
    if isinstance(operation, Put):
        return operation.content
    return None if isinstance(operation, Delete) else item.seen


def put(
    staged: StagedList, key: ContentKey, content: Content, state: State, *, afresh: bool = False
) -> StagedList:
    """Create or update a key. `content.id` is replaced by the id that the key has; `afresh` forgets what was staged for the key before."""
    if afresh:
        staged = without(staged, [key])
    old = _put_of(staged, key)
    if old is not None and (before := proposed(old)) is not None:
        _same_type(key, before, content)
        return _replaced(staged, old, _put(key, content.with_id(before.id), old.seen))
    deleted = _other_of(staged, key)
    if deleted is not None and isinstance(deleted.operation, Delete):
        return _created_again(staged, deleted, content)
    seen = deleted.seen if deleted is not None else state(key)
    if seen is not None:
        _same_type(key, seen, content)
    return (
        *_gone(staged, deleted),
        _put(key, content.with_id(seen.id if seen else content.id), seen),
    )


def replace(
    staged: StagedList,
    key: ContentKey,
    content: Content,
    state: State,
    new_id: str,
    *,
    afresh: bool = False,
) -> StagedList:
    """Drop the content of a key and create another one under it; raises `ContentNotFound` where there is nothing to drop."""
    if afresh:
        staged = without(staged, [key])
    if effective(staged, key, state) is None:
        raise _missing(key)
    old, other = _put_of(staged, key), _other_of(staged, key)
    if old is not None and old.seen is None:
        # Created, or renamed to this key, by this very batch: there is nothing in the store yet that could be dropped here.
        return _replaced(staged, old, _put(key, content.with_id(None), None))
    seen = old.seen if old is not None else other.seen if other is not None else state(key)
    return (*_gone(_gone(staged, old), other), _put(key, content.with_id(new_id), seen))


def delete(
    staged: StagedList, key: ContentKey, state: State, *, afresh: bool = False
) -> StagedList:
    """Delete a key; raises `ContentNotFound` where it does not exist (any more)."""
    if afresh:
        staged = without(staged, [key])
    if effective(staged, key, state) is None:
        raise _missing(key)
    old, other = _put_of(staged, key), _other_of(staged, key)
    if old is not None and other is not None:
        return _gone(staged, old)
    if old is not None and old.seen is None:
        return _gone(staged, old)
    seen = old.seen if old is not None else other.seen if other is not None else state(key)
    return (*_gone(_gone(staged, old), other), Staged(Delete(key), seen))


def delete_all(
    staged: StagedList, keys: Iterable[ContentKey], state: State, *, afresh: bool = False
) -> StagedList:
    """Delete several keys, as `delete` does. A key without staged operations costs O(1)."""
    before = {item.key for item in staged}
    added: dict[ContentKey, Staged] = {}
    for key in keys:
        seen = state(key)
        if key in before or key in added or seen is None:
            staged = delete((*staged, *added.values()), key, state, afresh=afresh)
            before, added = {item.key for item in staged}, {}
        else:
            added[key] = Staged(Delete(key), seen)
    return (*staged, *added.values())


def rename(
    staged: StagedList,
    old_key: ContentKey,
    new_key: ContentKey,
    state: State,
    *,
    afresh: bool = False,
) -> StagedList:
    """Move a content to another key under the same content id; raises `ContentNotFound` and `AlreadyExists`."""
    if afresh:
        staged = without(staged, [old_key, new_key])
    content = effective(staged, old_key, state)
    if content is None:
        raise _missing(old_key)
    if effective(staged, new_key, state) is not None:
        raise AlreadyExists(f"key '{new_key}' exists already", str(new_key))
    moved = content
    if isinstance(content, Namespace) and content.elements == old_key.elements:
        moved = Namespace(id=content.id, elements=new_key.elements, properties=content.properties)
    if _is_replaced(_put_of(staged, old_key)) and old_key not in renames(staged).values():
        # A content that only this batch knows; its chosen id belongs to the key that it was to replace.
        moved = moved.with_id(None)
    return _onto(delete(staged, old_key, state), new_key, moved)


def _onto(staged: StagedList, key: ContentKey, content: Content) -> StagedList:
    """Put a moved content on a key that is free, or that this batch frees."""
    freed = _other_of(staged, key)
    if freed is None:
        return (*staged, _put(key, content, None))
    if content.id is None:
        return _created_again(staged, freed, content)
    if freed.seen == content:
        # Moved away and back: nothing is left of it.
        return _gone(staged, freed)
    return (*_gone(staged, freed), _put(key, content, freed.seen))


def restore(
    staged: StagedList, key: ContentKey, wanted: Content | None, state: State
) -> StagedList:
    """Bring a key back to an earlier content, or to none; nothing is staged where the store has it so.

    A content that comes back to a free key gets a new id: the repository alone gives ids to new contents.
    """
    if state(key) == wanted and not any(key in pair for pair in renames(staged).items()):
        return without(staged, [key])
    current = effective(staged, key, state)
    if wanted is None:
        return staged if current is None else delete(staged, key, state)
    if current is None:
        return put(staged, key, wanted.with_id(None), state)
    if current.id == wanted.id:
        return put(staged, key, wanted, state)
    return replace(staged, key, wanted, state, wanted.id or "")


def unmodified(
    staged: StagedList, key: ContentKey, state: State, *, afresh: bool = False
) -> StagedList:
    """Demand that a key stays as it is; raises `ContentNotFound`, and `InvalidInput` where the batch changes the key itself."""
    if afresh:
        staged = without(staged, [key])
    if any(item.key == key and not isinstance(item.operation, Unchanged) for item in staged):
        raise InvalidInput(
            f"key '{key}': the batch changes it already, so it cannot be demanded unmodified; take the change out first"
        )
    if _other_of(staged, key) is not None:
        return staged
    seen = state(key)
    if seen is None:
        raise _missing(key)
    return (*staged, Staged(Unchanged(key), seen))


def without(staged: StagedList, keys: Sequence[ContentKey]) -> StagedList:
    """Take everything out that is staged for some keys; of a rename both halves go, whichever of its keys is named."""
    gone = set(keys)
    for old_key, new_key in renames(staged).items():
        if old_key in gone or new_key in gone:
            gone |= {old_key, new_key}
    return tuple(item for item in staged if item.key not in gone)


def renames(staged: StagedList) -> dict[ContentKey, ContentKey]:
    """Which keys are renamed, and to what: the id of a deleted content is put under another key."""
    put_as = {
        item.operation.content.id: item.key
        for item in staged
        if isinstance(item.operation, Put) and item.operation.content.id
    }
    deleted = {
        item.key: item.seen.id
        for item in staged
        if isinstance(item.operation, Delete) and item.seen
    }
    # A replacement of a renamed key has no Delete of its own: it expects the content that left.
    left = {item.key: item.seen.id for item in staged if _is_replaced(item) and item.seen}
    return {
        key: put_as[id_]
        for key, id_ in (left | deleted).items()
        if id_ in put_as and put_as[id_] != key
    }


def _put(key: ContentKey, content: Content, seen: Content | None) -> Staged:
    return Staged(Put(key, content, seen), seen)


def _created_again(staged: StagedList, deleted: Staged, content: Content) -> StagedList:
    """Put a new content under a deleted key, directly behind the deletion.

    Behind a Put that takes the deleted content over, the deletion would be half of a rename, and the key could not be created again.
    So both stand before such a Put.
    """
    others = _gone(staged, deleted)
    taker = next(
        (place for place, item in enumerate(others) if _takes_over(item, deleted)), len(others)
    )
    place = min(staged.index(deleted), taker)
    return (
        *others[:place],
        deleted,
        _put(deleted.key, content.with_id(None), None),
        *others[place:],
    )


def _takes_over(item: Staged, deleted: Staged) -> bool:
    """Whether an operation puts a deleted content under another key."""
    put = item.operation
    return (
        isinstance(put, Put)
        and deleted.seen is not None
        and put.content.id == deleted.seen.id
        and put.key != deleted.key
    )


def _put_of(staged: StagedList, key: ContentKey) -> Staged | None:
    return next(
        (item for item in staged if item.key == key and isinstance(item.operation, Put)), None
    )


def _other_of(staged: StagedList, key: ContentKey) -> Staged | None:
    """The Delete or Unchanged of a key."""
    return next(
        (item for item in staged if item.key == key and not isinstance(item.operation, Put)), None
    )


def _is_replaced(item: Staged | None) -> bool:
    """Whether a Put drops what it replaces: its content has another id."""
    return (
        item is not None
        and isinstance(item.operation, Put)
        and item.seen is not None
        and item.operation.content.id != item.seen.id
    )


def _replaced(staged: StagedList, old: Staged, new: Staged) -> StagedList:
    return tuple(new if item is old else item for item in staged)


def _gone(staged: StagedList, item: Staged | None) -> StagedList:
    return tuple(other for other in staged if other is not item)


def _same_type(key: ContentKey, old: Content, new: Content) -> None:
    if old.type_name != new.type_name:
        raise InvalidInput(
            f"key '{key}' holds a content of type {type_label(old.type_name)}, not {type_label(new.type_name)}. "
            "Hint: `nessie content replace` changes the type"
        )


def _missing(key: ContentKey) -> ContentNotFound:
    return ContentNotFound(f"there is no content with key '{key}'", key)
