"""Memory that requests no longer need.

A full collection of garbage visits all objects while no other thread runs: for a second, if a large
body is in memory. So it takes place rarely, and after a large request for its objects only.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from functools import cache

YOUNG = 5_000
"""The number of new objects after which they are searched for garbage."""
_OLDER, _NEVER = 5, 1 << 30
_OLDEST = 2
_CHEAP = 100_000
"""The number of objects that are searched in some tens of milliseconds."""


def collect_rarely() -> None:
    """Leaves full collections of garbage to `give_back`."""
    gc.set_threshold(YOUNG, _OLDER, _NEVER)


def set_aside() -> None:
    """Excludes all objects from collections until `give_back`, at no cost."""
    if not gc.get_freeze_count():
        gc.freeze()


def is_cheap() -> bool:
    """Returns whether few objects would be searched for garbage.

    An answer that is still being sent may have a million, which were made for a large request.
    """
    return len(gc.get_objects(generation=_OLDEST)) < _CHEAP


def give_back(*, collect: bool = True) -> None:
    """Collects the garbage of what was not set aside, and returns freed memory to the system.

    Only some C libraries can return memory; it takes some milliseconds.
    """
    if collect:
        gc.collect()
    gc.unfreeze()
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    # glibc keeps freed memory between used pieces: after a large commit, several times what the
    # server needs.
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
