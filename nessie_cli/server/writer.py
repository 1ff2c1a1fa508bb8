"""The writing thread: one, since a store has one writer at a time anyway. What waits while it is busy goes into one transaction.

A commit that is durable costs the disk's time for one transaction. When many requests write at once, the thread takes all that wait, runs them one
after the other inside one transaction of the store, and answers each on its own once that is durable. Who comes first is served first.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from queue import SimpleQueue
from typing import Any, NamedTuple

from nessie_cli.repository.base import Grouping, Repository
from nessie_cli.server.failures import Unavailable
from nessie_cli.server.readers import Outcome, deliver

MOST_TOGETHER = 64
"""Writes in one transaction: none waits for more than so many others' work before its own is made durable."""
MOST_WAITING = 1000
"""Writes that may wait; who comes then is asked to come again."""
_BUSY = "Too many writes are waiting; nothing was written"


class Write(NamedTuple):
    """One request that writes.

    `prepare` runs before the transaction (reading the body), `do` inside it, `answer` turns what `do` has answered or raised into what is sent. A
    `large` one gets a transaction of its own, which it opens when it needs it.
    """

    prepare: Callable[[], object]
    do: Callable[[], Any]
    answer: Callable[[Any], Any]
    large: bool = False


class _Waiting(NamedTuple):
    write: Write
    future: asyncio.Future[Any]


class Writer:
    """The thread. `turn` is held while something is written, where other processes write as well."""

    def __init__(
        self,
        repository: Repository,
        *,
        turn: AbstractContextManager[object] | None = None,
        most_waiting: int = MOST_WAITING,
        most_together: int = MOST_TOGETHER,
    ) -> None:
        self._group = repository if isinstance(repository, Grouping) else None
        self._turn = turn or nullcontext()
        self._most_waiting = most_waiting
        self._most_together = most_together
        self._queue: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    def submit(self, write: Write) -> asyncio.Future[Any]:
        """Put a write in line; to be called on the event loop. Raises `Unavailable` when the line is too long."""
        if self._queue.qsize() >= self._most_waiting:
            raise Unavailable(_BUSY)
        future = asyncio.get_running_loop().create_future()
        self._queue.put(_Waiting(write, future))
        return future

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
        taken = self._take()
        for group in _groups([one for one in taken if one is not None]):
            deliver(self._write(group))
        return taken[-1] is not None

    def _take(self) -> list[_Waiting | None]:
        """Everything that waits, or the first that comes; None stands for the end."""
        taken = [self._queue.get()]
        # Nobody else takes from the queue: where it is not empty now, something will be there.
        while taken[-1] is not None and len(taken) < self._most_together and not self._queue.empty():
            taken.append(self._queue.get())
        return taken

    def _write(self, group: list[_Waiting]) -> list[Outcome]:
        refused = {}
        for number, one in enumerate(group):
            if (error := _failed(one.write.prepare)) is not None:
                refused[number] = error
        rest = [one.write.do for number, one in enumerate(group) if number not in refused]
        written = iter(self._done(rest) if rest else ())
        return [_outcome(one, refused[number] if number in refused else next(written)) for number, one in enumerate(group)]

    def _done(self, calls: list[Callable[[], Any]]) -> list[Any]:
        """What each call has answered or raised; all that they have written is durable."""
        try:
            with self._turn:
                if len(calls) == 1 or self._group is None:
                    return [_result(call) for call in calls]
                return self._group.together(calls)
        except Exception as error:  # noqa: BLE001 - whoever waits is told
            return [error] * len(calls)


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


def _result(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - whoever waits is told
        return error


def _failed(call: Callable[[], object]) -> Exception | None:
    found = _result(call)
    return found if isinstance(found, Exception) else None


def _outcome(one: _Waiting, found: Any) -> Outcome:
    try:
        return one.future, one.write.answer(found), None
    except Exception as error:  # noqa: BLE001 - whoever waits is told
        return one.future, None, error
