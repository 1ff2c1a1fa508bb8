"""The repository behind a server of our own: what plain REST v2 cannot carry goes by its extensions, and nothing is judged twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from nessie_cli.commitspec import CommitSpec, parse
from nessie_cli.errors import AlreadyExists, AmbiguousHash, InvalidInput, NotAllowed, OutcomeUnknown, ReferenceConflict, StoreUnavailable
from nessie_cli.kernel.drafting import check_client_meta
from nessie_cli.model import (
    CommitMeta,
    CommitResult,
    ContentKey,
    LogEntry,
    MergeResult,
    Operation,
    Reference,
    ReflogEntry,
    RepositoryConfig,
    check_new_reference_name,
    check_reference_name,
)
from nessie_cli.repository.base import AheadBehind
from nessie_cli.repository.changes import MergeOptions, Revision
from nessie_cli.repository.remote.bodies import client_meta, commit_body, merge_body
from nessie_cli.repository.remote.lost import FIRST_PAUSE, settled
from nessie_cli.repository.remote.references import is_hash
from nessie_cli.repository.remote.repository import NO_OPTIONS, RemoteRepository, commit_result
from nessie_cli.repository.remote.session import understood
from nessie_cli.repository.remote.transport import Lost, Query, segment
from nessie_cli.wire import answers
from nessie_cli.wire.decode import decode_key
from nessie_cli.wire.extensions import SETTINGS

_TRIES = 4
"""How often a write is sent whose answer is lost."""
_MOST_AT_ALL = 2**31 - 1
_MOST_AT_ONCE = 16_000
"""The largest page of a walk over all parents, or of a reflog; each page repeats the work of those before it, so they grow."""

T = TypeVar("T")


class ExtendedRepository(RemoteRepository):
    """A `Repository` behind `nessie serve`."""

    # -- settings ----------------------------------------------------------------------------------------------------------------

    def config(self) -> RepositoryConfig:
        """See `Repository`."""
        found = self._transport.get("config/repository", {"type": SETTINGS})
        settings = understood(found, lambda found: dict(found["configs"][0]["settings"]) if found.get("configs") else {}, "settings")
        plain = self._session.config
        return RepositoryConfig(plain.default_branch, plain.created, plain.format, settings)

    def put_setting(self, name: str, value: str | None) -> str | None:
        """See `Repository`."""
        # Setting a value twice is setting it once, so a lost answer is asked for again; what was there before is asked first.
        previous = self.config().settings.get(name)
        self._transport.send("POST", "config/repository", None, {"config": {"type": SETTINGS, "settings": {name: value}}}, safe=True)
        return previous

    # -- references --------------------------------------------------------------------------------------------------------------

    def resolve(self, revision: Revision) -> Reference:
        """See `Repository`; one request, none for a commit that is known."""
        spec = parse(revision) if isinstance(revision, str) else revision
        if spec.name is None and not spec.steps and (spec.hash or "").lower() in self._known:
            return super().resolve(spec)
        found = self._transport.get("revisions", {"spec": str(spec)})
        if told := understood(found, lambda found: found.get("ambiguous"), "revisions"):
            raise understood(told, lambda told: AmbiguousHash(told["message"], [(pair[0], pair[1]) for pair in told["candidates"]]), "revisions")
        return self._seen(self._session.reference(found))

    def _complete(self, short: str) -> str:
        return self.resolve(CommitSpec(None, short)).hash

    def rename_reference(self, old: str, new: str, *, expected_hash: str) -> Reference:
        """See `Repository`."""
        check_new_reference_name(new)
        before = self.reference(old)
        if self._found(new) is not None:
            raise AlreadyExists(f"Named reference '{new}' already exists.", new)
        renamed = Reference(before.type, new, expected_hash)

        def done() -> Reference | None:
            return renamed if self._stands(renamed) and self._found(old) is None else None

        with self._told_where(old, expected_hash):
            return self._sent("POST", f"{self._at(old, expected_hash)}/rename", {"name": new}, None, done)

    def reflog(self, name: str | None = None, *, limit: int | None = None) -> Iterator[ReflogEntry]:
        """See `Repository`."""
        if name is not None and not name.isascii():
            # No reference can ever have had such a name, and not every text can be sent.
            return
        yield from islice(self._session.pages("reflog", "reflog", {"ref": name}, answers.decode_reflog_entry, growing=_MOST_AT_ONCE), limit)

    # -- history -----------------------------------------------------------------------------------------------------------------

    def log(self, start: Revision, *, until: str | None = None, operations: bool = False, all_parents: bool = False) -> Iterator[LogEntry]:
        """See `Repository`."""
        first, last = self._hash(start), self._existing(until) if until else None
        everywhere: Query = {"all-parents": "true"} if all_parents else {}
        for entry in self._history(first, everywhere, operations=operations, growing=_MOST_AT_ONCE if all_parents else 0):
            yield entry
            if entry.hash == last:
                return

    def log_excluding(self, start: Revision, exclude: Sequence[Revision], *, operations: bool = False) -> Iterator[LogEntry]:
        """See `Repository`."""
        hidden = [self._hash(revision) for revision in exclude]
        query: Query = {"all-parents": "true", "exclude": hidden}
        yield from self._history(self._hash(start), query, operations=operations, growing=_MOST_AT_ONCE)

    def log_of_key(self, start: Revision, key: ContentKey, *, operations: bool = False) -> Iterator[LogEntry]:
        """See `Repository`."""
        yield from self._history(self._hash(start), {"key": self._session.key_text(key)}, operations=operations)

    def last_changes(self, at: str, wanted: Iterable[ContentKey]) -> dict[ContentKey, CommitMeta]:
        """The newest commit that changed each key, for those that have one."""
        found = {}
        for key in wanted:
            query: Query = {"key": self._session.key_text(key), "max-records": "1"}
            for entry in islice(self._history(at, query, operations=False), 1):
                found[key] = entry.meta
        return found

    def _relation(self, tell: str, of: str, to: str, decode: Callable[[Any], T]) -> T:
        return understood(self._transport.get("ancestry", {"tell": tell, "of": of, "to": to}), decode, "ancestry")

    def merge_base(self, a: Revision, b: Revision) -> str:
        """See `Repository`."""
        return self._relation("merge-base", self._hash(a), self._hash(b), lambda found: str(found["mergeBase"]))

    def is_ancestor(self, ancestor: Revision, descendant: Revision) -> bool:
        """See `Repository`."""
        return self._relation("is-ancestor", self._hash(ancestor), self._hash(descendant), lambda found: bool(found["isAncestor"]))

    def ahead_behind(self, of: Revision, base: Revision) -> AheadBehind:
        """See `Repository`."""

        def distances(found: Any) -> AheadBehind:
            return AheadBehind(int(found["ahead"]), int(found["behind"]), str(found["commonAncestor"]))

        return self._relation("ahead-behind", self._hash(of), self._hash(base), distances)

    def divisions(self, at: Revision, most: int, *, prefix: ContentKey | None = None) -> list[ContentKey]:
        """See `Repository`; one request."""
        query: Query = {"at": self._hash(at), "most": str(min(most, _MOST_AT_ALL)), "prefix-key": self._session.key_text(prefix) if prefix else None}
        return understood(self._transport.get("divisions", query), lambda found: [decode_key(key) for key in found["divisions"]], "divisions")

    # -- writing -----------------------------------------------------------------------------------------------------------------

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
        body = commit_body(meta, wanted) | ({"isDryRun": True} if dry_run else {})
        path = f"{self._at_expected(branch, expected_hash)}/history/commit"
        try:
            return self._write(path, body, request_id, extended_commit_result, dry_run=dry_run)
        except ReferenceConflict as conflict:
            raise self._diagnosed(conflict, self._plain_name(branch), wanted, expected_hash) from None

    def _at_expected(self, branch: str, hash_: str | None) -> str:
        """The path of a branch to write to. Our servers take a missing hash for HEAD, whichever that is when they write."""
        if hash_ is not None and not is_hash(hash_):
            raise InvalidInput(f"Hash must consist of the hex representation of 4-32 bytes: {hash_!r}")
        name = check_reference_name(self._plain_name(branch))
        return f"trees/{segment(name if hash_ is None else f'{name}@{hash_}')}"

    def _write(self, path: str, body: Any, request_id: str | None, decode: Callable[[Any], T], *, dry_run: bool) -> T:
        """Send a write under a request id, so that it happens once: where an answer is lost, it is sent again, and the server looks it up first.

        Once an answer was lost, only an answer about this request tells what became of it: that the server is away does not.
        """
        request_id = request_id or self._context.random(16).hex()
        lost: Lost | None = None
        for number in range(_TRIES):
            try:
                return understood(self._transport.send("POST", path, None, body, request_id=request_id, safe=dry_run), decode, "write")
            except Lost as found:
                if found.ended:
                    return settled(found, lambda: self._earlier(path, body, request_id, decode))
                lost = found
            except (StoreUnavailable, NotAllowed) as error:
                if lost is None:
                    raise
                raise OutcomeUnknown(f"{lost.message}; and then: {error.message}", request_id) from None
            if number < _TRIES - 1:
                time.sleep(FIRST_PAUSE * 3**number)
        assert lost is not None
        raise lost

    def _earlier(self, path: str, body: Any, request_id: str, decode: Callable[[Any], T]) -> T | None:
        """The answer to a request that has happened; None for one that has not."""
        if self.find_request(request_id) is None:
            return None
        return understood(self._transport.send("POST", path, None, body, request_id=request_id), decode, "write")

    def find_request(self, request_id: str, *, branch: str | None = None) -> CommitResult | None:  # noqa: ARG002 - ids alone find them there
        """See `Repository`."""
        found = self._transport.get(f"requests/{segment(request_id)}")
        return understood(found, lambda found: None if found["result"] is None else commit_result(found["result"]), "request")

    def merge(self, branch: str, source: Revision, options: MergeOptions = NO_OPTIONS) -> MergeResult:
        """See `Repository`."""
        from_ = self.resolve(source)
        body: dict[str, Any] = {"fromRefName": from_.name or "DETACHED", "fromHash": from_.hash}
        if options.meta is not None:
            check_client_meta(options.meta)
            body["commitMeta"] = client_meta(options.meta)
        return self._combine("merge", branch, [from_.hash], body, options)

    def transplant(self, branch: str, commits: Sequence[str], options: MergeOptions = NO_OPTIONS) -> MergeResult:
        """See `Repository`."""
        if not commits:
            raise InvalidInput("No hashes given to transplant.")
        hashes = [self._existing(commit) for commit in commits]
        body: dict[str, Any] = {"fromRefName": "DETACHED", "hashesToTransplant": hashes}
        if options.meta is not None:
            check_client_meta(options.meta)
            body["commitMeta"] = client_meta(options.meta)
        return self._combine("transplant", branch, hashes, body, options)

    def _combine(self, verb: str, branch: str, sources: Sequence[str], body: dict[str, Any], options: MergeOptions) -> MergeResult:
        body = {**body, **merge_body(options), "followRenames": options.follow_renames, "allowUnrelatedHistories": options.unrelated}
        path = f"{self._at_expected(branch, options.expected_hash)}/history/{verb}"
        try:
            answer = self._write(path, body, options.request_id, answers.decode_merge, dry_run=options.dry_run)
        except ReferenceConflict as conflict:
            raise self._namespace_conflict(conflict, verb, self._plain_name(branch), sources[-1]) from None
        return self._answered(answer, sources, options)


def extended_commit_result(data: Any) -> CommitResult:
    """What a commit did, or would do."""
    found = commit_result(data)
    return CommitResult(found.reference, found.added, applied=bool(data.get("wasApplied", True)))
