"""Whether a commit is an ancestor of another over any parents, without a walk where merges are rare.

The ancestors of a commit are a few lines of first parents: its own, and one for each merge parent that is on none of the others. The commits that
merge are found by their mark (keylog.py). With the lines at hand a question costs O(log commits), and the lines of a commit never change.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from nessie_cli.kernel import history
from nessie_cli.kernel.keylog import MERGE, FindMarked, marked
from nessie_cli.kernel.objects import NO_COMMIT, Id, Objects

NEAR = 64
"""So many commits are looked at before the lines are: most questions are about neighbours."""

_KEPT = 64
_REMEMBERED = 4096
_BATCH = 256


class _Line:
    """First parents from `tip` back to the height `bottom`, where other lines have what is older.

    It remembers the commits that it was asked for: the next question, mostly about a height near by, begins at the one above.
    """

    def __init__(self, tip: Id, top: int, bottom: int) -> None:
        self._heights = [top]
        self._ids = [tip]
        self._bottom = bottom

    def holds(self, objects: Objects, id_: Id, height: int) -> bool:
        """Whether a commit of this height is on the line. O(log distance) to a commit above that was asked for."""
        if not self._bottom < height <= self._heights[-1]:
            return False
        place = bisect_left(self._heights, height)
        found = history.ancestor_at(objects, self._ids[place], height)
        if self._heights[place] != height and len(self._heights) < _REMEMBERED:
            self._heights.insert(place, height)
            self._ids.insert(place, found)
        return found == id_


class Lineages:
    """Answers questions about ancestors over one store. What it has found out about a commit it remembers for the next question."""

    def __init__(self, objects: Objects, find_marked: FindMarked, near: int = NEAR) -> None:
        self._objects = objects
        self._near = near
        self._find_marked = find_marked
        self._merges: list[tuple[int, Id]] = []
        self._lines: dict[Id, list[_Line]] = {}

    def is_ancestor(self, ancestor: Id, commit: Id) -> bool:
        """Whether `ancestor` is reachable over any parents; a commit is its own ancestor.

        O(log commits) for first parents and neighbours; else, once for each `commit`, O(log commits) for each merge of the store.
        """
        if ancestor in (NO_COMMIT, commit):
            return True
        if commit == NO_COMMIT:
            return False
        if commit not in self._lines:
            if history.on_first_parents(self._objects, ancestor, commit):
                return True
            near = history.is_near_ancestor(self._objects, ancestor, commit, self._near)
            if near is not None:
                return near
            if len(self._lines) >= _KEPT:
                self._lines = {}
            self._lines[commit] = self._lines_of(commit)
        return self._reached(self._lines[commit], ancestor)

    def _lines_of(self, tip: Id) -> list[_Line]:
        objects = self._objects
        lines = [_Line(tip, objects.commit(tip).height, 0)]
        for id_, parents in self._merges_newest_first():
            # A merge is written before its descendants, so the lines that can lead to it are known by now.
            if self._reached(lines, id_):
                for parent in parents:
                    if parent != NO_COMMIT and not self._reached(lines, parent):
                        fork = history.common_first_parent(objects, parent, id_)
                        lines.append(_Line(parent, objects.commit(parent).height, history.height_of(objects, fork)))
        return lines

    def _reached(self, lines: Iterable[_Line], id_: Id) -> bool:
        height = self._objects.commit(id_).height
        return any(line.holds(self._objects, id_, height) for line in lines)

    def _merges_newest_first(self) -> Iterator[tuple[Id, tuple[Id, ...]]]:
        """The commits of the store that merge, each with its merge parents."""
        self._merges = found = self._refreshed()
        ids = [id_ for _, id_ in reversed(found)]
        for first in range(0, len(ids), _BATCH):
            batch = ids[first : first + _BATCH]
            commits = self._objects.find_commits(batch)
            for id_ in batch:
                if id_ in commits:
                    yield id_, commits[id_].parents[1:]

    def _refreshed(self) -> list[tuple[int, Id]]:
        """What was known, oldest first, brought up to date from its end: the last numbers may have been given again after a failed write."""
        known, new = list(self._merges), []
        for pair in marked(self._find_marked, MERGE):
            while known and known[-1][0] > pair[0]:
                known.pop()
            if known and known[-1] == pair:
                break
            new.append(pair)
        return known + new[::-1]
