"""The remote repository: every verb over REST v2. The server decides; what it cannot tell is fetched, what it has dropped is judged before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from nessie_cli.commitspec import CommitSpec
from nessie_cli.errors import InvalidInput, MergeConflict, NotAllowed, OutcomeUnknown, ReferenceConflict
from nessie_cli.kernel.conflicts import merge_message
from nessie_cli.kernel.drafting import check_client_meta
from nessie_cli.model import (
    CommitMeta,
    CommitResult,
    Content,
    ContentKey,
    Delete,
    MergeDetail,
    MergeResult,
    Operation,
    Problem,
    Put,
    Reference,
    ReferenceType,
    check_new_reference_name,
    check_reference_name,
)
from nessie_cli.repository.base import MergeOptions, Revision
from nessie_cli.repository.circumstances import Circumstances
from nessie_cli.repository.remote.diagnosis import Judgement, expected_by, proposed_by, with_facts
from nessie_cli.repository.remote.reading import RemoteReading
from nessie_cli.repository.remote.transport import Transport, segment
from nessie_cli.wire import answers
from nessie_cli.wire.decode import decode_key
from nessie_cli.wire.encode import encode_content, encode_key, encode_operation, instant

REQUEST_ID = "nessie-request-id"
"""The property of a commit by which a lost answer is looked up: the wire has no other place for a request id."""

EXTENSIONS = "nessie-cli"
"""The additional property by which `nessie serve` says in its configuration that it keeps the whole specification."""

NO_OPTIONS = MergeOptions()
_LOOKED_UP = 100
"""Newest commits of a branch that are looked through for a request id."""


class RemoteRepository(RemoteReading):
    """A `Repository` behind a server."""

    def __init__(self, transport: Transport, circumstances: Circumstances) -> None:
        super().__init__(transport)
        self._at = circumstances

    @property
    def _is_ours(self) -> bool:
        extra = self._configuration().get("additionalProperties")
        return isinstance(extra, dict) and EXTENSIONS in extra

    # -- references --------------------------------------------------------------------------------------------------------------

    def put_setting(self, name: str, value: str | None) -> str | None:
        """See `Repository`; refused, a server has no place for them."""
        raise NotAllowed(f"setting {name!r} = {value!r}: the settings of a server are kept where its store is; set it there")

    def create_reference(self, type: ReferenceType, name: str, target: str) -> Reference:
        """See `Repository`."""
        check_new_reference_name(name)
        if type not in (ReferenceType.BRANCH, ReferenceType.TAG):
            raise InvalidInput("Reference type name must be either 'branch' or 'tag'")
        body = {"type": "DETACHED", "hash": self._existing(target)}
        found = self._transport.send("POST", "trees", {"name": name, "type": type.value}, body)
        return answers.understood(lambda: answers.decode_reference(found["reference"]), "reference")

    def assign_reference(self, name: str, target: str, *, expected_hash: str) -> Reference:
        """See `Repository`."""
        path = self._at_hash(name, expected_hash)
        found = self._transport.send("PUT", path, None, {"type": "DETACHED", "hash": self._existing(target)})
        return answers.understood(lambda: answers.decode_reference(found["reference"]), "reference")

    def rename_reference(self, old: str, new: str, *, expected_hash: str) -> Reference:
        """See `Repository`; two requests, the second undone where the first fails."""
        check_new_reference_name(new)
        found = self.reference(old)
        if found.name == self.default_branch:
            raise InvalidInput(f"Default branch '{found.name}' cannot be renamed.")
        created = self.create_reference(found.type, new, expected_hash)
        try:
            self.delete_reference(old, expected_hash=expected_hash)
        except BaseException:
            self.delete_reference(new, expected_hash=created.hash)
            raise
        return created

    def delete_reference(self, name: str, *, expected_hash: str) -> Reference:
        """See `Repository`."""
        found = self._transport.send("DELETE", self._at_hash(name, expected_hash))
        return answers.understood(lambda: answers.decode_reference(found["reference"]), "reference")

    def _at_hash(self, name: str, hash_: str) -> str:
        return f"trees/{segment(f'{check_reference_name(self._plain_name(name))}@{hash_}')}"

    # -- commit ------------------------------------------------------------------------------------------------------------------

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
        """See `Repository`."""
        check_client_meta(meta)
        wanted = list(operations)
        target = self._branch(branch, "commit")
        if request_id and (earlier := self._committed(target.name, request_id)):
            return earlier
        expected = expected_hash or target.hash
        if dry_run or not self._is_ours:
            judged = self._judged(target, wanted, expected)
            if dry_run:
                return judged
            # The server compares with this state again, so nothing can slip in between.
            wanted, expected = [part for operation in wanted for part in _older_form(operation)], target.hash
        return self._send_commit(target, wanted, meta, expected, request_id)

    def _branch(self, name: str, verb: str) -> Reference:
        found = self.reference(name)
        if found.type is not ReferenceType.BRANCH:
            raise InvalidInput(f"Reference to {verb} into must be a branch.")
        return found

    def _judged(self, target: Reference, operations: Sequence[Operation], expected: str) -> CommitResult:
        applied, conflicts, message = Judgement(self, operations, expected, target.hash).judge(self._at.new_content_id)
        if conflicts:
            raise ReferenceConflict(message, conflicts, reference=target.name, head=target.hash, expected_hash=expected)
        from nessie_cli.repository.writing import AddedIds

        return CommitResult(target, AddedIds(applied.added), applied=False)

    def _send_commit(
        self, target: Reference, operations: Sequence[Operation], meta: CommitMeta, expected: str, request_id: str | None
    ) -> CommitResult:
        body = {"commitMeta": _client_meta(meta, request_id), "operations": [encode_operation(operation) for operation in operations]}
        path = f"trees/{segment(f'{target.name}@{expected}')}/history/commit"
        try:
            found = self._transport.send("POST", path, None, body, request_id=request_id or "")
        except ReferenceConflict as conflict:
            raise self._diagnosed(conflict, target.name, operations, expected) from None
        except OutcomeUnknown:
            if request_id and (done := self._committed(target.name, request_id)):
                return done
            raise
        return answers.understood(lambda: _commit_result(found), "commit")

    def _diagnosed(self, conflict: ReferenceConflict, branch: str, operations: Sequence[Operation], expected: str) -> ReferenceConflict:
        keys = [found.key for found in conflict.conflicts if found.key is not None]
        if not keys:
            return conflict
        head = self.reference(branch).hash
        at_head, at_expected = self.contents(CommitSpec(None, head), keys), self.contents(CommitSpec(None, expected), keys)
        described = with_facts(conflict.conflicts, expected_by(operations, at_expected), at_head, proposed_by(operations), self._changed_by(head))
        return ReferenceConflict(conflict.message, described, reference=branch, head=head, expected_hash=expected)

    def _changed_by(self, head: str) -> Callable[[ContentKey], CommitMeta | None]:
        return lambda key: self.last_change(CommitSpec(None, head), key)

    def _committed(self, branch: str, request_id: str) -> CommitResult | None:
        for number, entry in enumerate(self.log(branch, operations=True)):
            if entry.meta.properties.get(REQUEST_ID) == (request_id,):
                return CommitResult(Reference(ReferenceType.BRANCH, branch, entry.hash), self._added_by(entry.hash))
            if number >= _LOOKED_UP:
                break
        return None

    def _added_by(self, hash_: str) -> Mapping[ContentKey, str]:
        entry = self.commit_at(CommitSpec(None, hash_))
        keys = [operation.key for operation in entry.operations or ()]
        known = {content.id for content in self.contents(CommitSpec(None, entry.parent), keys).values()}
        puts = [operation for operation in entry.operations or () if isinstance(operation, Put)]
        return {put.key: put.content.id for put in puts if put.content.id is not None and put.content.id not in known}

    def find_request(self, request_id: str) -> CommitResult | None:
        """See `Repository`; looks through the newest commits of every branch."""
        for branch in list(self.references(ReferenceType.BRANCH)):
            if found := self._committed(branch.name, request_id):
                return found
        return None

    # -- merge, transplant -------------------------------------------------------------------------------------------------------

    def merge(self, branch: str, source: Revision, options: MergeOptions = NO_OPTIONS) -> MergeResult:
        """See `Repository`."""
        target, from_ = self._branch(branch, "merge"), self.resolve(source)
        body: dict[str, Any] = {"fromRefName": from_.name or "DETACHED", "fromHash": from_.hash, **_merge_body(options)}
        if options.meta is not None:
            check_client_meta(options.meta)
            body["commitMeta"] = _client_meta(options.meta, options.request_id)
        return self._combined("merge", target, from_.hash, body, options)

    def transplant(self, branch: str, commits: Sequence[str], options: MergeOptions = NO_OPTIONS) -> MergeResult:
        """See `Repository`."""
        target = self._branch(branch, "transplant")
        hashes = [self._existing(commit) for commit in commits]
        body: dict[str, Any] = {"fromRefName": target.name, "hashesToTransplant": hashes, **_merge_body(options)}
        if options.meta is not None:
            check_client_meta(options.meta)
            body["message"] = options.meta.message
        if not hashes:
            raise InvalidInput("No hashes given to transplant.")
        return self._combined("transplant", target, hashes[-1], body, options)

    def _combined(self, verb: str, target: Reference, source: str, body: dict[str, Any], options: MergeOptions) -> MergeResult:
        expected = options.expected_hash or target.hash
        path = f"trees/{segment(f'{target.name}@{expected}')}/history/{verb}"
        found = self._transport.send("POST", path, None, body, request_id=options.request_id or "", safe=options.dry_run)
        answer = answers.understood(lambda: answers.decode_merge(found), verb)
        head = answer.effective_target_hash or target.hash
        keys = [key for key, _, _ in answer.details]
        at_source, at_target = self.contents(CommitSpec(None, source), keys), self.contents(CommitSpec(None, head), keys)
        conflicts = [conflict for _, _, conflict in answer.details if conflict is not None]
        if conflicts:
            base = self.contents(CommitSpec(None, answer.common_ancestor), keys) if answer.common_ancestor else {}
            conflicts = list(with_facts(conflicts, base, at_target, at_source, self._changed_by(head)))
        by_key = {conflict.key: conflict for conflict in conflicts}
        result = MergeResult(
            target_branch=target.name,
            effective_target_hash=head,
            resultant_hash=answer.resultant_hash,
            common_ancestor=answer.common_ancestor,
            expected_hash=options.expected_hash,
            applied=answer.applied,
            successful=answer.successful,
            details=tuple(MergeDetail(key, behavior, by_key.get(key), at_source.get(key), at_target.get(key)) for key, behavior, _ in answer.details),
        )
        if not answer.successful:
            raise MergeConflict(merge_message(conflicts), conflicts, result)
        return result

    # -- care --------------------------------------------------------------------------------------------------------------------

    def check(self) -> Iterator[Problem]:
        """See `Repository`; refused, only who has the store can read every object."""
        raise InvalidInput(f"{self.url}: a server's store is checked where it is, by `fsck` on its store")

    def close(self) -> None:
        """See `Repository`."""
        self._transport.close()

    def __enter__(self) -> Self:
        """See `Repository`."""
        return self

    def __exit__(self, *_: object) -> None:
        """See `Repository`."""
        self.close()


def _client_meta(meta: CommitMeta, request_id: str | None) -> dict[str, Any]:
    """What a client may say about a commit."""
    properties = {name: list(values) for name, values in meta.properties.items()}
    if request_id:
        properties[REQUEST_ID] = [request_id]
    sent: dict[str, Any] = {"message": meta.message, "allProperties": properties}
    if meta.authors:
        sent["authors"] = list(meta.authors)
    if meta.signed_off_by:
        sent["allSignedOffBy"] = list(meta.signed_off_by)
    if meta.author_time is not None:
        sent["authorTime"] = instant(meta.author_time)
    return sent


def _older_form(operation: Operation) -> Sequence[Operation]:
    """Drop and create as a server knows it that has dropped the single Put with another content id."""
    if isinstance(operation, Put) and operation.expected_content is not None and operation.content.id != operation.expected_content.id:
        return [Delete(operation.key), Put(operation.key, operation.content.with_id(None))]
    return [operation]


def _commit_result(data: Any) -> CommitResult:
    added = {decode_key(item["key"]): str(item["contentId"]) for item in data.get("addedContents") or ()}
    return CommitResult(answers.decode_reference(data["targetBranch"]), added)


def _merge_body(options: MergeOptions) -> dict[str, Any]:
    def behavior(wanted: Any) -> dict[str, Any]:
        sent: dict[str, Any] = {"key": encode_key(wanted.key), "mergeBehavior": wanted.behavior.value}
        contents: Mapping[str, Content | None] = {"expectedTargetContent": wanted.expected_target, "resolvedContent": wanted.resolved}
        return sent | {name: encode_content(content) for name, content in contents.items() if content is not None}

    return {
        "keyMergeModes": [behavior(wanted) for wanted in options.behaviors],
        "defaultKeyMergeMode": options.default_behavior.value,
        "isDryRun": options.dry_run,
        "isReturnConflictAsResult": True,
        "followRenames": options.follow_renames,
        "allowUnrelatedHistories": options.unrelated,
    }
