"""The commit graph in characters: two columns for each lane."""

from __future__ import annotations

from typing import NamedTuple

from nessie_cli.inspection.graph import Across, GraphRow, Joint, PlacedCommit
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


def drawn(placed: PlacedCommit, marks: Marks = UNICODE) -> Drawn:
    """Returns the lines of a commit beside its text."""
    own, further = _spans(placed.own, marks), _spans(placed.further, marks)
    # A first commit ends its lane, but its text stays beside it.
    further += [Span("  ")] * (len(own) - len(further))
    above, below = ([_spans(row, marks) for row in rows] for rows in (placed.above, placed.below))
    return Drawn(above, own, below, further)


def _spans(row: GraphRow, marks: Marks) -> Spans:
    at = _ends_of(row.across, marks) if row.across else {}
    left, right = (min(at), max(at)) if at else (0, 0)
    if row.commit is not None:
        at[row.commit] = marks.merge if row.is_merge else marks.commit
    spans = []
    for lane, has_line in enumerate(row.lanes):
        mark = marks.down if has_line else " "
        if left < lane < right:
            mark = marks.through if has_line else marks.across
        gap = marks.across if left <= lane < right else " "
        style = f"lane{(right if left <= lane < right else lane) % LANES}"
        spans.append(Span(at.get(lane, mark) + gap, style))
    return spans


def _ends_of(across: Across, marks: Marks) -> dict[int, str]:
    """Returns the characters at both ends of a line across."""
    if across.lane > across.commit:
        return {
            across.commit: marks.from_left,
            across.lane: {
                Joint.ENDS: marks.ends,
                Joint.JOINS: marks.from_right,
                Joint.OPENS: marks.opens_right,
            }[across.joint],
        }
    opens = across.joint is Joint.OPENS
    return {
        across.lane: marks.opens_left if opens else marks.from_left,
        across.commit: marks.from_right,
    }
