"""Pages of long lists: a part at a time, and the whole number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from nessie_cli.errors import InvalidInput
from nessie_cli.server.pages.call import PageCall

A = TypeVar("A")
B = TypeVar("B")
ROWS = 50
"""The rows of one page of a list."""


class Listing(NamedTuple, Generic[A]):
    """A part of a list: its rows, the number of the first one (from 1), and of all of them.

    `previous` and `next` are the numbers of the pages beside it, or None.
    """

    rows: Sequence[A]
    first: int
    total: int
    previous: int | None
    next: int | None

    @property
    def last(self) -> int:
        """The number of the last row."""
        return self.first + len(self.rows) - 1

    @property
    def is_whole(self) -> bool:
        """Whether these are all rows."""
        return self.total <= len(self.rows)

    def with_rows(self, rows: Sequence[B]) -> Listing[B]:
        """Returns this part of the list with other rows."""
        return Listing(rows, *self[1:])


def listing(
    call: PageCall, rows: Sequence[A], size: int = ROWS, parameter: str = "page"
) -> Listing[A]:
    """Returns the part of a list that a query parameter names (from 1), at most the last one."""
    number = call.number(parameter) or 1
    if number < 1:
        raise InvalidInput(f"{parameter}: must be at least 1, not {number}")
    number = min(number, max(1, -(-len(rows) // size)))
    start = (number - 1) * size
    return Listing(
        rows[start : start + size],
        start + 1,
        len(rows),
        number - 1 if number > 1 else None,
        number + 1 if start + size < len(rows) else None,
    )
