"""Finds the contents that were renamed or deleted on a branch since a batch was staged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from nessie_cli.errors import NotFound
from nessie_cli.model import NO_ANCESTOR, Content, ContentKey, Put, RestoredFrom
from nessie_cli.revisions import Revision
from nessie_cli.workspace.content_edits import content_edits
from nessie_cli.workspace.staging import StagedList, overlaid

if TYPE_CHECKING:
    from nessie_cli.repository.base import Repository


class Place(NamedTuple):
    """A content on the branch, and its key."""

    key: ContentKey
    content: Content


class Departures(NamedTuple):
    """Contents that have left their keys.

    `places` are where they are, by these keys. `origins` are where the deleted ones were last, by
    their ids.
    """

    places: dict[ContentKey, Place]
    origins: dict[str | None, RestoredFrom]


def departures(
    repository: Repository, head: str, base: str | None, missing: Mapping[ContentKey, Content]
) -> Departures:
    """Returns where contents are at `head`, or were last, that have left their keys.

    `base` is the commit at which the batch was begun. It has those contents that never had these
    keys on this branch, if the batch comes from another branch.
    Cost for each content: the commits with an operation on its key since then. For each commit that
    one left in: a diff of it and `head`.
    """
    at = Revision(None, head)
    leavers: dict[str, dict[str | None, ContentKey]] = {}
    for key, content in missing.items():
        parent = _last_with(repository, at, key, content) or base
        if parent is not None:
            leavers.setdefault(parent, {})[content.id] = key
    places: dict[ContentKey, Place] = {}
    origins: dict[str | None, RestoredFrom] = {}
    for parent, keys in leavers.items():
        # The commit at which an old batch was begun may be gone.
        with suppress(NotFound):
            before = repository.contents(Revision(None, parent), list(keys.values()))
            for entry in repository.diff(Revision(None, parent), at, whole=True):
                after = entry.after
                if after is not None and after.id in keys and keys[after.id] != entry.key:
                    places[keys[after.id]] = Place(entry.key, after)
            origins |= {
                content.id: RestoredFrom(parent, key)
                for key, content in before.items()
                if keys.get(content.id) == key and key not in places
            }
    return Departures(places, origins)


def places_of_restored(
    repository: Repository, head: str, staged: StagedList
) -> dict[ContentKey, Place]:
    """Returns where contents are at `head` that a batch restores, by the keys staged for them.

    A deleted content is left out. Cost: for each commit that contents are restored from, a diff of
    it and `head`.
    """
    places: dict[ContentKey, Place] = {}
    for hash_, puts in _restored(staged).items():
        present = _present(repository, head, hash_, puts)
        by_id = {content.id: Place(key, content) for key, content in present.items()}
        for put in puts:
            place = by_id.get(put.content.id)
            if place is not None:
                places[put.key] = place
    return places


def second_entries_of_restored(
    repository: Repository, head: str, staged: StagedList
) -> list[tuple[ContentKey, ContentKey]]:
    """Returns the keys of restored tables that `head` has already, as another content at a key.

    Tables that the batch itself creates are not compared. Cost as that of `places_of_restored`.
    """
    restorations = _restored(staged)
    if not restorations:
        return []
    # Most commands need no rules of merges.
    from nessie_cli.repository.recreated import second_entries

    state: dict[ContentKey, Content] = {}
    restored: dict[ContentKey, Content | None] = {}
    for hash_, puts in restorations.items():
        state |= _present(repository, head, hash_, puts)
        restored |= {put.key: put.content for put in puts}
    after = overlaid(state, tuple(item for item in staged if item.key not in restored))
    return list(second_entries({key: c for key, c in after.items() if c.id}, restored))


def _restored(staged: StagedList) -> dict[str, list[Put]]:
    """Returns the operations that restore contents, by the commit from which they do."""
    created = {edit.new for edit in content_edits(staged) if edit.old is None}
    restored: dict[str, list[Put]] = {}
    for item in staged:
        put = item.operation
        if item.key in created and isinstance(put, Put) and put.restored_from is not None:
            restored.setdefault(put.restored_from.hash, []).append(put)
    return restored


def _present(
    repository: Repository, head: str, hash_: str, puts: Sequence[Put]
) -> dict[ContentKey, Content]:
    """Returns the contents of `head` that a commit does not have, and those of restored keys."""
    at = Revision(None, head)
    keys = [put.restored_from.key for put in puts if put.restored_from is not None]
    present = dict(repository.contents(at, keys))
    # The commit may be gone.
    with suppress(NotFound):
        for entry in repository.diff(Revision(None, hash_), at):
            if entry.after is not None:
                present[entry.key] = entry.after
    return present


def _last_with(
    repository: Repository, at: Revision, key: ContentKey, content: Content
) -> str | None:
    """Returns the last commit in which a key had a content, or None if it never had it."""
    for entry in repository.log_of_key(at, key):
        if entry.parent == NO_ANCESTOR:
            return None
        contents = repository.contents(Revision(None, entry.parent), [key])
        if key in contents and contents[key].id == content.id:
            return entry.parent
    return None


def old_keys_of(
    repository: Repository, head: str, present: Mapping[ContentKey, Content]
) -> dict[ContentKey, ContentKey]:
    """Returns the earlier keys of contents that were renamed to their keys at `head`.

    Cost for each content: the commits with an operation on its key since then. For each commit that
    renamed one: a diff.
    """
    arrivals: dict[tuple[str, str], dict[str | None, ContentKey]] = {}
    for key, content in present.items():
        commit = _first_with(repository, Revision(None, head), key, content)
        if commit is not None:
            arrivals.setdefault(commit, {})[content.id] = key
    old_keys: dict[ContentKey, ContentKey] = {}
    for (parent, hash_), keys in arrivals.items():
        for entry in repository.diff(Revision(None, parent), Revision(None, hash_), whole=True):
            before = entry.before
            if before is not None and before.id in keys and keys[before.id] != entry.key:
                old_keys[keys[before.id]] = entry.key
    return old_keys


def _first_with(
    repository: Repository, at: Revision, key: ContentKey, content: Content
) -> tuple[str, str] | None:
    """Returns the commit that gave a key its present content, after its parent.

    Returns None for a first commit.
    """
    for entry in repository.log_of_key(at, key):
        if entry.parent == NO_ANCESTOR:
            return None
        contents = repository.contents(Revision(None, entry.parent), [key])
        if key not in contents or contents[key].id != content.id:
            return entry.parent, entry.hash
    return None
