"""The repository as one caller may use it: the same verbs, each of which asks for its rights first; listings leave out what the caller may not see.

Handlers know nothing of it, so none can forget to ask. What is asked for each verb is the original's, and stricter where the original would show a
content by a side way (`docs/security.md` says where).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Self

from msgspec import structs

from nessie_cli.errors import AmbiguousHash, CommitNotFound, MergeConflict, NotAllowed, ReferenceNotFound
from nessie_cli.model import (
    NO_ANCESTOR,
    CommitMeta,
    CommitResult,
    Content,
    ContentKey,
    Delete,
    DiffEntry,
    Entry,
    KeyRange,
    LogEntry,
    MergeResult,
    Operation,
    Problem,
    Put,
    Reference,
    ReferenceType,
    ReflogEntry,
    RepositoryConfig,
)
from nessie_cli.repository.base import ALL_KEYS, AheadBehind, Dividing, MergeOptions, Repository, Revision
from nessie_cli.repository.judging import Acting, Judge, KeyChange
from nessie_cli.server import rules
from nessie_cli.server.rights import Rights
from nessie_cli.server.sight import Sight
from nessie_cli.wire.extensions import SETTINGS

NO_OPTIONS = MergeOptions()
CONFIG_OBJECT = "repository-config."
"""What the names of settings begin with that keep configuration objects."""


def config_type(setting: str) -> str:
    """The type of configuration that rules know a setting by."""
    return setting.removeprefix(CONFIG_OBJECT) if setting.startswith(CONFIG_OBJECT) else SETTINGS


def require_config(repository: Repository, type_: str) -> None:
    """Raise `NotAllowed` where the repository is guarded and its caller may not read configuration of a type."""
    if isinstance(repository, GuardedRepository):
        repository.rights.require(rules.READ_REPOSITORY_CONFIG, config=type_)


class GuardedRepository:
    """A `Repository` for one request of one caller."""

    def __init__(self, repository: Repository, rights: Rights) -> None:
        self.rights = rights
        self._inner = repository
        self._sight = Sight(repository, rights)

    @property
    def url(self) -> str:
        """Where the repository is."""
        return self._inner.url

    def _see(self, name: str) -> None:
        self.rights.require(rules.VIEW_REFERENCE, name)

    def _at(self, revision: Revision) -> tuple[str, str]:
        """(hash of a revision, the reference through which it is seen); raises `NotAllowed` where the caller sees it through none."""
        found = self.resolve(revision)
        return found.hash, self._sight.through(found.hash)

    # -- references --------------------------------------------------------------------------------------------------------------

    def config(self) -> RepositoryConfig:
        """See `Repository`; without the settings that the caller may not read."""
        found = self._inner.config()
        may_read = {type_: self.rights.may(rules.READ_REPOSITORY_CONFIG, config=type_) for type_ in map(config_type, found.settings)}
        return structs.replace(found, settings={name: value for name, value in found.settings.items() if may_read[config_type(name)]})

    def put_setting(self, name: str, value: str | None) -> str | None:
        """See `Repository`."""
        self.rights.require(rules.UPDATE_REPOSITORY_CONFIG, config=config_type(name))
        return self._inner.put_setting(name, value)

    def resolve(self, revision: Revision) -> Reference:
        """See `Repository`; a hash is resolved where the caller sees its commit."""
        try:
            found = self._inner.resolve(revision)
        except AmbiguousHash as error:
            raise self._fewer(error, revision) from None
        except ReferenceNotFound as error:
            self._see(error.name)
            raise
        if found.name:
            self._see(found.name)
            self._sight.name(self._inner.reference(found.name))
        if found.hash != NO_ANCESTOR:
            through = self._sight.through(found.hash)
            if not self.rights.may(rules.VIEW_REFERENCE, through):
                # Of a commit that was not named whole the caller does not learn that it exists.
                raise self.rights.refusal(rules.VIEW_REFERENCE, through) if found.hash in str(revision) else _no_commit(revision)
        return found

    def _fewer(self, error: AmbiguousHash, revision: Revision) -> Exception:
        """The error for a shortened hash, told only the candidates that the caller sees."""
        seen = [pair for pair in error.candidates if self.rights.may(rules.VIEW_REFERENCE, self._sight.through(pair[0]))]
        return AmbiguousHash(f"{revision} is the beginning of several hashes", seen) if seen else _no_commit(revision)

    def reference(self, name: str, *, metadata: bool = False) -> Reference:
        """See `Repository`. Whether a reference exists is told only to those who may view it."""
        self._see(name)
        found = self._inner.reference(name, metadata=metadata)
        self._see(found.name)
        self._sight.name(found)
        return found

    def references(self, type: ReferenceType | None = None, *, prefix: str = "", start: str = "", metadata: bool = False) -> Iterator[Reference]:
        """See `Repository`; those that the caller may view."""
        for found in self._inner.references(type, prefix=prefix, start=start, metadata=metadata):
            if self.rights.may(rules.VIEW_REFERENCE, found.name):
                yield found

    def create_reference(self, type: ReferenceType, name: str, target: str) -> Reference:
        """See `Repository`; the caller has to see the commit."""
        self.rights.require(rules.CREATE_REFERENCE, name)
        self._at(f"@{target}")
        return self._acting().create_reference(type, name, target)

    def assign_reference(self, name: str, target: str, *, expected_hash: str) -> Reference:
        """See `Repository`; the caller has to see the commit."""
        self._see(name)
        self.rights.require(rules.ASSIGN_REFERENCE_TO_HASH, name)
        self._at(f"@{target}")
        return self._acting().assign_reference(name, target, expected_hash=expected_hash)

    def rename_reference(self, old: str, new: str, *, expected_hash: str) -> Reference:
        """See `Repository`; to rename is to create and to delete."""
        self._see(old)
        self.rights.require(rules.CREATE_REFERENCE, new)
        self.rights.require(rules.DELETE_REFERENCE, old)
        return self._acting().rename_reference(old, new, expected_hash=expected_hash)

    def delete_reference(self, name: str, *, expected_hash: str) -> Reference:
        """See `Repository`."""
        self._see(name)
        self.rights.require(rules.DELETE_REFERENCE, name)
        return self._acting().delete_reference(name, expected_hash=expected_hash)

    def reflog(self, name: str | None = None, *, limit: int | None = None) -> Iterator[ReflogEntry]:
        """See `Repository`; of references that the caller may view and whose history, or reflog, it may see."""
        count = 0
        for entry in self._inner.reflog(name):
            if limit is not None and count >= limit:
                return
            if not self._may_see_past(entry.reference):
                continue
            count += 1
            for hash_ in (entry.before, entry.after):
                if hash_ is not None:
                    self._sight.show(hash_, entry.reference)
            yield entry

    def _may_see_past(self, name: str) -> bool:
        may = self.rights.may
        return may(rules.VIEW_REFERENCE, name) and (may(rules.VIEW_REFLOG, name) or may(rules.LIST_COMMIT_LOG, name))

    # -- history -----------------------------------------------------------------------------------------------------------------

    def _listed(self, start: Revision) -> tuple[str, str]:
        hash_, through = self._at(start)
        self.rights.require(rules.LIST_COMMIT_LOG, through)
        return hash_, through

    def log(self, start: Revision, *, until: str | None = None, operations: bool = False, all_parents: bool = False) -> Iterator[LogEntry]:
        """See `Repository`; with those operations whose contents the caller may see."""
        hash_, through = self._listed(start)
        found = self._inner.log(f"@{hash_}", until=until, operations=operations, all_parents=all_parents)
        return self._without_hidden(found, through)

    def log_excluding(self, start: Revision, exclude: Sequence[Revision], *, operations: bool = False) -> Iterator[LogEntry]:
        """See `Repository`, and `log`."""
        hash_, through = self._listed(start)
        hidden = [f"@{self._at(revision)[0]}" for revision in exclude]
        return self._without_hidden(self._inner.log_excluding(f"@{hash_}", hidden, operations=operations), through)

    def log_of_key(self, start: Revision, key: ContentKey, *, operations: bool = False) -> Iterator[LogEntry]:
        """See `Repository`, and `log`; the caller has to be allowed to know the key."""
        hash_, through = self._listed(start)
        if not self.rights.may_somehow(rules.READ_CONTENT_KEY, through, key):
            raise self.rights.refusal(rules.READ_CONTENT_KEY, through, key)
        return self._without_hidden(self._inner.log_of_key(f"@{hash_}", key, operations=operations), through)

    def commit_at(self, revision: Revision) -> LogEntry:
        """See `Repository`, and `log`; what is said about the HEAD of a reference is told to whoever may view it."""
        hash_, through = self._at(revision)
        return self._shown(self._inner.commit_at(f"@{hash_}"), through)

    def _without_hidden(self, entries: Iterator[LogEntry], through: str) -> Iterator[LogEntry]:
        return (self._shown(entry, through) for entry in entries)

    def _shown(self, entry: LogEntry, through: str) -> LogEntry:
        if not entry.operations:
            return entry
        return structs.replace(entry, operations=tuple(found for found in entry.operations if self._may_see(found, through)))

    def _may_see(self, operation: Operation, through: str) -> bool:
        if isinstance(operation, Put):
            return self._may_read(through, operation.key, operation.content)
        return self.rights.may_somehow(rules.READ_CONTENT_KEY, through, operation.key)

    def _may_read(self, through: str, key: ContentKey, content: Content | None) -> bool:
        """Whether the caller may know a key and the content under it; None is nothing to know."""
        if content is None:
            return True
        type_ = content.type_name
        return self.rights.may(rules.READ_CONTENT_KEY, through, key, type_) and self.rights.may(rules.READ_ENTITY_VALUE, through, key, type_)

    def last_change(self, at: Revision, key: ContentKey) -> CommitMeta | None:
        """See `Repository`."""
        return next((entry.meta for entry in self.log_of_key(at, key)), None)

    def merge_base(self, a: Revision, b: Revision) -> str:
        """See `Repository`."""
        return self._inner.merge_base(f"@{self._at(a)[0]}", f"@{self._at(b)[0]}")

    def is_ancestor(self, ancestor: Revision, descendant: Revision) -> bool:
        """See `Repository`."""
        return self._inner.is_ancestor(f"@{self._at(ancestor)[0]}", f"@{self._at(descendant)[0]}")

    def ahead_behind(self, of: Revision, base: Revision) -> AheadBehind:
        """See `Repository`."""
        return self._inner.ahead_behind(f"@{self._at(of)[0]}", f"@{self._at(base)[0]}")

    # -- contents ----------------------------------------------------------------------------------------------------------------

    def entries(self, at: Revision, keys: KeyRange = ALL_KEYS, *, content: bool = False) -> Iterator[Entry]:
        """See `Repository`; keys that the caller may know, with contents those that it may read."""
        hash_, through = self._at(at)
        self.rights.require(rules.READ_ENTRIES, through)
        needed = (rules.READ_CONTENT_KEY, rules.READ_ENTITY_VALUE) if content else (rules.READ_CONTENT_KEY,)

        def may_see(entry: Entry) -> bool:
            return all(self.rights.may(op, through, entry.key, entry.type) for op in needed)

        return filter(may_see, self._inner.entries(f"@{hash_}", keys, content=content))

    def divisions(self, at: Revision, most: int, *, prefix: ContentKey | None = None) -> list[ContentKey]:
        """See `Dividing`; where to cut is told by keys that the caller may know."""
        hash_, through = self._at(at)
        self.rights.require(rules.READ_ENTRIES, through)
        cuts = self._inner.divisions(f"@{hash_}", most, prefix=prefix) if isinstance(self._inner, Dividing) else []
        return [entry.key for entry in self.entries(f"@{hash_}", KeyRange(keys=tuple(cuts)))]

    def contents(self, at: Revision, keys: Iterable[ContentKey]) -> dict[ContentKey, Content]:
        """See `Repository`; raises `NotAllowed` when one of the keys may not be read, whether there is something or not."""
        hash_, through = self._at(at)
        wanted = list(keys)
        found = self._inner.contents(f"@{hash_}", wanted)
        for key in wanted:
            content = found.get(key)
            if content is not None:
                self.rights.require(rules.READ_ENTITY_VALUE, through, key, content.type_name)
            elif not self.rights.may_somehow(rules.READ_ENTITY_VALUE, through, key):
                raise self.rights.refusal(rules.READ_ENTITY_VALUE, through, key)
        return found

    def content(self, at: Revision, key: ContentKey) -> Content:
        """See `Repository`, and `contents`."""
        return self.contents(at, [key]).get(key) or self._inner.content(at, key)

    def diff(self, before: Revision, after: Revision, keys: KeyRange = ALL_KEYS) -> Iterator[DiffEntry]:
        """See `Repository`; keys whose contents the caller may read on both sides."""
        left, right = self._at(before), self._at(after)
        for _, through in (left, right):
            self.rights.require(rules.READ_ENTRIES, through)

        def may_see(entry: DiffEntry) -> bool:
            return self._may_read(left[1], entry.key, entry.before) and self._may_read(right[1], entry.key, entry.after)

        return filter(may_see, self._inner.diff(f"@{left[0]}", f"@{right[0]}", keys))

    # -- writing -----------------------------------------------------------------------------------------------------------------

    def _acting(self, judge: Judge | None = None) -> Repository:
        assert isinstance(self._inner, Acting)
        return self._inner.acting_as(self.rights.caller.name, judge)

    def _may_commit(self, branch: str, request_id: str | None = None) -> None:
        self._see(branch)
        self.rights.require(rules.COMMIT_CHANGE_AGAINST_REFERENCE, branch)
        if request_id is not None:
            # A repeated request answers what the first one did, wherever that was.
            self.find_request(request_id)

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
        """See `Repository`. Asks before anything is looked at, so that no conflict tells of a key that the caller has nothing to do with."""
        self._may_commit(branch, request_id)
        asked = list(operations)
        for operation in asked:
            self._check_touched(branch, operation)
        judge = self._judge_of_writing
        return self._acting(judge).commit(branch, asked, meta, expected_hash=expected_hash, request_id=request_id, dry_run=dry_run)

    def _check_touched(self, branch: str, operation: Operation) -> None:
        key = operation.key
        if isinstance(operation, Put):
            type_ = operation.content.type_name
            if not self.rights.may(rules.UPDATE_ENTITY, branch, key, type_):
                self.rights.require(rules.CREATE_ENTITY, branch, key, type_)
            return
        op = rules.DELETE_ENTITY if isinstance(operation, Delete) else rules.READ_CONTENT_KEY
        if not self.rights.may_somehow(op, branch, key):
            raise self.rights.refusal(op, branch, key)

    def _judge_of_writing(self, branch: str, changes: Sequence[KeyChange]) -> None:
        for change in changes:
            for op, type_ in _needed(change):
                self.rights.require(op, branch, change.key, type_)

    def find_request(self, request_id: str, *, branch: str | None = None) -> CommitResult | None:
        """See `Repository`; of branches that the caller may commit to."""
        found = self._inner.find_request(request_id, branch=branch)
        if found is not None:
            self._may_commit(found.reference.name)
        return found

    def merge(self, branch: str, source: Revision, options: MergeOptions = NO_OPTIONS) -> MergeResult:
        """See `Repository`. What is merged has to be allowed to be read where it comes from and to be written where it goes."""
        self._may_commit(branch, options.request_id)
        _, through = self._at(source)
        return self._combined(branch, through, lambda acting: acting.merge(branch, source, options))

    def transplant(self, branch: str, commits: Sequence[str], options: MergeOptions = NO_OPTIONS) -> MergeResult:
        """See `Repository`, and `merge`; the history of the commits has to be allowed to be seen as well, since it is copied."""
        self._may_commit(branch, options.request_id)
        seen = [self._listed(f"@{hash_}")[1] for hash_ in commits]
        return self._combined(branch, seen[-1] if seen else branch, lambda acting: acting.transplant(branch, commits, options))

    def _combined(self, branch: str, through: str, combine: Callable[[Repository], MergeResult]) -> MergeResult:
        def judge(name: str, changes: Sequence[KeyChange]) -> None:
            for change in changes:
                self._check_source(through, change)
            self._judge_of_writing(name, changes)

        try:
            return self._known_details(combine(self._acting(judge)), branch, through)
        except MergeConflict as conflict:
            raise MergeConflict(conflict.message, conflict.conflicts, self._known_details(conflict.result, branch, through)) from None

    def _check_source(self, through: str, change: KeyChange) -> None:
        """Whether what a merge brings may be read where it comes from. A key that the caller may not know is not named."""
        op, type_ = (rules.READ_ENTITY_VALUE, change.after) if change.after is not None else (rules.READ_CONTENT_KEY, change.before or "")
        if not self.rights.may(op, through, change.key, type_):
            named = self.rights.may_somehow(rules.READ_CONTENT_KEY, through, change.key)
            raise self.rights.refusal(op, through, change.key if named else None)

    def _known_details(self, result: MergeResult, branch: str, through: str) -> MergeResult:
        """The result with those keys that the caller may know on one of the two sides."""
        known = [d for d in result.details if any(self.rights.may_somehow(rules.READ_CONTENT_KEY, ref, d.key) for ref in (through, branch))]
        return structs.replace(result, details=tuple(known))

    def check(self) -> Iterator[Problem]:
        """See `Repository`; no route of the API leads here."""
        raise NotAllowed("a store is not verified through the server")

    def close(self) -> None:
        """Nothing: the repository is the server's."""

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing, as `close`."""


def _needed(change: KeyChange) -> list[tuple[str, str]]:
    """What has to be allowed for a change: (operation, content type)."""
    if change.after is None:
        return [(rules.DELETE_ENTITY, change.before or "")]
    if change.before is None:
        return [(rules.CREATE_ENTITY, change.after)]
    if change.same and change.before == change.after:
        return [(rules.UPDATE_ENTITY, change.after)]
    return [(rules.DELETE_ENTITY, change.before), (rules.CREATE_ENTITY, change.after)]


def _no_commit(revision: Revision) -> CommitNotFound:
    return CommitNotFound(f"Commit '{revision}' not found", str(revision))
