"""The upper seam: every verb of a catalog once, in value objects, the same for an embedded store and for a remote server.

Revisions are given as text (`main`, `main@2e1c~1`, `HEAD` is not known here) or as `CommitSpec`; hashes are hex text. Listings are
iterators that read as they are consumed. A verb that writes either did everything or raised.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from re import Pattern
from typing import Protocol, Self, TypeVar, cast, runtime_checkable

from msgspec import Struct

from nessie_cli.commitspec import CommitSpec
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


class Repository(Protocol):
    """A catalog under version control. Obtain one with `connect(url)`; use it as a context manager or call `close`.

    Every verb raises the errors of `nessie_cli.errors`: `InvalidInput` for what can never work, `NotFound` for what is not there,
    `ReferenceConflict` with all conflicts as data, `StoreUnavailable` when the store or server cannot be used.
    """

    @property
    def url(self) -> str:
        """Where this repository is; no secrets in it."""

    # -- references --------------------------------------------------------------------------------------------------------------

    def config(self) -> RepositoryConfig:
        """Default branch, age, format and settings."""

    def put_setting(self, name: str, value: str | None) -> str | None:
        """Set (or with None remove) a setting that every client of the repository meets; answers the previous value."""

    def resolve(self, revision: Revision) -> Reference:
        """The reference and hash that a revision names; DETACHED where no reference is named. Cost O(log commits).

        A bare word is a reference name first, then a shortened hash (at least 4 digits, unique among commits, else `AmbiguousHash`).
        """

    def reference(self, name: str, *, metadata: bool = False) -> Reference:
        """One branch or tag; raises `ReferenceNotFound`."""

    def references(self, type: ReferenceType | None = None, *, prefix: str = "", start: str = "", metadata: bool = False) -> Iterator[Reference]:
        """Branches, then tags, each by name; from the name `start` on. Indexed rows only, unless metadata is asked for."""

    def create_reference(self, type: ReferenceType, name: str, target: str) -> Reference:
        """Make a branch or tag at a hash; raises `AlreadyExists`."""

    def assign_reference(self, name: str, target: str, *, expected_hash: str) -> Reference:
        """Point a reference elsewhere; raises `ReferenceMoved` unless it stands at `expected_hash`."""

    def rename_reference(self, old: str, new: str, *, expected_hash: str) -> Reference:
        """Give a reference another name, in one step where the store can."""

    def delete_reference(self, name: str, *, expected_hash: str) -> Reference:
        """Delete a reference that stands at `expected_hash`; answers what it was. The default branch is refused."""

    def reflog(self, name: str | None = None, *, limit: int | None = None) -> Iterator[ReflogEntry]:
        """Where one reference (or any) has been, newest first; deleted references are remembered."""

    # -- reading -----------------------------------------------------------------------------------------------------------------

    def log(self, start: Revision, *, until: str | None = None, operations: bool = False, all_parents: bool = False) -> Iterator[LogEntry]:
        """Commits, newest first, along first parents (or, by generation, along all); ends after the hash `until`, which is included.

        The empty history has no entries. Cost one small read per commit.
        """

    def log_excluding(self, start: Revision, exclude: Sequence[Revision], *, operations: bool = False) -> Iterator[LogEntry]:
        """Commits reachable from `start` over all parents, and from none of `exclude`: the range `A..B`."""

    def log_of_key(self, start: Revision, key: ContentKey, *, operations: bool = False) -> Iterator[LogEntry]:
        """The commits along first parents that have an operation on this key, newest first. Cost O(log commits) for each."""

    def commit_at(self, revision: Revision) -> LogEntry:
        """One commit with its operations; raises `CommitNotFound` for the empty history."""

    def entries(self, at: Revision, keys: KeyRange = ALL_KEYS, *, content: bool = False) -> Iterator[Entry]:
        """The keys of a commit's state, ascending. Cost O(log keys + what is consumed)."""

    def contents(self, at: Revision, keys: Iterable[ContentKey]) -> dict[ContentKey, Content]:
        """The contents of those keys that exist."""

    def content(self, at: Revision, key: ContentKey) -> Content:
        """One content; raises `ContentNotFound`."""

    def diff(self, before: Revision, after: Revision, keys: KeyRange = ALL_KEYS) -> Iterator[DiffEntry]:
        """Contents that differ, ascending by key. Cost O(differences · log keys)."""

    def last_change(self, at: Revision, key: ContentKey) -> CommitMeta | None:
        """The newest commit along first parents that has an operation on this key. Cost O(log commits)."""

    def merge_base(self, a: Revision, b: Revision) -> str:
        """The best common ancestor over all parents; the no-ancestor hash where histories share nothing."""

    def is_ancestor(self, ancestor: Revision, descendant: Revision) -> bool:
        """Whether one commit is reachable from another over any parents (a commit is its own ancestor).

        Cost O(log commits) along first parents; else O(log commits) for each merge of the repository, once for each descendant asked about.
        """

    def ahead_behind(self, of: Revision, base: Revision) -> AheadBehind:
        """How far `of` is from `base`, counted along first parents (reference 12.2)."""

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
        """Put one commit on a branch: all operations or none.

        `expected_hash` is the state the caller started from (default: HEAD); only what changed since at the keys touched conflicts. Raises
        `ReferenceConflict` with every conflict. `operations` may be a generator of millions. A `request_id` that was
        committed before answers what it did then. Cost O(operations · log keys).
        """

    def find_request(self, request_id: str, *, branch: str | None = None) -> CommitResult | None:
        """What a write with this request id did, None when it never happened.

        `branch` is where it was sent, as far as that is known: a server that cannot look up requests is then asked about that branch alone.
        """

    def merge(self, branch: str, source: Revision, options: MergeOptions = ...) -> MergeResult:
        """Bring the net changes of `source` since the merge base onto a branch, as one commit with two parents.

        Raises `MergeConflict`; a dry run raises it as well.
        """

    def transplant(self, branch: str, commits: Sequence[str], options: MergeOptions = ...) -> MergeResult:
        """Apply commits (hashes, oldest first, each the parent of the next) one by one onto a branch."""

    # -- care --------------------------------------------------------------------------------------------------------------------

    def check(self) -> Iterator[Problem]:
        """Verify every object, reference and link (`fsck`)."""

    def close(self) -> None:
        """Let go of the store."""

    def __enter__(self) -> Self:
        """Use as a context manager."""

    def __exit__(self, *_: object) -> None:
        """Close."""


class Surveying(Protocol):
    """A repository that answers questions about many commits at once. The embedded one does; over a network each page comes complete."""

    def with_metadata(self, references: Sequence[Reference]) -> list[Reference]:
        """References with the metadata that `reference(name, metadata=True)` gives; O(log commits) round trips for all of them."""

    def ancestors_among(self, hashes: Collection[str], descendant: str) -> set[str]:
        """Those full hashes for which `is_ancestor(hash, descendant)` is true. Takes O(log commits) round trips, more with many merges."""

    def descendants_among(self, hashes: Collection[str], ancestor: str) -> set[str]:
        """Those full hashes for which `is_ancestor(ancestor, hash)` is true. Takes O(log commits) round trips, more where it was merged often."""

    def commit_times(self, hashes: Collection[str]) -> dict[str, int]:
        """When these commits were made, in microseconds since 1970; 0 for the empty history. One round trip."""

    def distances(self, hashes: Collection[str]) -> dict[str, AheadBehind]:
        """For full hashes what `ahead_behind(hash, default branch)` says of each; O(log commits) round trips for all of them."""


def surveying(repository: Repository) -> Surveying | None:
    """The repository where it is a `Surveying` one, also where it is wrapped: `isinstance` sees no verbs that are passed on, from Python 3.12 on."""
    return cast("Surveying", repository) if hasattr(repository, "descendants_among") else None


class Outlining(Protocol):
    """A repository that tells what a commit changed without reading contents. The embedded one does."""

    def outline(self, commit: str) -> list[ChangedKey]:
        """The keys whose content differs between a commit (its full hash) and its first parent, ascending: those that `diff` tells.

        Cost: one or two nodes for a commit of one operation, else O(operations · log keys).
        """


def outlining(repository: Repository) -> Outlining | None:
    """The repository where it is an `Outlining` one, also where it is wrapped."""
    return cast("Outlining", repository) if hasattr(repository, "outline") else None


class Sieve(Struct, frozen=True):
    """Which commits of a log are wanted; what is left empty is passed by all.

    An author matches one of `authors` (the committer, where a commit names no author), the committer one of `committers`, the message `message`. The
    commit time lies between `since` and `until`, both included. `merges`: only commits with merge parents, or none of them. An operation is on one
    of `keys`, or below one. Of those that pass the first `skip` are left out.
    """

    authors: tuple[Pattern[str], ...] = ()
    committers: tuple[Pattern[str], ...] = ()
    message: Pattern[str] | None = None
    since: datetime | None = None
    until: datetime | None = None
    merges: bool | None = None
    keys: tuple[ContentKey, ...] = ()
    skip: int = 0


ALL_COMMITS = Sieve()


class Walk(Struct, frozen=True):
    """Which commits are walked: those reachable from `start` and not from `exclude`; with neither, those of all branches and tags.

    `symmetric`: also those of `exclude` that `start` has not. `first_parent` does not follow merge parents, and is not for what excludes something.
    """

    start: Revision | None
    exclude: Revision | None = None
    symmetric: bool = False
    first_parent: bool = False


@runtime_checkable
class Sifting(Protocol):
    """A repository that tells of a log only what passes a sieve, without making entries of the others. The embedded one does."""

    def sifted(self, walk: Walk, sieve: Sieve, *, operations: bool = False) -> Iterator[LogEntry | None]:
        """The commits that pass, newest first; None for others that were looked at. Ends where no more can pass.

        Cost one small read for each commit of the walk, or less: merges, commits on a key, and those until a time are found without those between,
        and what was looked at for its texts is not read for them again.
        """


@runtime_checkable
class Dividing(Protocol):
    """A repository that tells where to cut a state, so that its parts can be read at the same time."""

    def divisions(self, at: Revision, most: int, *, prefix: ContentKey | None = None) -> list[ContentKey]:
        """Keys, ascending, each the last one of a part of at most `most` keys; what is behind the last of them is the last part.

        With `prefix` only what is below it is cut. Cost: nodes of more than `most` keys, O(parts + log keys); no key is listed.
        """


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


@runtime_checkable
class Watched(Protocol):
    """A repository that tells cheaply whether it has changed."""

    def version(self) -> Hashable | None:
        """A value that is another one once anything has been written, by whomever; None where that cannot be told at once. To be asked by one thread.

        Cost: some microseconds; never waits.
        """


def describe_settings(settings: Mapping[str, str]) -> Mapping[str, str]:
    """Settings that callers may see: those of the repository itself start with a dot and are left out."""
    return {name: value for name, value in settings.items() if not name.startswith(".")}
