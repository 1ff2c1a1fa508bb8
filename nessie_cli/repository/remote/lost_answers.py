"""Lost answers of writes: the outcome is looked up before an error is reported."""

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
    """Returns the result of a write whose response was lost, found by `look_up`.

    Raises `lost` if it is not found: the server may have done the write, or may still do it. If the
    server has answered that it failed, it does nothing any more, so a write that is not found was
    not done. Then this raises `StoreUnavailable`.
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
