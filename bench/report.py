"""One line of the report, and the computation of ratios from times."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import apsw

MILLI = 1000


@dataclass(frozen=True)
class Line:
    """A measured value, its goal (None: for information), and the figures it was computed from.

    `at_least`: whether the goal is a minimum.
    """

    what: str
    value: float
    unit: str
    goal: float | None
    made_of: str
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the goal is reached."""
        return self.goal is None or (
            self.value >= self.goal if self.at_least else self.value <= self.goal
        )

    def __str__(self) -> str:
        goal = (
            "no goal" if self.goal is None else f"{'>=' if self.at_least else '<='} {self.goal:g}"
        )
        verdict = "" if self.goal is None else "ok" if self.met else "MISSED"
        return (
            f"{self.what:<58} {self.value:7.2f} {self.unit:<4} {goal:>8}  {verdict:<6} "
            f" {self.made_of}"
        )


def machine() -> str:
    """Returns a description of this machine."""
    return (
        f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}, {os.cpu_count()}"
        f" processors, {platform.system()}"
    )


def seconds(do: Callable[[], object]) -> float:
    """Returns the duration of one call."""
    begun = time.perf_counter()
    do()
    return time.perf_counter() - begun


def interleaved(rounds: int, *contestants: Callable[[], object]) -> list[list[float]]:
    """Returns the seconds of each contestant.

    They run in turn, so that a disturbance of the machine affects all alike.
    """
    times: list[list[float]] = [[] for _ in contestants]
    for _ in range(rounds):
        for taken, contestant in zip(times, contestants, strict=True):
            taken.append(seconds(contestant))
    return times


def ratio_of_medians(above: Sequence[float], below: Sequence[float]) -> float:
    """Returns the median of the first times divided by that of the second ones."""
    return median(above) / median(below)


def milliseconds(times: Sequence[float]) -> str:
    """Returns the median as text."""
    return f"{MILLI * median(times):.3g} ms"
