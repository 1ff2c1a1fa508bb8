"""The keys that a caller may know in the answer to a commit, merge or transplant.

Keys of ours are judged on the branch, and keys of theirs on the source. Callers may have all rights
on a branch of their own, which tells nothing about the keys of another one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from msgspec import structs

from nessie_cli.model import (
    Conflict,
    ContentKey,
    ContentPlace,
    MergeDetail,
    MergeOption,
    MergeResult,
    Rename,
)
from nessie_cli.model.conflicts import conflict_text
from nessie_cli.server.auth import rules
from nessie_cli.server.auth.rights import Rights

_CHANGES = (rules.CREATE_ENTITY, rules.UPDATE_ENTITY, rules.DELETE_ENTITY)


class Side(NamedTuple):
    """A side of a change: the reference through which the caller sees it, and the known keys.

    `knows` returns whether the caller may know a key there.
    """

    name: str
    knows: Callable[[ContentKey], bool]


class ShownKeys:
    """Leaves out keys that the caller may not know.

    `ours` and `theirs` are the two sides; for a commit, both are the branch. `named` are the keys
    that the request names. With `per_key`, theirs changed each key of a detail or conflict.
    """

    def __init__(
        self,
        rights: Rights,
        ours: Side,
        theirs: Side,
        named: Collection[ContentKey] = (),
        *,
        per_key: bool = True,
    ) -> None:
        self._rights = rights
        self._ours = ours
        self._theirs = theirs
        self._given = named
        self._per_key = per_key

    def of_ours(self, key: ContentKey | None) -> bool:
        """Returns whether there is a key, and the caller may know it on the branch."""
        return key is not None and self._ours.knows(key)

    def of_theirs(self, key: ContentKey | None) -> bool:
        """Returns whether there is a key, and the caller may know it on the source."""
        return key is not None and self._theirs.knows(key)

    def of_either(self, key: ContentKey | None) -> bool:
        """Returns this for a key of the merge base, which both sides have in their history."""
        return self.of_ours(key) or self.of_theirs(key)

    def is_named(self, key: ContentKey) -> bool:
        """Returns whether the request names a key."""
        return key in self._given

    def in_conflict(self, key: ContentKey) -> bool:
        """Returns whether a conflict may name a changed key of ours.

        The caller named it, or may know it, or change it: then the conflict shows that it exists.
        """
        return (
            key in self._given
            or self.of_ours(key)
            or any(self._rights.may_somehow(change, self._ours.name, key) for change in _CHANGES)
        )

    def _name_of(self, conflict: Conflict) -> ContentKey | None:
        """Returns the key by which a conflict is named.

        A content in conflict that has a hidden key on ours is named by one that it has elsewhere.
        """
        key = conflict.key
        if key is None or self._per_key or conflict.content_id is None or self.in_conflict(key):
            return key
        return next(filter(self.of_theirs, (conflict.theirs_key, conflict.base_key)), None)

    # -- answers -----------------------------------------------------------------------------------
    def result(self, result: MergeResult) -> MergeResult:
        """Returns a result with the details of shown keys."""
        head = result.effective_target_hash
        details = (self._detail(each, head) for each in result.details if self._shows(each))
        decided = result.decided and self._option(result.decided)
        return structs.replace(result, details=tuple(details), decided=decided)

    def _option(self, given: MergeOption) -> MergeOption:
        """Returns a decision without its effects on hidden keys."""
        ours, theirs = self.of_ours, self.of_theirs
        return MergeOption(
            given.behavior,
            tuple(filter(ours, given.deletes)),
            tuple((old, new) for old, new in given.renames if ours(old) and theirs(new)),
            tuple(filter(theirs, given.leaves_out)),
        )

    def _shows(self, detail: MergeDetail) -> bool:
        """Returns whether the key of a detail is shown. It is of ours, of theirs, or of both."""
        key, conflict = detail.key, detail.conflict
        keys_of_theirs = {
            detail.source_at and detail.source_at.key,
            conflict and conflict.theirs_key,
            conflict and conflict.base_key,
        }
        if (self._per_key or key in keys_of_theirs) and self.of_theirs(key):
            return True
        is_of_ours = detail.target is not None or detail.result is not None
        # Of a deletion, neither side has a content: the key may be of either.
        return self.of_ours(key) and (is_of_ours or conflict is not None or self.of_theirs(key))

    def _detail(self, detail: MergeDetail, head: str) -> MergeDetail:
        """Returns a detail without hidden other keys. `head` is the commit of ours."""
        return structs.replace(
            detail,
            conflict=detail.conflict and self.conflict(detail.conflict, head),
            source_at=self._place(detail.source_at, head),
            result_at=self._place(detail.result_at, head),
        )

    def _place(self, at: ContentPlace | None, head: str) -> ContentPlace | None:
        if at is None:
            return None
        shown = self.of_ours if at.hash == head else self.of_theirs
        return at if shown(at.key) else None

    def conflict(self, conflict: Conflict, head: str = "") -> Conflict:
        """Returns a conflict without hidden keys, also in its message.

        `head` is the commit of ours in a merge or transplant. Contents are left out if the places
        where they can be read are hidden.
        """
        ours, theirs, either = self.of_ours, self.of_theirs, self.of_either

        def rename(
            side: Rename | None, name: str, shown: Callable[[ContentKey], bool]
        ) -> Rename | None:
            if side is None or not (either(side.old) and shown(side.new)):
                return None
            listed = self._rights.may(rules.LIST_COMMIT_LOG, name)
            return side if listed else structs.replace(side, by=None)

        actual_at = self._place(conflict.actual_at, head)
        proposed_at = self._place(conflict.proposed_at, head)
        shown = structs.replace(
            conflict,
            key=self._name_of(conflict),
            base_key=conflict.base_key if either(conflict.base_key) else None,
            theirs_key=conflict.theirs_key if theirs(conflict.theirs_key) else None,
            value_key=conflict.value_key if ours(conflict.value_key) else None,
            other_key=conflict.other_key if ours(conflict.other_key) else None,
            same_file_key=conflict.same_file_key if ours(conflict.same_file_key) else None,
            blocking_namespace=(
                conflict.blocking_namespace if ours(conflict.blocking_namespace) else None
            ),
            source_rename=rename(conflict.source_rename, self._theirs.name, theirs),
            target_rename=rename(conflict.target_rename, self._ours.name, ours),
            options=tuple(map(self._option, conflict.options)),
            actual=None if conflict.actual_at and actual_at is None else conflict.actual,
            proposed=None if conflict.proposed_at and proposed_at is None else conflict.proposed,
            actual_at=actual_at,
            proposed_at=proposed_at,
            changed_key=conflict.changed_key if ours(conflict.changed_key) else None,
        )
        if _in_message(shown) == _in_message(conflict):
            return shown
        key = shown.key
        text = conflict_text(shown.type, key) if key is not None else "a hidden key is in conflict"
        return structs.replace(shown, message=text)


def _in_message(conflict: Conflict) -> tuple[ContentKey | None, ...]:
    """Returns the keys that the message of a conflict names."""
    renames = (conflict.source_rename, conflict.target_rename)
    return (
        conflict.key,
        *(side.new if side is not None else None for side in renames),
        conflict.other_key,
        conflict.same_file_key,
    )
