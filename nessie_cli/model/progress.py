"""Progress reporting, passed down as a callback."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

Progress = Callable[[int, int | None], None]
"""A callback with the amount done and the total (None: unknown), in any unit.

It must be fast and must not raise.
"""

FEW = 1000
"""The number of items from which on progress is reported."""
_PACE = 100


def with_progress(
    items: Iterable[T], progress: Progress | None, total: int | None, before: int = 0
) -> Iterable[T]:
    """Returns the items, and reports how many of `total` were consumed, counted from `before`.

    Does nothing if no callback is set.
    """
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
