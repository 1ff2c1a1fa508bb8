"""The reading half of the remote repository: paged listings as iterators, revisions resolved by the server, ancestry by walking logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from nessie_cli.commitspec import CommitSpec, Step, parse
from nessie_cli.errors import AmbiguousHash, CommitNotFound, ContentNotFound, InvalidInput, ReferenceNotFound
from nessie_cli.kernel.objects import Kind, encode_value, object_id
from nessie_cli.model import (
    NO_ANCESTOR,
    CommitMeta,
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
from nessie_cli.repository.base import ALL_KEYS, AheadBehind, Revision
from nessie_cli.repository.remote.ancestry import Ancestry
from nessie_cli.repository.remote.transport import Query, Transport, segment
from nessie_cli.wire import answers
from nessie_cli.wire import keys as wire_keys
from nessie_cli.wire.decode import decode_instant, decode_key
from nessie_cli.wire.encode import encode_key

PAGE = 250
KEYS_AT_ONCE = 200
_HASH_DIGITS = 64
_SHORTEST = 4
_SEARCHED = 10_000
"""Commits that are looked through for a shortened hash: the API has no look-up for one."""
_ESCAPED_SINCE = (2, 2)


class RemoteReading:
    """Everything that changes nothing."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._config: dict[str, Any] | None = None
        self._ancestry = Ancestry(self._log_page)

    @property
    def url(self) -> str:
        """The address of the API."""
        return self._transport.url

    # -- configuration -----------------------------------------------------------------------------------------------------------

    def _configuration(self) -> dict[str, Any]:
        if self._config is None:
            found = self._transport.get("config")
            self._config = found if isinstance(found, dict) else {}
        return self._config

    def config(self) -> RepositoryConfig:
        """See `Repository`; the settings of a server are its operator's."""
        found = self._configuration()
        created = found.get("repositoryCreationTimestamp")
        when = answers.understood(lambda: decode_instant(created, "repositoryCreationTimestamp"), "config") if created else None
        return RepositoryConfig(str(found.get("defaultBranch", "main")), when, f"REST {found.get('specVersion') or 'unknown'}", {})

    @property
    def default_branch(self) -> str:
        """The branch used when none is named."""
        return str(self._configuration().get("defaultBranch", "main"))

    def _key_text(self, key: ContentKey) -> str:
        """A key in a URL, in the form that the server's specification version knows (reference 4.2)."""
        version = str(self._configuration().get("specVersion") or "0")
        numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
        return wire_keys.encode_escaped(key) if numbers >= _ESCAPED_SINCE else wire_keys.encode_legacy(key)

    # -- references --------------------------------------------------------------------------------------------------------------

    def _plain_name(self, name: str) -> str:
        return self.default_branch if name == "-" else name

    def reference(self, name: str, *, metadata: bool = False) -> Reference:
        """See `Repository`."""
        found = self._transport.get(f"trees/{segment(self._plain_name(name))}", {"fetch": "ALL" if metadata else None})
        return answers.understood(lambda: answers.decode_reference(found["reference"]), "reference")

    def references(self, type: ReferenceType | None = None, *, prefix: str = "", start: str = "", metadata: bool = False) -> Iterator[Reference]:
        """See `Repository`."""
        reached = not start
        for data in self._pages("trees", "references", {"fetch": "ALL" if metadata else None}):
            found = answers.understood(lambda data=data: answers.decode_reference(data), "references")  # type: ignore[misc]
            if type is not None and found.type is not type:
                continue
            # With one kind, the order is that of names; with both, branches come before tags, so the start has to be met.
            reached = reached or (found.name >= start if type is not None else found.name == start)
            if reached and found.name.startswith(prefix):
                yield found

    def resolve(self, revision: Revision) -> Reference:
        """See `Repository`."""
        spec = parse(revision) if isinstance(revision, str) else revision
        found = self._start(spec)
        for step in spec.steps:
            found = Reference(found.type, found.name, self._stepped(found.hash, step))
        return found

    def _start(self, spec: CommitSpec) -> Reference:
        if spec.name is None:
            return Reference(ReferenceType.DETACHED, "", self._existing(spec.hash or ""))
        try:
            found = self.reference(spec.name)
        except ReferenceNotFound:
            if spec.hash is None and _is_hash(spec.name):
                return Reference(ReferenceType.DETACHED, "", self._existing(spec.name))
            raise
        return Reference(found.type, found.name, self._existing(spec.hash)) if spec.hash else found

    def _existing(self, hash_: str) -> str:
        hash_ = hash_.lower()
        if not _is_hash(hash_):
            raise InvalidInput(f"{hash_!r} is no commit hash (4 to 64 hexadecimal digits)")
        if len(hash_) < _HASH_DIGITS:
            return self._complete(hash_)
        return hash_ if hash_ == NO_ANCESTOR else self._effective(f"@{hash_}").hash

    def _effective(self, path: str) -> Reference:
        found = self._transport.get(f"trees/{segment(path)}/entries", {"max-records": "1"})
        return answers.understood(lambda: answers.decode_reference(found["effectiveReference"]), "effectiveReference")

    def _complete(self, short: str) -> str:
        candidates = {NO_ANCESTOR: "the empty history"} if NO_ANCESTOR.startswith(short) else {}
        budget = _SEARCHED
        for reference in list(self.references()):
            for entry in self.log(CommitSpec(None, reference.hash)):
                if entry.hash.startswith(short):
                    candidates[entry.hash] = entry.meta.subject
                budget -= 1
                if budget <= 0:
                    break
        if not candidates:
            raise CommitNotFound(f"Commit '{short}' not found", short)
        if len(candidates) > 1:
            names = ", ".join(f"{hash_[: len(short) + 4]} ({subject})" for hash_, subject in candidates.items())
            raise AmbiguousHash(f"hash '{short}' is ambiguous: {names}", list(candidates.items()))
        return next(iter(candidates))

    def _stepped(self, hash_: str, step: Step) -> str:
        return NO_ANCESTOR if hash_ == NO_ANCESTOR else self._effective(f"@{hash_}{step}").hash

    def _hash(self, revision: Revision) -> str:
        return self.resolve(revision).hash

    def reflog(self, name: str | None = None, *, limit: int | None = None) -> Iterator[ReflogEntry]:
        """See `Repository`; a server tells former hashes of a reference, not who moved it (reference 12.7)."""
        names = [name] if name is not None else [reference.name for reference in self.references()]
        left = limit if limit is not None else -1
        for each in names:
            for entry in self._recent(each):
                if left == 0:
                    return
                left -= 1
                yield entry

    def _recent(self, name: str) -> Iterator[ReflogEntry]:
        found = self._transport.get(f"trees/{segment(self._plain_name(name))}/recent-changes")
        reference = answers.understood(lambda: answers.decode_reference(found["reference"]), "recent-changes")
        states = [found.get("current"), *(found.get("previous") or [])]
        states = [state for state in states if isinstance(state, dict) and state.get("commitHash")]
        for index, state in enumerate(states):
            meta = answers.decode_meta(state["meta"]) if isinstance(state.get("meta"), dict) else None
            before = states[index + 1]["commitHash"] if index + 1 < len(states) else None
            when = (meta.commit_time if meta else None) or answers.EPOCH
            yield ReflogEntry(
                number=len(states) - index,
                reference=reference.name,
                type=reference.type,
                before=before,
                after=state["commitHash"],
                time=when,
                who=(meta.committer if meta else None) or "",
                operation="",
                message=meta.subject if meta else "",
                request_id="",
            )

    # -- history -----------------------------------------------------------------------------------------------------------------

    def _log_page(self, start: str, limit: int) -> list[LogEntry]:
        """Up to `limit` commits along first parents from a hash on, without operations."""
        found = self._transport.get(f"trees/{segment('@' + start)}/history", {"max-records": str(limit)})
        return answers.understood(lambda: [answers.decode_log_entry(entry) for entry in found["logEntries"]], "history")

    def log(self, start: Revision, *, until: str | None = None, operations: bool = False, all_parents: bool = False) -> Iterator[LogEntry]:
        """See `Repository`; the height of a commit is not on the wire and is counted back from the reference's total where that is known."""
        first, last = self._hash(start), self._existing(until) if until else None
        walk = self._ancestry.reachable([first], []) if all_parents else self._first_parents(first, operations=operations)
        for entry in walk:
            yield self._with_operations(entry) if operations and entry.operations is None else entry
            if entry.hash == last:
                return

    def _first_parents(self, first: str, *, operations: bool) -> Iterator[LogEntry]:
        if first == NO_ANCESTOR:
            return
        query: Query = {"fetch": "ALL" if operations else None, "max-records": str(PAGE)}
        for data in self._pages(f"trees/{segment('@' + first)}/history", "logEntries", query):
            yield answers.understood(lambda data=data: _logged(data, operations=operations), "history")  # type: ignore[misc]

    def _with_operations(self, entry: LogEntry) -> LogEntry:
        return next(self._first_parents(entry.hash, operations=True))

    def log_excluding(self, start: Revision, exclude: Sequence[Revision], *, operations: bool = False) -> Iterator[LogEntry]:
        """See `Repository`."""
        hidden = [self._hash(revision) for revision in exclude]
        for entry in self._ancestry.reachable([self._hash(start)], hidden):
            yield self._with_operations(entry) if operations else entry

    def log_of_key(self, start: Revision, key: ContentKey, *, operations: bool = False) -> Iterator[LogEntry]:
        """See `Repository`; the server looks through the history."""
        first = self._hash(start)
        if first == NO_ANCESTOR:
            return
        text = wire_keys.encode_legacy(key).replace("\\", "\\\\").replace("'", "\\'")
        query: Query = {"fetch": "ALL", "filter": f"operations.exists(op, op.encodedKey == '{text}')", "max-records": str(PAGE)}
        for data in self._pages(f"trees/{segment('@' + first)}/history", "logEntries", query):
            entry = answers.understood(lambda data=data: _logged(data, operations=True), "history")  # type: ignore[misc]
            if any(operation.key == key for operation in entry.operations or ()):
                yield entry if operations else LogEntry(entry.meta, entry.height)

    def commit_at(self, revision: Revision) -> LogEntry:
        """See `Repository`."""
        found = self._hash(revision)
        if found == NO_ANCESTOR:
            raise CommitNotFound("the history is empty: there is no commit", NO_ANCESTOR)
        return next(self._first_parents(found, operations=True))

    def last_change(self, at: Revision, key: ContentKey) -> CommitMeta | None:
        """See `Repository`."""
        return next((entry.meta for entry in self.log_of_key(at, key)), None)

    def merge_base(self, a: Revision, b: Revision) -> str:
        """See `Repository`; one read for each page of history since it."""
        return self._ancestry.merge_base(self._hash(a), self._hash(b))

    def is_ancestor(self, ancestor: Revision, descendant: Revision) -> bool:
        """See `Repository`."""
        wanted, first = self._hash(ancestor), self._hash(descendant)
        return wanted in (NO_ANCESTOR, first) or any(entry.hash == wanted for entry in self._ancestry.reachable([first], []))

    def ahead_behind(self, of: Revision, base: Revision) -> AheadBehind:
        """See `Repository`."""
        return self._ancestry.ahead_behind(self._hash(of), self._hash(base))

    # -- contents ----------------------------------------------------------------------------------------------------------------

    def _range(self, keys: KeyRange) -> Query:
        def text(key: ContentKey | None) -> str | None:
            return self._key_text(key) if key is not None and key.elements else None

        return {
            "key": [self._key_text(key) for key in keys.keys] if keys.keys is not None else None,
            "min-key": text(keys.minimum),
            "max-key": text(keys.maximum),
            "prefix-key": text(keys.prefix),
        }

    def entries(self, at: Revision, keys: KeyRange = ALL_KEYS, *, content: bool = False) -> Iterator[Entry]:
        """See `Repository`; the hash of a content is known only where the content is asked for."""
        where = self._hash(at)
        if keys.keys == ():
            return
        query: Query = {**self._range(keys), "content": "true" if content else None, "max-records": str(PAGE)}
        for data in self._pages(f"trees/{segment('@' + where)}/entries", "entries", query):
            yield answers.understood(lambda data=data: _entry(data), "entries")  # type: ignore[misc]

    def contents(self, at: Revision, keys: Iterable[ContentKey]) -> dict[ContentKey, Content]:
        """See `Repository`."""
        where, wanted, found = self._hash(at), sorted(set(keys)), {}
        for first in range(0, len(wanted), KEYS_AT_ONCE):
            body = {"requestedKeys": [encode_key(key) for key in wanted[first : first + KEYS_AT_ONCE]]}
            answer = self._transport.send("POST", f"trees/{segment('@' + where)}/contents", body=body, safe=True)
            for item in answers.understood(lambda answer=answer: list(answer["contents"]), "contents"):  # type: ignore[misc]
                found[decode_key(item["key"])] = answers.understood(lambda item=item: answers.decode_content(item["content"]), "contents")  # type: ignore[misc]
        return dict(sorted(found.items()))

    def content(self, at: Revision, key: ContentKey) -> Content:
        """See `Repository`."""
        reference = self.resolve(at)
        found = self.contents(CommitSpec(None, reference.hash), [key])
        if key not in found:
            raise ContentNotFound(f"Could not find content for key '{key.plain}' in reference '{reference.name or reference.hash}'.", key)
        return found[key]

    def diff(self, before: Revision, after: Revision, keys: KeyRange = ALL_KEYS) -> Iterator[DiffEntry]:
        """See `Repository`."""
        left, right = self._hash(before), self._hash(after)
        if keys.keys == ():
            return
        path = f"trees/{segment('@' + left)}/diff/{segment('@' + right)}"
        for data in self._pages(path, "diffs", {**self._range(keys), "max-records": str(PAGE)}):
            yield answers.understood(lambda data=data: _diff_entry(data), "diff")  # type: ignore[misc]

    # -- pages -------------------------------------------------------------------------------------------------------------------

    def _pages(self, path: str, name: str, query: Query) -> Iterator[Any]:
        token: str | None = None
        while True:
            page = self._transport.get(path, {**query, "page-token": token})
            yield from answers.understood(lambda page=page: list(page[name]), name)  # type: ignore[misc]
            token = answers.understood(lambda page=page: answers.decode_page(page), name)  # type: ignore[misc]
            if token is None:
                return


def _is_hash(text: str) -> bool:
    return _SHORTEST <= len(text) <= _HASH_DIGITS and all(c in "0123456789abcdefABCDEF" for c in text)


def _logged(data: Any, *, operations: bool) -> LogEntry:
    entry = answers.decode_log_entry(data)
    # A commit without operations has none on the wire; asked for, they are an empty list.
    return LogEntry(entry.meta, entry.height, entry.operations or ()) if operations else LogEntry(entry.meta, entry.height)


def _entry(data: Any) -> Entry:
    content = answers.decode_content(data["content"]) if data.get("content") is not None else None
    return Entry(
        key=decode_key(data["name"]),
        type=str(data["type"]),
        content_id=str(data.get("contentId") or (content.id if content else "") or ""),
        value_hash=object_id(Kind.VALUE, encode_value(content)).hex() if content else "",
        content=content,
    )


def _diff_entry(data: Any) -> DiffEntry:
    before, after = data.get("from"), data.get("to")
    return DiffEntry(
        decode_key(data["key"]),
        None if before is None else answers.decode_content(before),
        None if after is None else answers.decode_content(after),
    )
