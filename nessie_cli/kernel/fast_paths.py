"""Fast paths through history over merge parents.

Over first parents, jump pointers skip commits (history.py). Over merge parents, the commit index
finds merge commits (commits.py). The results are those of a walk. A function returns None if a
walk is as fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from nessie_cli.errors import DamagedObject
from nessie_cli.kernel import history
from nessie_cli.kernel.commits import MERGE_COMMIT, IndexLookup, indexed
from nessie_cli.kernel.forms import NO_COMMIT, Id, StoredCommit, jump_height
from nessie_cli.kernel.objects import Objects

IsAncestor = Callable[[Id, Id], bool]
"""Tests whether the first commit is an ancestor of the second over any parents."""
Found = tuple[Id, StoredCommit]

_PAGE = 64
"""The approximate number of commits that a page of a log reads."""
SHORT = 512
"""The number of commits up to which a walk is as fast as a fast path."""
_BATCH = 32


def newest_first(pair: Found) -> tuple[int, Id]:
    """Returns the sort key of a walk: time, then id."""
    return -pair[1].time, pair[0]


def merges_of_store(objects: Objects, lookup: IndexLookup, height: int) -> list[Found] | None:
    """Returns all merge commits of a store, newest first.

    Returns None if there are so many that a walk through a history of this height finds a page of
    them sooner. Returns None also if one is damaged, because a walk may not meet it.
    """
    ids: list[Id] = []
    for _, id_ in indexed(lookup, MERGE_COMMIT):
        ids.append(id_)
        if len(ids) ** 2 > _PAGE * height:
            return None
    try:
        commits = objects.find_commits(ids)
    except DamagedObject:
        return None
    return sorted(
        ((id_, commit) for id_, commit in commits.items() if len(commit.parents) > 1),
        key=newest_first,
    )


def reachable_among(
    objects: Objects, is_ancestor: IsAncestor, start: Id, candidates: Sequence[Found]
) -> Iterator[Found]:
    """Yields those commits of `candidates` that `start` reaches over all parents, in order.

    O(log commits) for each commit on first parents.
    """
    line = start
    top = history.height_of(objects, start)
    for first in range(0, len(candidates), _BATCH):
        batch = candidates[first : first + _BATCH]
        at = history.ancestors_at(
            objects, line, {commit.height for _, commit in batch if commit.height <= top}
        )
        for id_, commit in batch:
            if at.get(commit.height) == id_:
                yield id_, commit
                # The next ones are older, so the search continues here.
                line, top = id_, commit.height
            elif is_ancestor(id_, start):
                yield id_, commit


def at_height(objects: Objects, commits: Iterable[Id], height: int) -> dict[Id, Id]:
    """Returns `ancestor_at` for each of many commits at or above this height.

    Their paths soon join, so this costs few round trips.
    """
    ancestors: dict[Id, Id] = {}
    ways = {id_: [id_] for id_ in commits}
    while ways:
        further: dict[Id, list[Id]] = {}
        for at, commit in zip(ways, objects.commits(list(ways)), strict=True):
            if commit.height <= height:
                ancestors.update(dict.fromkeys(ways[at], at))
            else:
                after = commit.jump if jump_height(commit.height) >= height else commit.parents[0]
                further.setdefault(after, []).extend(ways[at])
        ways = further
    return ancestors


def heads_at(
    objects: Objects, is_ancestor: IsAncestor, start: Id, merges: Sequence[Found], time: int
) -> list[Id]:
    """Returns commits not younger than `time` that reach all such commits that `start` reaches.

    `merges` are all merges, newest first. A younger merge matters only if its merge parent left the
    first parents of `start` before that time. One lookup shows that most did not.
    """
    first = history.at_time(objects, start, time)
    if first == start:
        return [start] if start != NO_COMMIT else []
    fork = history.height_of(objects, first) + 1
    younger = history.ancestor_at(objects, start, fork)
    later = [
        (id_, parent)
        for id_, commit in merges
        if commit.time > time
        for parent in commit.parents[1:]
        if parent != NO_COMMIT
    ]
    merge_parents = objects.find_commits(list({parent for _, parent in later}))
    through = at_height(
        objects, (id_ for id_, commit in merge_parents.items() if commit.height >= fork), fork
    )
    heads = {first}
    for id_, parent in later:
        if through.get(parent) != younger and is_ancestor(id_, start):
            heads.add(history.at_time(objects, parent, time))
    return [head for head in heads if head != NO_COMMIT]


def near_merge_base(
    objects: Objects, lookup: IndexLookup, a: Id, b: Id, short: int = SHORT
) -> Id | None:
    """Returns `history.merge_base` if it is the fork of first parents and near `a` or `b`.

    Then it is the only one of `history.merge_bases`. Otherwise returns None. The commits from the
    fork to the nearer one must not be merges, and must not be merged into the other.
    """
    fork = history.common_first_parent(objects, a, b)
    if fork in (a, b):
        return fork
    level = history.height_of(objects, fork)
    near, far = sorted((a, b), key=lambda id_: history.height_of(objects, id_))
    above, beyond = (history.height_of(objects, id_) - level for id_ in (near, far))
    if above > short or beyond < short:
        return None
    history.read_ahead(objects, near, above)
    lowest = near
    for id_, commit in history.first_parents(objects, near):
        if id_ == fork:
            break
        if len(commit.parents) > 1:
            return None
        lowest = id_
    since = objects.commit(lowest).time
    merges = merges_of_store(objects, lookup, beyond)
    if merges is None:
        return None
    parents = {
        parent
        for _, commit in merges
        if commit.time > since
        for parent in commit.parents[1:]
        if parent != NO_COMMIT
    }
    try:
        high = [
            id_
            for id_, commit in objects.find_commits(list(parents)).items()
            if commit.height > level
        ]
        return None if lowest in at_height(objects, high, level + 1).values() else fork
    except DamagedObject:
        # The damaged commit may be on a branch that a walk does not visit.
        return None
