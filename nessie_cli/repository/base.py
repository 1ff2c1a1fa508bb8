"""`Repository`: every verb of a catalog, the same for an embedded store and for a remote server.

Revisions are text (`main`, `main@2e1c~1`; `HEAD` is unknown here) or a `Revision`; hashes are hex text. Listings are
iterators that read as they are consumed. A verb that writes does everything or raises.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from heapq import merge
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

from msgspec import Struct, structs

from nessie_cli.errors import InvalidInput
from nessie_cli.model import (
    ChangedKey,
    CommitMeta,
    CommitResult,
    Content,
    ContentKey,
    DiffEntry,
    Entry,
    KeyRange,
    LogEntry,
    MaintenanceReport,
    MergeResult,
    Operation,
    Problem,
    Reference,
    ReferenceType,
    ReflogEntry,
    RepositoryConfig,
)
from nessie_cli.repository import log_filter
from nessie_cli.repository.changes import (
    AnyRevision,
    AssignReference,
    Change,
    Commit,
    CreateReference,
    DeleteReference,
    Merge,
    MergeOptions,
    PutSettings,
    RenameReference,
    Transplant,
    is_dry_run,
)
from nessie_cli.repository.log_filter import LogFilter, Walk
from nessie_cli.revisions import Revision, Step, StepKind, parse

if TYPE_CHECKING:
    from nessie_cli.repository.draft import Draft
    from nessie_cli.repository.requests import Submission
    from nessie_cli.repository.writing import Lease, Plan

A = TypeVar("A")
NO_OPTIONS = MergeOptions()
ALL_KEYS = KeyRange()


class AheadBehind(Struct, frozen=True):
    """How many first-parent commits each side has beyond the common ancestor."""

    ahead: int
    behind: int
    common_ancestor: str


Check = Callable[["Draft[Any]"], None]
"""Decides on a draft; raises what prevents it."""


class Guard(Protocol):
    """Decides on every change of a repository before it is committed, and hears of it afterwards."""

    def check(self, draft: Draft[Any]) -> None:
        """Raise what prevents a draft from being committed. Called again if the draft is made again."""

    def done(self, draft: Draft[Any], answer: Any) -> None:
        """A draft was committed; `answer` is what the caller gets."""


class Repository(ABC):
    """A catalog under version control. Obtain one with `connect(url)`; use it as a context manager or call `close`.

    Every verb raises the errors of `nessie_cli.errors`: `InvalidInput` for what can never work, `NotFound` for what is not there,
    `ReferenceConflict` with all conflicts as data, `StoreUnavailable` when the store or server cannot be used.

    Verbs that follow from others have a default implementation here; a repository overrides those that it can answer faster.
    """

    @property
    @abstractmethod
    def url(self) -> str:
        """The address of this repository, without secrets."""

    guard: Guard | None = None
    """Asked about every change, if there is one."""

    knows_callers: ClassVar[bool] = False
    """Whether `as_caller` works: a server decides for itself who writes."""

    def as_caller(self, who: str) -> Self:  # noqa: ARG002 - for implementations
        """Returns the same repository, whose writes are committed by `who`."""
        raise InvalidInput(f"{self.url}: the server decides who commits")

    # -- references --------------------------------------------------------------------------------------------------------------

    @abstractmethod
    def config(self) -> RepositoryConfig:
        """Default branch, age, format and settings."""

    @abstractmethod
    def resolve(self, revision: AnyRevision) -> Reference:
        """The reference and hash that a revision names; its type is DETACHED if it names no reference. Cost O(log commits).

        A bare word is looked up as a reference name, then as a shortened hash of at least 4 digits. Raises `AmbiguousHash`
        if several commits begin with these digits.
        """

    @abstractmethod
    def reference(self, name: str, *, metadata: bool = False) -> Reference:
        """One branch or tag; raises `ReferenceNotFound`."""

    @abstractmethod
    def references(
        self,
        type: ReferenceType | None = None,
        *,
        prefix: str = "",
        start: str = "",
        metadata: bool = False,
    ) -> Iterator[Reference]:
        """Branches, then tags, each sorted by name, from the name `start` on. Reads only indexed rows, unless `metadata` is set."""

    @abstractmethod
    def reflog(self, name: str | None = None, *, limit: int | None = None) -> Iterator[ReflogEntry]:
        """The moves of one reference or of all, newest first, those of deleted references included."""

    @abstractmethod
    def messages(self, names: Collection[str]) -> dict[str, str]:
        """The messages of those tags that have one; {} from a server that has none."""

    # -- reading -----------------------------------------------------------------------------------------------------------------

    @abstractmethod
    def log(
        self,
        start: AnyRevision,
        *,
        until: str | None = None,
        operations: bool = False,
        all_parents: bool = False,
    ) -> Iterator[LogEntry]:
        """Commits along first parents, or along all parents, newest first, up to and including the hash `until`.

        The empty history has no entries. Cost: one small read for each commit.
        """

    @abstractmethod
    def log_excluding(
        self, start: AnyRevision, exclude: Sequence[AnyRevision], *, operations: bool = False
    ) -> Iterator[LogEntry]:
        """Commits reachable from `start` over all parents, but from none of `exclude`: the range `A..B`."""

    @abstractmethod
    def log_of_key(
        self, start: AnyRevision, key: ContentKey, *, operations: bool = False
    ) -> Iterator[LogEntry]:
        """Commits along first parents with an operation on this key, newest first. Cost O(log commits) for each."""

    @abstractmethod
    def commit_at(self, revision: AnyRevision) -> LogEntry:
        """One commit with its operations; raises `CommitNotFound` for the empty history."""

    @abstractmethod
    def entries(
        self, at: AnyRevision, keys: KeyRange = ALL_KEYS, *, content: bool = False
    ) -> Iterator[Entry]:
        """The keys of a commit's state, ascending. Cost O(log keys + what is consumed)."""

    @abstractmethod
    def contents(self, at: AnyRevision, keys: Iterable[ContentKey]) -> dict[ContentKey, Content]:
        """The contents of those keys that exist."""

    @abstractmethod
    def content(self, at: AnyRevision, key: ContentKey) -> Content:
        """One content; raises `ContentNotFound`."""

    @abstractmethod
    def diff(
        self, before: AnyRevision, after: AnyRevision, keys: KeyRange = ALL_KEYS
    ) -> Iterator[DiffEntry]:
        """Contents that differ, ascending by key. Cost O(differences · log keys)."""

    def last_change(self, at: AnyRevision, key: ContentKey) -> CommitMeta | None:
        """The newest commit along first parents with an operation on this key. Cost O(log commits)."""
        return next((entry.meta for entry in self.log_of_key(at, key)), None)

    @abstractmethod
    def merge_base(self, a: AnyRevision, b: AnyRevision) -> str:
        """The best common ancestor over all parents; the no-ancestor hash if there is none."""

    @abstractmethod
    def is_ancestor(self, ancestor: AnyRevision, descendant: AnyRevision) -> bool:
        """Whether one commit is reachable from another over any parents. A commit is its own ancestor.

        Cost O(log commits) along first parents. Otherwise O(log commits) for each merge, once for each descendant.
        """

    @abstractmethod
    def ahead_behind(self, of: AnyRevision, base: AnyRevision) -> AheadBehind:
        """How far `of` is from `base`, counted along first parents."""

    # -- reading that follows from the verbs above ---------------------------------------------------------------------------------

    def filtered_log(
        self, walk: Walk, wanted: LogFilter, *, operations: bool = False
    ) -> Iterator[LogEntry | None]:
        """The commits of a walk that pass a filter, newest first; None for others that were read.

        Ends when no more can pass. Cost: at most one small read for each commit of the walk.
        """
        needed = operations or bool(wanted.keys)
        for entry in log_filter.filtered(self._walked(walk, wanted, operations=needed), wanted):
            yield (
                LogEntry(entry.meta, entry.height)
                if entry is not None and needed and not operations
                else entry
            )

    def _walked(self, walk: Walk, wanted: LogFilter, *, operations: bool) -> Iterator[LogEntry]:
        start, exclude = walk.start, walk.exclude
        if start is None:

            def read(hash_: str) -> LogEntry:
                # A plain text would be looked up among the names first.
                return next(self.log(Revision(None, hash_), operations=operations))

            heads = (reference.hash for reference in self.references())
            return log_filter.reachable(heads, read, first_parent=walk.first_parent)
        since = wanted.since
        if exclude is None and (since is None or walk.first_parent):
            line = self.log(start, operations=operations, all_parents=not walk.first_parent)
            return (
                line
                if since is None
                else takewhile(lambda entry: log_filter.made_since(entry, since), line)
            )
        if exclude is None and since is not None:
            # Commits that the newest one before that time has are not read, however long the history is.
            spec = parse(start) if isinstance(start, str) else start
            before = Step(StepKind.TIME, time=since - timedelta(microseconds=1))
            exclude = Revision(spec.name, spec.hash, (*spec.steps, before))
        assert exclude is not None
        if walk.first_parent:
            line = self.log(start, operations=operations)
            end = Revision(None, self.merge_base(exclude, start)) if walk.symmetric else exclude
            return takewhile(
                lambda entry: not self.is_ancestor(Revision(None, entry.hash), end), line
            )
        ours = self.log_excluding(start, [exclude], operations=operations)
        if not walk.symmetric:
            return ours
        return merge(
            ours,
            self.log_excluding(exclude, [start], operations=operations),
            key=log_filter.newest_first,
        )

    def changed_keys(self, commit: LogEntry) -> list[ChangedKey]:
        """The keys whose content differs between a commit and its first parent, ascending: those of `diff`, without contents."""
        # A plain text would be looked up among the names first.
        found = self.diff(Revision(None, commit.parent), Revision(None, commit.hash))
        return [
            ChangedKey(
                entry.key, _content_id(entry), entry.before is not None, entry.after is not None
            )
            for entry in found
        ]

    def ancestors_among(self, hashes: Collection[str], descendant: str) -> set[str]:
        """Those full hashes for which `is_ancestor(hash, descendant)` is true."""
        commit = Revision(None, descendant)
        return {hash_ for hash_ in hashes if self.is_ancestor(Revision(None, hash_), commit)}

    def descendants_among(self, hashes: Collection[str], ancestor: str) -> set[str]:
        """Those full hashes for which `is_ancestor(ancestor, hash)` is true."""
        commit = Revision(None, ancestor)
        return {hash_ for hash_ in hashes if self.is_ancestor(commit, Revision(None, hash_))}

    def divisions(
        self,
        at: AnyRevision,  # noqa: ARG002
        most: int,  # noqa: ARG002
        *,
        prefix: ContentKey | None = None,  # noqa: ARG002
    ) -> list[ContentKey] | None:
        """Keys that cut a state into parts of at most `most` keys, each the last key of its part; the last part has no cut.

        With `prefix` only the keys below it are cut. None if this repository cannot cut without listing the keys.
        """
        return None

    def version(self) -> Hashable | None:
        """A value that changes with every write of any process, or None if it is unavailable. For one thread at a time."""
        return None

    @property
    def version_waits(self) -> bool:
        """Whether `version` waits for a database server. Otherwise it costs microseconds."""
        return False

    # -- writing: one way --

    @abstractmethod
    def draft(self, change: Change, submission: Submission | None = None) -> Draft[Any]:
        """Work out a change on the repository as it is now. Nothing of it becomes visible.

        A refusal by the state (conflicts, a protected branch, a name that is taken) is part of the draft; other errors
        are raised. Drafts of one `submission` give new contents the same ids and answer a repeated request id.
        """

    def commit_all(
        self,
        plans: Sequence[Plan[Self, A]],  # noqa: ARG002 - for implementations
        *,
        fair: bool = True,  # noqa: ARG002 - for implementations
        begin: Sequence[tuple[str, str]] = (),  # noqa: ARG002 - for implementations
        lease: Lease | None = None,  # noqa: ARG002 - for implementations
    ) -> list[A | Exception]:
        """Make plans and commit what they drafted; returns what each answers or raised, in order.

        A plan is called with this repository as it will be after the plans before it. It reads, drafts and checks, and
        returns a `Planned`; it is called again if it rested on something that has changed. All plans share one wait for
        the disk, and no answer is returned before the writes that its plan could have seen are durable. If they fail,
        their plans have an error instead: `StoreUnavailable`, nothing was written, or `OutcomeUnknown` with the request
        id. With `fair=False` plans may run programs, and are never called while other writers are kept waiting.
        `begin` may name references that plans move, each with the request id (or ""): these are read together. `lease` is
        one of `lease_if_contested`.

        An embedded repository does this; a server groups the writes of its clients by itself (`InvalidInput`).
        """
        raise InvalidInput(f"{self.url}: a server groups the writes of its clients by itself")

    def lease_if_contested(self, name: str) -> Lease:
        """Take the lease of a reference on which races were lost lately, else none. The caller gives it back.

        Whoever gathers plans for `commit_all` does so while holding it: those that came while it waited share one commit.
        """
        raise InvalidInput(
            f"{self.url}: a server groups the writes of its clients by itself: {name}"
        )

    def before_request(self, request_id: str) -> Self:  # noqa: ARG002 - for implementations
        """Returns this repository with the references that a committed request moved put back; itself if there is no such request.

        What a caller looks up for a repeated request is found there, and drafting the same change again gives the recorded
        answer.
        """
        return self

    def submit(
        self, change: Change, *, request_id: str | None = None, check: Check | None = None
    ) -> Any:
        """Draft a change, check the draft, and commit it; again, if another writer was faster. Returns the answer.

        `check` is called with each draft that changes something, before it is committed, and raises what prevents it. The
        guard of the repository is asked in the same way, except about dry runs.
        """
        guard = None if is_dry_run(change) else self.guard
        checks = [
            one for one in (check, guard.check if guard is not None else None) if one is not None
        ]
        if checks and isinstance(change, Commit):
            change = structs.replace(change, operations=list(change.operations))

        def check_all(draft: Draft[Any]) -> None:
            for one in checks:
                one(draft)

        answer, draft = self._write(change, request_id, check_all if checks else None)
        if guard is not None and draft is not None:
            guard.done(draft, answer)
        return answer

    @abstractmethod
    def _write(
        self, change: Change, request_id: str | None, check: Check | None
    ) -> tuple[Any, Draft[Any] | None]:
        """Draft, check and commit a change. Returns the answer, and the draft that was committed, if there was one."""

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
        """Put one commit on a branch: all operations or none.

        `expected_hash` is the state that the caller started from (default: HEAD); only what changed since at the keys
        touched conflicts. Raises `ReferenceConflict` with every conflict. `operations` may be a generator of millions.
        A `request_id` that was committed before answers what it did then. Cost O(operations · log keys).
        """
        change = Commit(branch, operations, meta, expected_hash, dry_run)
        result: CommitResult = self.submit(change, request_id=request_id)
        return result

    def merge(
        self, branch: str, source: AnyRevision, options: MergeOptions = NO_OPTIONS
    ) -> MergeResult:
        """Bring the net changes of `source` since the merge base onto a branch, as one commit with two parents.

        Raises `MergeConflict`; a dry run raises it as well.
        """
        result: MergeResult = self.submit(
            Merge(branch, source, options), request_id=options.request_id
        )
        return result

    def transplant(
        self, branch: str, commits: Sequence[str], options: MergeOptions = NO_OPTIONS
    ) -> MergeResult:
        """Apply commits (hashes, oldest first, each the parent of the next) one by one onto a branch."""
        result: MergeResult = self.submit(
            Transplant(branch, commits, options), request_id=options.request_id
        )
        return result

    def create_reference(
        self,
        type: ReferenceType,
        name: str,
        target: str,
        *,
        message: str = "",
        request_id: str | None = None,
    ) -> Reference:
        """Create a branch or tag at a hash; raises `AlreadyExists`. Only a tag may have a message."""
        result: Reference = self.submit(
            CreateReference(type, name, target, message), request_id=request_id
        )
        return result

    def assign_reference(
        self, name: str, target: str, *, expected_hash: str, request_id: str | None = None
    ) -> Reference:
        """Move a reference to another commit; raises `ReferenceMoved` unless it is at `expected_hash`."""
        result: Reference = self.submit(
            AssignReference(name, target, expected_hash), request_id=request_id
        )
        return result

    def rename_reference(
        self, old: str, new: str, *, expected_hash: str, request_id: str | None = None
    ) -> Reference:
        """Rename a reference that is at `expected_hash`, in one step if the store can."""
        result: Reference = self.submit(
            RenameReference(old, new, expected_hash), request_id=request_id
        )
        return result

    def delete_reference(
        self, name: str, *, expected_hash: str, request_id: str | None = None
    ) -> Reference:
        """Delete a reference that is at `expected_hash`; returns what it was. The default branch is refused."""
        result: Reference = self.submit(DeleteReference(name, expected_hash), request_id=request_id)
        return result

    def put_setting(
        self, name: str, value: str | None, *, request_id: str | None = None
    ) -> str | None:
        """Set (or with None remove) a setting of the repository; returns the previous value."""
        previous: Mapping[str, str | None] = self.submit(
            PutSettings({name: value}), request_id=request_id
        )
        return previous.get(name)

    @abstractmethod
    def find_request(self, request_id: str, *, branch: str | None = None) -> CommitResult | None:
        """Returns what a write with this request id did, or None if it never happened.

        The reference is that of the verb's answer: one that was deleted is as it was before. A change of settings has a
        detached one.

        `branch` is where it was sent, if known: a server that cannot look up requests is then asked about that branch
        alone.
        """

    # -- care --------------------------------------------------------------------------------------------------------------------

    @abstractmethod
    def check(self) -> Iterator[Problem]:
        """Verify every object, reference and link, as `nessie fsck`."""

    def verify(self, commits: Collection[str]) -> int | None:  # noqa: ARG002 - for implementations
        """Verify the references, and everything that these commits (whole hashes) need. Returns the number of objects.

        Each object has to be what its id says, each reference where the reflog says. Returns None if this repository cannot verify its store:
        a client of a server cannot. Raises `DamagedObject` for the first thing that is damaged. Cost: the reflog and each object are read once.
        """
        return None

    def maintain(
        self,
        *,
        grace: timedelta | None = None,  # noqa: ARG002
        dry_run: bool = False,  # noqa: ARG002
        full: bool = False,  # noqa: ARG002
    ) -> MaintenanceReport:
        """Expire the reflog and request ids, and delete objects that nothing needs; safe beside readers and writers.

        Objects written within `grace` stay (default: a day); it must be longer than the longest load. A `dry_run` only
        counts. With `full`, free space returns to the file system while writers wait. Reads every object that stays
        once. Raises `DamagedObject` if one of them is missing or damaged, and `InvalidInput` if this is a remote
        repository or `grace` is too short.
        """
        raise InvalidInput(
            f"{self.url}: maintenance needs the store itself; run it where the store is"
        )

    @abstractmethod
    def close(self) -> None:
        """Close the store."""

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()


def _content_id(entry: DiffEntry) -> str:
    content = entry.after or entry.before
    return (content.id if content else None) or ""


def describe_settings(settings: Mapping[str, str]) -> Mapping[str, str]:
    """Settings that callers may see: those of the repository itself start with a dot and are left out."""
    return {name: value for name, value in settings.items() if not name.startswith(".")}
