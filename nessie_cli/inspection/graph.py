"""The commit graph as values: the lane of each commit, and the lines between lanes.

A lane has the hash of the commit that it waits for. A commit takes the leftmost lane that waits for
it; the others end there. Its first parent continues in its lane; a merge parent joins the lane that
waits for it, or opens one. Commits must precede their parents; one that comes too late opens its
own lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple


class Joint(Enum):
    """What a line from a commit to another lane does there."""

    ENDS = auto()
    """The lane of another child ends."""
    JOINS = auto()
    """The lane waits for the merge parent already."""
    OPENS = auto()
    """The lane of the merge parent begins."""


class Across(NamedTuple):
    """A line from the lane of a commit to another lane."""

    commit: int
    lane: int
    joint: Joint


class GraphRow(NamedTuple):
    """A row of a graph: for each lane, whether it has a line here.

    The row has the commit in the lane `commit`, or a line across, or neither.
    """

    lanes: Sequence[bool]
    commit: int | None = None
    is_merge: bool = False
    across: Across | None = None


class PlacedCommit(NamedTuple):
    """The rows of a commit: those above it, its own, those below, one for each further line."""

    above: Sequence[GraphRow]
    own: GraphRow
    below: Sequence[GraphRow]
    further: GraphRow


class Graph:
    """Places one commit after another. `root` is the parent of first commits, not a commit.

    `lanes` are the lanes at the beginning: the hash that each waits for, or None. Those of an
    earlier graph continue it.
    """

    def __init__(self, root: str, lanes: Sequence[str | None] = ()) -> None:
        self._root = root
        self._lanes = list(lanes)
        self._ended: int | None = None

    @property
    def lanes(self) -> Sequence[str | None]:
        """The hash that each lane waits for, or None."""
        return tuple(self._lanes)

    def add(self, hash: str, parents: Sequence[str]) -> PlacedCommit:
        """Places the next commit."""
        parents = [parent for parent in dict.fromkeys(parents) if parent != self._root]
        here = self._lane_of(hash)
        above = self._end_others(here, hash)
        self._trim()
        own = GraphRow(self._lines(), here, is_merge=len(parents) > 1)
        self._lanes[here] = parents[0] if parents else None
        self._ended = None if parents else here
        below = [self._reach(here, parent) for parent in parents[1:]]
        self._trim()
        return PlacedCommit(above, own, below, GraphRow(self._lines()))

    def _lines(self) -> Sequence[bool]:
        return [waiting is not None for waiting in self._lanes]

    def _trim(self) -> None:
        while self._lanes and self._lanes[-1] is None:
            self._lanes.pop()

    def skip(self, hash: str, parents: Sequence[str]) -> None:
        """Skips a commit: lanes that wait for it wait for its first parent instead."""
        instead = parents[0] if parents and parents[0] != self._root else None
        self._lanes = [instead if waiting == hash else waiting for waiting in self._lanes]
        self._trim()

    def _lane_of(self, hash: str) -> int:
        """Returns the leftmost lane that waits for a commit, or a free one.

        A free lane is not directly below a first commit, which would look like its child.
        """
        if hash in self._lanes:
            return self._lanes.index(hash)
        return self._open(hash, avoid=self._ended)

    def _open(self, hash: str, avoid: int | None = None) -> int:
        free = next(
            lane
            for lane in range(len(self._lanes) + 2)
            if lane != avoid and not any(self._lanes[lane : lane + 1])
        )
        self._lanes += [None] * (free + 1 - len(self._lanes))
        self._lanes[free] = hash
        return free

    def _end_others(self, here: int, hash: str) -> list[GraphRow]:
        """Ends the other lanes that wait for the commit, from the right, with lines to its lane."""
        rows = []
        for lane in reversed(range(here + 1, len(self._lanes))):
            if self._lanes[lane] == hash:
                rows.append(GraphRow(self._lines(), across=Across(here, lane, Joint.ENDS)))
                self._lanes[lane] = None
        return rows

    def _reach(self, here: int, parent: str) -> GraphRow:
        """Returns the line from a commit to the lane of its merge parent."""
        joint = Joint.JOINS if parent in self._lanes else Joint.OPENS
        lane = self._lanes.index(parent) if joint is Joint.JOINS else self._open(parent)
        return GraphRow(self._lines(), across=Across(here, lane, joint))
