"""Progress of long work: a bar on a terminal, otherwise an occasional line on stderr."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol, Self

PACE = 15.0
"""Seconds between two progress lines."""

Report = Callable[[str, int, int | None], None]
"""Progress callback: the current activity, the amount done, and the total (None if unknown)."""


class Work(Protocol):
    """Work that runs while its block is entered. It is a `Progress` callback."""

    def __call__(self, done: int, total: int | None) -> None:
        """Reports progress."""

    def report(self, activity: str, done: int, total: int | None) -> None:
        """Reports progress of work with several activities."""

    def __enter__(self) -> Self:
        """Starts or resumes the work."""

    def __exit__(self, *_: object) -> None:
        """Pauses or ends the work."""


class WorkInLines:
    """Work that is not shown on a terminal: `print_line` gets an occasional line, if it is set."""

    def __init__(self, activity: str, print_line: Callable[[str], None] | None) -> None:
        self._activity = activity
        self._print_line = print_line
        self._last = time.monotonic()

    def __call__(self, done: int, total: int | None) -> None:
        """Reports progress."""
        self.report(self._activity, done, total)

    def report(self, activity: str, done: int, total: int | None) -> None:
        """Reports progress of work with several activities."""
        if self._print_line and time.monotonic() - self._last >= PACE:
            self._last = time.monotonic()
            self._print_line(f"{activity}: {done:,}" + (f" of {total:,}" if total else ""))

    def __enter__(self) -> Self:
        """Starts or resumes the work."""
        return self

    def __exit__(self, *_: object) -> None:
        """Pauses or ends the work."""
