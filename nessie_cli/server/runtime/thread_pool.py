"""Threads for blocking work, so that the event loop never waits for it.

A `ThreadPool` runs functions. `Batches` answer all look-ups that wait by one function. The `Writer`
commits all writes that wait as one group. Threads that read the store have a connection each;
decoded objects are shared.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar

from nessie_cli.errors import StoreUnavailable
from nessie_cli.repository.group_commit import Lease, Planned
from nessie_cli.repository.store_repository import StoreRepository
from nessie_cli.server.http.failures import ClientGone, Unavailable

T = TypeVar("T")
R = TypeVar("R")
BUSY = "Too many requests are waiting; come again later"
"""The message when too many requests wait."""
LONGEST_QUEUED = 30.0
"""Seconds after which a function that still waits is not run: its client has probably gone."""
CLOSING = 2.0
"""Seconds that threads that still wait for their database delay the end of the server."""
_SHORTEST_JOIN = 0.05
"""Seconds for which the end of a thread is awaited even if others took all of `CLOSING`."""
Waiter = asyncio.Future[Any] | Future[Any]
"""The future of the event loop or of a thread."""
Outcome = tuple[Waiter, Any, Exception | None]
"""The waiter with its result or error."""


def closing_time() -> float:
    """Returns the time of the monotonic clock until which the end of threads is awaited."""
    return time.monotonic() + CLOSING


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

    def close(self, until: float | None = None) -> None:
        """Finishes the waiting functions and ends the threads.

        A thread that waits for its database `until` a time of the monotonic clock is left behind.
        The default is `CLOSING` seconds from now.
        """
        until = closing_time() if until is None else until
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            _join(thread, until)

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


def _join(thread: threading.Thread, until: float) -> None:
    thread.join(max(_SHORTEST_JOIN, until - time.monotonic()))


def deliver(outcomes: list[Outcome]) -> None:
    """Delivers results to their waiters, from another thread."""
    _resolve([outcome for outcome in outcomes if isinstance(outcome[0], Future)])
    on_loop = [outcome for outcome in outcomes if isinstance(outcome[0], asyncio.Future)]
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


class Batches(Generic[T, R]):
    """Runs `run` on a thread for all arguments that wait; it returns one result for each.

    Passing a single look-up to a thread and its result back takes longer than most look-ups.

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

    def close(self, until: float | None = None) -> None:
        """Ends the thread. See `ThreadPool.close`."""
        self._thread.close(until)

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


MOST_TOGETHER = 64
"""The most writes in one transaction, which bounds the time until each is durable."""
MOST_WAITING = 1000
"""The most waiting writes; later ones are refused."""
SILENCE = 1.0
"""Seconds after which a waiting write fails together with those before it."""
_BUSY = "Too many writes are waiting; nothing was written"
_LATE = "The writes before this one took too long; nothing was written"


class QueuedWrite(NamedTuple):
    """A request that writes.

    `prepare` reads its body, `plan` drafts and answers it on a repository, and `refuse` makes the
    answer for an error. A `large` one is committed alone. `prefetch` is the reference that it moves
    and its request id (or ""), if known.
    """

    prepare: Callable[[], object]
    plan: Callable[[StoreRepository], Planned[Any]]
    refuse: Callable[[Exception], Any]
    large: bool = False
    prefetch: tuple[str, str] | None = None


class _Waiting(NamedTuple):
    write: QueuedWrite
    future: Waiter
    since: float


class Writer:
    """The thread that writes to one repository.

    A durable commit costs a wait for the disk. If many requests write at once, the thread plans all
    waiting ones, each on the state that those before it will leave, commits them in one
    transaction, and answers each when that is durable. A write that has waited for
    `LONGEST_QUEUED` seconds is refused. If the store does not answer, each group waits for it. So
    one that has waited behind a group that failed is refused, too.
    """

    def __init__(
        self,
        repository: StoreRepository,
        *,
        most_waiting: int = MOST_WAITING,
        most_together: int = MOST_TOGETHER,
    ) -> None:
        self._repository = repository
        self._most_waiting = most_waiting
        self._most_together = most_together
        self._has_failed = False
        """Whether the store has failed in the last group."""
        self._queue: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    def submit(self, write: QueuedWrite) -> asyncio.Future[Any]:
        """Queues a write. Only for the event loop. Raises `Unavailable` if the queue is full."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._put(_Waiting(write, future, time.monotonic()))
        return future

    def run(
        self, plan: Callable[[StoreRepository], Planned[T]], prefetch: tuple[str, str] | None = None
    ) -> T:
        """Queues a write and waits for its answer, on another thread. See `QueuedWrite`.

        Raises the errors of `submit` and of the write.
        """
        future: Future[T] = Future()
        write = QueuedWrite(_nothing, plan, _raised, prefetch=prefetch)
        self._put(_Waiting(write, future, time.monotonic()))
        return future.result()

    def _put(self, waiting: _Waiting) -> None:
        if self._queue.qsize() >= self._most_waiting:
            raise Unavailable(_BUSY)
        self._queue.put(waiting)

    def close(self, until: float | None = None) -> None:
        """Writes what is queued, and ends the thread. See `ThreadPool.close`."""
        self._queue.put(None)
        _join(self._thread, closing_time() if until is None else until)

    def _run(self) -> None:
        # Each round is a function, so that nothing of it stays in memory while the thread waits.
        while self._round():
            pass

    def _round(self) -> bool:
        """Writes what is queued, and answers it. Returns False at the end."""
        first = self._queue.get()
        prefetch = first.write.prefetch if first is not None else None
        name = prefetch[0] if prefetch is not None else ""
        lease = self._repository.lease_if_contested(name)
        try:
            # Writes that came while it waited for the lease are in the group.
            taken = self._take(first)
            groups = list(_groups([waiting for waiting in taken if waiting is not None]))
            for group in groups:
                lease.last = group is groups[-1]
                deliver(self._write(group, lease))
        finally:
            lease.give_back()
        return taken[-1] is not None

    def _take(self, first: _Waiting | None) -> list[_Waiting | None]:
        """Returns everything in the queue, or waits for the first; None is the end."""
        taken = [first]
        # This is the only consumer of the queue, so a queue that is not empty stays so.
        while (
            taken[-1] is not None and len(taken) < self._most_together and not self._queue.empty()
        ):
            taken.append(self._queue.get())
        return taken

    def _write(self, group: list[_Waiting], lease: Lease) -> list[Outcome]:
        refused: dict[int, Exception] = {}
        now = time.monotonic()
        for number, waiting in enumerate(group):
            if now - waiting.since > (SILENCE if self._has_failed else LONGEST_QUEUED):
                refused[number] = Unavailable(_LATE)
            elif (error := _failed(waiting.write.prepare)) is not None:
                refused[number] = error
        writes = [waiting.write for number, waiting in enumerate(group) if number not in refused]
        answers: Iterator[Any] = iter(())
        if writes:
            committed = self._committed(writes, lease)
            self._has_failed = any(isinstance(answer, StoreUnavailable) for answer in committed)
            answers = iter(committed)
        return [
            _outcome(waiting, refused[number] if number in refused else next(answers))
            for number, waiting in enumerate(group)
        ]

    def _committed(self, writes: list[QueuedWrite], lease: Lease) -> list[Any]:
        """Returns the answer or error of each plan; everything that they drafted is durable."""
        prefetch = list(
            dict.fromkeys(write.prefetch for write in writes if write.prefetch is not None)
        )
        try:
            return self._repository.commit_all(
                [write.plan for write in writes], prefetch=prefetch, lease=lease
            )
        except Exception as error:  # noqa: BLE001 - every waiting request gets an answer
            return [error] * len(writes)


def _nothing() -> None:
    """The body of the request has been read."""


def _raised(error: Exception) -> NoReturn:
    raise error


def _groups(taken: list[_Waiting]) -> Iterator[list[_Waiting]]:
    group: list[_Waiting] = []
    for waiting in taken:
        if waiting.write.large:
            if group:
                yield group
            yield [waiting]
            group = []
        else:
            group.append(waiting)
    if group:
        yield group


def _failed(call: Callable[[], object]) -> Exception | None:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - it becomes the answer
        return error
    return None


def _outcome(waiting: _Waiting, answer: Any) -> Outcome:
    try:
        result = waiting.write.refuse(answer) if isinstance(answer, Exception) else answer
    except Exception as error:  # noqa: BLE001 - every waiting request gets an answer
        return waiting.future, None, error
    return waiting.future, result, None
