"""The writing verbs over plain REST v2. The server decides; what it cannot tell is fetched, what it has dropped is judged before it is asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any

from nessie_cli.errors import CommitNotFound, InvalidInput, MergeConflict, ReferenceConflict
from nessie_cli.kernel.conflicts import merge_message
from nessie_cli.kernel.drafting import check_client_meta
from nessie_cli.model import (
    NO_ANCESTOR,
    CommitMeta,
    CommitResult,
    Conflict,
    Content,
    ContentKey,
    LogEntry,
    MergeDetail,
    MergeResult,
    Operation,
    Problem,
    Put,
    Reference,
    ReferenceType,
)
from nessie_cli.repository.base import MergeOptions, Revision
from nessie_cli.repository.context import Context
from nessie_cli.repository.remote.bodies import REQUEST_ID, client_meta, commit_body, merge_body, older_form, with_request_id
from nessie_cli.repository.remote.diagnosis import Judgement, State, keys_of, with_facts, with_namespaces
from nessie_cli.repository.remote.history import at_hash
from nessie_cli.repository.remote.lost import is_commit_of, run_of, settled, state_after
from nessie_cli.repository.remote.reading import RemoteReading
from nessie_cli.repository.remote.session import Session, understood
from nessie_cli.repository.remote.transport import Lost, segment
from nessie_cli.repository.writing import AddedIds
from nessie_cli.wire import answers
from nessie_cli.wire.decode import decode_key

NO_OPTIONS = MergeOptions()
_TRIES = 5
"""How often a commit without an expected hash is tried on a branch that moves."""
_MOST_SINCE = 10_000
"""Commits that others may have made while an answer was lost, before the search for it is given up."""
_LOOKED_UP = 100
"""Newest commits of a branch that are looked through for a request id, where it is not known since when to look."""


class RemoteRepository(RemoteReading):
    """A `Repository` behind any server that speaks REST v2."""

    def __init__(self, session: Session, context: Context) -> None:
        super().__init__(session)
        self._context = context

    def _branch(self, name: str, verb: str) -> Reference:
        found = self.reference(name)
        if found.type is not ReferenceType.BRANCH:
            raise InvalidInput(f"Reference to {verb} into must be a branch.")
        return found

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
        for number in range(_TRIES):
            target = self._branch(branch, "commit")
            if request_id and (earlier := self._committed(target, request_id, expected_hash)):
                return earlier
            expected = self._expected(target, expected_hash)
            try:
                judged = self._judged(target, wanted, expected)
                return judged if dry_run else self._send_commit(target, wanted, meta, expected, request_id)
            except ReferenceConflict as conflict:
                # Whoever names no expected hash means HEAD, wherever that is by now.
                if expected_hash is not None or conflict.head == target.hash or number == _TRIES - 1:
                    raise
        raise AssertionError

    def _expected(self, target: Reference, hash_: str | None) -> str:
        """The expected hash, which has to be on the branch."""
        if hash_ is None or hash_.lower() in (target.hash, NO_ANCESTOR):
            return target.hash if hash_ is None else hash_.lower()
        with suppress(CommitNotFound):
            if self._existing(hash_) in self._ancestry.first_parents(target.hash):
                return hash_.lower()
        raise CommitNotFound(f"Could not find commit '{hash_}' in reference '{target.name}'.", hash_)

    def _judged(self, target: Reference, operations: Sequence[Operation], expected: str) -> CommitResult:
        """What the rules say of a commit: the server knows an older set of them, and another one in each version."""
        applied, conflicts, message = Judgement(self, operations, expected, target.hash).judge(self._context.new_content_id)
        if conflicts:
            raise ReferenceConflict(message, conflicts, reference=target.name, head=target.hash, expected_hash=expected)
        return CommitResult(target, AddedIds(applied.added), applied=False)

    def _send_commit(
        self, target: Reference, operations: Sequence[Operation], meta: CommitMeta, expected: str, request_id: str | None
    ) -> CommitResult:
        body = commit_body(meta, [part for operation in operations for part in older_form(operation)])
        if request_id:
            body["commitMeta"] = with_request_id(body["commitMeta"], request_id)
        # The server compares with the state that was judged, so nothing slips in between.
        path = f"trees/{segment(f'{target.name}@{target.hash}')}/history/commit"
        try:
            return understood(self._transport.send("POST", path, None, body, request_id=request_id or ""), commit_result, "commit")
        except ReferenceConflict as conflict:
            raise self._diagnosed(conflict, target.name, operations, expected) from None
        except Lost as lost:
            return settled(lost, lambda: self._sent_commit(target, operations, meta, request_id))

    def _sent_commit(self, target: Reference, operations: Sequence[Operation], meta: CommitMeta, request_id: str | None) -> CommitResult | None:
        """The commit that was sent, where the branch has it: by its request id, else by what it says and does."""
        if request_id:
            return self._committed(target, request_id, target.hash)
        wanted = state_after(operations)
        for entry in self._newer(target, operations=True):
            if is_commit_of(entry, meta, wanted):
                return CommitResult(Reference(ReferenceType.BRANCH, target.name, entry.hash), self._added_by(entry))
        return None

    def _newer(self, target: Reference, *, operations: bool) -> Iterator[LogEntry]:
        """The commits that a branch has got since it was looked at, newest first; none where it has gone elsewhere."""
        head = self.reference(target.name).hash
        entries = []
        for entry in self._since(head, target.hash, operations=operations):
            if entry.hash == target.hash:
                break
            entries.append(entry)
            if len(entries) > _MOST_SINCE:
                break
        yield from entries

    def _diagnosed(self, conflict: ReferenceConflict, branch: str, operations: Sequence[Operation], expected: str | None) -> ReferenceConflict:
        """The conflict with its facts: judged once more where the branch is now, by the rules that tell them."""
        if not conflict.conflicts:
            return conflict
        head = self.reference(branch)
        expected = expected or head.hash
        _, conflicts, message = Judgement(self, operations, expected, head.hash).judge(self._context.new_content_id)
        if not conflicts:
            message, conflicts = conflict.message, self._with_states(conflict, operations, expected, head.hash)
        return ReferenceConflict(message, conflicts, reference=branch, head=head.hash, expected_hash=expected)

    def _with_states(self, conflict: ReferenceConflict, operations: Sequence[Operation], expected: str, head: str) -> tuple[Any, ...]:
        keys = [found.key for found in conflict.conflicts if found.key is not None]
        before, now = self.contents(at_hash(expected), keys), self.contents(at_hash(head), keys)
        proposed = {operation.key: operation.content for operation in operations if isinstance(operation, Put)}
        return with_facts(conflict.conflicts, before, now, proposed, self.last_changes(head, keys))

    # -- requests ----------------------------------------------------------------------------------------------------------------

    def _since(self, head: str, oldest: str | None, *, operations: bool) -> Iterator[LogEntry]:
        """The commits of a branch down to one of them, which is included where it is met."""
        for entry in self._history(head, operations=operations):
            yield entry
            if entry.hash == oldest:
                return

    def _committed(self, branch: Reference, request_id: str, since: str | None) -> CommitResult | None:
        """What a request did on a branch. It can have done something only after its expected hash, where that is known."""
        if since == branch.hash:
            head = self.reference(branch.name).hash
            if head == since:
                return None
            branch = Reference(branch.type, branch.name, head)
        commits = self._since(branch.hash, since, operations=False)
        for entry in commits if since else islice(commits, _LOOKED_UP):
            if entry.meta.properties.get(REQUEST_ID) == (request_id,):
                return CommitResult(Reference(ReferenceType.BRANCH, branch.name, entry.hash), self._added_by(entry))
        return None

    def _added_by(self, entry: LogEntry) -> Mapping[ContentKey, str]:
        operations = self.commit_at(at_hash(entry.hash)).operations or ()
        if len(entry.meta.parents) > 1:
            return {}
        before = self.contents(at_hash(entry.parent), [operation.key for operation in operations])
        known = {content.id for content in before.values()}
        puts = [operation for operation in operations if isinstance(operation, Put)]
        return {put.key: put.content.id for put in puts if put.content.id is not None and put.content.id not in known}

    def find_request(self, request_id: str, *, branch: str | None = None) -> CommitResult | None:
        """See `Repository`; looks through the newest commits of the branch, or of every branch where that is unknown or gone.

        A transplant leaves no trace of its request.
        """
        known = self._found(branch) if branch else None
        for candidate in [known] if known else list(self.references(ReferenceType.BRANCH)):
            if found := self._committed(candidate, request_id, None):
                return found
        return None

    # -- merge, transplant -------------------------------------------------------------------------------------------------------

    def merge(self, branch: str, source: Revision, options: MergeOptions = NO_OPTIONS) -> MergeResult:
        """See `Repository`."""
        self._check_options(options)
        target, from_ = self._branch(branch, "merge"), self.resolve(source)
        if options.request_id and (done := self._merged(target, options)):
            return done
        body: dict[str, Any] = {"fromRefName": from_.name or "DETACHED", "fromHash": from_.hash, **merge_body(options)}
        # An empty message is none: the server makes one up.
        meta = client_meta(options.meta or CommitMeta(""))
        if options.meta is not None or options.request_id:
            body["commitMeta"] = with_request_id(meta, options.request_id) if options.request_id else meta
        return self._combined("merge", target, [from_.hash], body, options)

    def transplant(self, branch: str, commits: Sequence[str], options: MergeOptions = NO_OPTIONS) -> MergeResult:
        """See `Repository`. A request that is repeated is carried out again, unlike that of a commit or a merge.

        The copies bear no request id, since their metadata is that of the sources, and copies alone are no proof: whoever has taken a transplant back
        and makes it once more would be told that it is done. Where the answer is lost here it is known since when to look for them.
        """
        self._check_options(options)
        target = self._branch(branch, "transplant")
        if not commits:
            raise InvalidInput("No hashes given to transplant.")
        hashes = [self._existing(commit) for commit in commits]
        if NO_ANCESTOR in hashes:
            raise CommitNotFound(f"Commit '{NO_ANCESTOR}' not found", NO_ANCESTOR)
        body: dict[str, Any] = {"fromRefName": target.name, "hashesToTransplant": hashes, **merge_body(options)}
        if options.meta is not None:
            body["message"] = options.meta.message
        return self._combined("transplant", target, hashes, body, options)

    def _check_options(self, options: MergeOptions) -> None:
        if options.meta is not None:
            check_client_meta(options.meta)
        if options.follow_renames:
            raise self._session.too_old("combine a rename with a change (follow renames)")
        if options.unrelated:
            raise self._session.too_old("merge unrelated histories")

    def _merged(self, target: Reference, options: MergeOptions) -> MergeResult | None:
        """What an earlier merge with this request id did, as far as its commit tells."""
        assert options.request_id is not None
        done = self._committed(target, options.request_id, options.expected_hash)
        return None if done is None else self._merge_of(target, done.reference.hash, options)

    def _merge_of(self, target: Reference, hash_: str, options: MergeOptions) -> MergeResult:
        parents = self.commit_at(at_hash(hash_)).meta.parents
        return self._applied(target, parents[0], hash_, self.merge_base(at_hash(parents[0]), at_hash(parents[-1])), options)

    @staticmethod
    def _applied(target: Reference, before: str, after: str, base: str | None, options: MergeOptions) -> MergeResult:
        """What is known of a merge or transplant whose answer was lost."""
        return MergeResult(
            target_branch=target.name,
            effective_target_hash=before,
            resultant_hash=after,
            common_ancestor=base,
            expected_hash=options.expected_hash,
            applied=True,
            successful=True,
        )

    def _combined(self, verb: str, target: Reference, sources: Sequence[str], body: dict[str, Any], options: MergeOptions) -> MergeResult:
        path = f"trees/{segment(f'{target.name}@{options.expected_hash or target.hash}')}/history/{verb}"
        # What leaves no trace is not told as something that can be looked for by its id.
        request_id = options.request_id if verb == "merge" else None
        try:
            found = self._transport.send("POST", path, None, body, request_id=request_id or "", safe=options.dry_run)
        except Lost as lost:
            look = self._sent_merge if verb == "merge" else self._sent_transplant
            return settled(lost, lambda: look(target, sources, options))
        except ReferenceConflict as conflict:
            raise self._namespace_conflict(conflict, verb, target.name, sources[-1]) from None
        return self._answered(understood(found, answers.decode_merge, verb), sources, options)

    def _sent_merge(self, target: Reference, sources: Sequence[str], options: MergeOptions) -> MergeResult | None:
        """The merge that was sent, where the branch has it: by its request id, else by its second parent and its message."""
        for entry in self._newer(target, operations=False):
            if options.request_id:
                fits = entry.meta.properties.get(REQUEST_ID) == (options.request_id,)
            else:
                fits = entry.meta.parents[1:] == (sources[-1],) and (options.meta is None or options.meta.message in ("", entry.meta.message))
            if fits:
                return self._merge_of(target, entry.hash, options)
        return None

    def _sent_transplant(self, target: Reference, sources: Sequence[str], options: MergeOptions) -> MergeResult | None:
        """The transplant that was sent, where the branch has all of its commits, in order."""
        copied = [self.commit_at(at_hash(source)) for source in sources]
        message = options.meta.message if options.meta is not None and len(sources) == 1 else None
        last = run_of(list(self._newer(target, operations=True)), copied, message)
        return None if last is None else self._applied(target, target.hash, last.hash, None, options)

    def _namespace_conflict(self, conflict: ReferenceConflict, verb: str, branch: str, source: str) -> ReferenceConflict:
        """What prevents a merge before any key is compared, with what is there."""
        keys = keys_of(conflict.conflicts)
        if not keys:
            return conflict
        head = self.reference(branch).hash
        base = NO_ANCESTOR if verb == "transplant" else self.merge_base(at_hash(head), at_hash(source))
        facts = with_namespaces(conflict.conflicts, self.contents(at_hash(head), keys), self.last_changes(head, keys))
        return ReferenceConflict(conflict.message, facts, reference=branch, head=head, expected_hash=base)

    def _answered(self, answer: answers.MergeAnswer, sources: Sequence[str], options: MergeOptions) -> MergeResult:
        """An answer with the contents of both sides, and with the facts of its conflicts; these are raised."""
        head, keys = answer.effective_target_hash, [key for key, _, _ in answer.details]
        at_source, at_target = (self.contents(at_hash(hash_), keys) if keys else {} for hash_ in (sources[-1], head))
        conflicts = [conflict for _, _, conflict in answer.details if conflict is not None]
        if conflicts:
            conflicts = self._explained(answer, sources, options, conflicts)
        by_key = {conflict.key: conflict for conflict in conflicts}
        result = MergeResult(
            target_branch=answer.target_branch,
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

    def _explained(self, answer: answers.MergeAnswer, sources: Sequence[str], options: MergeOptions, conflicts: Sequence[Conflict]) -> list[Conflict]:
        """The conflicts of a merge with what both sides have made of their keys."""
        head, keys = answer.effective_target_hash, keys_of(conflicts)
        before, wanted = self._both_sides(answer.common_ancestor, sources, keys)
        expected = {**before, **{wanted.key: wanted.expected_target for wanted in options.behaviors if wanted.expected_target is not None}}
        return list(with_facts(conflicts, expected, self.contents(at_hash(head), keys), wanted, self.last_changes(head, keys)))

    def _both_sides(self, base: str | None, sources: Sequence[str], keys: Sequence[ContentKey]) -> tuple[State, State]:
        """What the source built on and what it made of it; in a transplant, by the first of the commits that has an operation on the key."""
        if base is not None:
            return self.contents(at_hash(base), keys), self.contents(at_hash(sources[-1]), keys)
        before: dict[ContentKey, Content] = {}
        wanted: dict[ContentKey, Content] = {}
        missing = set(keys)
        for entry in reversed(list(islice(self._history(sources[-1], operations=True), len(sources)))):
            touched = {operation.key: operation for operation in entry.operations or () if operation.key in missing}
            if touched:
                before |= self.contents(at_hash(entry.parent), touched)
                wanted |= {key: operation.content for key, operation in touched.items() if isinstance(operation, Put)}
                missing -= touched.keys()
        return before, wanted

    # -- care --------------------------------------------------------------------------------------------------------------------

    def check(self) -> Iterator[Problem]:
        """See `Repository`; refused, only who has the store can read every object."""
        raise InvalidInput(f"server {self.url}: a server's store is checked where it is, by `nessie fsck --store URL` there")

    def close(self) -> None:
        """See `Repository`."""
        self._transport.close()


def commit_result(data: Any) -> CommitResult:
    """What a commit did."""
    added = {decode_key(item["key"]): str(item["contentId"]) for item in data.get("addedContents") or ()}
    return CommitResult(answers.decode_reference(data["targetBranch"]), added)
