"""The writing thread, which plans waiting requests and commits them as a group.

A durable commit costs a wait for the disk. If many requests write at once, the thread plans all
waiting ones, each on the state that those before it will leave, commits them in one transaction,
and answers each when that is durable.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, NamedTuple

from nessie_cli.repository.group_commit import Lease, Planned
from nessie_cli.repository.store_repository import StoreRepository
from nessie_cli.server.http.failures import Unavailable
from nessie_cli.server.runtime.thread_pool import CLOSING, Outcome, Waiter, deliver

MOST_TOGETHER = 64
"""The most writes in one transaction, which bounds the time until each is durable."""
MOST_WAITING = 1000
"""The most waiting writes; later ones are refused."""
_BUSY = "Too many writes are waiting; nothing was written"


class Write(NamedTuple):
    """A request that writes.

    `prepare` reads its body, `plan` drafts and answers it on a repository, and `refuse` makes the
    answer for an error. A `large` one is committed alone. `begin` is the reference that it moves
    and its request id (or ""), if known.
    """

    prepare: Callable[[], object]
    plan: Callable[[StoreRepository], Planned[Any]]
    refuse: Callable[[Exception], Any]
    large: bool = False
    begin: tuple[str, str] | None = None


class _Waiting(NamedTuple):
    write: Write
    future: Waiter


class Writer:
    """The thread that writes to one repository."""

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
        self._queue: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    def submit(self, write: Write) -> asyncio.Future[Any]:
        """Queues a write. Only for the event loop. Raises `Unavailable` if the queue is full."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._put(_Waiting(write, future))
        return future

    def run(self, write: Write) -> Any:
        """Queues a write and waits for its answer, on another thread.

        Raises the errors of `submit`.
        """
        future: Future[Any] = Future()
        self._put(_Waiting(write, future))
        return future.result()

    def _put(self, waiting: _Waiting) -> None:
        if self._queue.qsize() >= self._most_waiting:
            raise Unavailable(_BUSY)
        self._queue.put(waiting)

    def close(self) -> None:
        """Writes what is queued, and ends the thread. See `ThreadPool.close`."""
        self._queue.put(None)
        self._thread.join(CLOSING)

    def _run(self) -> None:
        # Each round is a function, so that nothing of it stays in memory while the thread waits.
        while self._round():
            pass

    def _round(self) -> bool:
        """Writes what is queued, and answers it. Returns False at the end."""
        first = self._queue.get()
        name = first.write.begin[0] if first is not None and first.write.begin is not None else ""
        lease = self._repository.lease_if_contested(name)
        try:
            # Writes that came while it waited for the lease are in the group.
            taken = self._take(first)
            groups = list(_groups([one for one in taken if one is not None]))
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
        refused = {}
        for number, one in enumerate(group):
            if (error := _failed(one.write.prepare)) is not None:
                refused[number] = error
        writes = [one.write for number, one in enumerate(group) if number not in refused]
        found = iter(self._committed(writes, lease) if writes else ())
        return [
            _outcome(one, refused[number] if number in refused else next(found))
            for number, one in enumerate(group)
        ]

    def _committed(self, writes: list[Write], lease: Lease) -> list[Any]:
        """Returns the answer or error of each plan; everything that they drafted is durable."""
        begin = list(dict.fromkeys(one.begin for one in writes if one.begin is not None))
        try:
            return self._repository.commit_all(
                [one.plan for one in writes], prefetch=begin, lease=lease
            )
        except Exception as error:  # noqa: BLE001 - every waiting request gets an answer
            return [error] * len(writes)


def _groups(waiting: list[_Waiting]) -> Iterator[list[_Waiting]]:
    group: list[_Waiting] = []
    for one in waiting:
        if one.write.large:
            if group:
                yield group
            yield [one]
            group = []
        else:
            group.append(one)
    if group:
        yield group


def _failed(call: Callable[[], object]) -> Exception | None:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - it becomes the answer
        return error
    return None


def _outcome(one: _Waiting, found: Any) -> Outcome:
    try:
        return one.future, one.write.refuse(found) if isinstance(found, Exception) else found, None
    except Exception as error:  # noqa: BLE001 - every waiting request gets an answer
        return one.future, None, error
