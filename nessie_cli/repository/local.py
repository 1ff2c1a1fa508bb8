"""The embedded repository: a store in this process, and the rules of version control."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Self, TypeVar

from msgspec import structs

from nessie_cli.errors import (
    ContentNotFound,
    DamagedObject,
    InvalidInput,
    NessieError,
    StoreNotFound,
    UnsupportedFormat,
)
from nessie_cli.kernel import history
from nessie_cli.kernel.commits import commits_of_key, contents_at, from_micros
from nessie_cli.kernel.edit import PARAMETERS
from nessie_cli.kernel.forms import Id, encode_key
from nessie_cli.kernel.objects import Cache, LayeredCache
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
    Problem,
    Reference,
    ReferenceType,
    ReflogEntry,
    RepositoryConfig,
)
from nessie_cli.model.batches import batched
from nessie_cli.model.runs import UNPUBLISHED
from nessie_cli.repository import reading
from nessie_cli.repository.base import ALL_KEYS, describe_settings
from nessie_cli.repository.changes import (
    AnyRevision,
    AssignReference,
    Change,
    Commit,
    CreateReference,
    DeleteReference,
    Merge,
    PutSettings,
    RenameReference,
    Transplant,
)
from nessie_cli.repository.draft import ChangeSubmission, Check, Draft, refuse_protected
from nessie_cli.repository.group_commit import DecodedObjects, GroupCommit, Lease, Plan, Planned
from nessie_cli.repository.log_filter import LogFilter, SearchedCommit, Walk
from nessie_cli.repository.runs import StoredRuns
from nessie_cli.repository.snapshot import Context, StoreSnapshot, as_reference
from nessie_cli.repository.store_repository import StoreRepository
from nessie_cli.store import STORE_FORMAT
from nessie_cli.store.base import SessionTable, Store, View
from nessie_cli.store.overlay import NOT_READ, Overlay
from nessie_cli.store.records import StoredReference

if TYPE_CHECKING:
    from datetime import timedelta

    from nessie_cli.kernel.ancestry import AncestryIndex
    from nessie_cli.repository.commit_facts import CommitFacts
    from nessie_cli.repository.history_writer import HistoryWriter

A = TypeVar("A")
DEFAULT_BRANCH = ".default-branch"
CREATED = ".created"
TREE = ".tree"
"""Settings that the repository sets itself."""

_FIRST_REFERENCES, _MOST_REFERENCES = 32, 4096
"""Batch sizes of references with metadata; the first is small, to begin soon."""


def _ids(hashes: Collection[str]) -> set[Id]:
    return {bytes.fromhex(hash_) for hash_ in hashes}


class LocalRepository(StoreRepository):
    """A `Repository` over a `Store`. Long methods are in modules named for them."""

    def __init__(self, store: Store, context: Context) -> None:
        self._store = store
        settings = store.settings().values
        if DEFAULT_BRANCH not in settings:
            # The first write has the default branch and its first entry.
            if store.reflog(limit=1):
                raise DamagedObject(
                    f"store {store.url}: the setting {DEFAULT_BRANCH} is missing",
                    hint="restore the store from a backup",
                )
            raise StoreNotFound(
                f"store {store.url}: its creation was interrupted",
                store.url,
                hint="create it again to finish it",
            )
        if settings.get(TREE, PARAMETERS) != PARAMETERS:
            raise UnsupportedFormat(
                f"store {store.url}: its trees have parameters ({settings[TREE]})"
                f" that differ from this program's ({PARAMETERS})"
            )
        self.default_branch = settings[DEFAULT_BRANCH]
        self._group_commit = GroupCommit(store)
        branch, remote = self.default_branch, store.remote
        self._use(StoreSnapshot(store, Cache(), context, branch, store.put, remote=remote))

    def _use(self, snapshot: StoreSnapshot) -> None:
        """Reads through a snapshot."""
        self._snapshot = snapshot
        self._at = snapshot.context
        self._view = snapshot.view
        self._objects = snapshot.objects
        vars(self).pop("_facts", None)

    @property
    def url(self) -> str:
        """The URL of the store."""
        return self._store.url

    # -- references -------------------------------------------------------------------------------
    def config(self) -> RepositoryConfig:
        """Returns the default branch, the time of creation, the format and the settings."""
        settings = self._view.settings().values
        created = settings.get(CREATED)
        return RepositoryConfig(
            self.default_branch,
            from_micros(int(created)) if created else None,
            str(STORE_FORMAT),
            describe_settings(settings),
        )

    def resolve(self, revision: AnyRevision) -> Reference:
        """Returns the reference and hash that a revision names. O(log commits)."""
        return self._snapshot.resolve(revision)

    def _commit_id(self, revision: AnyRevision) -> Id:
        return bytes.fromhex(self._snapshot.resolve(revision).hash)

    def reference(self, name: str, *, metadata: bool = False) -> Reference:
        """Returns a branch or tag. Raises `ReferenceNotFound`."""
        reference = as_reference(self._snapshot.reference(name))
        return self._with_metadata([reference])[0] if metadata else reference

    def _with_metadata(self, references: Sequence[Reference]) -> list[Reference]:
        return self._facts.with_metadata(references, as_reference(self._default()))

    def _default(self) -> StoredReference:
        default = self._view.reference(self.default_branch)
        if default is None:
            raise InvalidInput("Could not find default branch")
        return default

    def references(
        self,
        type: ReferenceType | None = None,
        *,
        prefix: str = "",
        start: str = "",
        metadata: bool = False,
    ) -> Iterator[Reference]:
        """Yields branches, then tags, each sorted by name. Reads metadata in batches."""
        listed = self._snapshot.references(type, prefix, start)
        if not metadata:
            return listed
        batches = batched(listed, _MOST_REFERENCES, _FIRST_REFERENCES)
        return chain.from_iterable(map(self._described, batches))

    def _described(self, batch: list[Reference]) -> Iterable[Reference]:
        try:
            return self._with_metadata(batch)
        except DamagedObject:
            # One by one, so that those before the damaged one are listed.
            return (self._with_metadata([reference])[0] for reference in batch)

    def reflog(
        self, name: str | None = None, *, limit: int | None = None, before: int | None = None
    ) -> Iterator[ReflogEntry]:
        """Yields the moves of one or all references, newest first."""
        return reading.reflog(self._objects, self._view, name, limit, before)

    def messages(self, names: Collection[str]) -> dict[str, str]:
        """Returns the messages of those tags that have one."""
        from nessie_cli.repository import references

        return references.messages(self._view, names)

    # -- reading ----------------------------------------------------------------------------------
    def log(
        self,
        start: AnyRevision,
        *,
        until: str | None = None,
        operations: bool = False,
        all_parents: bool = False,
    ) -> Iterator[LogEntry]:
        """Yields commits along first parents or all parents, newest first."""
        yield from reading.log(
            self._objects,
            self._commit_id(start),
            self._snapshot.commit_id(until) if until else None,
            operations=operations,
            all_parents=all_parents,
            progress=self._at.progress,
        )

    def log_excluding(
        self,
        start: AnyRevision,
        exclude: Sequence[AnyRevision],
        *,
        operations: bool = False,
        is_over: Callable[[], bool] | None = None,
    ) -> Iterator[LogEntry]:
        """Yields commits that `start` reaches over all parents but `exclude` does not."""
        ids = [self._commit_id(revision) for revision in (start, *exclude)]
        for id_, commit in history.reachable(self._objects, ids[:1], ids[1:], is_over=is_over):
            yield reading.log_entry(self._objects, id_, commit, operations=operations)

    def log_of_key(
        self, start: AnyRevision, key: ContentKey, *, operations: bool = False
    ) -> Iterator[LogEntry]:
        """Yields commits along first parents with an operation on this key, by the index."""
        for id_, commit in commits_of_key(
            self._objects, self._view.find_indexed, self._commit_id(start), encode_key(key)
        ):
            yield reading.log_entry(self._objects, id_, commit, operations=operations)

    def search_log(
        self, walk: Walk, commit_filter: LogFilter, *, operations: bool = False
    ) -> Iterator[SearchedCommit]:
        """Yields the commits of a walk that are read for a filter.

        Skips commits by the commit index and jump pointers.
        """
        from nessie_cli.repository.filtered_log import LogSource, search_log

        source = LogSource(self._objects, self._view.find_indexed, self._descends, self._times)
        starts = (
            [stored.target for stored in self._view.references()]
            if walk.start is None
            else [self._commit_id(f"@{head}") for head in walk.heads]
            or [self._commit_id(walk.start)]
        )
        exclude = [] if walk.exclude is None else [self._commit_id(walk.exclude)]
        return search_log(source, starts, exclude, walk, commit_filter, operations=operations)

    def _times(self, ids: Collection[Id]) -> dict[Id, int]:
        return {id_: time for id_, (time, _) in self._facts.tips(ids).items()}

    def commit_at(self, revision: AnyRevision, *, operations: bool = True) -> LogEntry:
        """Returns a commit. Raises `CommitNotFound`."""
        id_ = self._commit_id(revision)
        commit = reading.existing_commit(self._objects, id_)
        return reading.log_entry(self._objects, id_, commit, operations=operations)

    def entries(
        self, at: AnyRevision, keys: KeyRange = ALL_KEYS, *, content: bool = False
    ) -> Iterator[Entry]:
        """Yields the keys of a commit's state, ascending."""
        return reading.entries(
            self._objects, self._commit_id(at), keys, content=content, progress=self._at.progress
        )

    def key_finder(self, text: str) -> Callable[[AnyRevision], Iterator[Entry]]:
        """Returns a function that yields the entries at a commit whose key contains a text."""
        return reading.key_finder(self._objects, text, self._commit_id)

    def divisions(
        self, at: AnyRevision, most: int, *, prefix: ContentKey | None = None
    ) -> list[ContentKey]:
        """Returns the last key of each part but the final one, for parts of at most `most` keys.

        Cost: nodes of more than `most` keys, O(parts + log keys).
        """
        return reading.divisions(self._objects, self._commit_id(at), most, prefix)

    def each_content(
        self, at: AnyRevision, keys: Iterable[ContentKey]
    ) -> Iterator[tuple[ContentKey, Content]]:
        """Returns the contents of those keys that exist, ascending by key."""
        return contents_at(self._objects, self._commit_id(at), keys)

    def content(self, at: AnyRevision, key: ContentKey) -> Content:
        """Returns a content. Raises `ContentNotFound`."""
        reference = self.resolve(at)
        contents = dict(contents_at(self._objects, bytes.fromhex(reference.hash), [key]))
        if key not in contents:
            raise ContentNotFound(
                f"Could not find content for key '{key.plain}'"
                f" in reference '{reference.name or reference.hash}'.",
                key,
            )
        return contents[key]

    def diff(
        self,
        before: AnyRevision,
        after: AnyRevision,
        keys: KeyRange = ALL_KEYS,
        *,
        whole: bool = False,
    ) -> Iterator[DiffEntry]:
        """Yields contents that differ, ascending by key. `whole` has no effect here."""
        del whole
        return reading.diff(self._objects, self._commit_id(before), self._commit_id(after), keys)

    def changed_keys(self, commit: LogEntry) -> list[ChangedKey]:
        """Returns the keys that a commit changed, ascending.

        Cost: one or two nodes for one operation, or O(operations · log keys).
        """
        return reading.changed_keys(self._objects, self._objects.commit(bytes.fromhex(commit.hash)))

    def last_change(self, at: AnyRevision, key: ContentKey) -> CommitMeta | None:
        """Returns the newest first-parent commit with an operation on a key, by the index."""
        return reading.last_change(
            self._objects, self._view.find_indexed, self._commit_id(at), encode_key(key)
        )

    def merge_base(self, a: AnyRevision, b: AnyRevision) -> str:
        """Returns the best common ancestor over all parents, or the no-ancestor hash."""
        from nessie_cli.kernel.fast_paths import near_merge_base

        objects, ids = self._objects, (self._commit_id(a), self._commit_id(b))
        near = near_merge_base(objects, self._view.find_indexed, *ids)
        return (history.merge_base(objects, *ids) if near is None else near).hex()

    @property
    def _ancestry(self) -> AncestryIndex:
        return self._snapshot.ancestry

    def _descends(self, ancestor: Id, commit: Id) -> bool:
        return self._ancestry.is_ancestor(ancestor, commit)

    def is_ancestor(self, ancestor: AnyRevision, descendant: AnyRevision) -> bool:
        """Returns whether a commit is reachable from another over any parents."""
        return self._ancestry.is_ancestor(self._commit_id(ancestor), self._commit_id(descendant))

    @cached_property
    def _facts(self) -> CommitFacts:
        from nessie_cli.repository.commit_facts import CommitFacts

        return CommitFacts(self._objects, lambda: self._ancestry)

    def ancestors_among(self, hashes: Collection[str], descendant: str) -> set[str]:
        """Returns the full hashes that are ancestors of `descendant`.

        O(log commits) round trips for all of them, more with many merges.
        """
        ids = self._facts.ancestors_among(_ids(hashes), bytes.fromhex(descendant))
        return {id_.hex() for id_ in ids}

    def descendants_among(
        self, hashes: Collection[str], ancestor: str, is_over: Callable[[], bool] | None = None
    ) -> set[str]:
        """Returns descendants of `ancestor` in O(log commits) trips, more if often merged."""
        ids = self._facts.descendants_among(_ids(hashes), bytes.fromhex(ancestor), is_over)
        return {id_.hex() for id_ in ids}

    def ahead_behind(self, of: AnyRevision, base: AnyRevision) -> AheadBehind:
        """Returns how many first-parent commits `of` is ahead of `base`, and how many behind."""
        return reading.ahead_behind(self._objects, self._commit_id(of), self._commit_id(base))

    @property
    def sessions(self) -> SessionTable:
        """The logins of browsers at all servers of the store."""
        return self._store.sessions

    @property
    def runs(self) -> StoredRuns:
        """The records of pipelines' runs."""
        return StoredRuns(self._store.runs)

    def as_caller(self, who: str) -> Self:
        """Returns the same repository with `who` as the committer."""
        return self._copy(self._view, self._snapshot.cache, who)

    def _copy(self, view: View, cache: Cache, who: str) -> Self:
        before = self._snapshot
        context = structs.replace(before.context, committer=who)
        snapshot = StoreSnapshot(
            view, cache, context, self.default_branch, self._store.put, remote=self._store.remote
        )
        if view is before.view:
            # All copies share the cached lines.
            snapshot.ancestry = before.ancestry
        # Copies at a tenth of the cost of `copy`: every request of a group has its own copy.
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        other._use(snapshot)
        return other

    def _over(self, overlay: Overlay | None, decoded: DecodedObjects) -> Self:
        """Returns this repository with the writes of an overlay, whose objects are `decoded`."""
        if overlay is None:
            return self
        return self._copy(overlay, LayeredCache(self._snapshot.cache, decoded), self._at.who)

    # -- writing ----------------------------------------------------------------------------------
    def draft(self, change: Change[A], submission: ChangeSubmission | None = None) -> Draft[A]:
        """Drafts a change on the current state of the repository, not visible to others."""
        draft: Draft[A] = _drafting(change)(
            self._snapshot, change, submission or ChangeSubmission()
        )
        refuse = refuse_protected(draft, self._view, self._descends)
        refuse = refuse or self._refuse_failed_run(draft)
        if refuse is not None:
            draft = draft.refused_by(refuse)
        draft.open_view = self._as_drafted
        return draft

    def _refuse_failed_run(self, draft: Draft[Any]) -> Callable[[], NessieError] | None:
        if not isinstance(draft.change, Merge | Transplant | AssignReference):
            return None
        unpublished = self._store.runs.each(*UNPUBLISHED)
        first = next(unpublished, None)
        if first is None:
            return None
        from nessie_cli.repository.failed_runs import refuse_failed_run
        from nessie_cli.repository.runs import read_record

        records = map(read_record, chain([first], unpublished))
        return refuse_failed_run(
            draft, self, records, lambda: self._view.settings().values, self._at.who
        )

    def before_request(self, request_id: str) -> Self:
        """Returns this repository, but the references that a request moved are where they were."""
        from nessie_cli.repository.requests import recorded

        request = self._view.request(request_id)
        if request is None:
            return self
        overlay = Overlay(self._view)
        for move in reversed(recorded(self._view, request).moves):
            overlay.put_back(move.name, move.kind, move.before)
        return self._over(overlay, {})

    def _as_drafted(self, draft: Draft[Any]) -> Self:
        if draft.write is None:
            return self
        overlay = Overlay(self._view)
        overlay.add(draft.write)
        return self._over(overlay, draft.decoded)

    def commit_all(
        self,
        plans: Sequence[Plan[Self, A]],
        *,
        fair: bool = True,
        prefetch: Sequence[tuple[str, str]] = (),
        lease: Lease | None = None,
    ) -> list[A | Exception]:
        """Runs plans and commits their drafts. Returns the answer or error of each plan."""
        return self._group_commit.commit_all(
            plans, self._over, self._snapshot.cache, fair=fair, prefetch=prefetch, lease=lease
        )

    def lease_if_contested(self, name: str) -> Lease:
        """Takes the lease of a reference if races for it were lost recently."""
        return self._group_commit.lease_if_contested(name)

    def _write(
        self, change: Change[A], request_id: str | None, check: Check | None
    ) -> tuple[A, Draft[A] | None]:
        """Drafts, checks and commits a change, together with others that wait."""
        submission = ChangeSubmission(request_id)

        def plan(repository: Self) -> Planned[tuple[A, Draft[A] | None]]:
            draft = repository.draft(change, submission)
            answer = draft.answer()
            if draft.write is None:
                return Planned((answer, None))
            if check is not None:
                check(draft)
            return Planned((answer, draft), draft)

        [result] = self.commit_all([plan], fair=check is None)
        if isinstance(result, Exception):
            raise result
        return result

    def find_request(self, request_id: str, *, branch: str | None = None) -> CommitResult | None:  # noqa: ARG002 - ids alone find them here
        """Returns the result of the write with this request id, or None. `branch` has no effect."""
        from nessie_cli.repository.commits import result_of
        from nessie_cli.repository.requests import find_request, recorded

        request = find_request(self._view, request_id)
        return None if request is None else result_of(self._objects, recorded(self._view, request))

    def history_writer(self) -> HistoryWriter:
        """Returns a writer that brings the history of another repository into this one."""
        from nessie_cli.repository.history_writer import HistoryWriter

        return HistoryWriter(self._store, self._at, self.default_branch)

    # -- care -------------------------------------------------------------------------------------
    def check(self) -> Iterator[Problem]:
        """Verifies every object, reference and link."""
        from nessie_cli.repository.verification import verify

        return verify(self._store, self._at.clock(), self._at.progress)

    def verify(self, commits: Collection[str]) -> int:
        """Verifies the references and all objects of these commits. Returns their number."""
        from nessie_cli.repository.verification import verify_reachable, verify_rows

        verify_rows(self._store)
        return verify_reachable(self._store, _ids(commits), self._at.progress)

    def maintain(
        self, *, grace: timedelta | None = None, dry_run: bool = False, full: bool = False
    ) -> MaintenanceReport:
        """Deletes expired reflog entries and request ids, and unreachable objects.

        Raises `InvalidInput` for a grace period under two hours, and `DamagedObject`.
        """
        from nessie_cli.repository.maintenance import maintain

        report = maintain(
            self._store,
            self._at.clock(),
            grace,
            dry_run=dry_run,
            full=full,
            progress=self._at.progress,
        )
        self._snapshot.cache.clear()
        return report

    def version(self) -> Hashable | None:
        """Returns the change counter of the store, or None if it is unavailable."""
        return self._store.change_counter()

    @property
    def version_waits(self) -> bool:
        """Whether `version` and `heads` wait for a database server."""
        return self._store.remote

    def heads(self, names: Sequence[str]) -> tuple[Reference | None, ...] | None:
        """Returns the branches and tags with these names, or None if they are unavailable."""
        heads = self._store.heads(names)
        if heads is None:
            return None
        return tuple(None if head is None else as_reference(head) for head in heads)

    def at_heads(self, heads: Iterable[Reference], *, in_memory: bool = False) -> Self:
        """Returns this repository with these branches and tags at these commits."""
        overlay = Overlay(NOT_READ if in_memory else self._view)
        for head in heads:
            overlay.put_back(head.name, head.type, bytes.fromhex(head.hash))
        return self._copy(overlay, self._snapshot.cache, self._at.who)

    def close(self) -> None:
        """Closes the store."""
        self._store.close()


def _drafting(change: Change[Any]) -> Callable[[StoreSnapshot, Any, ChangeSubmission], Draft[Any]]:
    """Returns the function that drafts a change. Its module is loaded on first use."""
    if isinstance(change, Commit):
        from nessie_cli.repository.commits import commit

        return commit
    if isinstance(change, Merge):
        from nessie_cli.repository.merges import merge

        return merge
    if isinstance(change, Transplant):
        from nessie_cli.repository.transplants import transplant

        return transplant
    if isinstance(change, PutSettings):
        from nessie_cli.repository.settings import put_settings

        return put_settings
    from nessie_cli.repository import references

    functions: dict[type, Callable[..., Draft[Any]]] = {
        CreateReference: references.create,
        AssignReference: references.assign,
        RenameReference: references.rename,
        DeleteReference: references.delete,
    }
    return functions[type(change)]
