"""`Repository`: every verb of a catalog, the same for an embedded store and for a remote server.

Revisions are text (`main`, `main@2e1c~1`; `HEAD` is unknown here) or a `CommitSpec`; hashes are hex text. Listings are
iterators that read as they are consumed. A verb that writes does everything or raises.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from heapq import merge
from itertools import takewhile
from typing import Protocol, Self, TypeVar, runtime_checkable

from msgspec import Struct

from nessie_cli.commitspec import CommitSpec, Step, StepKind, parse
from nessie_cli.model import (
    ChangedKey,
    CommitMeta,
    CommitResult,
    Content,
    ContentKey,
    DiffEntry,
    Entry,
    KeyBehavior,
    KeyRange,
    LogEntry,
    MergeBehavior,
    MergeResult,
    Operation,
    Problem,
    Reference,
    ReferenceType,
    ReflogEntry,
    RepositoryConfig,
)
from nessie_cli.repository import log_filter
from nessie_cli.repository.log_filter import LogFilter, Walk

R = TypeVar("R")
Revision = str | CommitSpec
ALL_KEYS = KeyRange()


class MergeOptions(Struct, frozen=True):
    """What merge and transplant share.

    `meta` replaces the message that would be made up; `behaviors` and `default_behavior` decide per key; `follow_renames` combines a rename
    on one side with a change on the other; `unrelated` accepts the empty history as merge base; `expected_hash` must be on the branch; `dry_run`
    writes nothing.
    """

    meta: CommitMeta | None = None
    behaviors: Sequence[KeyBehavior] = ()
    default_behavior: MergeBehavior = MergeBehavior.NORMAL
    follow_renames: bool = False
    unrelated: bool = False
    expected_hash: str | None = None
    dry_run: bool = False
    request_id: str | None = None


class AheadBehind(Struct, frozen=True):
    """How many first-parent commits each side has beyond the common ancestor."""

    ahead: int
    behind: int
    common_ancestor: str


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

    # -- references --------------------------------------------------------------------------------------------------------------

    @abstractmethod
    def config(self) -> RepositoryConfig:
        """Default branch, age, format and settings."""

    @abstractmethod
    def put_setting(self, name: str, value: str | None) -> str | None:
        """Set a setting of the repository, or remove it with None; returns the previous value."""

    @abstractmethod
    def resolve(self, revision: Revision) -> Reference:
        """The reference and hash that a revision names; its type is DETACHED if it names no reference. Cost O(log commits).

        A bare word is looked up as a reference name, then as a shortened hash of at least 4 digits. Raises `AmbiguousHash`
        if several commits begin with these digits.
        """

    @abstractmethod
    def reference(self, name: str, *, metadata: bool = False) -> Reference:
        """One branch or tag; raises `ReferenceNotFound`."""

    @abstractmethod
    def references(self, type: ReferenceType | None = None, *, prefix: str = "", start: str = "", metadata: bool = False) -> Iterator[Reference]:
        """Branches, then tags, each sorted by name, from the name `start` on. Reads only indexed rows, unless `metadata` is set."""

    @abstractmethod
    def create_reference(self, type: ReferenceType, name: str, target: str) -> Reference:
        """Create a branch or tag at a hash; raises `AlreadyExists`."""

    @abstractmethod
    def assign_reference(self, name: str, target: str, *, expected_hash: str) -> Reference:
        """Move a reference to another commit; raises `ReferenceMoved` unless it is at `expected_hash`."""

    @abstractmethod
    def rename_reference(self, old: str, new: str, *, expected_hash: str) -> Reference:
        """Rename a reference, in one step if the store can."""

    @abstractmethod
    def delete_reference(self, name: str, *, expected_hash: str) -> Reference:
        """Delete a reference that is at `expected_hash`; returns its last state. Refuses the default branch."""

    @abstractmethod
    def reflog(self, name: str | None = None, *, limit: int | None = None) -> Iterator[ReflogEntry]:
        """The moves of one reference or of all, newest first, those of deleted references included."""

    # -- reading -----------------------------------------------------------------------------------------------------------------

    @abstractmethod
    def log(self, start: Revision, *, until: str | None = None, operations: bool = False, all_parents: bool = False) -> Iterator[LogEntry]:
        """Commits along first parents, or along all parents, newest first, up to and including the hash `until`.

        The empty history has no entries. Cost: one small read for each commit.
        """

    @abstractmethod
    def log_excluding(self, start: Revision, exclude: Sequence[Revision], *, operations: bool = False) -> Iterator[LogEntry]:
        """Commits reachable from `start` over all parents, but from none of `exclude`: the range `A..B`."""

    @abstractmethod
    def log_of_key(self, start: Revision, key: ContentKey, *, operations: bool = False) -> Iterator[LogEntry]:
        """Commits along first parents with an operation on this key, newest first. Cost O(log commits) for each."""

    @abstractmethod
    def commit_at(self, revision: Revision) -> LogEntry:
        """One commit with its operations; raises `CommitNotFound` for the empty history."""

    @abstractmethod
    def entries(self, at: Revision, keys: KeyRange = ALL_KEYS, *, content: bool = False) -> Iterator[Entry]:
        """The keys of a commit's state, ascending. Cost O(log keys + what is consumed)."""

    @abstractmethod
    def contents(self, at: Revision, keys: Iterable[ContentKey]) -> dict[ContentKey, Content]:
        """The contents of those keys that exist."""

    @abstractmethod
    def content(self, at: Revision, key: ContentKey) -> Content:
        """One content; raises `ContentNotFound`."""

    @abstractmethod
    def diff(self, before: Revision, after: Revision, keys: KeyRange = ALL_KEYS) -> Iterator[DiffEntry]:
        """Contents that differ, ascending by key. Cost O(differences · log keys)."""

    def last_change(self, at: Revision, key: ContentKey) -> CommitMeta | None:
        """The newest commit along first parents with an operation on this key. Cost O(log commits)."""
        return next((entry.meta for entry in self.log_of_key(at, key)), None)

    @abstractmethod
    def merge_base(self, a: Revision, b: Revision) -> str:
        """The best common ancestor over all parents; the no-ancestor hash if there is none."""

    @abstractmethod
    def is_ancestor(self, ancestor: Revision, descendant: Revision) -> bool:
        """Whether one commit is reachable from another over any parents. A commit is its own ancestor.

        Cost O(log commits) along first parents. Otherwise O(log commits) for each merge, once for each descendant.
        """

    @abstractmethod
    def ahead_behind(self, of: Revision, base: Revision) -> AheadBehind:
        """How far `of` is from `base`, counted along first parents."""

    # -- reading that follows from the verbs above ---------------------------------------------------------------------------------

    def filtered_log(self, walk: Walk, wanted: LogFilter, *, operations: bool = False) -> Iterator[LogEntry | None]:
        """The commits of a walk that pass a filter, newest first; None for others that were read.

        Ends when no more can pass. Cost: at most one small read for each commit of the walk.
        """
        needed = operations or bool(wanted.keys)
        for entry in log_filter.filtered(self._walked(walk, wanted, operations=needed), wanted):
            yield LogEntry(entry.meta, entry.height) if entry is not None and needed and not operations else entry

    def _walked(self, walk: Walk, wanted: LogFilter, *, operations: bool) -> Iterator[LogEntry]:
        start, exclude = walk.start, walk.exclude
        if start is None:

            def read(hash_: str) -> LogEntry:
                # A plain text would be looked up among the names first.
                return next(self.log(CommitSpec(None, hash_), operations=operations))

            heads = (reference.hash for reference in self.references())
            return log_filter.reachable(heads, read, first_parent=walk.first_parent)
        since = wanted.since
        if exclude is None and (since is None or walk.first_parent):
            line = self.log(start, operations=operations, all_parents=not walk.first_parent)
            return line if since is None else takewhile(lambda entry: log_filter.made_since(entry, since), line)
        if exclude is None and since is not None:
            # Commits that the newest one before that time has are not read, however long the history is.
            spec = parse(start) if isinstance(start, str) else start
            before = Step(StepKind.TIME, time=since - timedelta(microseconds=1))
            exclude = CommitSpec(spec.name, spec.hash, (*spec.steps, before))
        assert exclude is not None
        if walk.first_parent:
            line = self.log(start, operations=operations)
            end = CommitSpec(None, self.merge_base(exclude, start)) if walk.symmetric else exclude
            return takewhile(lambda entry: not self.is_ancestor(CommitSpec(None, entry.hash), end), line)
        ours = self.log_excluding(start, [exclude], operations=operations)
        if not walk.symmetric:
            return ours
        return merge(ours, self.log_excluding(exclude, [start], operations=operations), key=log_filter.newest_first)

    def changed_keys(self, commit: LogEntry) -> list[ChangedKey]:
        """The keys whose content differs between a commit and its first parent, ascending: those of `diff`, without contents."""
        # A plain text would be looked up among the names first.
        found = self.diff(CommitSpec(None, commit.parent), CommitSpec(None, commit.hash))
        return [ChangedKey(entry.key, _content_id(entry), entry.before is not None, entry.after is not None) for entry in found]

    def ancestors_among(self, hashes: Collection[str], descendant: str) -> set[str]:
        """Those full hashes for which `is_ancestor(hash, descendant)` is true."""
        commit = CommitSpec(None, descendant)
        return {hash_ for hash_ in hashes if self.is_ancestor(CommitSpec(None, hash_), commit)}

    def descendants_among(self, hashes: Collection[str], ancestor: str) -> set[str]:
        """Those full hashes for which `is_ancestor(ancestor, hash)` is true."""
        commit = CommitSpec(None, ancestor)
        return {hash_ for hash_ in hashes if self.is_ancestor(commit, CommitSpec(None, hash_))}

    def divisions(self, at: Revision, most: int, *, prefix: ContentKey | None = None) -> list[ContentKey] | None:  # noqa: ARG002
        """Keys that cut a state into parts of at most `most` keys, each the last key of its part; the last part has no cut.

        With `prefix` only the keys below it are cut. None if this repository cannot cut without listing the keys.
        """
        return None

    def version(self) -> Hashable | None:
        """A value that changes with every write of any process, or None if it is unavailable. Never waits; for one thread."""
        return None

    # -- writing -----------------------------------------------------------------------------------------------------------------

    @abstractmethod
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

        `expected_hash` is the state the caller started from (default: HEAD); only what changed since at the keys touched conflicts. Raises
        `ReferenceConflict` with every conflict. `operations` may be a generator of millions. A `request_id` that was
        committed before answers what it did then. Cost O(operations · log keys).
        """

    @abstractmethod
    def find_request(self, request_id: str, *, branch: str | None = None) -> CommitResult | None:
        """What a write with this request id did, None when it never happened.

        `branch` is where it was sent, as far as that is known: a server that cannot look up requests is then asked about that branch alone.
        """

    @abstractmethod
    def merge(self, branch: str, source: Revision, options: MergeOptions = ...) -> MergeResult:
        """Bring the net changes of `source` since the merge base onto a branch, as one commit with two parents.

        Raises `MergeConflict`; a dry run raises it as well.
        """

    @abstractmethod
    def transplant(self, branch: str, commits: Sequence[str], options: MergeOptions = ...) -> MergeResult:
        """Apply commits (hashes, oldest first, each the parent of the next) one by one onto a branch."""

    # -- care --------------------------------------------------------------------------------------------------------------------

    @abstractmethod
    def check(self) -> Iterator[Problem]:
        """Verify every object, reference and link, as `nessie fsck`."""

    @abstractmethod
    def close(self) -> None:
        """Close the store."""

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()


@runtime_checkable
class Grouping(Protocol):
    """A repository that makes several calls durable at once. The embedded one does; a server does it by itself for its clients."""

    def together(self, calls: Sequence[Callable[[], R]]) -> list[R | Exception]:
        """Run calls of this repository's verbs one after the other in this thread, as one transaction; what each answered or raised, in order.

        A call sees what those before it did. One that raises leaves nothing behind and does not disturb the others. The answers are given when
        everything is durable; when that fails no call has an answer but an error: `StoreUnavailable`, nothing was written, or `OutcomeUnknown`
        with the request id of the last write until then. Other threads read meanwhile and see nothing of it; other writers wait. What is no
        `Exception` (`KeyboardInterrupt`) undoes all and is raised.
        """


def _content_id(entry: DiffEntry) -> str:
    content = entry.after or entry.before
    return (content.id if content else None) or ""


def describe_settings(settings: Mapping[str, str]) -> Mapping[str, str]:
    """Settings that callers may see: those of the repository itself start with a dot and are left out."""
    return {name: value for name, value in settings.items() if not name.startswith(".")}
