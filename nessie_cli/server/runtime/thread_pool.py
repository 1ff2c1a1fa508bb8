"""Thread pools for blocking work, so that the event loop never waits for it.

Threads that read the store have a connection each; decoded objects are shared.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

from nessie_cli.server.http.failures import ClientGone, Unavailable

T = TypeVar("T")
BUSY = "Too many requests are waiting; come again later"
"""The message when too many requests wait."""
LONGEST_QUEUED = 30.0
"""Seconds after which a function that still waits is not run: its client has probably gone."""
CLOSING = 2.0
"""Seconds that a thread that still waits for its database delays the end of the server."""
Waiter = asyncio.Future[Any] | Future[Any]
"""The future of the event loop or of a thread."""
Outcome = tuple[Waiter, Any, Exception | None]
"""The waiter with its result or error."""


class _Job(NamedTuple):
    """A function to run until a time, and its waiter.

    `lost` returns whether the client is gone.
    """

    do: Callable[[], Any]
    future: asyncio.Future[Any]
    lost: Callable[[], bool] | None
    until: float


class ThreadPool:
    """A few threads with one first-in, first-out queue of functions.

    `name` is the name of the threads. At most `most_waiting` functions wait, if it is given, and
    none longer than `longest_queued` seconds.
    """

    # A thread pool of the standard library needs two futures, three locks and four more calls for
    # each function; most functions here take less time than that.

    def __init__(
        self,
        threads: int,
        *,
        name: str = "reader",
        most_waiting: int | None = None,
        longest_queued: float = LONGEST_QUEUED,
    ) -> None:
        self._longest_queued = longest_queued
        self._most_waiting = most_waiting
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._run, name=f"{name}-{number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def submit(
        self, do: Callable[[], T], lost: Callable[[], bool] | None = None, *, begun: bool = False
    ) -> asyncio.Future[T]:
        """Runs a function on one of the threads. Only for the event loop.

        If `lost` returns true by then, the function does not run and the future raises
        `ClientGone`. Raises `Unavailable` if too many functions wait, and the future does after a
        long wait, unless the request has `begun` before.
        """
        if (
            self._most_waiting is not None
            and not begun
            and self._queue.qsize() >= self._most_waiting
        ):
            raise Unavailable(BUSY)
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        until = float("inf") if begun else time.monotonic() + self._longest_queued
        self._queue.put(_Job(do, future, lost, until))
        return future

    def close(self) -> None:
        """Finishes the waiting functions and ends the threads.

        A thread that waits for its database for more than `CLOSING` seconds is left behind.
        """
        for _ in self._threads:
            self._queue.put(None)
        deadline = time.monotonic() + CLOSING
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _run(self) -> None:
        while (job := self._queue.get()) is not None:
            try:
                if job.lost is not None and job.lost():
                    raise ClientGone  # noqa: TRY301 - as if the function had found it out
                if time.monotonic() > job.until:
                    raise Unavailable(BUSY)  # noqa: TRY301 - likewise
                outcome: Outcome = (job.future, job.do(), None)
            except Exception as error:  # noqa: BLE001 - the waiter gets every failure
                outcome = (job.future, None, error)
            deliver([outcome])
            # Nothing of a finished request stays in memory while the thread waits.
            del job, outcome


def deliver(outcomes: list[Outcome]) -> None:
    """Delivers results to their waiters, from another thread."""
    _resolve([one for one in outcomes if isinstance(one[0], Future)])
    on_loop = [one for one in outcomes if isinstance(one[0], asyncio.Future)]
    # The event loop was closed, and its waiters with it.
    with suppress(RuntimeError):
        if on_loop:
            on_loop[0][0].get_loop().call_soon_threadsafe(_resolve, on_loop)  # type: ignore[union-attr]


def _resolve(outcomes: list[Outcome]) -> None:
    for future, result, error in outcomes:
        if future.done():
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
