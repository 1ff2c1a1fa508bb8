"""`ReadableRepository`: the operations that read a catalog.

Revisions are text (`main`, `main@2e1c~1`; `-` is the default branch, `HEAD` is unknown here) or a
`Revision`; hashes are hexadecimal text. Listings are iterators that read while they are consumed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from datetime import timedelta
from heapq import merge
from itertools import takewhile
from typing import ClassVar, Self

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
    Reference,
    ReferenceType,
    ReflogEntry,
    RepositoryConfig,
)
from nessie_cli.repository import log_filter
from nessie_cli.repository.changes import AnyRevision
from nessie_cli.repository.log_filter import LogFilter, SearchedCommit, Walk
from nessie_cli.revisions import Revision, RevisionStep, StepKind, parse

ALL_KEYS = KeyRange()


class ReadableRepository(ABC):
    """A catalog under version control, for reading. `Repository` also writes.

    Methods that follow from others have a default implementation. A repository overrides those that
    it can do faster.
    """

    is_remote: ClassVar[bool] = False
    """Whether the repository is behind a server."""

    @property
    @abstractmethod
    def url(self) -> str:
        """The address of this repository, without secrets."""

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
    def reflog(
        self, name: str | None = None, *, limit: int | None = None, before: int | None = None
    ) -> Iterator[ReflogEntry]:
        """Yields the moves of one or all references, newest first, including deleted ones.

        With `before`, those with lower numbers.
        """

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
        self,
        start: AnyRevision,
        exclude: Sequence[AnyRevision],
        *,
        operations: bool = False,
        is_over: Callable[[], bool] | None = None,
    ) -> Iterator[LogEntry]:
        """Yields commits that `start` reaches over all parents but `exclude` does not: `A..B`.

        Asks `is_over` at each commit that it reads, and raises `TimeoutError` once it is.
        """

    @abstractmethod
    def log_of_key(
        self, start: AnyRevision, key: ContentKey, *, operations: bool = False
    ) -> Iterator[LogEntry]:
        """Yields commits along first parents with an operation on this key, newest first.

        Cost: O(log commits) for each.
        """

    @abstractmethod
    def commit_at(self, revision: AnyRevision, *, operations: bool = True) -> LogEntry:
        """Returns a commit. Raises `CommitNotFound` for the empty history."""

    @abstractmethod
    def entries(
        self, at: AnyRevision, keys: KeyRange = ALL_KEYS, *, content: bool = False
    ) -> Iterator[Entry]:
        """Yields the keys of a commit's state, ascending. Cost: O(log keys + consumed keys)."""

    def contents(self, at: AnyRevision, keys: Iterable[ContentKey]) -> dict[ContentKey, Content]:
        """Returns the contents of those keys that exist."""
        return dict(self.each_content(at, keys))

    @abstractmethod
    def each_content(
        self, at: AnyRevision, keys: Iterable[ContentKey]
    ) -> Iterator[tuple[ContentKey, Content]]:
        """Returns the contents of those keys that exist, ascending by key.

        They are read while they are consumed; an error other than `DamagedObject` is raised before.
        """

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
        self, walk: Walk, commit_filter: LogFilter, *, operations: bool = False
    ) -> Iterator[LogEntry | None]:
        """Yields the commits of a walk that pass a filter, newest first.

        Yields None for others that were read. Ends when no more can pass. Cost: at most one small
        read for each commit of the walk.
        """
        commits = self.search_log(walk, commit_filter, operations=operations)
        return (commit.entry for commit in commits)

    def search_log(
        self, walk: Walk, commit_filter: LogFilter, *, operations: bool = False
    ) -> Iterator[SearchedCommit]:
        """Yields the commits that `filtered_log` reads, also those that do not pass.

        A search can end at any of them, and be continued by the heads of another walk.
        """
        needed = operations or bool(commit_filter.keys)
        entries = self._walked(walk, commit_filter, operations=needed)
        for commit in log_filter.searched(entries, commit_filter):
            entry = commit.entry
            if entry is None or operations or not needed:
                yield commit
            else:
                yield commit._replace(entry=LogEntry(entry.meta, entry.height))

    def _walked(
        self, walk: Walk, commit_filter: LogFilter, *, operations: bool
    ) -> Iterator[LogEntry]:
        start, exclude = walk.start, walk.exclude
        if start is None or walk.heads:

            def read(hash_: str) -> LogEntry:
                # Plain text would be looked up as a name first.
                return next(self.log(Revision(None, hash_), operations=operations))

            heads = walk.heads or (reference.hash for reference in self.references())
            return log_filter.reachable(heads, read, first_parent=walk.first_parent)
        since = commit_filter.since
        if exclude is None and (since is None or walk.first_parent):
            line = self.log(start, operations=operations, all_parents=not walk.first_parent)
            if since is None:
                return line
            is_since = next(log_filter.tests_of(LogFilter(since=since), log_filter.ENTRIES))
            return takewhile(is_since, line)
        if exclude is None and since is not None:
            # Excludes ancestors of the newest commit before that time, so that they are not read.
            spec = parse(start) if isinstance(start, str) else start
            before = RevisionStep(StepKind.TIME, time=since - timedelta(microseconds=1))
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

    def descendants_among(
        self, hashes: Collection[str], ancestor: str, is_over: Callable[[], bool] | None = None
    ) -> set[str]:
        """Returns the full hashes that are descendants of `ancestor`.

        Asks `is_over` now and then, and raises `TimeoutError` once it is.
        """
        commit = Revision(None, ancestor)
        descendants: set[str] = set()
        for hash_ in hashes:
            if is_over is not None and is_over():
                raise TimeoutError
            if self.is_ancestor(commit, Revision(None, hash_)):
                descendants.add(hash_)
        return descendants

    def key_finder(self, text: str) -> Callable[[AnyRevision], Iterator[Entry]]:
        """Returns a function that yields the entries at a commit whose key contains a text.

        The text is a part of the elements, joined by dots, in any case of letters. The function
        remembers what it has read: a store searches parts that states have in common only once.
        """
        lower = text.lower()
        return lambda at: (entry for entry in self.entries(at) if lower in entry.key.plain.lower())

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

    @abstractmethod
    def find_request(self, request_id: str, *, branch: str | None = None) -> CommitResult | None:
        """Returns the result of the write with this request id, or None if none is known.

        That is, it never happened or its id has expired. `reference` is the one that the write
        returned; a deleted one is as it was before. A change of settings has a detached reference.
        On a server other than `nessie serve`, searches the newest 100 commits of `branch`, or of
        every branch.
        """

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
