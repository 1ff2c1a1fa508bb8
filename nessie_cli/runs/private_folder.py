"""The private folder of a run: its files contain the token of the programs."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_DELETE_AT_END = 'read -r _; rm -rf -- "$1"'
"""Waits for the end of stdin, which comes also if the parent is killed."""


@contextmanager
def private_folder_of_run() -> Iterator[Path]:
    """Yields a new folder of mode 0700, which is deleted with the block or with this process."""
    folder = tempfile.mkdtemp(prefix="nessie-run-")
    # In a session of its own it gets no Ctrl-C.
    process = subprocess.Popen(  # noqa: S603 - the folder is an argument, and not part of the script
        ["/bin/sh", "-c", _DELETE_AT_END, "sh", folder],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin is not None
    try:
        yield Path(folder)
    finally:
        process.stdin.close()
        process.wait()
