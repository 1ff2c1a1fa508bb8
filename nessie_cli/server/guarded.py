"""The repository as one caller may use it: the same verbs, each of which asks for its rights first; listings leave out what the caller may not see.

Handlers know nothing of it, so none can forget to ask. What is asked for each verb is the original's, and stricter where the original would show a
content by a side way (`docs/security.md` says where).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import structs

from nessie_cli.errors import MergeConflict, NotAllowed
from nessie_cli.model import (
    CommitMeta,
    CommitResult,
    Delete,
    MergeResult,
    Operation,
    Problem,
    Put,
    Reference,
    ReferenceType,
)
from nessie_cli.repository.base import MergeOptions, Repository, Revision
from nessie_cli.repository.judging import Acting, Judge, KeyChange
from nessie_cli.server import rules
from nessie_cli.server.guarded_reading import GuardedReading, config_type

NO_OPTIONS = MergeOptions()


def require_config(repository: Repository, type_: str) -> None:
    """Raise `NotAllowed` where the repository is guarded and its caller may not read configuration of a type."""
    if isinstance(repository, GuardedRepository):
        repository.rights.require(rules.READ_REPOSITORY_CONFIG, config=type_)


class GuardedRepository(GuardedReading):
    """A `Repository` for one request of one caller."""

    def _acting(self, judge: Judge | None = None) -> Repository:
        assert isinstance(self._inner, Acting)
        return self._inner.acting_as(self.rights.caller.name, judge)

    # -- references --------------------------------------------------------------------------------------------------------------

    def put_setting(self, name: str, value: str | None) -> str | None:
        """See `Repository`."""
        self.rights.require(rules.UPDATE_REPOSITORY_CONFIG, config=config_type(name))
        return self._inner.put_setting(name, value)

    def create_reference(self, type: ReferenceType, name: str, target: str) -> Reference:
        """See `Repository`; the caller has to see the commit."""
        self.rights.require(rules.CREATE_REFERENCE, name)
        self._at(f"@{target}")
        return self._acting().create_reference(type, name, target)

    def assign_reference(self, name: str, target: str, *, expected_hash: str) -> Reference:
        """See `Repository`; the caller has to see the commit."""
        self._see(name)
        self.rights.require(rules.ASSIGN_REFERENCE_TO_HASH, name)
        self._at(f"@{target}")
        return self._acting().assign_reference(name, target, expected_hash=expected_hash)

    def rename_reference(self, old: str, new: str, *, expected_hash: str) -> Reference:
        """See `Repository`; to rename is to create and to delete."""
        self._see(old)
        self.rights.require(rules.CREATE_REFERENCE, new)
        self.rights.require(rules.DELETE_REFERENCE, old)
        return self._acting().rename_reference(old, new, expected_hash=expected_hash)

    def delete_reference(self, name: str, *, expected_hash: str) -> Reference:
        """See `Repository`."""
        self._see(name)
        self.rights.require(rules.DELETE_REFERENCE, name)
        return self._acting().delete_reference(name, expected_hash=expected_hash)

    # -- contents ----------------------------------------------------------------------------------------------------------------

    def _may_commit(self, branch: str, request_id: str | None = None) -> None:
        self._see(branch)
        self.rights.require(rules.COMMIT_CHANGE_AGAINST_REFERENCE, branch)
        if request_id is not None:
            # A repeated request answers what the first one did, wherever that was.
            self.find_request(request_id)

    def commit(
        self,
        branch: str,
        operations: Iterable[Operation],
        meta: CommitMeta,
        *,
        expected_hash: str | None = None,
        request_id: str | None = None,
        dry_run: bool = False,
    ) -> CommitResult:
        """See `Repository`. Asks before anything is looked at, so that no conflict tells of a key that the caller has nothing to do with."""
        self._may_commit(branch, request_id)
        asked = list(operations)
        for operation in asked:
            self._check_touched(branch, operation)
        judge = self._judge_of_writing
        return self._acting(judge).commit(branch, asked, meta, expected_hash=expected_hash, request_id=request_id, dry_run=dry_run)

    def _check_touched(self, branch: str, operation: Operation) -> None:
        key = operation.key
        if isinstance(operation, Put):
            type_ = operation.content.type_name
            if not self.rights.may(rules.UPDATE_ENTITY, branch, key, type_):
                self.rights.require(rules.CREATE_ENTITY, branch, key, type_)
            return
        op = rules.DELETE_ENTITY if isinstance(operation, Delete) else rules.READ_CONTENT_KEY
        if not self.rights.may_somehow(op, branch, key):
            raise self.rights.refusal(op, branch, key)

    def _judge_of_writing(self, branch: str, changes: Sequence[KeyChange]) -> None:
        for change in changes:
            for op, type_ in _needed(change):
                self.rights.require(op, branch, change.key, type_)

    def find_request(self, request_id: str, *, branch: str | None = None) -> CommitResult | None:
        """See `Repository`; of branches that the caller may commit to."""
        found = self._inner.find_request(request_id, branch=branch)
        if found is not None:
            self._may_commit(found.reference.name)
        return found

    def merge(self, branch: str, source: Revision, options: MergeOptions = NO_OPTIONS) -> MergeResult:
        """See `Repository`. What is merged has to be allowed to be read where it comes from and to be written where it goes."""
        self._may_commit(branch, options.request_id)
        _, through = self._at(source)
        return self._combined(branch, through, lambda acting: acting.merge(branch, source, options))

    def transplant(self, branch: str, commits: Sequence[str], options: MergeOptions = NO_OPTIONS) -> MergeResult:
        """See `Repository`, and `merge`; the history of the commits has to be allowed to be seen as well, since it is copied."""
        self._may_commit(branch, options.request_id)
        seen = [self._listed(f"@{hash_}")[1] for hash_ in commits]
        return self._combined(branch, seen[-1] if seen else branch, lambda acting: acting.transplant(branch, commits, options))

    def _combined(self, branch: str, through: str, combine: Callable[[Repository], MergeResult]) -> MergeResult:
        def judge(name: str, changes: Sequence[KeyChange]) -> None:
            for change in changes:
                self._check_source(through, change)
            self._judge_of_writing(name, changes)

        try:
            return self._known_details(combine(self._acting(judge)), branch, through)
        except MergeConflict as conflict:
            raise MergeConflict(conflict.message, conflict.conflicts, self._known_details(conflict.result, branch, through)) from None

    def _check_source(self, through: str, change: KeyChange) -> None:
        """Whether what a merge brings may be read where it comes from. A key that the caller may not know is not named."""
        op, type_ = (rules.READ_ENTITY_VALUE, change.after) if change.after is not None else (rules.READ_CONTENT_KEY, change.before or "")
        if not self.rights.may(op, through, change.key, type_):
            named = self.rights.may_somehow(rules.READ_CONTENT_KEY, through, change.key)
            raise self.rights.refusal(op, through, change.key if named else None)

    def _known_details(self, result: MergeResult, branch: str, through: str) -> MergeResult:
        """The result with those keys that the caller may know on one of the two sides."""
        known = [d for d in result.details if any(self.rights.may_somehow(rules.READ_CONTENT_KEY, ref, d.key) for ref in (through, branch))]
        return structs.replace(result, details=tuple(known))

    def check(self) -> Iterator[Problem]:
        """See `Repository`; no route of the API leads here."""
        raise NotAllowed("a store is not verified through the server")

    def close(self) -> None:
        """Nothing: the repository is the server's."""


def _needed(change: KeyChange) -> list[tuple[str, str]]:
    """What has to be allowed for a change: (operation, content type)."""
    if change.after is None:
        return [(rules.DELETE_ENTITY, change.before or "")]
    if change.before is None:
        return [(rules.CREATE_ENTITY, change.after)]
    if change.same and change.before == change.after:
        return [(rules.UPDATE_ENTITY, change.after)]
    return [(rules.DELETE_ENTITY, change.before), (rules.CREATE_ENTITY, change.after)]
