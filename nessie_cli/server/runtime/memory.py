"""Memory that a large request no longer needs."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from functools import cache


def give_back() -> None:
    """Returns freed memory to the system, in some milliseconds, if the C library can do that."""
    gc.collect()
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    # glibc keeps freed memory between used pieces: after a large commit, several times what the
    # server needs.
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
