"""The repository as one caller may read it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from msgspec import structs

from nessie_cli.errors import AmbiguousHash, CommitNotFound, NotAllowed, ReferenceNotFound
from nessie_cli.model import (
    NO_ANCESTOR,
    AheadBehind,
    CommitResult,
    Content,
    ContentKey,
    DiffEntry,
    Entry,
    KeyRange,
    LogEntry,
    Operation,
    Put,
    Reference,
    ReferenceType,
    ReflogEntry,
    RepositoryConfig,
)
from nessie_cli.repository.changes import AnyRevision
from nessie_cli.repository.log_filter import ENTRIES, LogFilter, SearchedCommit, Walk
from nessie_cli.repository.reader import ALL_KEYS, ReadableRepository
from nessie_cli.revisions import Revision
from nessie_cli.server.auth import rules
from nessie_cli.server.auth.reached import ReachedHistory
from nessie_cli.server.auth.renames import Renames
from nessie_cli.server.auth.rights import Rights, Visibility
from nessie_cli.server.auth.typed_keys import TypedKeys
from nessie_cli.wire.extensions import SETTINGS

A = TypeVar("A")
_STEP = re.compile("[~^*]")
"""The characters with which relative parts of a revision begin; no name has them."""
CONFIG_OBJECT = "repository-config."
"""The prefix of settings that contain configuration objects."""


def config_type(setting: str) -> str:
    """Returns the type of configuration to which rules assign a setting."""
    return setting.removeprefix(CONFIG_OBJECT) if setting.startswith(CONFIG_OBJECT) else SETTINGS


def require_config(repository: ReadableRepository, type_: str) -> None:
    """Raises `NotAllowed` if the caller may not read a type of configuration."""
    if isinstance(repository, AuthorizedRepository):
        repository.rights.require(rules.READ_REPOSITORY_CONFIG, config=type_)


def require_rows(
    repository: ReadableRepository, at: AnyRevision, key: ContentKey, type_: str
) -> None:
    """Raises `NotAllowed` if the caller may not read the rows of a table in a state."""
    if isinstance(repository, AuthorizedRepository):
        through = repository.seen(at)
        repository.rights.require(rules.READ_ROWS, through, key, type_)


def require_runs(repository: ReadableRepository, branch: str) -> None:
    """Raises `NotAllowed` if the caller may not have the run with a branch."""
    if isinstance(repository, AuthorizedRepository):
        repository.rights.require(rules.MANAGE_RUNS, branch)


def may_have_runs(repository: ReadableRepository, branch: str) -> bool:
    """Returns whether the caller may have the run with a branch."""
    if not isinstance(repository, AuthorizedRepository):
        return True
    return repository.rights.may(rules.MANAGE_RUNS, branch)


def caller_of(repository: ReadableRepository, name: str | None) -> tuple[str, tuple[str, ...]]:
    """Returns the name and the roles of a caller; roles count only where rules do."""
    if isinstance(repository, AuthorizedRepository):
        caller = repository.rights.caller
        return caller.name, caller.roles
    return name or "", ()


def may_choose_location(
    repository: ReadableRepository, at: AnyRevision, key: ContentKey, type_: str
) -> bool:
    """Returns whether a rule allows the caller to choose the location of a table."""
    return isinstance(repository, AuthorizedRepository) and repository.rights.may(
        rules.CHOOSE_LOCATION, repository.seen(at), key, type_
    )


class AuthorizedRepository(ReadableRepository):
    """The reading methods for one request of one caller.

    Each verb checks permissions first. Listings leave out what the caller may not see.
    """

    def __init__(self, repository: ReadableRepository, rights: Rights, right: str = "") -> None:
        self.rights = rights
        self._right = right
        self._inner = repository
        self._sight = Visibility(repository, rights)
        self.keys = TypedKeys(repository, rights)

    @property
    def url(self) -> str:
        """The URL of the repository."""
        return self._inner.url

    def _see(self, name: str) -> None:
        if not self.rights.may(rules.VIEW_REFERENCE, name):
            raise self._unseen(name)

    def _unseen(self, name: str) -> NotAllowed:
        """Returns the error for a reference that the caller may not view.

        It also names the operation of the request if that is not allowed either.
        """
        refused = self.rights.refusal(rules.VIEW_REFERENCE, name)
        if not self._right or self.rights.may(self._right, name):
            return refused
        return NotAllowed(f"{refused.message}, {self.rights.refusal(self._right, name).message}")

    def _at(self, revision: AnyRevision) -> tuple[str, str]:
        """Returns the hash of a revision, and the reference through which the caller sees it.

        Raises `NotAllowed` if there is none.
        """
        resolved = self.resolve(revision)
        return resolved.hash, self._sight.through(resolved.hash)

    def seen(self, revision: AnyRevision) -> str:
        """Returns the reference through which the caller sees a commit. Raises `NotAllowed`."""
        return self._at(revision)[1]

    def renames(self, branch: str, history: ReachedHistory) -> Renames:
        """Returns the renames of a branch, also of keys that the caller may not read."""
        return Renames(self._inner, branch, history)

    def ways_to(self, hash_: str) -> Iterator[str]:
        """Returns `Visibility.ways` of a commit. Raises `NotAllowed` for a hidden one."""
        self.resolve(Revision(None, hash_))
        return self._sight.ways(hash_)

    def listed(self, start: AnyRevision) -> str:
        """Returns `seen` for a commit whose history the caller must be allowed to list."""
        return self._listed(start)[1]

    # -- references -------------------------------------------------------------------------------
    def config(self) -> RepositoryConfig:
        """Returns the configuration, without settings that the caller may not read."""
        config = self._inner.config()
        may_read = {
            type_: self.rights.may(rules.READ_REPOSITORY_CONFIG, config=type_)
            for type_ in map(config_type, config.settings)
        }
        return structs.replace(
            config,
            settings={
                name: value
                for name, value in config.settings.items()
                if may_read[config_type(name)]
            },
            hides_settings=not may_read.get(SETTINGS, True),
        )

    def resolve(self, revision: AnyRevision) -> Reference:
        """Returns the reference and hash of a revision whose commit the caller sees."""
        base = _base(revision)
        if base != str(revision):
            # An ancestor of a hidden commit may be visible, but not the existence of the hidden
            # one.
            self.resolve(base)
        name, at, _ = base.partition("@")
        if at and name not in ("", "-"):
            # Otherwise the answer would show whether a hidden reference or its commit exists.
            self._see(name)
        try:
            reference = self._inner.resolve(revision)
        except AmbiguousHash as error:
            raise self._fewer(error, revision) from None
        except ReferenceNotFound as error:
            self._see(error.name)
            raise
        if reference.name:
            self._see(reference.name)
            self._sight.name(self._inner.reference(reference.name))
        if reference.hash != NO_ANCESTOR:
            through = self._sight.through(reference.hash)
            if not self.rights.may(rules.VIEW_REFERENCE, through):
                # The caller must not learn that a commit exists which was not named by its full
                # hash.
                raise self._unseen(through) if reference.hash in str(revision) else _no_commit(base)
        return reference

    def _fewer(self, error: AmbiguousHash, revision: AnyRevision) -> Exception:
        """Returns the error for an abbreviated hash, with the candidates that the caller sees."""
        seen = [
            pair
            for pair in error.candidates
            if self.rights.may(rules.VIEW_REFERENCE, self._sight.through(pair[0]))
        ]
        return (
            AmbiguousHash(f"{revision} is ambiguous: several hashes begin with it", seen)
            if seen
            else _no_commit(_base(revision))
        )

    def reference(self, name: str, *, metadata: bool = False) -> Reference:
        """Returns a reference. Raises `NotAllowed` if the caller may not view it."""
        self._see(name)
        reference = self._inner.reference(name, metadata=metadata)
        self._see(reference.name)
        self._sight.name(reference)
        return reference

    def references(
        self,
        type: ReferenceType | None = None,
        *,
        prefix: str = "",
        start: str = "",
        metadata: bool = False,
    ) -> Iterator[Reference]:
        """Yields the references that the caller may view."""
        for reference in self._inner.references(
            type, prefix=prefix, start=start, metadata=metadata
        ):
            if self.rights.may(rules.VIEW_REFERENCE, reference.name):
                yield reference

    def reflog(
        self, name: str | None = None, *, limit: int | None = None, before: int | None = None
    ) -> Iterator[ReflogEntry]:
        """Yields the moves of references whose history or reflog the caller may see.

        A change of a setting is shown to callers who may read the setting.
        """
        count = 0
        for entry in self._inner.reflog(name, before=before):
            if limit is not None and count >= limit:
                return
            if not self._may_see_past(entry):
                continue
            count += 1
            for hash_ in (entry.before, entry.after):
                if hash_ is not None:
                    self._sight.show(hash_, entry.reference)
            yield entry

    def messages(self, names: Collection[str]) -> dict[str, str]:
        """Returns the messages of tags that the caller may view."""
        return self._inner.messages(
            [name for name in names if self.rights.may(rules.VIEW_REFERENCE, name)]
        )

    def _may_see_past(self, entry: ReflogEntry) -> bool:
        may, name = self.rights.may, entry.reference
        if entry.setting is not None:
            return may(rules.READ_REPOSITORY_CONFIG, config=config_type(entry.setting))
        return may(rules.VIEW_REFERENCE, name) and (
            may(rules.VIEW_REFLOG, name) or may(rules.LIST_COMMIT_LOG, name)
        )

    # -- history ----------------------------------------------------------------------------------
    def _listed(self, start: AnyRevision) -> tuple[str, str]:
        hash_, through = self._at(start)
        self.rights.require(rules.LIST_COMMIT_LOG, through)
        return hash_, through

    def log(
        self,
        start: AnyRevision,
        *,
        until: str | None = None,
        operations: bool = False,
        all_parents: bool = False,
    ) -> Iterator[LogEntry]:
        """Yields commits, without operations on contents that the caller may not see."""
        hash_, through = self._listed(start)
        entries = self._inner.log(
            Revision(None, hash_), until=until, operations=operations, all_parents=all_parents
        )
        return self._without_hidden(entries, through)

    def log_excluding(
        self,
        start: AnyRevision,
        exclude: Sequence[AnyRevision],
        *,
        operations: bool = False,
        is_over: Callable[[], bool] | None = None,
    ) -> Iterator[LogEntry]:
        """Yields the commits of `start` that `exclude` does not reach, as `log` shows them."""
        hash_, through = self._listed(start)
        hidden = [Revision(None, self._at(revision)[0]) for revision in exclude]
        entries = self._inner.log_excluding(
            Revision(None, hash_), hidden, operations=operations, is_over=is_over
        )
        return self._without_hidden(entries, through)

    def search_log(
        self, walk: Walk, commit_filter: LogFilter, *, operations: bool = False
    ) -> Iterator[SearchedCommit]:
        """Yields the commits that are read for a filter, as `log` shows them."""
        if walk.start is None or walk.exclude is not None or commit_filter.skip:
            return super().search_log(walk, commit_filter, operations=operations)
        hash_, through = self._listed(walk.start)
        for head in walk.heads:
            if not self._inner.is_ancestor(Revision(None, head), Revision(None, hash_)):
                raise _no_commit(head)
        return self._search(
            structs.replace(walk, start=Revision(None, hash_)), commit_filter, through, operations
        )

    def _search(
        self, walk: Walk, commit_filter: LogFilter, through: str, operations: bool
    ) -> Iterator[SearchedCommit]:
        keys = commit_filter.keys
        if not all(self._may_read_any(through, key) for key in keys):
            # The index would show whether hidden keys exist.
            commit_filter = structs.replace(commit_filter, keys=())
        touches = ENTRIES.touches(keys)
        needed = operations or bool(keys)
        for commit in self._inner.search_log(walk, commit_filter, operations=needed):
            entry = commit.entry and self._shown(commit.entry, through)
            if entry is not None and keys and not touches(entry):
                entry = None
            if entry is not None and not operations:
                entry = LogEntry(entry.meta, entry.height)
            yield commit._replace(entry=entry)

    def _may_read_any(self, through: str, key: ContentKey) -> bool:
        """Returns whether the caller may see a key and its content of any type."""
        return self.rights.may_always(
            rules.READ_CONTENT_KEY, through, key
        ) and self.rights.may_always(rules.READ_ENTITY_VALUE, through, key)

    def log_of_key(
        self, start: AnyRevision, key: ContentKey, *, operations: bool = False
    ) -> Iterator[LogEntry]:
        """Yields the commits that change a key, as `log` shows them.

        Raises `NotAllowed` if the caller may not know the key.
        """
        hash_, through = self._listed(start)
        if not self.rights.may_somehow(rules.READ_CONTENT_KEY, through, key):
            raise self.rights.refusal(rules.READ_CONTENT_KEY, through, key)
        at, depends = Revision(None, hash_), self.keys.depend_on_type(through, key)
        entries = self._inner.log_of_key(at, key, operations=operations or depends)
        if depends:
            entries = (each for each in entries if self.keys.may_know_change(through, each, key))
            if not operations:
                entries = (LogEntry(each.meta, each.height) for each in entries)
        return self._without_hidden(entries, through)

    def commit_at(self, revision: AnyRevision, *, operations: bool = True) -> LogEntry:
        """Returns a commit as `log` shows it. A viewable reference shows its HEAD commit."""
        hash_, through = self._at(revision)
        entry = self._inner.commit_at(Revision(None, hash_), operations=operations)
        return self._shown(entry, through)

    def _without_hidden(self, entries: Iterator[LogEntry], through: str) -> Iterator[LogEntry]:
        return (self._shown(entry, through) for entry in entries)

    def _shown(self, entry: LogEntry, through: str) -> LogEntry:
        if not entry.operations:
            return entry
        deleted = [each.key for each in entry.operations if not isinstance(each, Put)]
        visible = self.keys.visible(through, Revision(None, entry.parent), deleted)

        def may_see(operation: Operation) -> bool:
            if isinstance(operation, Put):
                return self._may_read(through, operation.key, operation.content)
            return operation.key in visible

        return structs.replace(entry, operations=tuple(filter(may_see, entry.operations)))

    def _may_read(self, through: str, key: ContentKey, content: Content | None) -> bool:
        """Returns whether the caller may see a key and its content; None is always visible."""
        if content is None:
            return True
        type_ = content.type_name
        return self.rights.may(rules.READ_CONTENT_KEY, through, key, type_) and self.rights.may(
            rules.READ_ENTITY_VALUE, through, key, type_
        )

    def merge_base(self, a: AnyRevision, b: AnyRevision) -> str:
        """Returns the merge base of two commits that the caller sees."""
        return self._inner.merge_base(
            Revision(None, self._at(a)[0]), Revision(None, self._at(b)[0])
        )

    def is_ancestor(self, ancestor: AnyRevision, descendant: AnyRevision) -> bool:
        """Returns whether one visible commit is reachable from another."""
        return self._inner.is_ancestor(
            Revision(None, self._at(ancestor)[0]), Revision(None, self._at(descendant)[0])
        )

    def ahead_behind(self, of: AnyRevision, base: AnyRevision) -> AheadBehind:
        """Compares the first-parent histories of two commits that the caller sees."""
        return self._inner.ahead_behind(
            Revision(None, self._at(of)[0]), Revision(None, self._at(base)[0])
        )

    # -- contents ---------------------------------------------------------------------------------
    def entries(
        self, at: AnyRevision, keys: KeyRange = ALL_KEYS, *, content: bool = False
    ) -> Iterator[Entry]:
        """Yields the keys that the caller may know.

        With `content`, yields only those whose content the caller may read.
        """
        hash_, through = self._at(at)
        self.rights.require(rules.READ_ENTRIES, through)
        needed = (
            (rules.READ_CONTENT_KEY, rules.READ_ENTITY_VALUE)
            if content
            else (rules.READ_CONTENT_KEY,)
        )

        def may_see(entry: Entry) -> bool:
            return all(self.rights.may(op, through, entry.key, entry.type) for op in needed)

        return filter(may_see, self._inner.entries(Revision(None, hash_), keys, content=content))

    def key_finder(self, text: str) -> Callable[[AnyRevision], Iterator[Entry]]:
        """Returns a function that yields entries whose keys the caller may know."""
        find_any = self._inner.key_finder(text)

        def find(at: AnyRevision) -> Iterator[Entry]:
            hash_, through = self._at(at)
            self.rights.require(rules.READ_ENTRIES, through)
            may = partial(self.rights.may, rules.READ_CONTENT_KEY, through)
            return (
                entry for entry in find_any(Revision(None, hash_)) if may(entry.key, entry.type)
            )

        return find

    def divisions(
        self, at: AnyRevision, most: int, *, prefix: ContentKey | None = None
    ) -> list[ContentKey] | None:
        """Divides a state only at keys that the caller may know."""
        hash_, through = self._at(at)
        self.rights.require(rules.READ_ENTRIES, through)
        cuts = self._inner.divisions(Revision(None, hash_), most, prefix=prefix)
        if cuts is None:
            return None
        return [
            entry.key for entry in self.entries(Revision(None, hash_), KeyRange(keys=tuple(cuts)))
        ]

    def each_content(
        self, at: AnyRevision, keys: Iterable[ContentKey]
    ) -> Iterator[tuple[ContentKey, Content]]:
        """Yields the contents of those keys that exist.

        Raises `NotAllowed` for a key that may not be read, even if it is absent. Types are judged
        before contents are read.
        """
        hash_, through = self._at(at)
        requested = list(keys)
        listed = self._inner.entries(Revision(None, hash_), KeyRange(keys=tuple(requested)))
        types = {entry.key: entry.type for entry in listed}
        for key in requested:
            type_ = types.get(key)
            if type_ is not None:
                self.rights.require(rules.READ_ENTITY_VALUE, through, key, type_)
            elif not self.rights.may_somehow(rules.READ_ENTITY_VALUE, through, key):
                raise self.rights.refusal(rules.READ_ENTITY_VALUE, through, key)
        return self._inner.each_content(Revision(None, hash_), requested)

    def content(self, at: AnyRevision, key: ContentKey) -> Content:
        """Returns one content. Raises `NotAllowed` if the caller may not read it."""
        return self.contents(at, [key]).get(key) or self._inner.content(at, key)

    def diff(
        self,
        before: AnyRevision,
        after: AnyRevision,
        keys: KeyRange = ALL_KEYS,
        *,
        whole: bool = False,
    ) -> Iterator[DiffEntry]:
        """Yields the differences whose contents the caller may read on both sides."""
        left, right = self._at(before), self._at(after)
        for _, through in (left, right):
            self.rights.require(rules.READ_ENTRIES, through)

        def may_see(entry: DiffEntry) -> bool:
            return self._may_read(left[1], entry.key, entry.before) and self._may_read(
                right[1], entry.key, entry.after
            )

        def read() -> Iterator[DiffEntry]:
            return self._inner.diff(Revision(None, left[0]), Revision(None, right[0]), keys)

        if whole:
            shown, hidden = set[str | None](), set[str | None]()
            for entry in read():
                ids = {side.id for side in (entry.before, entry.after) if side is not None}
                (shown if may_see(entry) else hidden).update(ids)
            if shown & hidden:
                raise NotAllowed("a content was renamed from or to a key that you may not read")
        return filter(may_see, read())

    # -- care -------------------------------------------------------------------------------------
    def find_request(self, request_id: str, *, branch: str | None = None) -> CommitResult | None:
        """Returns the result of a write, with the added keys that the caller may know.

        Returns None if the caller may not view the reference: only the request named it. Raises
        `NotAllowed` if the caller may not commit to the branch.
        """
        result = self._inner.find_request(request_id, branch=branch)
        if result is None or not self.rights.may(rules.VIEW_REFERENCE, result.reference.name):
            return None
        name = result.reference.name
        self.rights.require(rules.COMMIT_CHANGE_AGAINST_REFERENCE, name)
        visible = self.keys.visible(name, Revision(None, result.reference.hash), result.added)
        added = {key: id_ for key, id_ in result.added.items() if key in visible}
        return structs.replace(result, added=added)

    def close(self) -> None:
        """Does nothing: the repository belongs to the server."""


def _base(revision: AnyRevision) -> str:
    """Returns a revision without its relative parts."""
    return _STEP.split(str(revision), maxsplit=1)[0]


def _no_commit(base: str) -> CommitNotFound:
    """Returns the error for an unknown hash."""
    hash_ = base.rpartition("@")[2].lower()
    return CommitNotFound(f"Commit '{hash_}' not found", hash_)
