"""The writing thread: requests that wait while it is busy are planned one after the other and committed together.

A durable commit costs a wait for the disk. When many requests write at once, the thread plans all that wait, each on the
state that those before it will leave, commits them in one transaction, and answers each once that is durable.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, NamedTuple

from nessie_cli.repository.base import Repository
from nessie_cli.repository.writing import Lease, Planned
from nessie_cli.server.failures import Unavailable
from nessie_cli.server.runtime.readers import Outcome, Waiter, deliver

MOST_TOGETHER = 64
"""Writes in one transaction: none waits for more than so many others' work before its own is made durable."""
MOST_WAITING = 1000
"""Writes that may wait; who comes then is asked to come again."""
_BUSY = "Too many writes are waiting; nothing was written"


class Write(NamedTuple):
    """One request that writes.

    `prepare` reads its body, `plan` drafts and answers it on a repository, and `refuse` makes the answer for an error.
    A `large` one is committed alone. `begin` is the reference that it moves and its request id (or ""), if known.
    """

    prepare: Callable[[], object]
    plan: Callable[[Repository], Planned[Any]]
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
        repository: Repository,
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
        """Put a write in line; to be called on the event loop. Raises `Unavailable` when the line is too long."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._put(_Waiting(write, future))
        return future

    def run(self, write: Write) -> Any:
        """Put a write in line and wait until it is answered; for other threads than the event loop's. Raises as `submit`."""
        future: Future[Any] = Future()
        self._put(_Waiting(write, future))
        return future.result()

    def _put(self, waiting: _Waiting) -> None:
        if self._queue.qsize() >= self._most_waiting:
            raise Unavailable(_BUSY)
        self._queue.put(waiting)

    def close(self) -> None:
        """Write what waits, and let the thread end."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        # A function for each round: nothing of what was written stays alive while the thread waits for more.
        while self._round():
            pass

    def _round(self) -> bool:
        """Write what waits, and answer it; False once the end has come."""
        first = self._queue.get()
        name = first.write.begin[0] if first is not None and first.write.begin is not None else ""
        lease = self._repository.lease_if_contested(name)
        try:
            # What came while it waited for the lease is in the group.
            taken = self._take(first)
            groups = list(_groups([one for one in taken if one is not None]))
            for group in groups:
                lease.last = group is groups[-1]
                deliver(self._write(group, lease))
        finally:
            lease.give_back()
        return taken[-1] is not None

    def _take(self, first: _Waiting | None) -> list[_Waiting | None]:
        """Everything that waits, or the first that comes; None stands for the end."""
        taken = [first]
        # Nobody else takes from the queue: where it is not empty now, something will be there.
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
        """What each plan has answered or raised; everything that they drafted is durable."""
        begin = list(dict.fromkeys(one.begin for one in writes if one.begin is not None))
        try:
            return self._repository.commit_all(
                [one.plan for one in writes], begin=begin, lease=lease
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
