"""The environment of a test run: pinned for the tests, and as it was given for the few that need
the machine's network and caches."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

KEPT = ("PATH", "TMPDIR", "CI", "JAVA", "JAVA_HOME", "LD_LIBRARY_PATH", "NESSIE_CONFORMANCE")
KEPT_BEGINNINGS = ("PYTEST_", "COV_", "NESSIE_TEST_")
_GIVEN = "GIVEN_TO_TESTS"
"""Holds the environment that the run was started in; the worker processes of the run find it there.
"""


def pin() -> None:
    """Forget the machine: its proxies, certificates, locale, time zone, terminal, home and
    settings. What is kept does not change an answer."""
    found = json.dumps(given())
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in KEPT or name.startswith(KEPT_BEGINNINGS)
    }
    home = tempfile.mkdtemp(prefix="nessie-tests-home-")
    atexit.register(_remove, home, os.getpid())
    _become(kept | {_GIVEN: found, "HOME": home, "LC_ALL": "C.UTF-8", "TERM": "xterm", "TZ": "UTC"})
    os.umask(0o022)


def given() -> dict[str, str]:
    """The environment that the run was started in; outside of a run, that of this process."""
    found = os.environ.get(_GIVEN)
    return dict(json.loads(found)) if found else dict(os.environ)


@contextmanager
def as_given() -> Iterator[None]:
    """While this lasts, this process has the environment that the run was started in.

    No other thread may look meanwhile.
    """
    pinned = dict(os.environ)
    _become(given())
    try:
        yield
    finally:
        _become(pinned)


def _become(environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()


def _remove(home: str, owner: int) -> None:
    """At the end of the process that made it; children that a test has forked end too."""
    if os.getpid() == owner:
        shutil.rmtree(home, ignore_errors=True)
