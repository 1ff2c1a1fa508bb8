"""Batches: one call on a thread answers all requests that wait for the same kind of look-up.

Passing a single look-up to a thread and its result back takes longer than most look-ups.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

from nessie_cli.server.http.failures import Unavailable
from nessie_cli.server.runtime.thread_pool import BUSY, ThreadPool

T = TypeVar("T")
R = TypeVar("R")


class Batches(Generic[T, R]):
    """Runs `run` on a thread for all arguments that wait; it returns one result for each.

    A run begins after its arguments have arrived, so a result is never older than the request. One
    run takes place at a time. Its error is for all arguments that wait when it ends: each of them
    would wait as long for its own. At most `most_waiting` arguments wait, if it is given.
    """

    def __init__(
        self,
        run: Callable[[Sequence[T]], Sequence[R]],
        *,
        name: str,
        most_waiting: int | None = None,
    ) -> None:
        self._run = run
        self._thread = ThreadPool(1, name=name)
        self._most_waiting = most_waiting
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._is_running = False

    def ask(self, argument: T) -> asyncio.Future[R]:
        """Returns the result for an argument. Only for the event loop.

        Raises `Unavailable` if too many arguments wait. The future raises what `run` raises.
        """
        if self._most_waiting is not None and len(self._waiting) >= self._most_waiting:
            raise Unavailable(BUSY)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        self._waiting.append((argument, future))
        if not self._is_running:
            # Requests that have arrived together are read before the run begins.
            self._is_running = True
            loop.call_soon(self._start)
        return future

    def close(self) -> None:
        """Ends the thread."""
        self._thread.close()

    def _start(self) -> None:
        asked, self._waiting = self._waiting, []
        arguments = [argument for argument, _ in asked]
        running = self._thread.submit(partial(self._run, arguments))
        running.add_done_callback(partial(self._deliver, [future for _, future in asked]))

    def _deliver(
        self, asked: Sequence[asyncio.Future[R]], done: asyncio.Future[Sequence[R]]
    ) -> None:
        error = done.exception()
        if error is not None:
            asked = [*asked, *(future for _, future in self._waiting)]
            self._waiting = []
        self._is_running = bool(self._waiting)
        if self._is_running:
            self._start()
        results = done.result() if error is None else ()
        for number, future in enumerate(asked):
            if future.done():
                continue
            if error is None:
                future.set_result(results[number])
            else:
                future.set_exception(error)
