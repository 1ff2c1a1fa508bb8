"""One line of the report, and how times become a ratio."""

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
    """A measured value, its goal (None: for information), and what it was made of.

    `at_least` tells which side of the goal is good.
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
    """Where this was measured."""
    return (
        f"Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}, {os.cpu_count()}"
        f" processors, {platform.system()}"
    )


def seconds(do: Callable[[], object]) -> float:
    """How long one call takes."""
    begun = time.perf_counter()
    do()
    return time.perf_counter() - begun


def interleaved(rounds: int, *contestants: Callable[[], object]) -> list[list[float]]:
    """The seconds of each contestant, all of them run in turn, so that a disturbance of the machine
    meets all alike."""
    times: list[list[float]] = [[] for _ in contestants]
    for _ in range(rounds):
        for taken, contestant in zip(times, contestants, strict=True):
            taken.append(seconds(contestant))
    return times


def ratio_of_medians(above: Sequence[float], below: Sequence[float]) -> float:
    """How many times as long the first takes."""
    return median(above) / median(below)


def milliseconds(times: Sequence[float]) -> str:
    """The median as text."""
    return f"{MILLI * median(times):.3g} ms"
