"""Writes whose answer was lost: what became of them is looked up before anything is reported."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from nessie_cli.errors import NotAllowed, NotFound, StoreUnavailable
from nessie_cli.model import CommitMeta, Content, ContentKey, Delete, LogEntry, Operation, Put
from nessie_cli.repository.remote.transport import Lost

LOOKS = 4
FIRST_PAUSE = 0.1
"""How often it is looked, and the seconds between the first two looks: the server may still be at it. Each pause is thrice the one before."""

T = TypeVar("T")


def settled(lost: Lost, look: Callable[[], T | None]) -> T:
    """What a write did, as far as `look` finds it. Raises `lost` where it does not: then it may have happened, may still happen, or not.

    A server that has answered that it failed does nothing any more: what is not there then was not done, which a `StoreUnavailable` says.
    """
    for number in range(LOOKS):
        try:
            found = look()
        except (StoreUnavailable, NotAllowed, NotFound):
            # Who cannot look, or finds the branch itself gone, knows as little as before.
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
    """What a commit's operations leave under their keys, None for nothing."""
    found: dict[ContentKey, Content | None] = {}
    for operation in operations:
        if isinstance(operation, Put):
            found[operation.key] = operation.content
        elif isinstance(operation, Delete):
            found[operation.key] = None
    return found


def is_commit_of(entry: LogEntry, meta: CommitMeta, wanted: State) -> bool:
    """Whether a commit of the log is the one that was sent: the same words and the same contents, ids aside that the server gives."""
    return _says(entry.meta, meta) and _leaves(state_after(entry.operations or ()), wanted)


def _says(found: CommitMeta, sent: CommitMeta) -> bool:
    """Whether a commit has the metadata that was sent; what was left out, the server fills in."""
    pairs = (
        (found.message, sent.message),
        (found.authors, sent.authors or found.authors),
        (found.signed_off_by, sent.signed_off_by),
        (found.author_time, sent.author_time or found.author_time),
        (dict(found.properties), dict(sent.properties)),
    )
    return all(there == wanted for there, wanted in pairs)


def _leaves(found: State, wanted: State) -> bool:
    return found.keys() == wanted.keys() and all(_same(found[key], wanted[key]) for key in wanted)


def _same(found: Content | None, wanted: Content | None) -> bool:
    if found is None or wanted is None:
        return found is wanted
    return found == (wanted if wanted.id else wanted.with_id(found.id))


def run_of(newest_first: Sequence[LogEntry], sources: Sequence[LogEntry], message: str | None) -> LogEntry | None:
    """The last of the commits that a transplant made of `sources` (oldest first), in this order; None where not all of them are there.

    `message` is the one that replaces that of a single commit.
    """
    commits: Iterator[LogEntry] = reversed(newest_first)
    last = None
    for source in sources:
        last = next((commit for commit in commits if _is_copy(commit, source, message)), None)
        if last is None:
            return None
    return last


def _is_copy(commit: LogEntry, source: LogEntry, message: str | None) -> bool:
    there, sent = commit.meta, source.meta
    kept = (there.authors, there.signed_off_by, there.author_time) == (sent.authors, sent.signed_off_by, sent.author_time)
    keys = {operation.key for operation in commit.operations or ()}
    return there.message == (message or sent.message) and kept and keys <= {operation.key for operation in source.operations or ()}
