"""Memory that a large request needed and nobody needs any more."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from functools import cache


def give_back() -> None:
    """Return freed memory to the system. Does nothing if the C library has no function for it; costs some milliseconds."""
    gc.collect()
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], int] | None:
    # glibc keeps what was freed between pieces that are still in use: after a large commit several times what the server needs.
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
