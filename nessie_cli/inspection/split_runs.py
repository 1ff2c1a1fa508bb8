"""Runs of which a revert or a restore reverts some tables, but not all.

The branch is then in a state that no run has produced, and no check has seen.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator
from itertools import islice
from typing import NamedTuple

from nessie_cli.model import NO_ANCESTOR, ContentKey, DiffEntry, LogEntry, Namespace
from nessie_cli.model.runs import PROPERTY
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.revisions import Revision

MOST_COMMITS = 10_000
"""The most commits, from the head on, among which runs are searched."""


class SplitRun(NamedTuple):
    """A published run: its id, its commit, and its contents that are reverted, and the others.

    Keys are those in the commit.
    """

    id: str
    commit: str
    reverted: tuple[ContentKey, ...]
    others: tuple[ContentKey, ...]


def split_runs(
    repository: ReadableRepository,
    head: str,
    before: str,
    ids: Collection[str | None],
    last: str | None = None,
) -> list[SplitRun]:
    """Returns the runs that a change of contents with these ids splits, the newest first.

    The change goes from `head` back to the state at `before`, for a revert only by the commits up
    to `last`. A content of the run that has its earlier state already counts as reverted.
    Cost: O(commits since `before`), and a comparison for each run among them.
    """
    splits = (
        _split(repository, head, commit, ids)
        for commit in _candidates(repository, head, before, last)
        if PROPERTY in commit.meta.properties and _is_publication(commit)
    )
    return [split for split in splits if split.reverted and split.others]


def _candidates(
    repository: ReadableRepository, head: str, before: str, last: str | None
) -> Iterator[LogEntry]:
    """Yields the commits of the branch whose changes are reverted."""
    at_head, at_before = Revision(None, head), Revision(None, before)
    oldest = repository.merge_base(at_head, at_before)
    chain = list(islice(repository.log(at_head, until=oldest), MOST_COMMITS))
    if chain and chain[-1].hash == oldest:
        chain.pop()
    if last is None:
        yield from chain
        return
    position = next((index for index, entry in enumerate(chain) if entry.hash == last), None)
    if position is not None:
        yield from chain[position:]
        return
    # A commit of a merged branch: the merge that brought it is the oldest one that has it.
    commit = Revision(None, last)
    count = bisect_left(
        chain,
        True,
        key=lambda entry: not repository.is_ancestor(commit, Revision(None, entry.hash)),
    )
    yield from chain[count - 1 : count] if count else ()


def _is_publication(commit: LogEntry) -> bool:
    """Returns whether a commit is a merge, or the first one: users set properties, too."""
    return len(commit.meta.parents) > 1 or commit.parent == NO_ANCESTOR


def _split(
    repository: ReadableRepository, head: str, commit: LogEntry, ids: Collection[str | None]
) -> SplitRun:
    changes = [
        entry
        for entry in repository.diff(Revision(None, commit.parent), Revision(None, commit.hash))
        if not isinstance(entry.after or entry.before, Namespace)
    ]
    now = repository.contents(Revision(None, head), [entry.key for entry in changes])
    reverted = [entry for entry in changes if _id(entry) in ids]
    others = [
        entry for entry in changes if _id(entry) not in ids and now.get(entry.key) != entry.before
    ]
    return SplitRun(
        commit.meta.properties[PROPERTY][0],
        commit.hash,
        tuple(entry.key for entry in reverted),
        tuple(entry.key for entry in others),
    )


def _id(entry: DiffEntry) -> str | None:
    content = entry.after or entry.before
    return content.id if content is not None else None
