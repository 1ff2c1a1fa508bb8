"""Applies to every test: the same environment on every machine."""

import gc
import signal
from collections.abc import Generator, Iterator

import pytest

# pytest does not collect the modules of the contracts, so they are registered for explained
# assertions here, before the first test module imports them.
pytest.register_assert_rewrite("tests.history", "tests.repository", "tests.store")

from hypothesis import HealthCheck, settings  # noqa: E402 - see above

from tests.command.process import Forker  # noqa: E402
from tests.environment import pin  # noqa: E402

pin()

# A background run of a script ignores interrupts, and so would every program that a test starts and
# interrupts.
for _number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(
            _number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL
        )

# Random tests have no deadline, because the machine may be busy with the rest of the suite.
settings.register_profile(
    "suite",
    settings.default,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("suite")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    # Nearly all objects that are made meanwhile stay.
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.fixture(scope="module", autouse=True)
def _objects_set_aside() -> None:
    """Excludes the million objects of all collected tests from collections of garbage.

    Otherwise each full collection takes half a second, and some tests do many. A server in this
    process includes them again after a large request.
    """
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="session")
def forker() -> Iterator[Forker]:
    """The process that command lines of all tests are forked from."""
    with Forker() as forker:
        yield forker
