"""The log over REST v2, by pages along first parents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from nessie_cli.errors import CommitNotFound, StoreUnavailable
from nessie_cli.model import NO_ANCESTOR, LogEntry
from nessie_cli.repository.remote.session import PAGE, RestSession, understood
from nessie_cli.repository.remote.transport import Query, segment
from nessie_cli.wire import answers


def log(
    session: RestSession,
    start: str,
    *,
    operations: bool,
    more: Query | None = None,
    first: int = PAGE,
) -> Iterator[LogEntry]:
    """Yields commits from a hash along first parents. `more` are parameters of the request."""
    if start == NO_ANCESTOR:
        return
    path, query = (
        f"trees/{segment('@' + start)}/history",
        {"fetch": "ALL" if operations else None, **(more or {})},
    )
    for entry in session.pages(path, "logEntries", query, answers.decode_log_entry, first=first):
        session.named(entry.hash)
        yield _with_operations(entry) if operations else entry


def log_page(session: RestSession, start: str, limit: int, *, operations: bool) -> list[LogEntry]:
    """Returns up to `limit` commits from a hash along first parents, by one request."""
    query: Query = {"fetch": "ALL" if operations else None, "max-records": str(limit)}
    answer = session.transport.get(f"trees/{segment('@' + start)}/history", query)
    entries = understood(
        answer,
        lambda answer: [answers.decode_log_entry(entry) for entry in answer["logEntries"]],
        "history",
    )
    if not entries or entries[0].hash != start:
        raise StoreUnavailable(
            f"server {session.transport.url}: its answer does not contain the commit {start}"
        )
    return [_with_operations(entry) for entry in entries] if operations else entries


def log_down_to(
    session: RestSession, start: str, oldest: str | None, *, operations: bool
) -> Iterator[LogEntry]:
    """Yields commits from a hash along first parents, to `oldest` inclusive."""
    for entry in log(session, start, operations=operations):
        yield entry
        if entry.hash == oldest:
            return


def commit_at(session: RestSession, hash_: str, *, operations: bool = True) -> LogEntry:
    """Returns a commit. Raises `CommitNotFound` for the empty history."""
    if hash_ == NO_ANCESTOR:
        raise CommitNotFound(
            "this is the beginning of the history: there is no commit", NO_ANCESTOR
        )
    return log_page(session, hash_, 1, operations=operations)[0]


def entries_of(session: RestSession, hashes: Sequence[str]) -> list[LogEntry]:
    """Returns commits in order, with their operations, by one request if they are neighbours."""
    entries = list(islice(log(session, hashes[-1], operations=True), len(hashes)))[::-1]
    if [entry.hash for entry in entries] == list(hashes):
        return entries
    return [commit_at(session, hash_) for hash_ in hashes]


def _with_operations(entry: LogEntry) -> LogEntry:
    """Returns an entry whose missing operations, as on the wire, are an empty list."""
    return entry if entry.operations is not None else LogEntry(entry.meta, entry.height, ())
