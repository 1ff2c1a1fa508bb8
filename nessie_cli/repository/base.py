"""`Repository`: the operations of a catalog, for an embedded store and for a remote server.

Revisions are text (`main`, `main@2e1c~1`; `-` is the default branch, `HEAD` is unknown here) or a
`Revision`; hashes are hexadecimal text. Listings are iterators that read while they are consumed. A
method that writes does everything or raises.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from heapq import merge
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

from msgspec import structs

from nessie_cli.errors import InvalidInput
from nessie_cli.model import (
    AheadBehind,
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


Check = Callable[["Draft[Any]"], None]
"""A function that decides on a draft and raises an error to prevent it."""


class Guard(Protocol):
    """Decides on each change of `submit` before the commit, and is notified afterwards."""

    def check(self, draft: Draft[Any]) -> None:
        """Raise an error to prevent a draft. Called again if the change is drafted again."""

    def done(self, draft: Draft[Any], answer: Any) -> None:
        """React to a committed draft; `answer` is the result for the caller."""


class Repository(ABC):
    """A catalog under version control. Obtain one with `connect(url)`.

    Use it as a context manager or call `close`. Methods raise the errors of `nessie_cli.errors`:
    `InvalidInput` for invalid arguments, `NotFound` if something does not exist, `NotAllowed`,
    `ReferenceConflict` with all conflicts as data, and `StoreUnavailable` if the store or server
    cannot be used.

    Methods that follow from others have a default implementation here. A repository overrides those
    that it can do faster.
    """

    @property
    @abstractmethod
    def url(self) -> str:
        """The address of this repository, without secrets."""

    guard: Guard | None = None
    """The guard that decides on every change except dry runs and those of `commit_all`, or None."""

    is_remote: ClassVar[bool] = False
    """Whether the repository is behind a server."""
    knows_callers: ClassVar[bool] = False
    """Whether `as_caller` works: not on a server, which determines the committer itself."""

    def as_caller(self, who: str) -> Self:  # noqa: ARG002 - for implementations
        """Returns the same repository with `who` as the committer."""
        raise InvalidInput(f"{self.url}: the server decides who commits")

    def caller(self) -> str | None:
        """Returns the name under which a server records the operations of this caller.

        Returns an empty name for an anonymous caller, and None for a repository that does not
        authenticate its callers.
        """
        return None

    # -- references -------------------------------------------------------------------------------
    @abstractmethod
    def config(self) -> RepositoryConfig:
        """Returns the default branch, the time of creation, the format and the settings."""

    @abstractmethod
    def resolve(self, revision: AnyRevision) -> Reference:
        """Returns the reference and hash that a revision names. O(log commits).

        The type is DETACHED if the revision names no reference. A bare word is looked up as a
        reference name, then as a hash, of which the first 4 digits are enough (on a server, if it
        is one of the newest 10,000 commits). A step beyond the first commit gives the no-ancestor
        hash. Raises `ReferenceNotFound`, `CommitNotFound`, or `AmbiguousHash` if several commits
        begin with these digits.
        """

    @abstractmethod
    def reference(self, name: str, *, metadata: bool = False) -> Reference:
        """Returns a branch or tag. Raises `ReferenceNotFound`."""

    @abstractmethod
    def references(
        self,
        type: ReferenceType | None = None,
        *,
        prefix: str = "",
        start: str = "",
        metadata: bool = False,
    ) -> Iterator[Reference]:
        """Yields branches, then tags, each sorted by name, beginning with the name `start`.

        Reads only indexed rows, unless `metadata` is set.
        """

    @abstractmethod
    def reflog(self, name: str | None = None, *, limit: int | None = None) -> Iterator[ReflogEntry]:
        """Yields the moves of one or all references, newest first, including deleted ones."""

    @abstractmethod
    def messages(self, names: Collection[str]) -> dict[str, str]:
        """Returns the messages of those tags that have one; only stores and `nessie serve` do."""

    # -- reading ----------------------------------------------------------------------------------
    @abstractmethod
    def log(
        self,
        start: AnyRevision,
        *,
        until: str | None = None,
        operations: bool = False,
        all_parents: bool = False,
    ) -> Iterator[LogEntry]:
        """Yields commits along first parents or all parents, newest first.

        Ends after the commit with the hash `until`. The empty history has no entries. Cost: one
        small read per commit.
        """

    @abstractmethod
    def log_excluding(
        self, start: AnyRevision, exclude: Sequence[AnyRevision], *, operations: bool = False
    ) -> Iterator[LogEntry]:
        """Yields commits that `start` reaches over all parents but `exclude` does not: `A..B`."""

    @abstractmethod
    def log_of_key(
        self, start: AnyRevision, key: ContentKey, *, operations: bool = False
    ) -> Iterator[LogEntry]:
        """Yields commits along first parents with an operation on this key, newest first.

        Cost: O(log commits) for each.
        """

    @abstractmethod
    def commit_at(self, revision: AnyRevision) -> LogEntry:
        """Returns a commit with its operations. Raises `CommitNotFound` for the empty history."""

    @abstractmethod
    def entries(
        self, at: AnyRevision, keys: KeyRange = ALL_KEYS, *, content: bool = False
    ) -> Iterator[Entry]:
        """Yields the keys of a commit's state, ascending. Cost: O(log keys + consumed keys)."""

    @abstractmethod
    def contents(self, at: AnyRevision, keys: Iterable[ContentKey]) -> dict[ContentKey, Content]:
        """Returns the contents of those keys that exist."""

    @abstractmethod
    def content(self, at: AnyRevision, key: ContentKey) -> Content:
        """Returns a content. Raises `ContentNotFound`."""

    @abstractmethod
    def diff(
        self,
        before: AnyRevision,
        after: AnyRevision,
        keys: KeyRange = ALL_KEYS,
        *,
        whole: bool = False,
    ) -> Iterator[DiffEntry]:
        """Yields contents that differ, ascending by key. Cost: O(differences · log keys).

        Keys that the caller may not read are left out. With `whole`, raises `NotAllowed` if one of
        them has a content that is yielded under another key: a rename would look like a creation or
        a deletion.
        """

    def last_change(self, at: AnyRevision, key: ContentKey) -> CommitMeta | None:
        """Returns the newest first-parent commit with an operation on a key. O(log commits)."""
        return next((entry.meta for entry in self.log_of_key(at, key)), None)

    @abstractmethod
    def merge_base(self, a: AnyRevision, b: AnyRevision) -> str:
        """Returns the best common ancestor over all parents, or the no-ancestor hash."""

    @abstractmethod
    def is_ancestor(self, ancestor: AnyRevision, descendant: AnyRevision) -> bool:
        """Returns whether a commit is reachable from another over any parents.

        A commit is its own ancestor. Cost: O(log commits) along first parents. Otherwise O(log
        commits) for each merge, once for each descendant.
        """

    @abstractmethod
    def ahead_behind(self, of: AnyRevision, base: AnyRevision) -> AheadBehind:
        """Returns how many first-parent commits `of` is ahead of `base`, and how many behind."""

    # -- reading that follows from the methods above -----------------------------------------------
    def filtered_log(
        self, walk: Walk, wanted: LogFilter, *, operations: bool = False
    ) -> Iterator[LogEntry | None]:
        """Yields the commits of a walk that pass a filter, newest first.

        Yields None for others that were read. Ends when no more can pass. Cost: at most one small
        read for each commit of the walk.
        """
        needed = operations or bool(wanted.keys)
        for entry in log_filter.filtered(self._walked(walk, wanted, operations=needed), wanted):
            if entry is not None and needed and not operations:
                yield LogEntry(entry.meta, entry.height)
            else:
                yield entry

    def _walked(self, walk: Walk, wanted: LogFilter, *, operations: bool) -> Iterator[LogEntry]:
        start, exclude = walk.start, walk.exclude
        if start is None:

            def read(hash_: str) -> LogEntry:
                # Plain text would be looked up as a name first.
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
            # Excludes ancestors of the newest commit before that time, so that they are not read.
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
        """Returns the keys that a commit changed, ascending: those of `diff`, without contents."""
        # Plain text would be looked up as a name first.
        entries = self.diff(Revision(None, commit.parent), Revision(None, commit.hash))
        return [
            ChangedKey(e.key, _content_id(e), e.before is not None, e.after is not None)
            for e in entries
        ]

    def ancestors_among(self, hashes: Collection[str], descendant: str) -> set[str]:
        """Returns the full hashes that are ancestors of `descendant`."""
        commit = Revision(None, descendant)
        return {hash_ for hash_ in hashes if self.is_ancestor(Revision(None, hash_), commit)}

    def descendants_among(self, hashes: Collection[str], ancestor: str) -> set[str]:
        """Returns the full hashes that are descendants of `ancestor`."""
        commit = Revision(None, ancestor)
        return {hash_ for hash_ in hashes if self.is_ancestor(commit, Revision(None, hash_))}

    def divisions(
        self,
        at: AnyRevision,  # noqa: ARG002
        most: int,  # noqa: ARG002
        *,
        prefix: ContentKey | None = None,  # noqa: ARG002
    ) -> list[ContentKey] | None:
        """Returns the last key of each part but the final one, for parts of at most `most` keys.

        With `prefix`, divides only the keys at and below it. A server other than `nessie serve`
        lists all keys for it. Returns None if this repository cannot divide a state.
        """
        return None

    def version(self) -> Hashable | None:
        """Returns a value that changes with every write of any process.

        Returns None if it is unavailable, as for a server. Only one thread may call it at a time.
        """
        return None

    @property
    def version_waits(self) -> bool:
        """Whether `version` waits for a database server. Otherwise it takes microseconds."""
        return False

    # -- writing: one way -------------------------------------------------------------------------
    @abstractmethod
    def draft(self, change: Change, submission: Submission | None = None) -> Draft[Any]:
        """Drafts a change on the current state of the repository, not visible to others.

        Conflicts, a protected branch and an existing name become the `refusal` of the draft; other
        errors are raised. Drafts of one `submission` give new contents the same ids, and answer a
        request id that was committed before. On a server, this is a dry run without key changes.
        """

    def commit_all(
        self,
        plans: Sequence[Plan[Self, A]],  # noqa: ARG002 - for implementations
        *,
        fair: bool = True,  # noqa: ARG002 - for implementations
        begin: Sequence[tuple[str, str]] = (),  # noqa: ARG002 - for implementations
        lease: Lease | None = None,  # noqa: ARG002 - for implementations
    ) -> list[A | Exception]:
        """Runs plans and commits their drafts. Returns the answer or error of each plan, in order.

        A plan is called with this repository as it will be after the plans before it. It reads,
        drafts, checks, and returns a `Planned`. It is called again if something that it read has
        changed. All plans share one wait for the disk. No answer is returned before the writes that
        its plan could have seen are durable. If they fail, their plans get an error:
        `StoreUnavailable` if nothing was written, otherwise `OutcomeUnknown` with the request id.

        Plans that run programs need `fair=False`: then no lease is taken for them. `begin` lists
        references that plans move, each with the request id (or ""), which are read together.
        `lease` is the result of `lease_if_contested`. The guard is not asked.

        A remote repository raises `InvalidInput`: the server groups the writes of its clients.
        """
        raise InvalidInput(f"{self.url}: a server groups the writes of its clients by itself")

    def lease_if_contested(self, name: str) -> Lease:
        """Takes the lease of a reference if other processes have won races for it recently.

        Otherwise the result holds no lease. The caller calls `give_back` in any case. A server
        collects plans for `commit_all` under the lease, so that plans that arrive while it waits
        share one commit. A remote repository raises `InvalidInput`.
        """
        raise InvalidInput(f"{self.url}: a server groups writes by itself, those of {name} too")

    def before_request(self, request_id: str) -> Self:  # noqa: ARG002 - for implementations
        """Returns this repository, but the references that a request moved are where they were.

        Returns the repository itself if there is no such request, and on a server. Drafting the
        same change on it gives the recorded answer.
        """
        return self

    def submit(
        self, change: Change, *, request_id: str | None = None, check: Check | None = None
    ) -> Any:
        """Drafts, checks and commits a change; after a lost race, again. Returns the answer.

        `check` is called with each draft that changes something, and raises an error to prevent it.
        The guard of the repository decides in the same way, except on dry runs. `request_id` is
        used here instead of the one in `MergeOptions`.
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
        """Drafts, checks and commits a change.

        Returns the answer and the committed draft, if any.
        """

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
        """Puts one commit on a branch: all operations or none.

        `expected_hash` is the commit that the caller started from (default: HEAD). Only changes
        since then to the same keys or their namespaces conflict. Raises `ReferenceConflict` with
        every conflict. `operations` may be a generator of millions. If the `request_id` was
        committed before, returns the recorded result. Cost: O(operations · log keys).
        """
        change = Commit(branch, operations, meta, expected_hash, dry_run)
        result: CommitResult = self.submit(change, request_id=request_id)
        return result

    def merge(
        self, branch: str, source: AnyRevision, options: MergeOptions = NO_OPTIONS
    ) -> MergeResult:
        """Merges the changes of `source` since the merge base into a branch.

        Creates one commit with two parents, or none if the source has no new changes. Raises
        `MergeConflict`, or `ReferenceConflict` for a namespace that would be missing or is not
        empty, also in a dry run. Raises `CommitNotFound` if there is no common ancestor.
        """
        result: MergeResult = self.submit(
            Merge(branch, source, options), request_id=options.request_id
        )
        return result

    def transplant(
        self, branch: str, commits: Sequence[str], options: MergeOptions = NO_OPTIONS
    ) -> MergeResult:
        """Applies commits (hashes, oldest first) one by one onto a branch, each as a new commit.

        Raises the conflicts of `merge`.
        """
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
        """Creates a branch or tag at a hash.

        Raises `AlreadyExists`. Only a tag of a store or of `nessie serve` may have a message.
        """
        result: Reference = self.submit(
            CreateReference(type, name, target, message), request_id=request_id
        )
        return result

    def assign_reference(
        self, name: str, target: str, *, expected_hash: str, request_id: str | None = None
    ) -> Reference:
        """Moves a reference to another commit (a hash).

        Raises `ReferenceMoved` unless it is at `expected_hash`, a full hash.
        """
        result: Reference = self.submit(
            AssignReference(name, target, expected_hash), request_id=request_id
        )
        return result

    def rename_reference(
        self, old: str, new: str, *, expected_hash: str, request_id: str | None = None
    ) -> Reference:
        """Renames a reference that is at `expected_hash`; in two steps on some servers."""
        result: Reference = self.submit(
            RenameReference(old, new, expected_hash), request_id=request_id
        )
        return result

    def delete_reference(
        self, name: str, *, expected_hash: str, request_id: str | None = None
    ) -> Reference:
        """Deletes a reference that is at `expected_hash`, and returns it.

        Raises `InvalidInput` for the default branch.
        """
        result: Reference = self.submit(DeleteReference(name, expected_hash), request_id=request_id)
        return result

    def put_setting(
        self, name: str, value: str | None, *, request_id: str | None = None
    ) -> str | None:
        """Sets a setting of the repository, or removes it (None). Returns the previous value."""
        previous: Mapping[str, str | None] = self.submit(
            PutSettings({name: value}), request_id=request_id
        )
        return previous.get(name)

    @abstractmethod
    def find_request(self, request_id: str, *, branch: str | None = None) -> CommitResult | None:
        """Returns the result of the write with this request id, or None if none is known.

        That is, it never happened or its id has expired. `reference` is the one that the write
        returned; a deleted one is as it was before. A change of settings has a detached reference.
        On a server other than `nessie serve`, searches the newest 100 commits of `branch`, or of
        every branch.
        """

    # -- care -------------------------------------------------------------------------------------
    @abstractmethod
    def check(self) -> Iterator[Problem]:
        """Verifies every object, reference and link, as `nessie fsck` does; not on a server."""

    def verify(self, commits: Collection[str]) -> int | None:  # noqa: ARG002 - for implementations
        """Verifies the references, and everything that these commits (full hashes) need.

        Each object must match its id, and each reference the reflog. Returns the number of objects,
        or None if this repository cannot verify its store because it is remote. Raises
        `DamagedObject` for the first damaged object. Cost: reads the reflog and each object once.
        """
        return None

    def maintain(
        self,
        *,
        grace: timedelta | None = None,  # noqa: ARG002
        dry_run: bool = False,  # noqa: ARG002
        full: bool = False,  # noqa: ARG002
    ) -> MaintenanceReport:
        """Deletes expired reflog entries and request ids, and unreachable objects, beside writers.

        Keeps objects written within `grace` (default: a day, at least 2 hours), which must be
        longer than the longest load. A `dry_run` only counts. With `full`, free space returns to
        the file system while writers wait. Verifies the files of the store, its references against
        the reflog, and every reachable object, which it reads once. Raises `DamagedObject` before
        it deletes anything, and `InvalidInput` if this repository is remote or `grace` is too
        short.
        """
        raise InvalidInput(
            f"{self.url}: maintenance needs the store itself; run it where the store is"
        )

    @abstractmethod
    def close(self) -> None:
        """Closes the store."""

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
    """Returns the settings for callers, without internal ones, whose names start with a dot."""
    return {name: value for name, value in settings.items() if not name.startswith(".")}
