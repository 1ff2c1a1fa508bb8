"""The repository on a server that speaks REST v2, ours or another.

Each verb resolves its revisions here; the modules beside this one work on whole hashes. Our own
servers announce the extensions of `wire.extensions`; on others `plain` has the verbs that differ,
and `key_history` searches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Self

from nessie_cli.errors import ContentNotFound, InvalidInput
from nessie_cli.kernel.drafting import check_client_meta
from nessie_cli.model import (
    CommitMeta,
    CommitResult,
    Content,
    ContentKey,
    DiffEntry,
    Entry,
    KeyRange,
    LogEntry,
    MergeResult,
    Operation,
    Problem,
    Reference,
    ReferenceType,
    ReflogEntry,
    RepositoryConfig,
)
from nessie_cli.repository.base import ALL_KEYS, AheadBehind, MergeOptions, Revision
from nessie_cli.repository.remote import commit, contents, history, key_history, merge, plain, references, revisions, settings
from nessie_cli.repository.remote.ancestry import Ancestry
from nessie_cli.repository.remote.session import Session

_NO_OPTIONS = MergeOptions()


class RemoteRepository:
    """A `Repository` behind a server."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._extensions = session.server.extensions

    @property
    def url(self) -> str:
        """The address of the API."""
        return self._session.transport.url

    @property
    def default_branch(self) -> str:
        """The branch used when none is named."""
        return self._session.server.default_branch

    # -- references --------------------------------------------------------------------------------

    def config(self) -> RepositoryConfig:
        """See `Repository`; with settings on our servers only."""
        return settings.config(self._session) if self._extensions else self._session.config

    def put_setting(self, name: str, value: str | None) -> str | None:
        """See `Repository`."""
        return settings.put(self._session, name, value) if self._extensions else plain.put_setting(name, value)

    def resolve(self, revision: Revision) -> Reference:
        """See `Repository`; a shortened hash is looked for in the newest commits."""
        return revisions.resolve(self._session, revision)

    def _hash(self, revision: Revision) -> str:
        return revisions.resolve(self._session, revision).hash

    def reference(self, name: str, *, metadata: bool = False) -> Reference:
        """See `Repository`."""
        return references.get(self._session, name, metadata=metadata)

    def references(self, type: ReferenceType | None = None, *, prefix: str = "", start: str = "", metadata: bool = False) -> Iterator[Reference]:
        """See `Repository`."""
        return references.list_all(self._session, type, prefix=prefix, start=start, metadata=metadata)

    def create_reference(self, type: ReferenceType, name: str, target: str) -> Reference:
        """See `Repository`."""
        return references.create(self._session, type, name, revisions.existing(self._session, target))

    def assign_reference(self, name: str, target: str, *, expected_hash: str) -> Reference:
        """See `Repository`."""
        return references.assign(self._session, name, revisions.existing(self._session, target), expected_hash=expected_hash)

    def rename_reference(self, old: str, new: str, *, expected_hash: str) -> Reference:
        """See `Repository`."""
        rename = references.rename if self._extensions else plain.rename_reference
        return rename(self._session, old, new, expected_hash=expected_hash)

    def delete_reference(self, name: str, *, expected_hash: str) -> Reference:
        """See `Repository`."""
        return references.delete(self._session, name, expected_hash=expected_hash)

    def reflog(self, name: str | None = None, *, limit: int | None = None) -> Iterator[ReflogEntry]:
        """See `Repository`."""
        if name is not None and not name.isascii():
            # No reference can ever have had such a name, and not every text can be sent.
            return
        found = references.reflog if self._extensions else plain.reflog
        yield from islice(found(self._session, name), limit)

    # -- history -----------------------------------------------------------------------------------

    def log(self, start: Revision, *, until: str | None = None, operations: bool = False, all_parents: bool = False) -> Iterator[LogEntry]:
        """See `Repository`; the height of a commit is not on the wire, it is 0."""
        first, last = self._hash(start), revisions.existing(self._session, until) if until else None
        if all_parents:
            walk = Ancestry(self._session, operations=operations).reachable([first], [])
        else:
            walk = history.log(self._session, first, operations=operations)
        for entry in walk:
            yield entry
            if entry.hash == last:
                return

    def log_excluding(self, start: Revision, exclude: Sequence[Revision], *, operations: bool = False) -> Iterator[LogEntry]:
        """See `Repository`."""
        hidden = [self._hash(revision) for revision in exclude]
        yield from Ancestry(self._session, operations=operations).reachable([self._hash(start)], hidden)

    def log_of_key(self, start: Revision, key: ContentKey, *, operations: bool = False) -> Iterator[LogEntry]:
        """See `Repository`."""
        yield from key_history.log_of_key(self._session, self._hash(start), key, operations=operations)

    def commit_at(self, revision: Revision) -> LogEntry:
        """See `Repository`."""
        return history.commit_at(self._session, self._hash(revision))

    def last_change(self, at: Revision, key: ContentKey) -> CommitMeta | None:
        """See `Repository`."""
        return key_history.last_changes(self._session, self._hash(at), [key]).get(key)

    def merge_base(self, a: Revision, b: Revision) -> str:
        """See `Repository`; one request for each page of history since it."""
        return Ancestry(self._session).merge_base(self._hash(a), self._hash(b))

    def is_ancestor(self, ancestor: Revision, descendant: Revision) -> bool:
        """See `Repository`; one request for each page of history since the ancestor."""
        return Ancestry(self._session).is_ancestor(self._hash(ancestor), self._hash(descendant))

    def ahead_behind(self, of: Revision, base: Revision) -> AheadBehind:
        """See `Repository`."""
        return Ancestry(self._session).ahead_behind(self._hash(of), self._hash(base))

    # -- contents ----------------------------------------------------------------------------------

    def entries(self, at: Revision, keys: KeyRange = ALL_KEYS, *, content: bool = False) -> Iterator[Entry]:
        """See `Repository`."""
        yield from contents.entries(self._session, self._hash(at), keys, content=content)

    def contents(self, at: Revision, keys: Iterable[ContentKey]) -> dict[ContentKey, Content]:
        """See `Repository`."""
        return contents.contents(self._session, self._hash(at), keys)

    def content(self, at: Revision, key: ContentKey) -> Content:
        """See `Repository`."""
        reference = self.resolve(at)
        found = contents.contents(self._session, reference.hash, [key])
        if key not in found:
            raise ContentNotFound(f"Could not find content for key '{key.plain}' in reference '{reference.name or reference.hash}'.", key)
        return found[key]

    def diff(self, before: Revision, after: Revision, keys: KeyRange = ALL_KEYS) -> Iterator[DiffEntry]:
        """See `Repository`."""
        yield from contents.diff(self._session, self._hash(before), self._hash(after), keys)

    def divisions(self, at: Revision, most: int, *, prefix: ContentKey | None = None) -> list[ContentKey]:
        """See `Dividing`."""
        divide = contents.divisions if self._extensions else plain.divisions
        return divide(self._session, self._hash(at), most, prefix)

    # -- writing -----------------------------------------------------------------------------------

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
        request = commit.CommitRequest(branch, list(operations), meta, expected_hash, request_id, dry_run)
        return commit.commit(self._session, request) if self._extensions else plain.commit(self._session, request)

    def find_request(self, request_id: str, *, branch: str | None = None) -> CommitResult | None:
        """See `Repository`."""
        if self._extensions:
            return commit.find_request(self._session, request_id)
        return plain.find_request(self._session, request_id, branch)

    def merge(self, branch: str, source: Revision, options: MergeOptions = _NO_OPTIONS) -> MergeResult:
        """See `Repository`."""
        if options.meta is not None:
            check_client_meta(options.meta)
        combine = merge.merge if self._extensions else plain.merge
        return combine(self._session, branch, self.resolve(source), options)

    def transplant(self, branch: str, commits: Sequence[str], options: MergeOptions = _NO_OPTIONS) -> MergeResult:
        """See `Repository`."""
        if options.meta is not None:
            check_client_meta(options.meta)
        if not commits:
            raise InvalidInput("No hashes given to transplant.")
        combine = merge.transplant if self._extensions else plain.transplant
        return combine(self._session, branch, [revisions.existing(self._session, hash_) for hash_ in commits], options)

    # -- care --------------------------------------------------------------------------------------

    def check(self) -> Iterator[Problem]:
        """See `Repository`; refused, because every object is read where the store is."""
        raise InvalidInput(f"server {self.url}: a server's store is checked where it is, by `nessie fsck --store URL` there")

    def close(self) -> None:
        """See `Repository`."""
        self._session.transport.close()

    def __enter__(self) -> Self:
        """See `Repository`."""
        return self

    def __exit__(self, *_: object) -> None:
        """See `Repository`."""
        self.close()
