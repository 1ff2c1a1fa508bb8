"""The search of a store's log: creates entries only for stored commits that pass.

If the commit index knows which commits can pass, or jump pointers lead to the first of them, the
commits between are not read (kernel/fast_paths.py).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import takewhile
from operator import attrgetter
from typing import NamedTuple

from nessie_cli.errors import DamagedObject
from nessie_cli.kernel import fast_paths, history, tree
from nessie_cli.kernel.commits import (
    LARGE_COMMIT,
    IndexLookup,
    from_micros,
    indexed,
    micros,
    operations_of,
    operations_on,
    term_of,
)
from nessie_cli.kernel.forms import NO_COMMIT, Id, StoredCommit, below, encode_key, payload_of
from nessie_cli.kernel.objects import Objects
from nessie_cli.model import ContentKey, Namespace
from nessie_cli.repository.log_filter import (
    CommitForm,
    LogFilter,
    SearchedCommit,
    Walk,
    tests_of,
)
from nessie_cli.repository.reading import log_entry

_BEGINNING = -(2**63)
"""A time before all others."""

_FEW = 16
"""The most starts that are read at once. With more, only their times are read first."""

Test = Callable[[StoredCommit], bool]


class LogSource(NamedTuple):
    """The source of a log.

    Fast paths skip more than `short` commits, to commits rarer than one in `rare`. `times` returns
    the commit times of many commits.
    """

    objects: Objects
    lookup: IndexLookup
    is_ancestor: fast_paths.IsAncestor
    times: Callable[[Collection[Id]], Mapping[Id, int]] | None = None
    short: int = fast_paths.SHORT
    rare: int = 16

    def times_of(self, starts: Collection[Id]) -> Mapping[Id, int] | None:
        """Returns the commit times of many starts, so that each is read late; None for few."""
        return (
            self.times(set(starts) - {NO_COMMIT})
            if self.times is not None and len(starts) > _FEW
            else None
        )


def search_log(
    source: LogSource,
    starts: Sequence[Id],
    exclude: Sequence[Id],
    walk: Walk,
    commit_filter: LogFilter,
    *,
    operations: bool,
) -> Iterator[SearchedCommit]:
    """Yields the commits of a walk that are read for a filter, newest first.

    `starts` and `exclude` are the commits of the walk.
    """
    objects = source.objects
    passes = _all_of(list(tests_of(commit_filter, _stored(objects))))
    since = micros(commit_filter.since) if commit_filter.since is not None else _BEGINNING
    skip = commit_filter.skip
    candidates = _indexed(source, starts, exclude, walk, commit_filter)
    for id_, commit in (
        _walked(source, starts, exclude, walk, commit_filter) if candidates is None else candidates
    ):
        if commit.time < since:
            return
        passed = passes(commit)
        chosen = passed and skip == 0
        skip -= passed and not chosen
        time = from_micros(commit.time)
        parents = None if candidates is not None else [parent.hex() for parent in commit.parents]
        entry = log_entry(objects, id_, commit, operations=operations) if chosen else None
        yield SearchedCommit(time, id_.hex(), parents, entry)
        if candidates is not None and chosen and _has_parent_since(objects, commit, since):
            # Represents the commits that were not read.
            yield SearchedCommit(time, "", None, None)


def _has_parent_since(objects: Objects, commit: StoredCommit, since: int) -> bool:
    return any(
        objects.commit(parent).time >= since for parent in commit.parents if parent != NO_COMMIT
    )


def _walked(
    source: LogSource,
    starts: Sequence[Id],
    exclude: Sequence[Id],
    walk: Walk,
    commit_filter: LogFilter,
) -> Iterator[fast_paths.Found]:
    objects = source.objects
    if exclude and walk.first_parent:
        start, end = starts[0], exclude[0]
        end = history.merge_base(objects, start, end) if walk.symmetric else end
        return takewhile(
            lambda pair: not source.is_ancestor(pair[0], end),
            history.first_parents(objects, start),
        )
    if walk.symmetric:
        return history.symmetric_difference(objects, starts[0], exclude[0])
    if commit_filter.until is not None and len(starts) == 1 and not exclude:
        starts = _heads_at(
            source, starts[0], micros(commit_filter.until), first_parent=walk.first_parent
        )
    if walk.first_parent and len(starts) <= 1:
        return history.first_parents(objects, starts[0] if starts else NO_COMMIT)
    most = 1 if walk.first_parent else None
    return history.reachable(objects, starts, exclude, most=most, times=source.times_of(starts))


def _heads_at(source: LogSource, start: Id, time: int, *, first_parent: bool) -> list[Id]:
    objects = source.objects
    first = history.at_time(objects, start, time)
    left_out = history.height_of(objects, start) - history.height_of(objects, first)
    if first_parent:
        return [first] if first != NO_COMMIT else []
    merges = (
        fast_paths.merges_of_store(objects, source.lookup, left_out)
        if left_out > source.short
        else None
    )
    try:
        return (
            [start]
            if merges is None
            else fast_paths.heads_at(objects, source.is_ancestor, start, merges, time)
        )
    except DamagedObject:
        # It may be on a branch that a walk does not visit.
        return [start]


def _indexed(
    source: LogSource,
    starts: Sequence[Id],
    exclude: Sequence[Id],
    walk: Walk,
    commit_filter: LogFilter,
) -> Iterator[fast_paths.Found] | None:
    """Returns the commits that can pass according to the commit index; None if it cannot tell."""
    if exclude or len(starts) != 1:
        return None
    objects, start = source.objects, starts[0]
    height = history.height_of(objects, start)
    candidates = _commits_on(source, commit_filter.keys, height) if commit_filter.keys else None
    if commit_filter.merges and not commit_filter.keys:
        candidates = fast_paths.merges_of_store(objects, source.lookup, height)
    if candidates is None:
        return None
    if commit_filter.until is not None:
        until = micros(commit_filter.until)
        candidates = [pair for pair in candidates if pair[1].time <= until]
    return fast_paths.reachable_among(
        objects, _never if walk.first_parent else source.is_ancestor, start, candidates
    )


def _never(_: Id, __: Id) -> bool:
    return False


def _commits_on(
    source: LogSource, keys: Sequence[ContentKey], height: int
) -> list[fast_paths.Found] | None:
    """Returns the commits of the store with an operation on one of the keys, newest first.

    Returns None if there are many or one is damaged, or if a key was a namespace once: operations
    on keys below it have index entries of their own.
    """
    objects = source.objects
    raw_keys = [encode_key(key) for key in keys]
    ids: set[Id] = set()
    for _, id_ in merge(
        *(indexed(source.lookup, term) for term in (LARGE_COMMIT, *map(term_of, raw_keys))),
        reverse=True,
    ):
        ids.add(id_)
        if len(ids) * source.rare > height:
            return None
    matching = []
    try:
        commits = objects.find_commits(list(ids))
    except DamagedObject:
        return None
    for id_, commit in commits.items():
        records = operations_on(objects, commit, raw_keys).values()
        if any(payload_of(record) == Namespace.payload for record in records):
            return None
        if records:
            matching.append((id_, commit))
    return sorted(matching, key=fast_paths.newest_first)


def _stored(objects: Objects) -> CommitForm[StoredCommit]:
    """Returns the form of stored commits."""

    def touches(keys: Sequence[ContentKey]) -> Test:
        ranges = [below(encode_key(key)) for key in keys]
        return lambda commit: _touches(objects, commit, ranges)

    return CommitForm(
        authors=attrgetter("authors"),
        committer=attrgetter("committer"),
        message=attrgetter("message"),
        parents=attrgetter("parents"),
        time=attrgetter("time"),
        bound=micros,
        touches=touches,
    )


def _all_of(tests: Sequence[Test]) -> Test:
    """Combines tests. The common case is one test or none."""
    if len(tests) == 1:
        return tests[0]
    return lambda commit: all(test(commit) for test in tests)


def _touches(objects: Objects, commit: StoredCommit, ranges: Iterable[tuple[bytes, bytes]]) -> bool:
    """Returns whether an operation is on a key of one of the ranges."""
    stored = commit.operations
    if len(stored) == len(NO_COMMIT):
        return any(
            next(iter(tree.scan(objects, stored, *span)), None) is not None for span in ranges
        )
    # These bytes contain the keys unchanged.
    likely = [span for span in ranges if span[0] in stored]
    return bool(likely) and any(
        start <= key < stop for key, _ in operations_of(objects, commit) for start, stop in likely
    )
