"""History: ancestors along first parents without a walk, and walks over all parents.

Every commit has its height along first parents and one jump pointer, an older ancestor chosen so
that any ancestor is O(log commits) steps away (a skew-binary list). Walks over all parents visit
commits by generation or time, each once. No commit is newer than its descendants, because its time
is later than the times of all its parents.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush

from nessie_cli.errors import DamagedObject
from nessie_cli.kernel.forms import NO_COMMIT, Id, StoredCommit, jump_height
from nessie_cli.kernel.objects import Objects

_BOTH = 3
"""The flag of a commit that was reached from both sides, which have the flags 1 and 2."""


def height_of(objects: Objects, commit: Id) -> int:
    """Returns the number of commits along first parents, including this one."""
    return 0 if commit == NO_COMMIT else objects.commit(commit).height


def ancestor_at(objects: Objects, commit: Id, height: int) -> Id:
    """Returns the ancestor along first parents with this height. O(log commits)."""
    if height <= 0:
        return NO_COMMIT
    here = objects.commit(commit)
    while here.height > height:
        reached = jump_height(here.height)
        commit, reached = (
            (here.jump, reached) if reached >= height else (here.parents[0], here.height - 1)
        )
        if reached == height:
            return commit
        here = objects.commit(commit)
    return commit


def ancestors_at(objects: Objects, commit: Id, heights: Iterable[int]) -> dict[int, Id]:
    """Returns `ancestor_at` for each of many heights, in O(log commits) round trips."""
    top = height_of(objects, commit)
    ancestors = {height: NO_COMMIT if height <= 0 else commit for height in heights}
    waiting = {commit: sorted(height for height in ancestors if 0 < height < top)}
    waiting = {id_: asked for id_, asked in waiting.items() if asked}
    while waiting:
        ways: list[tuple[Id, int, list[int]]] = []
        for here, asked in zip(objects.commits(list(waiting)), waiting.values(), strict=True):
            reached = jump_height(here.height)
            near = bisect_right(asked, reached)
            ways += (
                (here.jump, reached, asked[:near]),
                (here.parents[0], here.height - 1, asked[near:]),
            )
        waiting = {}
        for id_, reached, asked in ways:
            if asked and asked[-1] == reached:
                ancestors[asked.pop()] = id_
            if asked:
                # Two paths may meet at one commit.
                waiting[id_] = sorted([*waiting[id_], *asked]) if id_ in waiting else asked
    return ancestors


def at_time(objects: Objects, commit: Id, time: int) -> Id:
    """Returns the newest commit along first parents that is not younger than `time`.

    `time` is in microseconds. O(log commits).
    """
    while commit != NO_COMMIT:
        here = objects.commit(commit)
        if here.time <= time:
            return commit
        commit = (
            here.jump
            if here.jump != NO_COMMIT and objects.commit(here.jump).time > time
            else here.parents[0]
        )
    return NO_COMMIT


def parent_number(objects: Objects, commit: Id, number: int) -> Id:
    """Returns a parent: 1 is the first parent. Returns the empty history if there is none."""
    if commit == NO_COMMIT:
        return NO_COMMIT
    parents = objects.commit(commit).parents
    return parents[number - 1] if number <= len(parents) else NO_COMMIT


def on_first_parents(objects: Objects, ancestor: Id, commit: Id) -> bool:
    """Returns whether `ancestor` is the commit or on its first parents. O(log commits)."""
    return ancestor in (NO_COMMIT, commit) or (
        commit != NO_COMMIT
        and ancestor_at(objects, commit, objects.commit(ancestor).height) == ancestor != NO_COMMIT
    )


def is_near_ancestor(objects: Objects, ancestor: Id, commit: Id, most: int) -> bool | None:
    """Returns whether `ancestor` is reachable over any parents.

    Returns None if more than `most` commits younger than it must be read to know.
    """
    limit = objects.commit(ancestor).generation
    seen = {commit}
    waiting = [commit]
    while waiting:
        for parent in objects.commit(waiting.pop()).parents:
            if parent == ancestor:
                return True
            if (
                parent not in seen
                and parent != NO_COMMIT
                and objects.commit(parent).generation > limit
            ):
                if len(seen) >= most:
                    return None
                seen.add(parent)
                waiting.append(parent)
    return False


def ancestors_despite_damage(objects: Objects, ids: Collection[Id], commit: Id) -> set[Id]:
    """Returns the commits among `ids` that are reachable, in a store with damaged objects.

    Visits every ancestor younger than they are. Raises `DamagedObject` only if one that was not
    found may be an ancestor of a commit that cannot be read.
    """
    limit = min((target.generation for target in objects.commits(list(ids))), default=0)
    ancestors: set[Id] = set()
    damage: DamagedObject | None = None
    seen = {commit}
    waiting = [commit]
    while waiting and len(ancestors) < len(ids):
        try:
            here = objects.commit(waiting.pop())
        except DamagedObject as error:
            damage = damage or error
            continue
        ancestors.update(parent for parent in here.parents if parent in ids)
        new = (
            [parent for parent in here.parents if parent not in seen and parent != NO_COMMIT]
            if here.generation > limit
            else []
        )
        seen.update(new)
        waiting += new
    if damage and len(ancestors) < len(ids):
        raise damage
    return ancestors


def common_first_parent(objects: Objects, a: Id, b: Id) -> Id:
    """Returns the newest common commit along first parents. O(log commits)."""
    height = min(height_of(objects, a), height_of(objects, b))
    a, b = ancestor_at(objects, a, height), ancestor_at(objects, b, height)
    while a != b:
        left, right = objects.commit(a), objects.commit(b)
        a, b = (
            (left.jump, right.jump)
            if left.jump != right.jump
            else (left.parents[0], right.parents[0])
        )
        # Equal jumps may lie beyond the newest common commit, parents never do.
    return a


def common_first_parents(objects: Objects, pairs: Iterable[tuple[Id, Id]]) -> list[Id]:
    """Returns `common_first_parent` for pairs of equal height, in O(log commits) round trips."""
    lines = list(pairs)
    apart = [place for place, (a, b) in enumerate(lines) if a != b]
    while apart:
        ids = list({id_ for place in apart for id_ in lines[place]})
        commits = dict(zip(ids, objects.commits(ids), strict=True))
        for place in apart:
            left, right = (commits[id_] for id_ in lines[place])
            lines[place] = (
                (left.jump, right.jump)
                if left.jump != right.jump
                else (left.parents[0], right.parents[0])
            )
        apart = [place for place in apart if lines[place][0] != lines[place][1]]
    return [a for a, _ in lines]


def descendants_on_first_parents(objects: Objects, ids: Iterable[Id], ancestor: Id) -> set[Id]:
    """Returns the commits that have `ancestor` on first parents, in O(log commits) round trips."""
    height = height_of(objects, ancestor)
    descendants: set[Id] = set()
    # Maps each reached commit to the commits whose first parents led there.
    waiting: dict[Id, list[Id]] = {id_: [id_] for id_ in ids}
    while waiting:
        descendants.update(waiting.pop(ancestor, ()))
        further: dict[Id, list[Id]] = {}
        for here, asked in zip(objects.commits(list(waiting)), waiting.values(), strict=True):
            if here.height > height:
                next_ = here.jump if jump_height(here.height) >= height else here.parents[0]
                further[next_] = further[next_] + asked if next_ in further else asked
        further.pop(NO_COMMIT, None)
        waiting = further
    return descendants


def merge_base(objects: Objects, a: Id, b: Id, is_over: Callable[[], bool] | None = None) -> Id:
    """Returns the best common ancestor over all parents.

    Of several (after merges in both directions) that is the one of the highest generation, then of
    the smallest id. One read for each commit since it. The empty history is an ancestor of
    everything. Asks `is_over` at each commit, and raises `TimeoutError` once it is.
    """
    return next(_CommonAncestors(objects, [[a], [b]], is_over).best())


def merge_bases(
    objects: Objects, *sides: Collection[Id], is_over: Callable[[], bool] | None = None
) -> list[Id]:
    """Returns the best common ancestors: those that no other one has as ancestor.

    Each side is a set of commits with the ancestors of all of them. The ancestor of `merge_base` is
    the first. Further ones are only searched while each side has ancestors that those before do not
    have. Asks `is_over` at each commit, and raises `TimeoutError` once it is.
    """
    return list(_CommonAncestors(objects, sides, is_over).best())


class _CommonAncestors:
    """A walk from several sets of commits, the *sides*, to their common ancestors.

    Each commit gets a flag for each side that reaches it, and one if a common ancestor reaches it.
    `_waiting` counts by side the commits in the queue that no common ancestor has reached.
    """

    def __init__(
        self,
        objects: Objects,
        sides: Sequence[Collection[Id]],
        is_over: Callable[[], bool] | None,
    ) -> None:
        self._objects = objects
        self._is_over = is_over
        self._sides = range(len(sides))
        self._common = (1 << len(sides)) - 1
        self._stale = self._common + 1
        self._flags: dict[Id, int] = {}
        self._queue: list[tuple[int, Id]] = []
        self._waiting = [0] * len(sides)
        for side, commits in enumerate(sides):
            for commit in commits:
                self._reach(commit, 1 << side)

    def best(self) -> Iterator[Id]:
        """Yields those that no other one reaches, by descending generation, then by id."""
        while all(self._waiting):
            if self._is_over is not None and self._is_over():
                raise TimeoutError
            _, commit = heappop(self._queue)
            flags = self._flags[commit]
            self._count(flags, -1)
            if flags == self._common:
                yield commit
                flags |= self._stale
            if commit != NO_COMMIT:
                for parent in self._objects.commit(commit).parents:
                    self._reach(parent, flags)

    def _reach(self, commit: Id, flags: int) -> None:
        before = self._flags.get(commit)
        if before is None:
            before = 0
            heappush(self._queue, (-_generation(self._objects, commit), commit))
        else:
            self._count(before, -1)
        self._flags[commit] = flags = before | flags
        self._count(flags, 1)

    def _count(self, flags: int, difference: int) -> None:
        if not flags & self._stale:
            for side in self._sides:
                if flags >> side & 1:
                    self._waiting[side] += difference


def _generation(objects: Objects, commit: Id) -> int:
    return 0 if commit == NO_COMMIT else objects.commit(commit).generation


class ReadAhead:
    """Reads commits ahead for a walk along first parents, more of them the longer the walk.

    Commits of one branch are usually written one after the other, so the commits written before are
    read. If most of these are useless, as with many writers, jump pointers are followed instead.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._known = objects.known_commit
        self._size = _FIRST_BATCH
        self._asked = 0
        self._read = 0
        self._batches = 0
        self._bytes = 0
        """The weight of one commit of each batch."""
        self._neighbours = True

    def commit(self, id_: Id) -> StoredCommit:
        """Returns a commit."""
        self._asked += 1
        cached = self._known(id_)
        if cached is None:
            useful = self._neighbours and self._read < _WASTED_READS + 3 * self._asked
            self._neighbours = useful and self._objects.read_commits_before(id_, self._size - 1)
            if not self._neighbours:
                read_ahead(self._objects, id_, self._size - 1)
            self._read += self._size
            cached = self._objects.commit(id_)
            # A batch of large commits would not stay in the cache until they are asked for.
            self._bytes += cached.weight()
            self._batches += 1
            most = max(1, _BATCH_BYTES * self._batches // self._bytes)
            self._size = min(2 * self._size, _LARGEST_BATCH, most)
        return cached


_FIRST_BATCH, _LARGEST_BATCH, _WASTED_READS = 8, 128, 300
_BATCH_BYTES = 4 << 20


def read_ahead(objects: Objects, commit: Id, count: int) -> None:
    """Caches a commit and `count` commits before it along first parents, in O(log count) trips."""
    bottom = objects.commit(commit).height - count
    waiting = {commit}
    seen = {commit, NO_COMMIT}
    while waiting:
        below: set[Id] = set()
        for here in objects.commits(list(waiting)):
            height = here.height
            if height - 1 > bottom:
                below.add(here.parents[0])
                if jump_height(height) > bottom:
                    below.add(here.jump)
        waiting = below - seen
        seen |= waiting


def first_parents(objects: Objects, commit: Id) -> Iterator[tuple[Id, StoredCommit]]:
    """Yields the commit and its ancestors along first parents, newest first."""
    ahead = ReadAhead(objects)
    while commit != NO_COMMIT:
        here = ahead.commit(commit)
        yield commit, here
        commit = here.parents[0]


def reachable(
    objects: Objects,
    starts: Sequence[Id],
    exclude: Sequence[Id] = (),
    *,
    most: int | None = None,
    times: Mapping[Id, int] | None = None,
    is_over: Callable[[], bool] | None = None,
) -> Iterator[tuple[Id, StoredCommit]]:
    """Yields commits reachable from `starts` but not from `exclude`, newest first, each once.

    Follows the first `most` parents of each commit, or all. Ends when only excluded commits are
    left. Starts with a commit time in `times` are read only when it is their turn. Asks `is_over`
    at each commit, and raises `TimeoutError` once it is.
    """
    read = ReadAhead(objects).commit
    excluded = set(exclude) - {NO_COMMIT}
    seen = (set(starts) | excluded) - {NO_COMMIT}
    timed = {id_: times[id_] for id_ in seen if id_ in times} if times else {}
    first = [id_ for id_ in seen if id_ not in timed]
    queue: list[tuple[int, Id, StoredCommit | None]] = [
        (-time, id_, None) for id_, time in timed.items()
    ]
    queue += [
        (-here.time, id_, here) for id_, here in zip(first, objects.commits(first), strict=True)
    ]
    heapify(queue)
    visible = len(seen - excluded)
    while queue and visible:
        if is_over is not None and is_over():
            raise TimeoutError
        _, commit, decoded = heappop(queue)
        here = decoded or read(commit)
        hidden = commit in excluded
        if not hidden:
            visible -= 1
            yield commit, here
        for parent in here.parents[:most]:
            if parent == NO_COMMIT:
                continue
            if hidden and parent not in excluded:
                excluded.add(parent)
                visible -= parent in seen
            if parent not in seen:
                seen.add(parent)
                visible += not hidden
                decoded = read(parent)
                heappush(queue, (-decoded.time, parent, decoded))


def symmetric_difference(objects: Objects, a: Id, b: Id) -> Iterator[tuple[Id, StoredCommit]]:
    """Yields commits reachable from exactly one of two commits, newest first, each once.

    Ends when only common commits are left.
    """
    read = ReadAhead(objects).commit
    sides = {a: 1}
    sides[b] = sides.get(b, 0) | 2
    sides.pop(NO_COMMIT, None)
    queue = [
        (-here.time, id_, here)
        for id_, here in zip(sides, objects.commits(list(sides)), strict=True)
    ]
    heapify(queue)
    unshared = sum(side != _BOTH for side in sides.values())
    while queue and unshared:
        _, commit, here = heappop(queue)
        side = sides[commit]
        if side != _BOTH:
            unshared -= 1
            yield commit, here
        for parent in here.parents:
            if parent == NO_COMMIT:
                continue
            side_before = sides.get(parent, 0)
            sides[parent] = side_before | side
            unshared += (side_before | side != _BOTH) - (side_before not in (0, _BOTH))
            if not side_before:
                entry = read(parent)
                heappush(queue, (-entry.time, parent, entry))
