"""Writes whose answer was lost: their outcome is looked up before anything is reported."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from nessie_cli.errors import NotAllowed, NotFound, StoreUnavailable
from nessie_cli.model import CommitMeta, Content, ContentKey, Delete, LogEntry, Operation, Put
from nessie_cli.model.commits import lower_names
from nessie_cli.repository.remote.transport import Lost

LOOKS = 4
FIRST_PAUSE = 0.1
"""The number of look-ups, and the seconds between the first two.

Each pause is three times the last.
"""

T = TypeVar("T")


def look_up_outcome(lost: Lost, look: Callable[[], T | None]) -> T:
    """Returns the result of a write whose response was lost, found by `look`.

    Raises `lost` if it is not found: the server may have done the write, or may still do it. If the
    server has answered that it failed, it does nothing any more, so a write that is not found was
    not done. Then this raises `StoreUnavailable`.
    """
    for number in range(LOOKS):
        try:
            found = look()
        except (StoreUnavailable, NotAllowed, NotFound):
            # If the look-up fails or the branch is gone, the outcome stays unknown.
            raise lost from None
        if found is not None:
            return found
        if lost.ended:
            raise StoreUnavailable(f"{lost.message}; nothing was written")
        if number < LOOKS - 1:
            time.sleep(FIRST_PAUSE * 3**number)
    raise lost from None


State = Mapping[ContentKey, Content | None]


def state_after(operations: Iterable[Operation]) -> State:
    """The contents that the operations of a commit leave under their keys, None after a Delete."""
    found: dict[ContentKey, Content | None] = {}
    for operation in operations:
        if isinstance(operation, Put):
            found[operation.key] = operation.content
        elif isinstance(operation, Delete):
            found[operation.key] = None
    return found


def is_commit_of(entry: LogEntry, meta: CommitMeta, wanted: State) -> bool:
    """Whether a commit has the metadata and contents that were sent, new content ids aside."""
    return _has_meta(entry.meta, meta) and _is_same_state(
        state_after(entry.operations or ()), wanted
    )


def _has_meta(found: CommitMeta, sent: CommitMeta) -> bool:
    """Whether a commit has the metadata that was sent; the server fills in the rest."""
    pairs = (
        (found.message, sent.message),
        (found.authors, sent.authors or found.authors),
        (found.signed_off_by, sent.signed_off_by),
        (found.author_time, sent.author_time or found.author_time),
        (lower_names(found.properties), lower_names(sent.properties)),
    )
    return all(actual == wanted for actual, wanted in pairs)


def _is_same_state(found: State, wanted: State) -> bool:
    return found.keys() == wanted.keys() and all(_same(found[key], wanted[key]) for key in wanted)


def _same(found: Content | None, wanted: Content | None) -> bool:
    if found is None or wanted is None:
        return found is wanted
    return found == (wanted if wanted.id else wanted.with_id(found.id))


def run_of(
    newest_first: Sequence[LogEntry], sources: Sequence[LogEntry], message: str | None
) -> LogEntry | None:
    """The last of the copies that a transplant made of `sources`; None if a copy is missing.

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
    kept = (copy.authors, copy.signed_off_by, copy.author_time) == (
        sent.authors,
        sent.signed_off_by,
        sent.author_time,
    )
    keys = {operation.key for operation in commit.operations or ()}
    return (
        copy.message == (message or sent.message)
        and kept
        and keys <= {operation.key for operation in source.operations or ()}
    )
