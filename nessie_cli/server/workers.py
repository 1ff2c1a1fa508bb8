"""Several processes over one store, and the parent that supervises them.

The parent listens and answers nothing; the workers accept from its sockets. One that dies is
replaced. SIGHUP replaces all of them, one after the other, each when its successor is ready. A
successor that cannot start, because a file is invalid for example, ends the replacement.
"""

from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from msgspec import Struct, json

from nessie_cli.server.runtime.metrics import end_process
from nessie_cli.server.web_server import GRACE

PATIENCE = 5.0
"""Seconds after the grace period of workers until they are killed."""
_POLL = 0.1
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 10.0
"""Seconds until the next attempt after a worker that could not start; they double each time."""
_BACKLOG = 2048
STOPPING = (signal.SIGTERM, signal.SIGINT)
"""The signals that stop a server."""
# Forked workers answer a fifth more reads of 8 clients on 2 busy processors than spawned ones,
# which have their own copies of all code.
_CONTEXT = multiprocessing.get_context("fork")


class _Worker(Struct, eq=False):
    process: BaseProcess
    is_ready: bool = False
    is_outdated: bool = False
    deadline: float | None = None
    """The time when it is killed. None for a worker that is not being ended."""


class Workers:
    """The supervisor of `number` processes that call `work`. `folder` is shared by all of them.

    `started` is called once all workers are ready, `log` with a line when one has ended.
    """

    def __init__(
        self,
        work: Callable[[], None],
        number: int,
        folder: Path,
        *,
        started: Callable[[], None],
        log: Callable[[bytes], object] | None,
    ) -> None:
        self._work = work
        self._number = number
        self._folder = folder
        self._started: Callable[[], None] | None = started
        self._log = log
        self._signals: list[int] = []
        self._workers: list[_Worker] = []
        self._pause = 0.0
        self._next_start = 0.0

    def run(self, listeners: Sequence[socket.socket]) -> None:
        """Supervises until a signal; then closes the listeners and waits for the workers."""
        with handled((*STOPPING, signal.SIGHUP), lambda number, _: self._signals.append(number)):
            while not self._is_stopping():
                self._supervise()
                self._await_event()
            for listener in listeners:
                listener.close()
            self._signals.clear()
            self._end(self._serving())
            while self._workers:
                # A second signal kills.
                self._end_leaving(at_once=self._is_stopping())
                self._await_event()
                self._workers = [worker for worker in self._workers if worker.process.is_alive()]

    def _is_stopping(self) -> bool:
        return any(number in self._signals for number in STOPPING)

    def _serving(self) -> list[_Worker]:
        """Returns the workers that are not being ended."""
        return [worker for worker in self._workers if worker.deadline is None]

    def _await_event(self) -> None:
        wait([worker.process.sentinel for worker in self._workers], _POLL)

    def _supervise(self) -> None:
        """Does what is due. Nothing in it waits, so the next signal is seen at once."""
        if signal.SIGHUP in self._signals:
            self._signals.remove(signal.SIGHUP)
            for worker in self._serving():
                worker.is_outdated = True
        self._bury_dead()
        self._note_ready()
        self._end_leaving()
        serving = self._serving()
        outdated = [worker for worker in serving if worker.is_outdated]
        is_one_leaving = len(serving) < len(self._workers)
        # One more is the successor of an outdated one.
        self._start(self._number + bool(outdated and not is_one_leaving) - len(serving))
        if len(serving) > self._number and all(worker.is_ready for worker in serving):
            self._end(outdated[:1])

    def _start(self, missing: int) -> None:
        """Starts workers. After one that could not start, a single one is an attempt."""
        if missing <= 0 or time.monotonic() < self._next_start:
            return
        if self._pause:
            missing = 1 if all(worker.is_ready for worker in self._serving()) else 0
        for _ in range(missing):
            process = _CONTEXT.Process(target=_run, args=(self._work,))
            process.start()
            self._workers.append(_Worker(process))

    def _note_ready(self) -> None:
        for worker in self._serving():
            if not worker.is_ready and _ready_file(self._folder, worker.process.pid).exists():
                worker.is_ready = True
                self._pause = 0.0
        serving = self._serving()
        if self._started and len(serving) >= self._number and all(w.is_ready for w in serving):
            self._started()
            self._started = None

    def _bury_dead(self) -> None:
        dead = [worker for worker in self._workers if not worker.process.is_alive()]
        self._workers = [worker for worker in self._workers if worker not in dead]
        for worker in dead:
            pid = worker.process.pid
            assert pid is not None
            end_process(self._folder, pid)
            # Another process may get its id.
            _ready_file(self._folder, pid).unlink(missing_ok=True)
            if worker.is_ready:
                self._note(f"worker {pid} has ended; another one takes its place")
        failed = [worker for worker in dead if not worker.is_ready]
        if failed:
            self._pause = min(2 * self._pause or _FIRST_PAUSE, _LONGEST_PAUSE)
            self._next_start = time.monotonic() + self._pause
            self._give_up_replacing(failed)

    def _give_up_replacing(self, failed: list[_Worker]) -> None:
        names = ", ".join(str(worker.process.pid) for worker in failed)
        outdated = [worker for worker in self._workers if worker.is_outdated]
        for worker in outdated:
            worker.is_outdated = False
        end = "the other workers stay as they are" if outdated else "the server tries again"
        self._note(f"worker {names} could not start; {end}")

    def _note(self, message: str) -> None:
        if self._log is not None:
            # The disk of the log may be full, and its reader may have exited.
            with suppress(OSError):
                self._log(json.encode({"message": message}) + b"\n")

    def _end(self, workers: Sequence[_Worker]) -> None:
        """Begins to stop workers."""
        for worker in workers:
            worker.deadline = time.monotonic() + GRACE + PATIENCE
        self._end_leaving()

    def _end_leaving(self, *, at_once: bool = False) -> None:
        """Stops workers, and kills those that take too long."""
        now = time.monotonic()
        for worker in self._workers:
            if worker.deadline is None:
                continue
            if at_once or now > worker.deadline:
                worker.process.kill()
            else:
                # Again: a worker that has just started would have missed it.
                worker.process.terminate()


def _run(work: Callable[[], None]) -> None:
    """Runs a worker, which ends with its parent."""
    parent = os.getppid()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def end_with_parent() -> None:
        while True:
            time.sleep(1)
            if os.getppid() != parent:
                # Again: it may have come before the web server handles signals.
                os.kill(os.getpid(), signal.SIGTERM)

    with handled(STOPPING):
        threading.Thread(target=end_with_parent, name="parent", daemon=True).start()
        work()


@contextmanager
def handled(
    signals: Sequence[signal.Signals], handler: Callable[[int, Any], object] = lambda *_: None
) -> Iterator[None]:
    """Handles signals within the block, if it runs on the main thread.

    uvicorn raises the signals that have stopped it again at its end. With a handler, the process
    still ends in its own way.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)


def set_ready(folder: Path) -> None:
    """Reports that this process is ready for requests."""
    _ready_file(folder, os.getpid()).touch()


def _ready_file(folder: Path, pid: int | None) -> Path:
    return folder / f"ready-{pid}"


def listen(host: str, port: int) -> list[socket.socket]:
    """Returns a listening socket for each address of a host that this machine has.

    Raises `OSError`.
    """
    listeners: list[socket.socket] = []
    missing: OSError | None = None
    infos = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    for family, address in dict.fromkeys((info[0], info[4][:2]) for info in infos):
        try:
            listeners.append(socket.create_server(address, family=family, backlog=_BACKLOG))
        except OSError as error:
            missing = error
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                break
    if missing is not None and (not listeners or missing.errno == errno.EADDRINUSE):
        for listener in listeners:
            listener.close()
        raise missing
    return listeners


class SharedLog:
    """A log that several processes write to.

    A lock on a file keeps the lines of one process together. The system releases it if its holder
    dies.
    """

    def __init__(self, write: Callable[[bytes], object], folder: Path) -> None:
        self._write = write
        self._lock = os.open(folder / "log.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def __call__(self, lines: bytes) -> None:
        """Writes whole lines."""
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        try:
            self._write(lines)
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)
