"""Items in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def batched(items: Iterable[T], size: int, first: int | None = None) -> Iterator[list[T]]:
    """Yields lists of `size` items; the last one may have fewer.

    With `first`, the first one has so many items, and each next one twice as many, up to `size`.
    """
    iterator = iter(items)
    length = min(first or size, size)
    while batch := list(islice(iterator, length)):
        yield batch
        length = min(2 * length, size)
