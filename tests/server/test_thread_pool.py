"""Threads for blocking work: what waits too long is refused, what has begun goes on."""

import asyncio
import threading

import pytest

from nessie_cli.server.http.failures import Unavailable
from nessie_cli.server.runtime.thread_pool import ThreadPool

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
