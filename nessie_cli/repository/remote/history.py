"""The log over REST v2, by pages along first parents; filters of the server find the commits of a key."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from nessie_cli.commitspec import CommitSpec
from nessie_cli.errors import CommitNotFound
from nessie_cli.model import NO_ANCESTOR, CommitMeta, ContentKey, LogEntry
from nessie_cli.repository.remote.session import PAGE, Session, understood
from nessie_cli.repository.remote.transport import Query, segment
from nessie_cli.wire import answers, keys

_LONGEST_FILTER = 3000
"""Characters: a filter is part of the URL, and servers take about 8,000."""
_FIRST_OF_KEY = 10
"""Commits of a key on the first page: the server searches until a page is full."""


def log(session: Session, start: str, *, operations: bool, more: Query | None = None, first: int = PAGE) -> Iterator[LogEntry]:
    """Commits from a hash on along first parents, page by page; `more` narrows them."""
    if start == NO_ANCESTOR:
        return
    path, query = f"trees/{segment('@' + start)}/history", {"fetch": "ALL" if operations else None, **(more or {})}
    for entry in session.pages(path, "logEntries", query, answers.decode_log_entry, first=first):
        session.hashes.add(entry.hash)
        yield _with_operations(entry) if operations else entry


def log_page(session: Session, start: str, limit: int, *, operations: bool) -> list[LogEntry]:
    """Up to `limit` commits from a hash on, by one request."""
    query: Query = {"fetch": "ALL" if operations else None, "max-records": str(limit)}
    found = session.transport.get(f"trees/{segment('@' + start)}/history", query)
    entries = understood(found, lambda found: [answers.decode_log_entry(entry) for entry in found["logEntries"]], "history")
    return [_with_operations(entry) for entry in entries] if operations else entries


def log_down_to(session: Session, start: str, oldest: str | None, *, operations: bool) -> Iterator[LogEntry]:
    """Commits from a hash on along first parents; ends after `oldest`, which is included."""
    for entry in log(session, start, operations=operations):
        yield entry
        if entry.hash == oldest:
            return


def log_of_key(session: Session, start: str, key: ContentKey, *, operations: bool) -> Iterator[LogEntry]:
    """The commits that have an operation on a key. The server searches the history: O(commits)."""
    for entry in log(session, start, operations=True, more={"filter": _changes([key])}, first=_FIRST_OF_KEY):
        if any(operation.key == key for operation in entry.operations or ()):
            yield entry if operations else LogEntry(entry.meta, entry.height)


def commit_at(session: Session, hash_: str) -> LogEntry:
    """One commit with its operations; raises `CommitNotFound` for the empty history."""
    if hash_ == NO_ANCESTOR:
        raise CommitNotFound("this is the beginning of the history: there is no commit", NO_ANCESTOR)
    return log_page(session, hash_, 1, operations=True)[0]


def last_changes(session: Session, at: str, wanted: Iterable[ContentKey], *, since: str | None = None) -> dict[ContentKey, CommitMeta]:
    """The newest commit that changed each key, many keys in one search; with `since`, only down to that commit."""
    found: dict[ContentKey, CommitMeta] = {}
    if since == at:
        return found
    for some in _in_filters(sorted(set(wanted))):
        found |= _last_changes(session, at, some, {"filter": _changes(some), "limit-hash": since})
    return found


def _last_changes(session: Session, at: str, wanted: Collection[ContentKey], query: Query) -> dict[ContentKey, CommitMeta]:
    found: dict[ContentKey, CommitMeta] = {}
    for entry in log(session, at, operations=True, more=query, first=min(len(wanted), PAGE)):
        for operation in entry.operations or ():
            if operation.key in wanted:
                found.setdefault(operation.key, entry.meta)
        if len(found) == len(wanted):
            break
    return found


def at_hash(hash_: str) -> CommitSpec:
    """The revision of a hash."""
    return CommitSpec(None, hash_)


def cel_text(text: str) -> str:
    """A text as CEL writes it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _with_operations(entry: LogEntry) -> LogEntry:
    """A commit without operations has none on the wire; here they are an empty list."""
    return entry if entry.operations is not None else LogEntry(entry.meta, entry.height, ())


def _changes(wanted: Sequence[ContentKey]) -> str:
    names = ", ".join(cel_text(keys.encode_legacy(key)) for key in wanted)
    return f"operations.exists(op, op.encodedKey in [{names}])"


def _in_filters(wanted: Sequence[ContentKey]) -> Iterator[Sequence[ContentKey]]:
    """The keys in groups whose filters are short enough."""
    group: list[ContentKey] = []
    for key in wanted:
        if group and len(_changes([*group, key])) > _LONGEST_FILTER:
            yield group
            group = []
        group.append(key)
    if group:
        yield group
