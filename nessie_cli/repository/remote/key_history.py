"""The commits of a key. Our servers look them up; others search the log with a filter."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

from nessie_cli.model import CommitMeta, ContentKey, LogEntry
from nessie_cli.repository.remote.history import log
from nessie_cli.repository.remote.session import PAGE, Session
from nessie_cli.repository.remote.transport import Query
from nessie_cli.wire import keys

_LONGEST_FILTER = 3000
"""Characters: a filter is part of the URL, and servers take about 8,000."""
_FIRST_PAGE = 10
"""A server that filters searches until a page is full, so the first page is small."""


def log_of_key(
    session: Session, start: str, key: ContentKey, *, operations: bool
) -> Iterator[LogEntry]:
    """The commits along first parents that have an operation on a key, newest first."""
    if session.server.extensions:
        yield from log(session, start, operations=operations, more={"key": session.key_text(key)})
        return
    for entry in log(
        session, start, operations=True, more={"filter": _filter([key])}, first=_FIRST_PAGE
    ):
        if any(operation.key == key for operation in entry.operations or ()):
            yield entry if operations else LogEntry(entry.meta, entry.height)


def last_changes(
    session: Session, at: str, wanted: Iterable[ContentKey], *, since: str | None = None
) -> dict[ContentKey, CommitMeta]:
    """The newest commit that changed each key. With `since`, a search may end at that commit."""
    found: dict[ContentKey, CommitMeta] = {}
    if session.server.extensions:
        for key in wanted:
            query: Query = {"key": session.key_text(key)}
            for newest in islice(log(session, at, operations=False, more=query, first=1), 1):
                found[key] = newest.meta
        return found
    for some in _in_filters(sorted(set(wanted))) if since != at else ():
        found |= _search(session, at, some, {"filter": _filter(some), "limit-hash": since})
    return found


def _search(
    session: Session, at: str, wanted: Collection[ContentKey], query: Query
) -> dict[ContentKey, CommitMeta]:
    found: dict[ContentKey, CommitMeta] = {}
    for entry in log(session, at, operations=True, more=query, first=min(len(wanted), PAGE)):
        for operation in entry.operations or ():
            if operation.key in wanted:
                found.setdefault(operation.key, entry.meta)
        if len(found) == len(wanted):
            break
    return found


def cel_text(text: str) -> str:
    """A text as CEL writes it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _filter(wanted: Sequence[ContentKey]) -> str:
    names = ", ".join(cel_text(keys.encode_legacy(key)) for key in wanted)
    return f"operations.exists(op, op.encodedKey in [{names}])"


def _in_filters(wanted: Sequence[ContentKey]) -> Iterator[Sequence[ContentKey]]:
    """The keys in groups whose filters are short enough."""
    group: list[ContentKey] = []
    for key in wanted:
        if group and len(_filter([*group, key])) > _LONGEST_FILTER:
            yield group
            group = []
        group.append(key)
    if group:
        yield group
