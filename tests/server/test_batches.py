"""One call on a thread answers all requests that wait."""

import asyncio
import threading

import pytest

from nessie_cli.server.http.failures import Unavailable
from nessie_cli.server.runtime.thread_pool import Batches


def test_requests_that_arrive_together_or_during_a_run_share_one() -> None:
    runs: list[list[int]] = []
    started, go_on = threading.Event(), threading.Event()

    def double(numbers: list[int]) -> list[int]:
        runs.append(numbers)
        if len(runs) == 1:
            started.set()
            assert go_on.wait(60)
        return [2 * number for number in numbers]

    async def ask() -> list[int]:
        batches = Batches(double, name="double")
        first = [batches.ask(1), batches.ask(2)]
        await asyncio.to_thread(started.wait)
        later = [batches.ask(3), batches.ask(4)]
        go_on.set()
        found = await asyncio.gather(*first, *later)
        batches.close()
        return found

    assert asyncio.run(ask()) == [2, 4, 6, 8]
    assert runs == [[1, 2], [3, 4]]


def test_an_error_reaches_every_request_and_the_next_run_is_not_affected() -> None:
    def inverse(numbers: list[float]) -> list[float]:
        return [1 / number for number in numbers]

    async def ask() -> None:
        batches = Batches(inverse, name="inverse")
        for waiting in [batches.ask(0), batches.ask(1)]:
            with pytest.raises(ZeroDivisionError):
                await waiting
        assert await batches.ask(4) == 0.25
        batches.close()

    asyncio.run(ask())


def test_an_error_also_reaches_the_requests_that_arrived_during_the_run() -> None:
    """Each of them would wait as long for its own: for a database that does not answer."""
    runs: list[list[int]] = []
    started, go_on = threading.Event(), threading.Event()

    def fail_once(numbers: list[int]) -> list[int]:
        runs.append(numbers)
        if len(runs) == 1:
            started.set()
            assert go_on.wait(60)
            raise ValueError
        return numbers

    async def ask() -> None:
        batches = Batches(fail_once, name="failing")
        first = batches.ask(1)
        await asyncio.to_thread(started.wait)
        later = [batches.ask(2), batches.ask(3)]
        go_on.set()
        for waiting in [first, *later]:
            with pytest.raises(ValueError):
                await waiting
        assert await batches.ask(4) == 4
        batches.close()

    asyncio.run(ask())
    assert runs == [[1], [4]]


def test_the_number_of_waiting_requests_is_limited() -> None:
    async def ask() -> None:
        batches = Batches(list, name="same", most_waiting=2)
        waiting = [batches.ask(1), batches.ask(2)]
        with pytest.raises(Unavailable):
            batches.ask(3)
        assert await asyncio.gather(*waiting) == [1, 2]
        batches.close()

    asyncio.run(ask())
