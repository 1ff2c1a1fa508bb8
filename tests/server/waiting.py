"""Waiting for an event."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 120


def until(condition: Callable[[], T]) -> T:
    """Waits until a condition is true, and returns its value."""
    end = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return value
