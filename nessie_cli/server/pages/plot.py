"""A plot of numbers over time, as positions for SVG."""

# No postponed annotations: those of a NamedTuple's fields would be compiled at each start.
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

WIDTH, HEIGHT = 720, 160
LEFT, RIGHT, TOP, BOTTOM = 80, 12, 12, 24
"""The sizes of the plot and of its margins, in pixels."""


class Point(NamedTuple):
    """A point of the line: its position, and its time and number."""

    x: float
    y: float
    time: datetime
    number: int


class Plot(NamedTuple):
    """A line over time, from zero to `most`."""

    points: Sequence[Point]
    most: int
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM

    @property
    def line(self) -> str:
        """The points of a polyline, in steps: a number holds until the next one."""
        pairs: list[tuple[float, float]] = []
        for point in self.points:
            if pairs:
                pairs.append((point.x, pairs[-1][1]))
            pairs.append((point.x, point.y))
        return " ".join(f"{x:g},{y:g}" for x, y in pairs)


def plot_of(values: Sequence[tuple[datetime, int]]) -> Plot | None:
    """Returns the plot of numbers in order of time; None for fewer than two."""
    if len(values) < 2:  # noqa: PLR2004 - a line has two ends
        return None
    most = max((number for _, number in values), default=0)
    # Clocks of writers differ, so times may go back.
    times = [time.timestamp() for time, _ in values]
    start, span = min(times), max(times) - min(times)
    points = [
        Point(
            round(LEFT + (WIDTH - RIGHT - LEFT) * ((at - start) / span if span else 0.0), 1),
            round(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (number / most if most else 0.0), 1),
            time,
            number,
        )
        for at, (time, number) in zip(times, values, strict=True)
    ]
    return Plot(points, most)
