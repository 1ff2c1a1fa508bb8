"""Answers to merges and transplants, with the contents that the server does not send."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from msgspec import structs

from nessie_cli.errors import MergeConflict, NessieError, OutcomeUnknown, ReferenceConflict
from nessie_cli.model import (
    NO_ANCESTOR,
    Conflict,
    Content,
    ContentKey,
    LogEntry,
    MergeBehavior,
    MergeDetail,
    MergeResult,
    Put,
)
from nessie_cli.model.conflicts import merge_message
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.repository.remote import references
from nessie_cli.repository.remote.ancestry import Ancestry
from nessie_cli.repository.remote.conflicts import State, keys_of, with_details, with_namespaces
from nessie_cli.repository.remote.contents import contents
from nessie_cli.repository.remote.history import entries_of
from nessie_cli.repository.remote.server import Server
from nessie_cli.repository.remote.session import RestSession
from nessie_cli.wire import answers


def with_current_namespaces(
    server: Server, conflict: ReferenceConflict, verb: str, branch: str, source: str
) -> ReferenceConflict:
    """Returns a conflict of namespaces with their current contents.

    Such a conflict prevents a merge before keys are compared.
    """
    keys = keys_of(conflict.conflicts)
    if not keys:
        return conflict
    session = server.session
    head = references.get(session, branch).hash
    base = NO_ANCESTOR if verb == "transplant" else Ancestry(session).merge_base(head, source)
    state = contents(session, head, keys)
    changed_by = server.changes_since(keys, base, head, state)
    return ReferenceConflict(
        conflict.message,
        with_namespaces(conflict.conflicts, state, changed_by),
        reference=branch,
        head=head,
        expected_hash=base,
    )


class DetailedAnswer(ABC):
    """An answer to a merge or transplant whose contents are read from the server.

    `request_id` is the id of the request that it answers, empty if it had none.
    """

    def __init__(
        self,
        server: Server,
        answer: answers.MergeAnswer,
        sources: Sequence[str],
        options: MergeOptions,
        request_id: str = "",
    ) -> None:
        self.server = server
        self.answer = answer
        self.sources = sources
        self.options = options
        self.request_id = request_id
        self.head = answer.effective_target_hash

    def result(self) -> MergeResult:
        """Returns the answer with the contents of both sides. Raises `MergeConflict`.

        Raises `OutcomeUnknown` if the branch has moved, and the contents cannot be read.
        """
        try:
            return self._result()
        except NessieError as error:
            # Other errors say that nothing was written.
            if not self.answer.applied:
                raise
            raise OutcomeUnknown(
                f"branch {self.answer.target_branch} is at {self.answer.resultant_hash} now, but"
                f" what changed could not be read: {error.message}",
                self.request_id,
            ) from None

    def _result(self) -> MergeResult:
        answer = self.answer
        conflicts = [detail.conflict for detail in answer.details if detail.conflict is not None]
        if conflicts:
            conflicts = self.explained(conflicts)
        result = MergeResult(
            target_branch=answer.target_branch,
            effective_target_hash=answer.effective_target_hash,
            resultant_hash=answer.resultant_hash,
            common_ancestor=answer.common_ancestor,
            expected_hash=self.options.expected_hash,
            applied=answer.applied,
            successful=answer.successful,
            details=self.details({conflict.key: conflict for conflict in conflicts}),
            skipped=answer.skipped,
            has_several_bases=answer.has_several_bases,
            decided=answer.decided,
        )
        if not answer.successful:
            raise MergeConflict(merge_message(conflicts), conflicts, result)
        return result

    @abstractmethod
    def explained(self, conflicts: Sequence[Conflict]) -> list[Conflict]:
        """Returns conflicts with their contents and changes."""

    @abstractmethod
    def details(self, conflicts: Mapping[ContentKey | None, Conflict]) -> tuple[MergeDetail, ...]:
        """Returns the keys of the answer with their contents. `conflicts` are explained."""


class AnswerByKey(DetailedAnswer):
    """An answer to a merge for which each key is a content of its own."""

    def explained(self, conflicts: Sequence[Conflict]) -> list[Conflict]:
        """Returns conflicts with their contents and changes."""
        session, base, keys = self.server.session, self.answer.common_ancestor, keys_of(conflicts)
        before, proposed = _both_sides(session, base, self.sources, keys)
        given = {
            behavior.key: behavior.expected_target
            for behavior in self.options.behaviors
            if behavior.expected_target is not None
        }
        state = contents(session, self.head, keys)
        changed_by = self.server.changes_since(keys, base, self.head, state)
        return list(with_details(conflicts, {**before, **given}, state, proposed, changed_by))

    def details(self, conflicts: Mapping[ContentKey | None, Conflict]) -> tuple[MergeDetail, ...]:
        """Returns the keys of the answer with their contents."""
        session, sources = self.server.session, self.sources
        keys = [detail.key for detail in self.answer.details]
        at_target = contents(session, self.head, keys) if keys else {}
        at_source: State
        if self.options.any_order and len(sources) > 1 and keys:
            _, at_source = _of_commits(session, reversed(entries_of(session, sources)), keys)
        else:
            at_source = contents(session, sources[-1], keys) if keys else {}
        resolved = {behavior.key: behavior.resolved for behavior in self.options.behaviors}

        def completed(detail: MergeDetail) -> MergeDetail:
            key, target = detail.key, at_target.get(detail.key)
            source, conflict = at_source.get(key), conflicts.get(key)
            is_ours = detail.behavior is MergeBehavior.DROP
            result = None if conflict else target if is_ours else resolved.get(key) or source
            return structs.replace(
                detail, conflict=conflict, source=source, target=target, result=result
            )

        return tuple(map(completed, self.answer.details))


def _both_sides(
    session: RestSession, base: str | None, sources: Sequence[str], keys: Sequence[ContentKey]
) -> tuple[State, State]:
    """Returns the contents that the source started from, and its own.

    In a transplant, of the first commit with an operation on the key.
    """
    if base is not None:
        return contents(session, base, keys), contents(session, sources[-1], keys)
    return _of_commits(session, entries_of(session, sources), keys)


def _of_commits(
    session: RestSession, entries: Iterable[LogEntry], keys: Sequence[ContentKey]
) -> tuple[State, State]:
    """Returns the contents before and after the first commit with an operation on each key."""
    before: dict[ContentKey, Content] = {}
    proposed: dict[ContentKey, Content] = {}
    missing = set(keys)
    for entry in entries:
        touched = {
            operation.key: operation
            for operation in entry.operations or ()
            if operation.key in missing
        }
        if touched:
            before |= contents(session, entry.parent, touched)
            proposed |= {
                key: operation.content
                for key, operation in touched.items()
                if isinstance(operation, Put)
            }
            missing -= touched.keys()
    return before, proposed
