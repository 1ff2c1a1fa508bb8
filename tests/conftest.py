"""What holds for every test: one environment, whatever the machine's is, so that a test that passes here passes everywhere."""

import atexit
import json
import os
import shutil
import signal
import tempfile
import time

import pytest
from hypothesis import HealthCheck, settings

# A run in the background of a script is started with interrupts ignored, and so would be every program that a test starts and interrupts.
for _number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)

# Time is nothing that a random test may fail by: the machine that runs it may be busy with the rest of the suite.
settings.register_profile("suite", settings.default, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")

KEPT = ("PATH", "TMPDIR", "CI", "JAVA_HOME", "LD_LIBRARY_PATH", "NESSIE_CONFORMANCE")
KEPT_BEGINNINGS = ("PYTEST_", "COV_", "NESSIE_TEST_")
GIVEN = "GIVEN_TO_TESTS"
"""Holds the environment that the run was started in; the workers of a run find it there."""


def _pin() -> None:
    """Forget the machine: its proxies, certificates, locale, time zone, terminal, home and settings. What is kept does not change an answer."""
    given = os.environ.get(GIVEN) or json.dumps(dict(os.environ))
    kept = {name: value for name, value in os.environ.items() if name in KEPT or name.startswith(KEPT_BEGINNINGS)}
    home = tempfile.mkdtemp(prefix="nessie-tests-home-")
    atexit.register(_remove, home, os.getpid())
    os.environ.clear()
    os.environ.update(kept | {GIVEN: given, "HOME": home, "LC_ALL": "C.UTF-8", "TERM": "xterm", "TZ": "UTC"})
    time.tzset()
    os.umask(0o022)


def _remove(home: str, owner: int) -> None:
    """At the end of the process that made it; children that a test has forked end too."""
    if os.getpid() == owner:
        shutil.rmtree(home, ignore_errors=True)


_pin()


@pytest.fixture(scope="session")
def given_environment() -> dict[str, str]:
    """The environment that the run was started in, for the few programs that need the machine's network."""
    found: dict[str, str] = json.loads(os.environ[GIVEN])
    return found
