"""Pictures of terminals, drawn from real runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def every() -> Iterator[tuple[Path, str]]:
    """Every picture and the file that holds it."""
    yield from ()
