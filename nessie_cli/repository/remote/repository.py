"""The repository on a server with REST v2, `nessie serve` or another.

Each method resolves its revisions here. The other modules of this package take complete hashes.
`Server` has the requests that depend on the extensions of a server. Methods that write import the
rules of the kernel when they are called, which saves every reading command 10 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import structs

from nessie_cli.errors import ContentNotFound
from nessie_cli.model import (
    SETTING_PREFIX,
    AheadBehind,
    CombinationRules,
    CombinedTable,
    CommitMeta,
    CommitResult,
    Content,
    ContentKey,
    DiffEntry,
    Entry,
    KeyRange,
    LogEntry,
    MergeResult,
    Reference,
    ReferenceType,
    ReflogEntry,
    RepositoryConfig,
)
from nessie_cli.repository.base import ALL_KEYS, CombiningServer, Repository, RowSource
from nessie_cli.repository.changes import (
    AnyRevision,
    Change,
    Commit,
    Merge,
    TablePlaces,
    Transplant,
)
from nessie_cli.repository.remote import contents, history, references, revisions
from nessie_cli.repository.remote.ancestry import Ancestry
from nessie_cli.repository.remote.server import Server

if TYPE_CHECKING:
    from nessie_cli.repository.draft import ChangeSubmission, Check, Draft
    from nessie_cli.repository.runs import RunRecords
    from nessie_cli.wire.rows import RowQuery


A = TypeVar("A")


class RemoteRepository(Repository):
    """A `Repository` behind a server."""

    is_remote = True

    def __init__(self, server: Server) -> None:
        self._server = server
        self._session = server.session

    @property
    def url(self) -> str:
        """The address of the API."""
        return self._session.transport.url

    @property
    def default_branch(self) -> str:
        """The branch used when none is named."""
        return self._session.configuration.default_branch

    @property
    def restores_content_ids(self) -> bool:
        """Whether a deleted content that comes back keeps its id."""
        return self._session.configuration.extensions

    @property
    def combining_server(self) -> CombiningServer | None:
        """This repository, if the server combines tables."""
        return self if self._session.configuration.combines else None

    def combine_table(self, table: TablePlaces, rules: CombinationRules) -> CombinedTable:
        """Combines a table and writes its files, for a commit that stores the result."""
        from nessie_cli.repository.remote.extended.merge import combine_table

        return combine_table(self._session, table, rules)

    @property
    def row_source(self) -> RowSource | None:
        """This repository, if the server reads the rows of tables."""
        return self if self._session.configuration.reads_rows else None

    def changed_rows(self, query: RowQuery) -> bytes:
        """Returns the changed rows of a table as frames (`wire.rows`)."""
        from nessie_cli.repository.remote.extended.rows import changed_rows

        return changed_rows(self._session, query)

    @property
    def runs(self) -> RunRecords:
        """The records of pipelines' runs. Raises `InvalidInput` for a server that has none."""
        if not self._session.configuration.extensions:
            return super().runs
        from nessie_cli.repository.remote.extended.runs import RemoteRuns

        return RemoteRuns(self._session)

    # -- references -------------------------------------------------------------------------------

    def config(self) -> RepositoryConfig:
        """Returns the default branch and the creation time. `nessie serve` also has settings."""
        settings = self._server.settings()
        return structs.replace(
            self._session.repository_config,
            settings=settings.values,
            hides_settings=settings.has_hidden,
        )

    def resolve(self, revision: AnyRevision) -> Reference:
        """Returns the reference and hash that a revision names.

        Searches the newest 10,000 commits for a shortened hash.
        """
        return revisions.resolve(self._session, revision)

    def _hash(self, revision: AnyRevision) -> str:
        return revisions.resolve(self._session, revision).hash

    def reference(self, name: str, *, metadata: bool = False) -> Reference:
        """Returns a branch or tag. Raises `ReferenceNotFound`."""
        return references.get(self._session, name, metadata=metadata)

    def references(
        self,
        type: ReferenceType | None = None,
        *,
        prefix: str = "",
        start: str = "",
        metadata: bool = False,
    ) -> Iterator[Reference]:
        """Yields branches, then tags, each sorted by name."""
        return references.list_all(
            self._session, type, prefix=prefix, start=start, metadata=metadata
        )

    def reflog(
        self, name: str | None = None, *, limit: int | None = None, before: int | None = None
    ) -> Iterator[ReflogEntry]:
        """Yields the moves of one or all references, newest first."""
        if name is not None and not (name.isascii() or name.startswith(SETTING_PREFIX)):
            # No reference can ever have had such a name, and not every text can be sent.
            return
        moves = self._server.reflog(name)
        if before is not None:
            moves = (move for move in moves if move.number < before)
        yield from islice(moves, limit)

    def caller(self) -> str | None:
        """Returns the name of the caller that the server authenticated, or None."""
        return self._server.caller()

    def messages(self, names: Collection[str]) -> dict[str, str]:
        """Returns the messages of those tags that have one."""
        return self._server.messages(names)

    # -- history ----------------------------------------------------------------------------------

    def log(
        self,
        start: AnyRevision,
        *,
        until: str | None = None,
        operations: bool = False,
        all_parents: bool = False,
    ) -> Iterator[LogEntry]:
        """Yields commits, newest first. Their height is 0 if the server does not send it."""
        first, last = self._hash(start), revisions.existing(self._session, until) if until else None
        if all_parents:
            walk = Ancestry(self._session, operations=operations).reachable([first], [])
        else:
            walk = history.log(self._session, first, operations=operations)
        for entry in walk:
            yield entry
            if entry.hash == last:
                return

    def log_excluding(
        self,
        start: AnyRevision,
        exclude: Sequence[AnyRevision],
        *,
        operations: bool = False,
        is_over: Callable[[], bool] | None = None,
    ) -> Iterator[LogEntry]:
        """Yields commits that `start` reaches over all parents but `exclude` does not."""
        hidden = [self._hash(revision) for revision in exclude]
        ancestry = Ancestry(self._session, operations=operations)
        for entry in ancestry.reachable([self._hash(start)], hidden):
            if is_over is not None and is_over():
                raise TimeoutError
            yield entry

    def log_of_key(
        self, start: AnyRevision, key: ContentKey, *, operations: bool = False
    ) -> Iterator[LogEntry]:
        """Yields commits along first parents with an operation on this key, newest first."""
        yield from self._server.log_of_key(self._hash(start), key, operations=operations)

    def commit_at(self, revision: AnyRevision, *, operations: bool = True) -> LogEntry:
        """Returns a commit. Raises `CommitNotFound`."""
        return history.commit_at(self._session, self._hash(revision), operations=operations)

    def last_change(self, at: AnyRevision, key: ContentKey) -> CommitMeta | None:
        """Returns the newest first-parent commit with an operation on a key."""
        return self._server.last_changes(self._hash(at), [key]).get(key)

    def merge_base(self, a: AnyRevision, b: AnyRevision) -> str:
        """Returns the best common ancestor. Cost: one request for each page of history since it."""
        return Ancestry(self._session).merge_base(self._hash(a), self._hash(b))

    def is_ancestor(self, ancestor: AnyRevision, descendant: AnyRevision) -> bool:
        """Returns whether a commit is reachable from another over any parents.

        Cost: one request for each page of history since the ancestor.
        """
        return Ancestry(self._session).is_ancestor(self._hash(ancestor), self._hash(descendant))

    def ahead_behind(self, of: AnyRevision, base: AnyRevision) -> AheadBehind:
        """Returns how many first-parent commits `of` is ahead of `base`, and how many behind."""
        return Ancestry(self._session).ahead_behind(self._hash(of), self._hash(base))

    # -- contents ---------------------------------------------------------------------------------

    def entries(
        self, at: AnyRevision, keys: KeyRange = ALL_KEYS, *, content: bool = False
    ) -> Iterator[Entry]:
        """Yields the keys of a commit's state, ascending."""
        yield from contents.entries(self._session, self._hash(at), keys, content=content)

    def contents(self, at: AnyRevision, keys: Iterable[ContentKey]) -> dict[ContentKey, Content]:
        """Returns the contents of those keys that exist."""
        return contents.contents(self._session, self._hash(at), keys)

    def each_content(
        self, at: AnyRevision, keys: Iterable[ContentKey]
    ) -> Iterator[tuple[ContentKey, Content]]:
        """Returns the contents of those keys that exist, ascending by key."""
        return iter(self.contents(at, keys).items())

    def content(self, at: AnyRevision, key: ContentKey) -> Content:
        """Returns a content. Raises `ContentNotFound`."""
        reference = self.resolve(at)
        content = contents.contents(self._session, reference.hash, [key]).get(key)
        if content is None:
            raise ContentNotFound(
                f"Could not find content for key '{key.plain}' in reference"
                f" '{reference.name or reference.hash}'.",
                key,
            )
        return content

    def diff(
        self,
        before: AnyRevision,
        after: AnyRevision,
        keys: KeyRange = ALL_KEYS,
        *,
        whole: bool = False,
    ) -> Iterator[DiffEntry]:
        """Yields contents that differ. A server without extensions ignores `whole`."""
        hashes = self._hash(before), self._hash(after)
        yield from self._server.diff(*hashes, keys, whole=whole)

    def divisions(
        self, at: AnyRevision, most: int, *, prefix: ContentKey | None = None
    ) -> list[ContentKey]:
        """Returns the last key of each part but the final one, for parts of at most `most` keys."""
        return self._server.divisions(self._hash(at), most, prefix)

    # -- writing ----------------------------------------------------------------------------------

    def draft(self, change: Change[A], submission: ChangeSubmission | None = None) -> Draft[A]:  # noqa: ARG002 - a dry run keeps nothing
        """Drafts a change by a dry run, if the server has one for it.

        Only moves of references are exact.
        """
        from nessie_cli.repository.remote import drafts

        drafted = drafts.draft(self._server, change)
        drafted.open_view = lambda _: self
        return drafted

    def _write(
        self, change: Change[A], request_id: str | None, check: Check | None
    ) -> tuple[A, Draft[A] | None]:
        """Drafts a change if there is a `check`, and sends it.

        A merge keeps the source that `check` saw, even if its branch moves.
        """
        from nessie_cli.repository.remote import sending

        drafted = None
        if check is not None and not (
            request_id and self.find_request(request_id, branch=_branch_of(change))
        ):
            drafted = self.draft(change)
            if drafted.answer() and _changes_something(drafted):
                check(drafted)
                change = drafted.change
            else:
                drafted = None
        return sending.send(self._server, change, request_id), drafted

    def find_request(self, request_id: str, *, branch: str | None = None) -> CommitResult | None:
        """Returns the result of the write with this request id, or None."""
        return self._server.find_request(request_id, branch)

    def close(self) -> None:
        """Closes the connections."""
        self._session.transport.close()


def _branch_of(change: Change[Any]) -> str | None:
    return change.branch if isinstance(change, Commit | Merge | Transplant) else None


def _changes_something(draft: Draft[Any]) -> bool:
    answer = draft.answer()
    return bool(answer.details) if isinstance(answer, MergeResult) else True
