"""Ancestor tests over any parents, without a walk if merges are rare.

The ancestors of a commit are a few lines of first parents: its own, and one for each merge parent
that is on none of the others. The commit index finds merge commits (commits.py). Once the
lines are known, a test costs O(log commits). The lines of a commit never change.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator

from nessie_cli.errors import DamagedObject
from nessie_cli.kernel import history
from nessie_cli.kernel.commits import MERGE_COMMIT, IndexLookup, indexed
from nessie_cli.kernel.forms import NO_COMMIT, Id
from nessie_cli.kernel.objects import Objects

NEAR = 64
"""The most commits that a walk reads before the lines are used."""

_KEPT = 64
_REMEMBERED = 4096
_BATCH = 256
_SPAN = 64
_FEW = 8

Merges = list[tuple[Id, tuple[Id, ...]]]
"""Commits that merge, with their merge parents."""


class _Line:
    """First parents from `tip` down to above the height `bottom`.

    Caches the commits that it has found. The next search starts at the closest one above.
    """

    def __init__(self, tip: Id, top: int, bottom: int) -> None:
        self.tip = tip
        self.top = top
        self.bottom = bottom
        # Replaced, never changed in place: several threads read it.
        self._known = [(top, tip)]

    def at(self, objects: Objects, height: int) -> Id:
        """Returns the commit at a height. O(log distance) to the next cached commit above."""
        cached = self._known
        place = bisect_left(cached, (height, b""))
        above, id_ = cached[place]
        if above == height:
            return id_
        commit = history.ancestor_at(objects, id_, height)
        if len(cached) < _REMEMBERED:
            self._known = [*cached[:place], (height, commit), *cached[place:]]
        return commit

    def learn(self, objects: Objects, heights: Iterable[int]) -> None:
        """Caches the commits at many heights, in few round trips."""
        cached = self._known
        new = sorted(
            {height for height in heights if self.bottom < height < self.top}
            - {height for height, _ in cached}
        )
        commits = history.ancestors_at(objects, self.tip, new[: max(0, _REMEMBERED - len(cached))])
        self._known = sorted([*cached, *commits.items()])

    def holds(self, objects: Objects, id_: Id, height: int) -> bool:
        """Returns whether a commit with this height is on the line."""
        return self.bottom < height <= self.top and self.at(objects, height) == id_


class _Lines:
    """All ancestors of a commit: its own line, and the others by the heights of their commits."""

    def __init__(self, objects: Objects, tip: Id) -> None:
        self._objects = objects
        self.first = _Line(tip, objects.commit(tip).height, 0)
        self._tips = {tip}
        self._others: dict[int, list[_Line]] = {}

    def add(self, tip: Id, bottom: int) -> None:
        """Adds a line. Lines do not overlap, so together they are in O(commits / _SPAN) lists."""
        line = _Line(tip, self._objects.commit(tip).height, bottom)
        self._tips.add(tip)
        for span in range((bottom + 1) // _SPAN, line.top // _SPAN + 1):
            self._others.setdefault(span, []).append(line)

    def hold(self, id_: Id) -> bool:
        """Returns whether a commit is on one of the lines."""
        if id_ in self._tips:
            return True
        height = self._objects.commit(id_).height
        return any(
            line.holds(self._objects, id_, height)
            for line in (self.first, *self._others.get(height // _SPAN, ()))
        )


class AncestryIndex:
    """Tests ancestors over one store, and caches the lines of the tested commits."""

    def __init__(self, objects: Objects, lookup: IndexLookup, near: int = NEAR) -> None:
        self._objects = objects
        self._near = near
        self._lookup = lookup
        self._merges: list[tuple[int, Id]] = []
        self._lines: dict[Id, _Lines] = {}

    def is_ancestor(self, ancestor: Id, commit: Id) -> bool:
        """Returns whether `ancestor` is reachable over any parents; a commit is its own ancestor.

        O(log commits) for first parents and neighbours. Otherwise, once for each `commit`,
        O(log commits) for each merge in the store. If an object is damaged, every younger ancestor
        is read. Raises `DamagedObject` if the answer may depend on the damaged object.
        """
        if ancestor in (NO_COMMIT, commit):
            return True
        if commit == NO_COMMIT:
            return False
        try:
            return self._is_ancestor(ancestor, commit)
        except DamagedObject:
            # The lines need all merges of the store, and the damaged one may be no ancestor.
            return bool(history.ancestors_despite_damage(self._objects, {ancestor}, commit))

    def _is_ancestor(self, ancestor: Id, commit: Id) -> bool:
        if commit not in self._lines:
            if history.on_first_parents(self._objects, ancestor, commit):
                return True
            near = history.is_near_ancestor(self._objects, ancestor, commit, self._near)
            if near is not None:
                return near
        return self._known_lines(commit).hold(ancestor)

    def ancestors_among(self, ids: Collection[Id], commit: Id) -> set[Id]:
        """Returns the commits among `ids` that are ancestors of `commit`.

        O(log commits) round trips, and as many for the merges of the store.
        """
        trivial = {id_ for id_ in ids if id_ in (NO_COMMIT, commit)}
        others = list(set(ids) - trivial) if commit != NO_COMMIT else []
        if len(others) <= _FEW:
            return trivial.union(id_ for id_ in others if self.is_ancestor(id_, commit))
        try:
            lines = self._known_lines(commit)
            lines.first.learn(
                self._objects, [other.height for other in self._objects.commits(others)]
            )
            return trivial.union(filter(lines.hold, others))
        except DamagedObject:
            return trivial | history.ancestors_despite_damage(self._objects, set(others), commit)

    def descendants_among(
        self, ids: Collection[Id], ancestor: Id, is_over: Callable[[], bool] | None = None
    ) -> set[Id]:
        """Returns the commits among `ids` that are descendants of `ancestor`.

        O(log commits) round trips for first parents and neighbours, as many for the merges of the
        store, and as many for each line of first parents that the ancestor was merged into. Asks
        `is_over` at each of these lines, and raises `TimeoutError` once it is.
        """
        if ancestor == NO_COMMIT:
            return set(ids)
        rest = set(ids) - {NO_COMMIT}
        descendants = history.descendants_on_first_parents(self._objects, rest, ancestor)
        rest -= descendants
        oldest = self._objects.commit(ancestor).generation
        for id_ in list(rest):
            # With so few commits between them, a walk is short.
            if self._objects.commit(id_).generation - oldest <= self._near:
                near = history.is_near_ancestor(self._objects, ancestor, id_, self._near)
                if near is not None:
                    rest.remove(id_)
                    descendants.update([id_] if near else [])
        for entry in self._entries(ancestor) if rest else ():
            if is_over is not None and is_over():
                raise TimeoutError
            descendants |= (
                reached := history.descendants_on_first_parents(self._objects, rest, entry)
            )
            rest -= reached
            if not rest:
                break
        return descendants

    def _entries(self, ancestor: Id) -> Iterator[Id]:
        """Yields the merges that brought a commit into other lines.

        Each descendant has the commit or one of these merges among its first parents.
        """
        objects = self._objects
        oldest = objects.commit(ancestor).generation
        merges = {
            id_: parents
            for batch in self._merges_newest_first()
            for id_, parents in batch
            if objects.commit(id_).generation > oldest
        }
        entries: set[Id] = set()
        entry = ancestor
        while True:
            asked = {*merges, *(parent for parents in merges.values() for parent in parents)} - {
                NO_COMMIT
            }
            reached = history.descendants_on_first_parents(objects, asked, entry)
            # Merges with this entry among their first parents add nothing to its line.
            merges = {id_: parents for id_, parents in merges.items() if id_ not in reached}
            entries = {
                id_
                for id_, parents in merges.items()
                if id_ in entries or not reached.isdisjoint(parents)
            }
            if not entries:
                return
            entry = min(entries, key=lambda id_: (objects.commit(id_).generation, id_))
            yield entry

    def _known_lines(self, commit: Id) -> _Lines:
        lines = self._lines.get(commit)
        if lines is None:
            lines = self._lines_of(commit)
            if len(self._lines) >= _KEPT:
                self._lines = {}
            self._lines[commit] = lines
        return lines

    def _lines_of(self, tip: Id) -> _Lines:
        objects = self._objects
        lines = _Lines(objects, tip)
        for merges in self._merges_newest_first():
            forks = self._forks(lines.first, merges)
            # A merge is written before its descendants, so all lines that can lead to it are known.
            for id_, parents in merges:
                if lines.hold(id_):
                    for parent in parents:
                        if parent != NO_COMMIT and not lines.hold(parent):
                            fork = forks.get((id_, parent)) or history.common_first_parent(
                                objects, parent, id_
                            )
                            lines.add(parent, history.height_of(objects, fork))
        return lines

    def _forks(self, line: _Line, merges: Merges) -> dict[tuple[Id, Id], Id]:
        """Returns the commits at which the parents of merges on a line left that line."""
        objects = self._objects
        heights = {id_: objects.commit(id_).height for id_, _ in merges}
        merge_parents = objects.find_commits(
            [parent for _, parents in merges for parent in parents]
        )
        line.learn(
            objects, [*heights.values(), *(commit.height for commit in merge_parents.values())]
        )
        on_line = [
            (id_, parents) for id_, parents in merges if line.holds(objects, id_, heights[id_])
        ]
        pairs = [
            (id_, parent)
            for id_, parents in on_line
            for parent in parents
            if parent in merge_parents and merge_parents[parent].height <= heights[id_]
        ]
        forks = history.common_first_parents(
            objects,
            [(parent, line.at(objects, merge_parents[parent].height)) for _, parent in pairs],
        )
        objects.find_commits(list(set(forks)))
        return dict(zip(pairs, forks, strict=True))

    def _merges_newest_first(self) -> Iterator[Merges]:
        """Yields the merge commits of the store with their merge parents, in batches."""
        self._merges = merges = self._refreshed()
        ids = [id_ for _, id_ in reversed(merges)]
        for first in range(0, len(ids), _BATCH):
            batch = ids[first : first + _BATCH]
            commits = self._objects.find_commits(batch)
            yield [(id_, commits[id_].parents[1:]) for id_ in batch if id_ in commits]

    def _refreshed(self) -> list[tuple[int, Id]]:
        """Returns the merges of the store, oldest first.

        Compares the known ones from the end, because numbers of a failed write are used again.
        """
        cached, new = list(self._merges), []
        for pair in indexed(self._lookup, MERGE_COMMIT):
            while cached and cached[-1][0] > pair[0]:
                cached.pop()
            if cached and cached[-1] == pair:
                break
            new.append(pair)
        return cached + new[::-1]
