"""Looks up the outcome of a write whose answer was lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from nessie_cli.errors import NotAllowed, NotFound, StoreUnavailable
from nessie_cli.repository.remote.transport import Lost

LOOKS = 4
FIRST_PAUSE = 0.1
"""The number of look-ups, and the seconds between the first two.

Each pause is three times the last.
"""

T = TypeVar("T")


def look_up_outcome(lost: Lost, look_up: Callable[[], T | None]) -> T:
    """Returns the result of a write whose answer was lost, by calling `look_up` repeatedly.

    Raises `lost` if there is no result, because the server may still write. If the server has ended
    the request with an error, a missing result means that nothing was written. Then this raises
    `StoreUnavailable`.
    """
    for number in range(LOOKS):
        try:
            result = look_up()
        except (StoreUnavailable, NotAllowed, NotFound):
            # If the look-up fails or the branch is gone, the outcome stays unknown.
            raise lost from None
        if result is not None:
            return result
        if lost.ended:
            raise StoreUnavailable(f"{lost.message}; nothing was written")
        if number < LOOKS - 1:
            time.sleep(FIRST_PAUSE * 3**number)
    raise lost from None
