"""The commit graph: the lane of each commit, and the lines to its children and parents.

A lane has the hash of the commit that it waits for. A commit takes the leftmost lane that waits for
it; the others end there. Its first parent continues in its lane; a merge parent joins the lane that
waits for it, or opens one. Commits must precede their parents; one that comes too late opens its
own lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nessie_cli.render.spans import LANES, Drawn, Span, Spans


class Marks(NamedTuple):
    """The characters of a graph; those after `through` are the ends of a line across."""

    commit: str
    merge: str
    down: str
    across: str
    through: str
    from_left: str
    from_right: str
    opens_left: str
    opens_right: str
    ends: str


UNICODE = Marks("●", "◎", "│", "─", "┼", "├", "┤", "╭", "╮", "╯")
ASCII = Marks("*", "M", "|", "-", "+", "|", "|", "/", "\\", "/")


class Graph:
    """Draws one commit after another. `root` is the parent of first commits, not a commit."""

    def __init__(self, root: str, marks: Marks = UNICODE) -> None:
        self._root = root
        self._marks = marks
        self._lanes: list[str | None] = []
        self._ended: int | None = None

    def add(self, hash: str, parents: Sequence[str]) -> Drawn:
        """Draws the next commit."""
        parents = [parent for parent in dict.fromkeys(parents) if parent != self._root]
        here = self._lane_of(hash)
        above = self._end_others(here, hash)
        self._trim()
        own = self._row({here: self._marks.merge if len(parents) > 1 else self._marks.commit})
        self._lanes[here] = parents[0] if parents else None
        self._ended = None if parents else here
        below = [self._reach(here, parent) for parent in parents[1:]]
        self._trim()
        further = self._row({})
        # A first commit ends its lane, but its text stays beside it.
        further += [Span("  ")] * (len(own) - len(further) if not parents else 0)
        return Drawn(above, own, below, further)

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

    def _end_others(self, here: int, hash: str) -> list[Spans]:
        """Ends the other lanes that wait for the commit, from the right, with lines to its lane."""
        drawn = []
        for lane in reversed(range(here + 1, len(self._lanes))):
            if self._lanes[lane] == hash:
                drawn.append(self._line(here, lane, self._marks.from_left, self._marks.ends))
                self._lanes[lane] = None
        return drawn

    def _reach(self, here: int, parent: str) -> Spans:
        """Draws a line from a commit to the lane of its merge parent."""
        marks = self._marks
        is_waiting = parent in self._lanes
        lane = self._lanes.index(parent) if is_waiting else self._open(parent)
        if lane > here:
            return self._line(
                here, lane, marks.from_left, marks.from_right if is_waiting else marks.opens_right
            )
        return self._line(
            lane, here, marks.from_left if is_waiting else marks.opens_left, marks.from_right
        )

    def _line(self, left: int, right: int, left_mark: str, right_mark: str) -> Spans:
        middle = {
            lane: self._marks.through if self._lanes[lane] else self._marks.across
            for lane in range(left + 1, right)
        }
        return self._row({left: left_mark, right: right_mark} | middle, left, right)

    def _row(self, marks: dict[int, str], left: int = 0, right: int = 0) -> Spans:
        """Returns a line of the graph, two columns per lane.

        Gaps between `left` and `right` are filled.
        """
        spans = []
        for lane, waiting in enumerate(self._lanes):
            mark = marks.get(lane, self._marks.down if waiting else " ")
            gap = self._marks.across if left <= lane < right else " "
            spans.append(
                Span(mark + gap, f"lane{(right if left <= lane < right else lane) % LANES}")
            )
        return spans
