"""Commands on a terminal where keys are typed."""

import os
import pty
import subprocess
import sys
from collections.abc import Callable

END_OF_INPUT = b"\x04"


def answering(
    answers: str,
    *argv: str,
    meanwhile: Callable[[], object] | None = None,
    **environment: str,
) -> tuple[int, str]:
    """Runs a command on a terminal where these keys and the end of input are typed, `meanwhile`
    after the first question; returns its exit code and what was seen."""
    master, slave = pty.openpty()
    words = [sys.executable, "-m", "nessie_cli", *argv]
    with subprocess.Popen(
        words,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "NO_COLOR": "1", **environment},
    ) as process:
        os.close(slave)
        seen = b""
        while meanwhile is not None and b"help:" not in seen:
            seen += os.read(master, 4096)
        if meanwhile is not None:
            meanwhile()
        os.write(master, answers.encode() + END_OF_INPUT)
        try:
            while part := os.read(master, 4096):
                seen += part
        except OSError:
            pass
    os.close(master)
    return process.returncode, seen.decode()
