"""How far a long piece of work is: told by whoever does it to whoever wants to know, and handed down to the work by argument."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

Progress = Callable[[int, int | None], None]
"""Hears how much is done and how much there is (None: nobody knows), in whatever unit. May be called often; must be quick, and never raises."""

FEW = 1000
"""What has fewer parts is done before anybody could want to know."""
_PACE = 100


def told(items: Iterable[T], progress: Progress | None, total: int | None, before: int = 0) -> Iterable[T]:
    """The items, while it is told how many of `total` have been worked on, those `before` counted in. Costs nothing where nobody listens."""
    return items if progress is None or (total is not None and total < FEW) else _told(items, progress, total, before)


def _told(items: Iterable[T], progress: Progress, total: int | None, before: int) -> Iterator[T]:
    for number, item in enumerate(items, before):
        if not number % _PACE:
            progress(number, total)
        yield item
