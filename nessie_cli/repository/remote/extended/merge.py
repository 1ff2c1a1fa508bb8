"""Merges and transplants by `nessie serve`, which merges per content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs, to_builtins

from nessie_cli.errors import ReferenceConflict
from nessie_cli.model import (
    NO_ANCESTOR,
    CombinationRules,
    CombinedTable,
    Conflict,
    ConflictType,
    Content,
    ContentKey,
    MergeDetail,
    MergeResult,
    Reference,
)
from nessie_cli.model.conflicts import OF_NAMESPACES
from nessie_cli.repository.changes import Merge, MergeOptions, TablePlaces, Transplant
from nessie_cli.repository.remote import references
from nessie_cli.repository.remote.bodies import client_meta, merge_body
from nessie_cli.repository.remote.conflicts import State, with_namespaces
from nessie_cli.repository.remote.contents import ContentReader, contents
from nessie_cli.repository.remote.extended.commit import path_expecting
from nessie_cli.repository.remote.extended.idempotent import send_idempotent
from nessie_cli.repository.remote.history import commit_at
from nessie_cli.repository.remote.merge_answers import (
    AnswerByKey,
    DetailedAnswer,
    with_current_namespaces,
)
from nessie_cli.repository.remote.server import Server
from nessie_cli.repository.remote.session import RestSession, understood
from nessie_cli.repository.remote.write_request import WriteRequest
from nessie_cli.wire import answers
from nessie_cli.wire.bodies import Combination, TableCombinationRequest, TablePlace
from nessie_cli.wire.contents import Key
from nessie_cli.wire.extensions import ALLOW_FAILED_RUN, ANY_ORDER, COMBINATION


def merge(server: Server, change: Merge, source: Reference, request_id: str | None) -> MergeResult:
    """Merges `source`. Raises conflicts with their details."""
    body = {"fromRefName": source.name or "DETACHED", "fromHash": source.hash}
    return _combine(server, "merge", change, body, sources=[source.hash], request_id=request_id)


def transplant(server: Server, change: Transplant, request_id: str | None) -> MergeResult:
    """Transplants commits. Raises conflicts with their details."""
    body = {
        "fromRefName": "DETACHED",
        "hashesToTransplant": change.commits,
        ANY_ORDER: change.options.any_order,
    }
    return _combine(
        server, "transplant", change, body, sources=change.commits, request_id=request_id
    )


def _combine(
    server: Server,
    verb: str,
    change: Merge | Transplant,
    source_body: Mapping[str, Any],
    *,
    sources: Sequence[str],
    request_id: str | None,
) -> MergeResult:
    session, options = server.session, change.options
    request_id = request_id or session.random(16).hex()
    body = {
        **source_body,
        **merge_body(options),
        "perContent": not options.per_key,
        "allowUnrelatedHistories": options.unrelated,
        ALLOW_FAILED_RUN: options.allow_failed_run,
    }
    if options.meta is not None:
        body["commitMeta"] = client_meta(options.meta)
    combining = "combining-" if options.combination is not None else ""
    if options.combination is not None:
        body[COMBINATION] = Combination.of(options.combination)
    at = path_expecting(session, change.branch, options.expected_hash)
    path = f"{at}/history/{combining}{verb}"
    try:
        answer = send_idempotent(
            session,
            WriteRequest("POST", path, body),
            request_id,
            answers.decode_merge,
            safe=options.dry_run,
            wrote=lambda answer: answer.applied,
        )
    except ReferenceConflict as conflict:
        branch = references.full_name(session, change.branch)
        raise with_current_namespaces(server, conflict, verb, branch, sources[-1]) from None
    detailed = AnswerByKey if options.per_key else AnswerByContent
    return detailed(server, answer, sources, options, request_id).result()


def combine_table(
    session: RestSession, table: TablePlaces, rules: CombinationRules
) -> CombinedTable:
    """Combines a table without a commit.

    A repetition writes other files, so a lost answer only leaves some that no commit names.
    """
    base, ours, theirs = (
        TablePlace(place.hash, Key.of(place.key))
        for place in (table.base, table.ours, table.theirs)
    )
    body = TableCombinationRequest(
        base, ours, theirs, table.description, Combination.of(rules), table.dry_run
    )
    path = f"{path_expecting(session, table.branch, None)}/combined-table"
    answer = WriteRequest("POST", path, to_builtins(body)).send(session, safe=True)
    return understood(answer, answers.decode_combined_table, "combined table")


class AnswerByContent(DetailedAnswer):
    """An answer to a merge per content. It names the places of contents that moved."""

    def __init__(
        self,
        server: Server,
        answer: answers.MergeAnswer,
        sources: Sequence[str],
        options: MergeOptions,
        request_id: str = "",
    ) -> None:
        super().__init__(server, answer, sources, options, request_id)
        self._reader = ContentReader(server.session)

    def explained(self, conflicts: Sequence[Conflict]) -> list[Conflict]:
        """Returns conflicts with the contents in the three states."""
        head, reader = self.head, self._reader
        for conflict in conflicts:
            reader.add_keys(self._base_of(conflict), [conflict.base_key])
            for place in (conflict.actual_at, conflict.proposed_at):
                if place is not None:
                    reader.add_keys(place.hash, [place.key])
            if _is_of_namespaces(conflict):
                reader.add_keys(head, [conflict.key])
        changed_by = self.server.changes_since(
            [each.changed_key for each in conflicts if each.changed_key is not None],
            self.answer.common_ancestor,
            head,
            reader.state(head),
        )

        def completed(conflict: Conflict) -> Conflict:
            if _is_of_namespaces(conflict):
                (with_current,) = with_namespaces([conflict], reader.state(head), changed_by)
                return with_current
            actual = conflict.actual or reader.content_at(conflict.actual_at)
            proposed = conflict.proposed or reader.content_at(conflict.proposed_at)
            at_base = reader.content(self._base_of(conflict), conflict.base_key)
            return structs.replace(
                conflict,
                expected=None if _is_no_base(conflict, at_base, actual, proposed) else at_base,
                actual=actual,
                proposed=proposed,
                changed_by=changed_by.get(conflict.changed_key) if conflict.changed_key else None,
            )

        return list(map(completed, conflicts))

    def details(self, conflicts: Mapping[ContentKey | None, Conflict]) -> tuple[MergeDetail, ...]:
        """Returns the keys with their contents, read from the places that the server names."""
        keys = [detail.key for detail in self.answer.details]
        at_target: State = contents(self.server.session, self.head, keys) if keys else {}
        reader = ContentReader(self.server.session)
        for detail in self.answer.details:
            for place in (detail.source_at, detail.result_at):
                if place is not None:
                    reader.add_keys(place.hash, [place.key])
        behaviors = self.options.behaviors
        resolved = {given.resolved.id: given.resolved for given in behaviors if given.resolved}

        def completed(detail: MergeDetail) -> MergeDetail:
            target, conflict = at_target.get(detail.key), conflicts.get(detail.key)
            source = conflict.proposed if conflict else reader.content_at(detail.source_at)
            result = reader.content_at(detail.result_at)
            if detail.result is not None:
                result = detail.result
            elif detail.is_resolved and (content := source or target) is not None:
                result = resolved.get(content.id)
            return structs.replace(
                detail,
                conflict=conflict,
                source=source,
                target=target,
                result=None if conflict else result,
            )

        return tuple(map(completed, self.answer.details))

    def _base_of(self, conflict: Conflict) -> str:
        """Returns the merge base, or the parent of the transplanted commit of a conflict."""
        if conflict.commit is not None:
            return commit_at(self.server.session, conflict.commit).parent
        return self.answer.common_ancestor or NO_ANCESTOR


def _is_of_namespaces(conflict: Conflict) -> bool:
    """Returns whether a conflict about a namespace is about no content that theirs changed."""
    return conflict.type in OF_NAMESPACES and conflict.content_id is None


def _is_no_base(
    conflict: Conflict, at_base: Content | None, actual: Content | None, proposed: Content | None
) -> bool:
    """Returns whether the content at the merge base cannot be that of the conflict.

    With several merge bases, the server compares both sides with a state of its own, and the answer
    names the first base only.
    """
    is_other = at_base is not None and at_base.id != conflict.content_id
    is_side = conflict.type is ConflictType.VALUE_DIFFERS and at_base in (actual, proposed)
    return is_other or is_side
