"""The rules of staging: how one more operation combines with the staged ones.

A commit touches a key once. All functions are pure: staged operations and the state of the keys in,
staged operations out. `State` returns the content of a key at the hash that the new operation is
staged on; staged operations take precedence.

| staged before | put | delete | rename to NEW |
|---|---|---|---|
| nothing | update or create | delete | delete, put NEW, same id |
| create | create | nothing | create NEW |
| update | update (1) | delete (1) | delete, put NEW, new content |
| delete | delete, create | refused | refused |
| renamed to this key | put, same id | delete old key | rename from first key to NEW |
| replaced (delete, create) | delete, create | delete (1) | delete, create NEW |

(1) The first expected content is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import structs

from nessie_cli.errors import AlreadyExists, ContentNotFound, InvalidInput
from nessie_cli.model import (
    Content,
    ContentKey,
    Delete,
    Namespace,
    Put,
    RestoredFrom,
    Unchanged,
    type_label,
)
from nessie_cli.workspace.batch import Staged

State = Callable[[ContentKey], Content | None]
StagedList = tuple[Staged, ...]


Origins = Mapping[str | None, RestoredFrom]
"""Where deleted contents were, by their ids."""


def origins_of(staged: StagedList) -> dict[str | None, RestoredFrom]:
    """Returns where the deleted contents were that a batch restores."""
    return {
        item.operation.content.id: item.operation.restored_from
        for item in staged
        if isinstance(item.operation, Put) and item.operation.restored_from is not None
    }


def with_origins(staged: StagedList, origins: Origins) -> StagedList:
    """Returns a batch that restores the contents with these ids, whatever keys they get."""

    def restored(item: Staged) -> Staged:
        put = item.operation
        if not isinstance(put, Put) or put.content.id not in origins:
            return item
        origin = origins[put.content.id]
        return structs.replace(item, operation=structs.replace(put, restored_from=origin))

    return tuple(map(restored, staged)) if origins else staged


def effective(staged: Iterable[Staged], key: ContentKey, state: State) -> Content | None:
    """Returns the content of a key with the staged operations applied."""
    content = state(key)
    for item in staged:
        if item.key == key:
            content = proposed(item)
    return content


def proposed(item: Staged) -> Content | None:
    """Returns the content that a staged operation would store."""
    operation = item.operation
    if isinstance(operation, Put):
        return operation.content
    return None if isinstance(operation, Delete) else item.seen


def overlaid(state: Mapping[ContentKey, Content], staged: StagedList) -> dict[ContentKey, Content]:
    """Returns a state with staged operations applied."""
    contents = dict(state)
    for item in staged:
        content = proposed(item)
        if content is None:
            contents.pop(item.key, None)
        else:
            contents[item.key] = content
    return contents


def put(
    staged: StagedList,
    key: ContentKey,
    content: Content,
    state: State,
    *,
    discard_staged: bool = False,
) -> StagedList:
    """Stages a put. `content.id` is replaced by the key's id.

    `discard_staged` drops what was staged for the key before.
    """
    if discard_staged:
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
    changed = content.with_id(seen.id if seen else content.id)
    if deleted is not None and changed == seen:
        # It changes nothing, so the check that the key is unmodified stays.
        return staged
    return (*_gone(staged, deleted), _put(key, changed, seen))


def replace(
    staged: StagedList,
    key: ContentKey,
    content: Content,
    state: State,
    *,
    discard_staged: bool = False,
) -> StagedList:
    """Stages a replacement: deletes the content of a key and creates another one, with a new id.

    Raises `ContentNotFound` if there is nothing to delete.
    """
    deleted = delete(staged, key, state, discard_staged=discard_staged)
    return put(deleted, key, content.with_id(None), state)


def delete(
    staged: StagedList, key: ContentKey, state: State, *, discard_staged: bool = False
) -> StagedList:
    """Stages a deletion. Raises `ContentNotFound` if the key does not exist."""
    if discard_staged:
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
    staged: StagedList, keys: Iterable[ContentKey], state: State, *, discard_staged: bool = False
) -> StagedList:
    """Stages several deletions. A key without staged operations costs O(1)."""
    before = {item.key for item in staged}
    added: dict[ContentKey, Staged] = {}
    for key in keys:
        seen = state(key)
        if key in before or key in added or seen is None:
            staged = delete((*staged, *added.values()), key, state, discard_staged=discard_staged)
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
    discard_staged: bool = False,
) -> StagedList:
    """Stages a rename with the same content id. Raises `ContentNotFound` or `AlreadyExists`."""
    if discard_staged:
        staged = without(staged, [old_key, new_key])
    content = effective(staged, old_key, state)
    if content is None:
        raise _missing(old_key)
    if effective(staged, new_key, state) is not None:
        raise AlreadyExists(f"key '{new_key}' already exists", str(new_key))
    moved = with_key(content, old_key, new_key)
    return _onto(delete(staged, old_key, state), new_key, moved)


def with_key(content: Content, old: ContentKey, new: ContentKey) -> Content:
    """Returns a content under another key. The elements of a namespace are usually its key."""
    if isinstance(content, Namespace) and content.elements == old.elements:
        return Namespace(id=content.id, elements=new.elements, properties=content.properties)
    return content


def _onto(staged: StagedList, key: ContentKey, content: Content) -> StagedList:
    """Puts a renamed content on a key that is free, or that this batch frees."""
    freed = _other_of(staged, key)
    if freed is None:
        return (*staged, _put(key, content, None))
    if content.id is None:
        return _created_again(staged, freed, content)
    if freed.seen == content:
        # Renamed there and back: nothing is left of it.
        return _gone(staged, freed)
    return (*_gone(staged, freed), _put(key, content, freed.seen))


def unmodified(
    staged: StagedList, key: ContentKey, state: State, *, discard_staged: bool = False
) -> StagedList:
    """Stages the requirement that a key stays unmodified.

    Raises `ContentNotFound`, and `InvalidInput` if the batch changes the key itself.
    """
    if discard_staged:
        staged = without(staged, [key])
    if any(item.key == key and not isinstance(item.operation, Unchanged) for item in staged):
        raise InvalidInput(
            f"key '{key}': the batch already changes it, so it cannot be required to stay"
            f" unmodified",
            hint=f"`nessie reset {key}` unstages the change",
        )
    if _other_of(staged, key) is not None:
        return staged
    seen = state(key)
    if seen is None:
        raise _missing(key)
    return (*staged, Staged(Unchanged(key), seen))


def without(staged: StagedList, keys: Sequence[ContentKey]) -> StagedList:
    """Unstages some keys. The keys of a rename, a swap or a chain are unstaged together."""
    gone, pairs, size = set(keys), renames(staged).items(), -1
    while size != len(gone):
        size = len(gone)
        for pair in pairs:
            gone |= set(pair) if gone.intersection(pair) else set()
    return tuple(item for item in staged if item.key not in gone)


def renames(staged: StagedList) -> dict[ContentKey, ContentKey]:
    """Returns the renames: the id of a deleted content is put under another key."""
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
    # A key that takes over another content has no Delete of its own: it expects what left it.
    left = {item.key: item.seen.id for item in staged if _takes_over_key(item) and item.seen}
    return {
        key: put_as[id_]
        for key, id_ in (left | deleted).items()
        if id_ in put_as and put_as[id_] != key
    }


class Double(NamedTuple):
    """A content that a batch gives a key, and that a new operation gives `new_key`.

    `origin` is its key on the branch when the first operation was staged, if it had one.
    """

    key: ContentKey
    new_key: ContentKey
    content_id: str
    origin: ContentKey | None


def doubles_of(before: StagedList, after: StagedList) -> list[Double]:
    """Returns the contents to which a new operation gives another key beside a staged one."""
    earlier = set(map(id, before))
    places = {content_id: key for key, content_id in _places(before)}
    present = set(_places(after))
    origins = {item.seen.id: item.key for item in before if item.seen is not None}
    return [
        Double(places[content_id], key, content_id, origins.get(content_id))
        for key, content_id in _places([item for item in after if id(item) not in earlier])
        if places.get(content_id, key) != key and (places[content_id], content_id) in present
    ]


def _places(staged: Iterable[Staged]) -> Iterator[tuple[ContentKey, str]]:
    """Yields the keys and ids of the contents that operations put."""
    for item in staged:
        if isinstance(item.operation, Put) and item.operation.content.id is not None:
            yield item.key, item.operation.content.id


def _put(key: ContentKey, content: Content, seen: Content | None) -> Staged:
    return Staged(Put(key, content, seen), seen)


def _created_again(staged: StagedList, deleted: Staged, content: Content) -> StagedList:
    """Puts a new content under a deleted key, directly after the deletion.

    After a Put that takes the deleted content over, the deletion would be half of a rename, and the
    key could not be created again. So both precede such a Put.
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
    """Returns whether an operation puts a deleted content under another key."""
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
    """Returns the Delete or Unchanged of a key."""
    return next(
        (item for item in staged if item.key == key and not isinstance(item.operation, Put)), None
    )


def _takes_over_key(item: Staged) -> bool:
    """Returns whether a Put moves a content to a key whose own content leaves."""
    return (
        isinstance(item.operation, Put)
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
            (
                f"key '{key}' holds a content of type {type_label(old.type_name)}, not"
                f" {type_label(new.type_name)}"
            ),
            hint="`nessie content replace` changes the type",
        )


def _missing(key: ContentKey) -> ContentNotFound:
    return ContentNotFound(f"there is no content with key '{key}'", key)
