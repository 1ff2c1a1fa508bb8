"""Several processes over one store, and the parent that supervises them.

The parent listens and answers nothing; the workers accept from its sockets. One that dies is
replaced. SIGHUP replaces all of them, one after the other.
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
from contextlib import contextmanager
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from msgspec import json

from nessie_cli.server.runtime.metrics import end_process
from nessie_cli.server.web_server import GRACE

PATIENCE = 5.0
"""Seconds after the grace period of workers until they are killed."""
_POLL = 0.1
_BACKLOG = 2048
STOPPING = (signal.SIGTERM, signal.SIGINT)
"""The signals that stop a server."""
# Forked workers answer a fifth more reads of 8 clients on 2 busy processors than spawned ones,
# which have their own copies of all code.
_CONTEXT = multiprocessing.get_context("fork")


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
        self._workers: list[BaseProcess] = []

    def run(self, listeners: Sequence[socket.socket]) -> None:
        """Supervises until a signal; then closes the listeners and waits for the workers."""
        with handled((*STOPPING, signal.SIGHUP), lambda number, _: self._signals.append(number)):
            self._workers = [self._start() for _ in range(self._number)]
            while not self._is_stopping():
                if signal.SIGHUP in self._signals:
                    self._signals.remove(signal.SIGHUP)
                    self._replace_all()
                wait([worker.sentinel for worker in self._workers], _POLL)
                self._replace_dead()
                if self._started is not None and all(map(self._is_ready, self._workers)):
                    self._started()
                    self._started = None
            for listener in listeners:
                listener.close()
            self._signals.clear()
            self._end(self._workers, is_last=True)

    def _is_stopping(self) -> bool:
        return any(number in self._signals for number in STOPPING)

    def _start(self) -> BaseProcess:
        worker = _CONTEXT.Process(target=_run, args=(self._work,))
        worker.start()
        return worker

    def _is_ready(self, worker: BaseProcess) -> bool:
        return _ready_file(self._folder, worker.pid).exists()

    def _replace_dead(self) -> None:
        for place, worker in enumerate(self._workers):
            if not worker.is_alive():
                self._bury(worker)
                self._workers[place] = self._start()

    def _replace_all(self) -> None:
        """Replaces the workers one after the other, each when its successor is ready."""
        for place, old in enumerate(self._workers):
            new = self._workers[place] = self._start()
            while not self._is_ready(new) and new.is_alive() and not self._is_stopping():
                time.sleep(_POLL)
            self._end([old])
            self._bury(old)

    def _end(self, workers: Sequence[BaseProcess], *, is_last: bool = False) -> None:
        """Stops workers; kills those that take too long. The last ones also die at a signal."""
        deadline = time.monotonic() + GRACE + PATIENCE
        while any(worker.is_alive() for worker in workers):
            is_late = time.monotonic() > deadline or (is_last and self._is_stopping())
            for worker in workers:
                if is_late:
                    worker.kill()
                else:
                    # Again: a worker that has just started would have missed it.
                    worker.terminate()
            wait([worker.sentinel for worker in workers if worker.is_alive()], _POLL)

    def _bury(self, worker: BaseProcess) -> None:
        assert worker.pid is not None
        end_process(self._folder, worker.pid)
        if self._log is not None:
            message = f"worker {worker.pid} has ended; another one takes its place"
            self._log(json.encode({"message": message}) + b"\n")


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
