"""What holds for every test: one environment, whatever the machine's is, so that a test that passes
here passes everywhere."""

import signal

import apsw
import pytest

# The contracts are asserted from modules that pytest does not collect: have it explain their
# assertions as well. Here, since tests of several folders import them, and it has to be said before
# the first one does.
pytest.register_assert_rewrite("tests.history", "tests.repository", "tests.store")

from hypothesis import HealthCheck, settings  # noqa: E402 - see above

from nessie_cli.store.sqlite_pages import VFS, load_page_checks  # noqa: E402 - see above
from tests.environment import pin  # noqa: E402

pin()

# Tests that look into a store file or change it keep the check sums of its pages right.
load_page_checks()
apsw.set_default_vfs(VFS)

# A run in the background of a script is started with interrupts ignored, and so would be every
# program that a test starts and interrupts.
for _number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(
            _number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL
        )

# Time is nothing that a random test may fail by: the machine that runs it may be busy with the rest
# of the suite.
settings.register_profile(
    "suite",
    settings.default,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("suite")
