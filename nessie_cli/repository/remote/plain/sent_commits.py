"""Finds the commits of a write whose answer was lost, by their metadata and contents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from nessie_cli.model import CommitMeta, Content, ContentKey, Delete, LogEntry, Operation, Put
from nessie_cli.model.commits import lower_names

State = Mapping[ContentKey, Content | None]


def state_after(operations: Iterable[Operation]) -> State:
    """Returns the contents that operations leave under their keys, None after a Delete."""
    state: dict[ContentKey, Content | None] = {}
    for operation in operations:
        if isinstance(operation, Put):
            state[operation.key] = operation.content
        elif isinstance(operation, Delete):
            state[operation.key] = None
    return state


def is_commit_of(entry: LogEntry, meta: CommitMeta, sent: State) -> bool:
    """Returns whether a commit has the metadata and contents that were sent.

    New content ids are ignored.
    """
    return _has_meta(entry.meta, meta) and _is_same_state(state_after(entry.operations or ()), sent)


def _has_meta(actual: CommitMeta, sent: CommitMeta) -> bool:
    """Returns whether a commit has the metadata that was sent. The server adds the rest."""
    pairs = (
        (actual.message, sent.message),
        (actual.authors, sent.authors or actual.authors),
        (actual.signed_off_by, sent.signed_off_by),
        (actual.author_time, sent.author_time or actual.author_time),
        (lower_names(actual.properties), lower_names(sent.properties)),
    )
    return all(there == given for there, given in pairs)


def _is_same_state(actual: State, sent: State) -> bool:
    return actual.keys() == sent.keys() and all(_is_same(actual[key], sent[key]) for key in sent)


def _is_same(actual: Content | None, sent: Content | None) -> bool:
    if actual is None or sent is None:
        return actual is sent
    return actual == (sent if sent.id else sent.with_id(actual.id))


def run_of(
    newest_first: Sequence[LogEntry], sources: Sequence[LogEntry], message: str | None
) -> LogEntry | None:
    """Returns the last copy that a transplant made of `sources`, or None if a copy is missing.

    Sources are the oldest first, and copies have their order. `message` replaces the message of a
    single commit.
    """
    commits: Iterator[LogEntry] = reversed(newest_first)
    last = None
    for source in sources:
        last = next((commit for commit in commits if _is_copy(commit, source, message)), None)
        if last is None:
            return None
    return last


def _is_copy(commit: LogEntry, source: LogEntry, message: str | None) -> bool:
    copy, sent = commit.meta, source.meta
    is_same_author = (copy.authors, copy.signed_off_by, copy.author_time) == (
        sent.authors,
        sent.signed_off_by,
        sent.author_time,
    )
    keys = {operation.key for operation in commit.operations or ()}
    return (
        copy.message == (message or sent.message)
        and is_same_author
        and keys <= {operation.key for operation in source.operations or ()}
    )
