"""Stages changes again on the present state of the branch.

A change is that of a content with all its keys. A content that was renamed on the branch is found
by its id. Of the key and the value, a change keeps those that it changes, and takes the others from
the branch.

| staged | changed on the branch | renamed there | deleted there |
|---|---|---|---|
| new value | the staged value | the staged value, under the new key | restored with this value |
| rename | renamed, with the new value | renamed from the new key | refused |
| rename, new value | both | both, from the new key | restored under the staged key |
| deletion | deleted | refused | nothing is left to do |
| check | of the present value | of the new key | refused |
| restored, and it came back | the staged value | renamed back, with the staged value | restored |

A content that has the key of a staged one now is deleted if the decision names this key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from nessie_cli.cli.errors.resolutions import command_line
from nessie_cli.cli.staging.renamed import Departures, Place, departures, places_of_restored
from nessie_cli.errors import InvalidInput
from nessie_cli.model import (
    NAMESPACE_VALIDATION,
    Content,
    ContentKey,
    Delete,
    KeyRange,
    Namespace,
    Unchanged,
)
from nessie_cli.revisions import Revision
from nessie_cli.workspace.batch import Staged
from nessie_cli.workspace.content_edits import (
    ContentEdit,
    connected,
    content_edits,
    operations_of,
    with_edits,
)
from nessie_cli.workspace.staging import Origins, StagedList, origins_of, with_key, with_origins

if TYPE_CHECKING:
    from nessie_cli.repository.base import Repository

Choices = Mapping[ContentKey, Content | None]
"""The keys whose staged change is kept. A content replaces the staged value."""


class Restaged(NamedTuple):
    """The staged operations after a decision.

    `replaced` are the keys of contents on the branch that give way to others. `renamed` are the
    keys of staged contents and their keys on the branch now, and so are `came_back` of restored
    contents that came back already. `overwritten` are the keys on the branch of those that get the
    staged value instead of theirs.
    """

    staged: StagedList
    replaced: tuple[ContentKey, ...]
    renamed: Mapping[ContentKey, ContentKey]
    came_back: Mapping[ContentKey, ContentKey]
    overwritten: tuple[ContentKey, ...]


class Restager:
    """Stages changes again on the hash `head` of a branch.

    `base` is the commit at which the batch was begun, if it is known. `options` are the global
    options of the command lines in hints.
    """

    def __init__(
        self,
        repository: Repository,
        branch: str,
        head: str,
        base: str | None,
        options: Sequence[str] = (),
    ) -> None:
        self._repository, self._branch = repository, branch
        self._head, self._base = head, base
        self._options = options

    def restaged(self, staged: StagedList, choices: Choices) -> Restaged:
        """Returns the batch with the changes of some keys staged again.

        Raises `CannotKeep` if one of them cannot be kept.
        """
        edits = content_edits(staged)
        back = places_of_restored(self._repository, self._head, staged)
        checks = [
            item for item in staged if item.key in choices and isinstance(item.operation, Unchanged)
        ]
        seen = {edit.old: edit.before for edit in edits if edit.old and edit.before}
        seen |= {item.key: item.seen for item in checks if item.seen}
        head = self._repository.contents(Revision(None, self._head), choices)
        places, deleted = self._departures(
            {key: content for key, content in seen.items() if key in choices}, head
        )
        moved = {place.key: place.content for place in places.values()}
        returned = {place.key: place.content for place in back.values()}
        # A key without a decision stays in conflict, on the content that it was staged on.
        undecided = {key: content for key, content in seen.items() if key not in choices}
        state = returned | undecided | head | moved
        links = [ContentEdit(place.key, key, None, None) for key, place in back.items()]
        keys = connected([*edits, *links], {*choices, *moved})
        back = {key: place for key, place in back.items() if key in keys}
        edits = [edit for edit in edits if edit.keys & keys]
        # A value turns a check into a change, and can be that of a key that is not staged.
        edits += [
            ContentEdit(item.key, item.key, item.seen, item.seen)
            for item in checks
            if choices[item.key] is not None
        ]
        touched = {key for edit in edits for key in edit.keys}
        edits += [
            ContentEdit(None, key, None, content)
            for key, content in choices.items()
            if content is not None and key not in touched
        ]
        checks = [item for item in checks if choices[item.key] is None]
        again: list[ContentEdit] = []
        for edit, value in _edited(edits, choices):
            if edit.old is None and edit.new in back:
                again.append(self._returned(edit, value, back[edit.new]))
            else:
                again += self._again(edit, value, places, choices)
        overwritten = _overwritten(again, back)
        restored = origins_of(staged)
        again, replaced = self._arrived(again, state, choices, restored, deleted)
        operations = operations_of(again, state.get)
        taken = {item.key for item in operations}
        unmodified = (self._checked_again(item, places) for item in checks)
        operations += tuple(item for item in unmodified if item.key not in taken)
        after = with_origins(with_edits(staged, keys, operations), deleted | restored)
        self._refuse_needed(replaced, state, after)
        return Restaged(
            after,
            replaced,
            {old: place.key for old, place in places.items() if place.key != old},
            {key: place.key for key, place in back.items() if place.key != key},
            overwritten,
        )

    def _returned(self, edit: ContentEdit, value: Content | None, place: Place) -> ContentEdit:
        """Returns the edit of a content that is restored but came back already, at a place.

        It is renamed instead, and gets the staged value.
        """
        after = edit.after if value is None else value.with_id(place.content.id)
        return ContentEdit(place.key, edit.new, place.content, after)

    def _departures(
        self, seen: Mapping[ContentKey, Content], head: Mapping[ContentKey, Content]
    ) -> Departures:
        """Returns where contents are now, by the keys on which they were staged.

        Also returns where the deleted ones were, if they can get their ids back.
        """
        places = {
            key: Place(key, head[key])
            for key, content in seen.items()
            if key in head and head[key].id == content.id
        }
        missing = {key: content for key, content in seen.items() if key not in places}
        moved = departures(self._repository, self._head, self._base, missing)
        origins = moved.origins if self._repository.restores_content_ids else {}
        return Departures(places | moved.places, origins)

    def _again(
        self,
        edit: ContentEdit,
        value: Content | None,
        places: Mapping[ContentKey, Place],
        choices: Choices,
    ) -> list[ContentEdit]:
        """Returns an edit on the present state. `value` is the decision about its value."""
        old = edit.old
        if old is None or old not in choices:
            if value is not None and edit.before is not None:
                value = value.with_id(edit.before.id)
            return [edit._replace(after=value or edit.after)]
        if value is not None and edit.new is None:
            # The content stays, with the value of the decision.
            edit = edit._replace(new=old, after=value)
        place = places.get(old)
        if place is None:
            return self._without_content(edit, value)
        return self._changed_again(edit, value, place)

    def _changed_again(
        self, edit: ContentEdit, value: Content | None, place: Place
    ) -> list[ContentEdit]:
        """Returns the edit of a content at a place. One of another type replaces it."""
        if edit.new is None and place.key != edit.old:
            raise CannotKeep(
                (
                    f"'{edit.old}' was renamed to '{place.key}' on {self._branch}, and the batch"
                    " deletes it"
                ),
                hint=(
                    f"`{self._line('reset', str(edit.old))}` keeps it, and then"
                    f" `{self._line('content', 'delete', str(place.key))}` deletes it"
                ),
            )
        if edit.new is None:
            return [ContentEdit(place.key, None, place.content, None)]
        key = edit.new if edit.is_rename else place.key
        if value is None:
            changed = edit.changes_value
            value, at = (edit.after, edit.new) if changed else (place.content, place.key)
        else:
            at = key
        assert value is not None
        assert at is not None
        if value.type_name != place.content.type_name:
            return [
                ContentEdit(place.key, None, place.content, None),
                ContentEdit(None, key, None, value),
            ]
        after = with_key(value, at, key).with_id(place.content.id)
        return [ContentEdit(place.key, key, place.content, after)]

    def _without_content(self, edit: ContentEdit, value: Content | None) -> list[ContentEdit]:
        """Returns the edit of a content that was deleted on the branch: a creation, or nothing."""
        if edit.new is None:
            return []
        if value is None and not edit.changes_value:
            raise CannotKeep(
                f"'{edit.old}' was deleted on {self._branch}, and the batch renames it",
                hint=f"`{self._line('reset', str(edit.old))}` unstages the rename",
            )
        before = edit.before
        if value is not None and before is not None and value.type_name == before.type_name:
            value = value.with_id(before.id)
        return [ContentEdit(None, edit.new, None, value or edit.after)]

    def _checked_again(self, item: Staged, places: Mapping[ContentKey, Place]) -> Staged:
        place = places.get(item.key)
        if place is None:
            raise CannotKeep(
                (
                    f"'{item.key}' was deleted on {self._branch}, and the batch requires it to be"
                    " unmodified"
                ),
                hint=f"`{self._line('reset', str(item.key))}` unstages this",
            )
        return Staged(Unchanged(place.key), place.content)

    def _arrived(
        self,
        edits: list[ContentEdit],
        state: Mapping[ContentKey, Content],
        choices: Choices,
        restored: Origins,
        deleted: Origins,
    ) -> tuple[list[ContentEdit], tuple[ContentKey, ...]]:
        """Returns the edits where they meet other contents, and the keys of those that give way.

        Raises `InvalidInput` if two contents get one key.
        """
        leaving = {edit.old for edit in edits}
        arrived: dict[ContentKey, ContentEdit] = {}
        replaced: list[ContentKey] = []
        others: list[ContentEdit] = []
        for edit in edits:
            key, after = edit.new, edit.after
            if key is None or after is None:
                others.append(edit)
                continue
            if key in arrived:
                raise CannotKeep(
                    (
                        f"two contents would get the key '{key}', because one of them was renamed"
                        f" to it on {self._branch}"
                    ),
                    hint=f"`{self._line('reset', str(key))}` unstages the changes of this key",
                )
            present = state.get(key) if key not in leaving else None
            is_restored = after.id in restored and self._repository.restores_content_ids
            # A content that another writer deleted does not replace the one that has its key now.
            is_back = is_restored or (after.id in deleted and present is None)
            if (
                edit.old is None
                and present is not None
                and (
                    present.id == after.id
                    or _is_one(present, after, choices.get(key), is_restored=is_restored)
                )
            ):
                arrived[key] = ContentEdit(key, key, present, after.with_id(present.id))
                continue
            if present is not None and edit.old is not None:
                self._refuse_value(edit, choices.get(key))
            replaced += [key] if present is not None else []
            arrived[key] = edit if edit.old or is_back else edit._replace(after=after.with_id(None))
        return [*others, *arrived.values()], tuple(replaced)

    def _refuse_needed(
        self,
        replaced: Iterable[ContentKey],
        state: Mapping[ContentKey, Content],
        after: StagedList,
    ) -> None:
        """Raises `CannotKeep` if a namespace with contents would give way."""
        needed = [key for key in replaced if isinstance(state.get(key), Namespace)]
        if not needed or self._repository.config().settings.get(NAMESPACE_VALIDATION) == "false":
            return
        gone = {item.key for item in after if isinstance(item.operation, Delete)}
        at = Revision(None, self._head)
        for key in needed:
            below = (entry.key for entry in self._repository.entries(at, KeyRange(prefix=key)))
            child = next((each for each in below if each != key and each not in gone), None)
            if child is not None:
                raise CannotKeep(
                    f"namespace '{key}' is not empty: {child}",
                    hint=f"`{self._line('reset', str(key))}` unstages the change",
                )

    def _line(self, *arguments: str) -> str:
        return command_line(*self._options, *arguments)

    def _refuse_value(self, edit: ContentEdit, value: Content | None) -> None:
        """Raises `InvalidInput` if a decision gives a value to a key that two contents claim."""
        if value is None or (edit.before is not None and value.id == edit.before.id):
            return
        decision = self._line("resolve", "--proposed", str(edit.new))
        raise CannotKeep(
            (
                f"the batch renames '{edit.old}' to '{edit.new}', where {self._branch} has another"
                " content, and a value does not decide which of them has the key"
            ),
            hint=(
                f"`{decision}` replaces the present content, and"
                f" `{self._line('content', 'put', str(edit.new))} ...` then changes the value"
            ),
        )


def _overwritten(
    edits: Iterable[ContentEdit], back: Mapping[ContentKey, Place]
) -> tuple[ContentKey, ...]:
    """Returns the present keys of restored contents that came back and get another value."""
    present = {key: place.key for key, place in back.items()}
    return tuple(
        edit.old
        for edit in edits
        if edit.old and edit.new and edit.old == present.get(edit.new) and edit.changes_value
    )


def _edited(
    edits: Iterable[ContentEdit], choices: Choices
) -> Iterator[tuple[ContentEdit, Content | None]]:
    """Yields each edit with the value that a decision gives to its content.

    The key of a decision means the content that was staged there, otherwise the one that is staged
    for it.
    """
    edits = list(edits)
    staying = {edit.old for edit in edits if edit.new is not None}
    arriving = {edit.new for edit in edits}
    for edit in edits:
        value = None
        if edit.old is not None and (edit.old in staying or edit.old not in arriving):
            value = choices.get(edit.old)
        if value is None and edit.new is not None and edit.new not in staying:
            value = choices.get(edit.new)
        yield edit, value


def _is_one(
    present: Content, after: Content, decided: Content | None, *, is_restored: bool
) -> bool:
    """Returns whether a created content becomes a change of the one that has the key already.

    This holds for two namespaces, for equal contents, and for the content of a decision, which
    merges both. A restored content keeps its id, so it is never an equal one with another id.
    """
    if isinstance(present, Namespace) and isinstance(after, Namespace):
        return True
    if decided is not None and decided.type_name == present.type_name:
        return decided.id in (None, present.id)
    return not is_restored and after.with_id(present.id) == present


class CannotKeep(InvalidInput):
    """A staged change cannot be staged again on the present state: `why`."""

    def __init__(self, why: str, hint: str) -> None:
        super().__init__(f"the staged change cannot be kept: {why}", hint=hint)
        self.why = why
