"""Progress reporting, passed down as a callback."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

Progress = Callable[[int, int | None], None]
"""Called with how much is done and how much there is (None: unknown), in any unit. Must be fast and never raise."""

FEW = 1000
"""Fewer items are done too soon to be worth a report."""
_PACE = 100


def with_progress(
    items: Iterable[T], progress: Progress | None, total: int | None, before: int = 0
) -> Iterable[T]:
    """The items; `progress` is called with how many of `total` were consumed, counted from `before`. Does nothing if no callback is set."""
    return (
        items
        if progress is None or (total is not None and total < FEW)
        else _reported(items, progress, total, before)
    )


def _reported(
    items: Iterable[T], progress: Progress, total: int | None, before: int
) -> Iterator[T]:
    for number, item in enumerate(items, before):
        if not number % _PACE:
            progress(number, total)
        yield item
