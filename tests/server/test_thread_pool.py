"""Threads for blocking work: what waits too long is refused, what has begun goes on."""

import asyncio
import threading
import time
from functools import partial

import pytest

from nessie_cli import create
from nessie_cli.server.http.failures import Unavailable
from nessie_cli.server.http.messages import Limits
from nessie_cli.server.runtime.thread_pool import CLOSING, ThreadPool, closing_time
from nessie_cli.server.runtime.threads import Threads

PATIENCE = 60


def test_a_function_that_waits_too_long_is_not_run():
    async def run():
        pool, blocked, ran = ThreadPool(1, longest_queued=0.2), threading.Event(), []
        first = pool.submit(lambda: blocked.wait(PATIENCE))
        late = pool.submit(lambda: ran.append("late"))
        begun = pool.submit(lambda: ran.append("begun"), begun=True)
        await asyncio.sleep(0.3)
        blocked.set()
        assert await first
        with pytest.raises(Unavailable):
            await late
        await begun
        await pool.submit(lambda: ran.append("next"))
        assert ran == ["begun", "next"]
        pool.close()

    asyncio.run(run())


def test_all_threads_together_delay_the_end_of_the_server_once():
    """Threads of many kinds wait for a database that does not answer."""
    blocked = threading.Event()

    async def closed():
        with create("memory:") as repository:
            threads = Threads(repository, Limits())
            pools = (
                threads.file_writers,
                threads.drafters,
                threads.long_readers,
                threads.row_readers,
                threads.page_readers,
                threads.checker,
                threads.meter,
            )
            for pool in pools:
                pool.submit(partial(blocked.wait, PATIENCE))
            begun = time.monotonic()
            threads.close(closing_time())
            seconds = time.monotonic() - begun
            blocked.set()
            return seconds

    assert asyncio.run(closed()) < 2 * CLOSING
