"""`nessie serve` as a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SERVE = (sys.executable, "-m", "nessie_cli", "serve")
PATIENCE = 120


@contextmanager
def started(*arguments: str, **named: Any) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running server on a free port, and its URL; killed at the end where it still runs."""
    process = subprocess.Popen([*SERVE, "--port", "0", *arguments], stdout=named.get("stdout", subprocess.DEVNULL), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        found = re.search(r"http://\S+?:\d+", line)
        assert found, line + process.stderr.read()
        yield process, found[0]
    finally:
        process.kill()
        process.communicate()
