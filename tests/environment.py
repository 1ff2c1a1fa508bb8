"""The environment of a test run: pinned for the tests, and the original one for the few that
need the machine's network and caches."""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

KEPT = ("PATH", "TMPDIR", "CI", "JAVA", "JAVA_HOME", "LD_LIBRARY_PATH", "NESSIE_CONFORMANCE")
KEPT_BEGINNINGS = ("PYTEST_", "COV_", "NESSIE_TEST_")
MEMORY = "/dev/shm"
"""The file system in memory of Linux."""
MEMORY_NEEDED = 6 << 30
"""Bytes that must be free for it to hold the files of all tests."""
_GIVEN = "GIVEN_TO_TESTS"
"""Holds the environment that the run was started in, also for its worker processes."""


def pin() -> None:
    """Removes the machine's proxies, certificates, locale, time zone, terminal, home and
    settings.

    The remaining variables do not change any answer. Unless TMPDIR is set, temporary files are in
    memory if there is enough: tests commit thousands of times, and a disk makes each commit wait.
    """
    found = json.dumps(given())
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in KEPT or name.startswith(KEPT_BEGINNINGS)
    }
    if "TMPDIR" not in kept and _holds_files(MEMORY):
        kept["TMPDIR"] = MEMORY
        # pytest has asked for the folder already.
        tempfile.tempdir = MEMORY
    home = tempfile.mkdtemp(prefix="nessie-tests-home-")
    atexit.register(_remove, home, os.getpid())
    _become(kept | {_GIVEN: found, "HOME": home, "LC_ALL": "C.UTF-8", "TERM": "xterm", "TZ": "UTC"})
    os.umask(0o022)


def given() -> dict[str, str]:
    """Returns the environment that the run was started in; outside of a run, this process's own."""
    found = os.environ.get(_GIVEN)
    return dict(json.loads(found)) if found else dict(os.environ)


@contextmanager
def as_given() -> Iterator[None]:
    """Gives this process the environment that the run was started in, within the block.

    No other thread may read the environment meanwhile.
    """
    pinned = dict(os.environ)
    _become(given())
    try:
        yield
    finally:
        _become(pinned)


def _holds_files(folder: str) -> bool:
    """Returns whether programs can be run in a folder, and it and the memory have enough room."""
    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    system = os.statvfs(folder)
    free = re.search(r"^MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    room = min(system.f_bavail * system.f_frsize, int(free[1]) << 10 if free else 0)
    return room >= MEMORY_NEEDED and not system.f_flag & os.ST_NOEXEC


def _become(environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()


def _remove(home: str, owner: int) -> None:
    """Removes the folder when its creator exits, but not when forked children do."""
    if os.getpid() == owner:
        shutil.rmtree(home, ignore_errors=True)
