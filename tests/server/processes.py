"""`nessie serve` in its own process."""

from __future__ import annotations

import os
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
    """Runs a server on a free port within the block, and yields it with its URL.

    `stdout` is the target of its output, `env` is added to its environment, `first` is a word of
    the line before the one with the URL.
    """
    stdout, environment = named.get("stdout", subprocess.DEVNULL), os.environ | named.get("env", {})
    process = subprocess.Popen(
        [*SERVE, "--port", "0", *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        if "first" in named:
            assert named["first"] in line, line
            line = process.stderr.readline()
        found = re.search(r"https?://\S+?:\d+", line)
        if found is None:
            # It may be serving after all, and would never exit by itself.
            process.kill()
        assert found, line + process.stderr.read()
        yield process, found[0]
    finally:
        process.kill()
        process.communicate()
