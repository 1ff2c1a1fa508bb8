"""A log through a sieve: commits are tested as they are stored, and entries are made only of those that pass (`Sifting`).

Where marks tell which commits can pass at all, or jump pointers where the first of them is, the commits between are not read (kernel/leaping.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from heapq import merge
from re import Pattern
from typing import NamedTuple

from nessie_cli.errors import DamagedObject
from nessie_cli.kernel import history, leaping, tree
from nessie_cli.kernel.commits import micros, operations_of, operations_on
from nessie_cli.kernel.forms import DELETED, NO_COMMIT, Commit, Id
from nessie_cli.kernel.keylog import LARGE, FindMarked, mark_of, marked
from nessie_cli.kernel.keys import below, encode_key
from nessie_cli.kernel.objects import Objects
from nessie_cli.model import ContentKey, LogEntry, Namespace
from nessie_cli.repository.base import Sieve, Walk
from nessie_cli.repository.reading import log_entry

_EVER = -(2**63)
"""A time before all others."""

_FEW = 16
"""So many starts are read at once rather than asked for their times."""

Test = Callable[[Commit], bool]


class Reading(NamedTuple):
    """What a log is read from, and where leaping begins: over more than `short` commits, to what fewer than one commit in `rare` has.

    `times` answers when many commits were made.
    """

    objects: Objects
    find_marked: FindMarked
    is_ancestor: leaping.IsAncestor
    times: Callable[[Collection[Id]], Mapping[Id, int]] | None = None
    short: int = leaping.SHORT
    rare: int = 16

    def times_of(self, starts: Collection[Id]) -> Mapping[Id, int] | None:
        """When they were made, where they are so many that reading each of them is put off until it is its turn."""
        return self.times(set(starts) - {NO_COMMIT}) if self.times is not None and len(starts) > _FEW else None


def sifted(of: Reading, starts: Sequence[Id], exclude: Sequence[Id], walk: Walk, sieve: Sieve, *, operations: bool) -> Iterator[LogEntry | None]:
    """See `Sifting`."""
    objects = of.objects
    passes = _all_of(list(_tests(objects, sieve)))
    since = micros(sieve.since) if sieve.since is not None else _EVER
    skip = sieve.skip
    leaps = _leaps(of, starts, exclude, walk, sieve)
    for id_, commit in _walked(of, starts, exclude, walk, sieve) if leaps is None else leaps:
        if commit.time < since:
            return
        passed = passes(commit)
        chosen = passed and skip == 0
        skip -= passed and not chosen
        yield log_entry(objects, id_, commit, operations=operations) if chosen else None
        if leaps is not None and chosen and any(objects.commit(parent).time >= since for parent in commit.parents if parent != NO_COMMIT):
            # Those that are leapt over.
            yield None


def _walked(of: Reading, starts: Sequence[Id], exclude: Sequence[Id], walk: Walk, sieve: Sieve) -> Iterator[leaping.Found]:
    objects = of.objects
    if walk.symmetric:
        return history.only_in_one(objects, starts[0], exclude[0])
    if sieve.until is not None and len(starts) == 1 and not exclude:
        starts = _heads_at(of, starts[0], micros(sieve.until), first_parent=walk.first_parent)
    if walk.first_parent and len(starts) <= 1:
        return history.first_parents(objects, starts[0] if starts else NO_COMMIT)
    return history.reachable(objects, starts, exclude, most=1 if walk.first_parent else None, times=of.times_of(starts))


def _heads_at(of: Reading, start: Id, time: int, *, first_parent: bool) -> list[Id]:
    objects = of.objects
    first = history.at_time(objects, start, time)
    left_out = history.height_of(objects, start) - history.height_of(objects, first)
    if first_parent:
        return [first] if first != NO_COMMIT else []
    merges = leaping.merges_of_store(objects, of.find_marked, left_out) if left_out > of.short else None
    try:
        return [start] if merges is None else leaping.heads_at(objects, of.is_ancestor, start, merges, time)
    except DamagedObject:
        # Perhaps on a branch that a walk does not meet.
        return [start]


def _leaps(of: Reading, starts: Sequence[Id], exclude: Sequence[Id], walk: Walk, sieve: Sieve) -> Iterator[leaping.Found] | None:
    """The commits that can pass, if the commit index tells which these are; None if all have to be looked at."""
    if exclude or len(starts) != 1:
        return None
    objects, start = of.objects, starts[0]
    height = history.height_of(objects, start)
    found = _marked(of, sieve.keys, height) if sieve.keys else None
    if sieve.merges and not sieve.keys:
        found = leaping.merges_of_store(objects, of.find_marked, height)
    if found is None:
        return None
    if sieve.until is not None:
        until = micros(sieve.until)
        found = [pair for pair in found if pair[1].time <= until]
    return leaping.those_in(objects, _never if walk.first_parent else of.is_ancestor, start, found)


def _never(_: Id, __: Id) -> bool:
    return False


def _marked(of: Reading, keys: Sequence[ContentKey], height: int) -> list[leaping.Found] | None:
    """The commits of the store with an operation on one of the keys, newest first.

    None where they are many, where one is damaged, or where something may lie below a key: it was a namespace once, and operations below have marks
    of their own.
    """
    objects = of.objects
    wanted = [encode_key(key) for key in keys]
    ids: set[Id] = set()
    for _, id_ in merge(*(marked(of.find_marked, mark) for mark in (LARGE, *map(mark_of, wanted))), reverse=True):
        ids.add(id_)
        if len(ids) * of.rare > height:
            return None
    found = []
    try:
        commits = objects.find_commits(list(ids))
    except DamagedObject:
        return None
    for id_, commit in commits.items():
        records = operations_on(objects, commit, wanted).values()
        if any(record[0] & ~DELETED == Namespace.payload for record in records):
            return None
        if records:
            found.append((id_, commit))
    return sorted(found, key=leaping.newest_first)


def _tests(objects: Objects, sieve: Sieve) -> Iterator[Test]:
    if sieve.until is not None:
        until = micros(sieve.until)
        yield lambda commit: commit.time <= until
    if sieve.merges is not None:
        yield lambda commit: (len(commit.parents) > 1) == sieve.merges
    if sieve.authors:
        yield _of_any(sieve.authors, lambda commit: commit.authors or (commit.committer,))
    if sieve.committers:
        yield _of_any(sieve.committers, lambda commit: (commit.committer,))
    if sieve.message is not None:
        of_message = sieve.message.search
        yield lambda commit: of_message(commit.message) is not None
    if sieve.keys:
        ranges = [below(encode_key(key)) for key in sieve.keys]
        yield lambda commit: _touches(objects, commit, ranges)


def _all_of(tests: Sequence[Test]) -> Test:
    """One test for all. Mostly there is one, and nothing else is done for most commits."""
    if len(tests) == 1:
        return tests[0]
    return lambda commit: all(test(commit) for test in tests)


def _of_any(patterns: Sequence[Pattern[str]], names: Callable[[Commit], tuple[str, ...]]) -> Test:
    """Whether one of a commit's names matches one of some patterns. Most names are those of few people: each is matched once."""
    matched = lru_cache(4096)(lambda name: any(pattern.search(name) for pattern in patterns))
    return lambda commit: any(map(matched, names(commit)))


def _touches(objects: Objects, commit: Commit, ranges: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether an operation is on a key of one of the ranges."""
    stored = commit.operations
    if len(stored) == len(NO_COMMIT):
        return any(next(iter(tree.scan(objects, stored, *span)), None) is not None for span in ranges)
    # The keys stand in these bytes as they are.
    likely = [span for span in ranges if span[0] in stored]
    return bool(likely) and any(start <= key < stop for key, _ in operations_of(objects, commit) for start, stop in likely)
