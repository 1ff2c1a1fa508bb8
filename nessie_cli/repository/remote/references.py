"""References and revisions over REST v2: what a server resolves, it resolves; shortened hashes are looked for in its history."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from heapq import merge
from typing import Any

from nessie_cli.commitspec import CommitSpec, Step, parse
from nessie_cli.errors import (
    AlreadyExists,
    AmbiguousHash,
    CommitNotFound,
    InvalidInput,
    NotAllowed,
    OutcomeUnknown,
    ReferenceMoved,
    ReferenceNotFound,
)
from nessie_cli.model import (
    NO_ANCESTOR,
    LogEntry,
    Reference,
    ReferenceType,
    ReflogEntry,
    RepositoryConfig,
    check_new_reference_name,
    check_reference_name,
)
from nessie_cli.repository.base import Repository, Revision
from nessie_cli.repository.remote.ancestry import Ancestry
from nessie_cli.repository.remote.lost import settled
from nessie_cli.repository.remote.session import Session, understood
from nessie_cli.repository.remote.transport import Lost, Query, segment
from nessie_cli.wire import answers

_HASH_DIGITS = 64
_SHORTEST = 4
_CANDIDATES = 10
_SEARCHED = 10_000
"""Commits that are looked through for a shortened hash: the API has no look-up for one."""


class RemoteReferences(Repository):
    """The verbs about references, and what revisions name."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._transport = session.transport
        self._ancestry = Ancestry(lambda start, limit: self._log_page(start, limit, operations=False))
        self._known: set[str] = {NO_ANCESTOR}
        """Hashes that the server has named: commits stay."""

    @property
    def url(self) -> str:
        """The address of the API."""
        return self._transport.url

    @property
    def default_branch(self) -> str:
        """The branch used when none is named."""
        return self._session.facts.default_branch

    def config(self) -> RepositoryConfig:
        """See `Repository`; the settings of a server are its operator's."""
        return self._session.config

    def put_setting(self, name: str, value: str | None) -> str | None:
        """See `Repository`; refused, a server of others has no place for them."""
        raise NotAllowed(f"setting {name!r} = {value!r}: the settings of a server are kept where its store is; set it there")

    # -- reading -----------------------------------------------------------------------------------------------------------------

    def _plain_name(self, name: str) -> str:
        return self.default_branch if name == "-" else name

    def _seen(self, reference: Reference) -> Reference:
        self._known.add(reference.hash)
        return reference

    def reference(self, name: str, *, metadata: bool = False) -> Reference:
        """See `Repository`."""
        name = self._plain_name(name)
        try:
            check_reference_name(name)
        except InvalidInput:
            raise ReferenceNotFound(f"Named reference '{name}' not found", name) from None
        found = self._transport.get(f"trees/{segment(name)}", {"fetch": "ALL" if metadata else None})
        return self._seen(self._session.reference(found))

    def references(self, type: ReferenceType | None = None, *, prefix: str = "", start: str = "", metadata: bool = False) -> Iterator[Reference]:
        """See `Repository`."""
        kinds = [type] if type else [ReferenceType.BRANCH, ReferenceType.TAG]
        if start and type is None and self._is_tag(start):
            kinds = [ReferenceType.TAG]
        filters = [f"ref.name.startsWith({cel_text(prefix)})"] if prefix else []
        filters += [f"refType == {cel_text(kinds[0].value)}"] if len(kinds) == 1 else []
        query: Query = {"fetch": "ALL" if metadata else None, "filter": " && ".join(filters) or None}
        for found in self._session.pages("trees", "references", query, answers.decode_reference):
            if found.type in kinds and found.name.startswith(prefix) and (found.type is not kinds[0] or found.name >= start):
                yield self._seen(found)

    def _is_tag(self, name: str) -> bool:
        try:
            return self.reference(name).type is ReferenceType.TAG
        except ReferenceNotFound:
            return False

    def resolve(self, revision: Revision) -> Reference:
        """See `Repository`."""
        spec = parse(revision) if isinstance(revision, str) else revision
        found = self._named(spec)
        for step in spec.steps:
            found = Reference(found.type, found.name, self._stepped(found.hash, step))
        return found

    def _named(self, spec: CommitSpec) -> Reference:
        if spec.name is None:
            return Reference(ReferenceType.DETACHED, "", self._existing(spec.hash or ""))
        try:
            found = self.reference(spec.name)
        except ReferenceNotFound:
            if spec.hash is None and is_hash(spec.name):
                return Reference(ReferenceType.DETACHED, "", self._existing(spec.name))
            raise
        return Reference(found.type, found.name, self._existing(spec.hash)) if spec.hash else found

    def _hash(self, revision: Revision) -> str:
        return self.resolve(revision).hash

    def _existing(self, hash_: str) -> str:
        """The whole hash of a commit that the server has."""
        hash_ = hash_.lower()
        if not is_hash(hash_):
            raise InvalidInput(f"{hash_!r} is no commit hash (4 to 64 hexadecimal digits)")
        if len(hash_) < _HASH_DIGITS:
            return self._complete(hash_)
        return hash_ if hash_ in self._known else self._effective(f"@{hash_}")

    def _effective(self, path: str) -> str:
        found = self._transport.get(f"trees/{segment(path)}/entries", {"max-records": "1"})
        return self._seen(self._session.reference(found, "effectiveReference")).hash

    def _complete(self, short: str) -> str:
        found = {NO_ANCESTOR: "the empty history"} if NO_ANCESTOR.startswith(short) else {}
        heads = {reference.hash for reference in self.references()} - {NO_ANCESTOR}
        for number, entry in enumerate(self._ancestry.reachable(sorted(heads), [])):
            if entry.hash.startswith(short):
                found[entry.hash] = entry.meta.subject
            if number >= _SEARCHED or len(found) > _CANDIDATES:
                break
        if not found:
            raise CommitNotFound(f"Commit '{short}' not found", short)
        if len(found) > 1:
            raise ambiguous(short, found)
        return next(iter(found))

    def _stepped(self, hash_: str, step: Step) -> str:
        # One request for each: the original heeds only the last step of several.
        return NO_ANCESTOR if hash_ == NO_ANCESTOR else self._effective(f"@{hash_}{step}")

    def _log_page(self, start: str, limit: int, *, operations: bool) -> list[LogEntry]:
        """Up to `limit` commits along first parents from a hash on."""
        raise NotImplementedError

    # -- writing -----------------------------------------------------------------------------------------------------------------

    def create_reference(self, type: ReferenceType, name: str, target: str) -> Reference:
        """See `Repository`. It is looked before: afterwards nobody could tell a reference that was there from one whose answer was lost."""
        check_new_reference_name(name)
        if type not in (ReferenceType.BRANCH, ReferenceType.TAG):
            raise InvalidInput("Reference type name must be either 'branch' or 'tag'")
        wanted = Reference(type, name, self._existing(target))
        if self._found(name) is not None:
            raise AlreadyExists(f"Named reference '{name}' already exists.", name)
        body = {"type": "DETACHED", "hash": wanted.hash}
        return self._sent("POST", "trees", {"name": name, "type": type.value}, body, lambda: wanted if self._stands(wanted) else None)

    def assign_reference(self, name: str, target: str, *, expected_hash: str) -> Reference:
        """See `Repository`."""
        hash_ = self._existing(target)

        def assigned() -> Reference | None:
            found = self._found(name)
            return found if found and found.hash == hash_ else None

        with self._told_where(name, expected_hash):
            return self._sent("PUT", self._at(name, expected_hash), None, {"type": "DETACHED", "hash": hash_}, assigned)

    def rename_reference(self, old: str, new: str, *, expected_hash: str) -> Reference:
        """See `Repository`; two requests, the first undone where the second surely has failed."""
        check_new_reference_name(new)
        found = self.reference(old)
        if found.name == self.default_branch:
            raise InvalidInput(f"Default branch '{found.name}' cannot be renamed.")
        created = self.create_reference(found.type, new, expected_hash)
        try:
            self.delete_reference(old, expected_hash=expected_hash)
        except OutcomeUnknown:
            raise
        except BaseException:
            # Interrupted in the middle, the old one may be gone: then the new one is all that there is.
            if self._found(old) is not None:
                self.delete_reference(new, expected_hash=created.hash)
            raise
        return created

    def delete_reference(self, name: str, *, expected_hash: str) -> Reference:
        """See `Repository`."""
        before = self.reference(name)
        deleted = Reference(before.type, before.name, expected_hash)
        with self._told_where(name, expected_hash):
            return self._sent("DELETE", self._at(name, expected_hash), None, None, lambda: None if self._found(name) else deleted)

    @contextmanager
    def _told_where(self, name: str, expected_hash: str) -> Iterator[None]:
        """That a reference has moved is told with where it is: the wire has that only in a sentence."""
        try:
            yield
        except ReferenceMoved as moved:
            moved.reference, moved.expected_hash = name, expected_hash
            found = self._found(name)
            moved.head = found.hash if found else None
            raise

    def _sent(self, method: str, path: str, query: Query | None, body: Any, look: Callable[[], Reference | None]) -> Reference:
        """The answer to a change of a reference; where it was lost, what `look` finds."""
        try:
            return self._session.reference(self._transport.send(method, path, query, body))
        except Lost as lost:
            return settled(lost, look)

    def _found(self, name: str) -> Reference | None:
        try:
            return self.reference(name)
        except ReferenceNotFound:
            return None

    def _stands(self, wanted: Reference) -> bool:
        found = self._found(wanted.name)
        return found is not None and (found.type, found.hash) == (wanted.type, wanted.hash)

    def _at(self, name: str, hash_: str) -> str:
        return f"trees/{segment(f'{check_reference_name(self._plain_name(name))}@{hash_}')}"

    # -- reflog ------------------------------------------------------------------------------------------------------------------

    def reflog(self, name: str | None = None, *, limit: int | None = None) -> Iterator[ReflogEntry]:
        """See `Repository`; a server tells former hashes of existing references, a few and of late, not who moved them."""
        if name is not None and not name.isascii():
            # No reference can ever have had such a name, and not every text can be sent.
            return
        names = [name] if name is not None else [reference.name for reference in self.references()]

        def newest_first(entry: ReflogEntry) -> tuple[datetime, int]:
            return entry.time, entry.number

        moves = merge(*(self._recent(each) for each in names), key=newest_first, reverse=True)
        for count, entry in enumerate(moves):
            if count == limit:
                return
            yield entry

    def _recent(self, name: str) -> list[ReflogEntry]:
        path = f"trees/{segment(self._plain_name(name))}/recent-changes"
        found = self._session.optional(lambda: self._transport.get(path), "where references have been (recent-changes)")
        return understood(found, answers.decode_recent_changes, "recent-changes")


def is_hash(text: str) -> bool:
    """Whether a text can be a commit hash, whole or shortened."""
    return _SHORTEST <= len(text) <= _HASH_DIGITS and all(c in "0123456789abcdefABCDEF" for c in text)


def ambiguous(short: str, found: dict[str, str]) -> AmbiguousHash:
    """The error for a shortened hash that several commits share."""
    pairs = list(found.items())[:_CANDIDATES]
    names = ", ".join(f"{hash_[: max(8, len(short) + 4)]} ({subject})" for hash_, subject in pairs)
    more = " and more" if len(found) > _CANDIDATES else ""
    return AmbiguousHash(f"hash '{short}' is ambiguous: {names}{more}", pairs)


def cel_text(text: str) -> str:
    """A text as CEL writes it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
