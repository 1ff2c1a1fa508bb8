"""Several processes over one store: uvicorn's supervisor with additions.

The parent listens and answers nothing; the workers accept from its socket. One that dies is
replaced. SIGHUP replaces all of them, one after the other.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import uvicorn
import uvicorn._subprocess
from msgspec import json
from prometheus_client.multiprocess import mark_process_dead
from uvicorn.supervisors import Multiprocess

from nessie_cli.server.runtime.connections import GRACE

PATIENCE = 5.0
"""Seconds after the grace period of workers until they are killed."""
HEALTHCHECK = 30
"""Seconds in which a worker must answer the supervisor. A large body may keep it busy."""
_POLL = 0.1
_BACKLOG = 2048

# Forked workers answer a fifth more reads of 8 clients on 2 busy processors than spawned ones,
# which have their own copies of all code.
uvicorn._subprocess.spawn = multiprocessing.get_context("fork")  # type: ignore[assignment]  # noqa: SLF001


class Workers(Multiprocess):
    """The supervisor of the processes that answer requests. `folder` is shared by all of them.

    `started` is called once all workers are ready, `log` with a line when one has ended.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        listener: socket.socket,
        folder: Path,
        *,
        started: Callable[[], None],
        log: Callable[[bytes], object] | None,
    ) -> None:
        super().__init__(config, [listener])
        self._folder = folder
        self._started = started
        self._log = log
        self._pids: set[int | None] = set()
        self._announced = False

    def keep_subprocess_alive(self) -> None:
        """See the base class; logs ended workers, and reports once that all are ready."""
        self._pids |= {process.pid for process in self.processes}
        super().keep_subprocess_alive()
        running = {process.pid for process in self.processes}
        for pid in self._pids - running:
            mark_process_dead(pid, str(self._folder))  # type: ignore[no-untyped-call]
            if self._log is not None:
                message = f"worker {pid} has ended; another one takes its place"
                self._log(json.encode({"message": message}) + b"\n")
        self._pids = running
        if not self._announced and are_ready(self._folder, running):
            self._announced = True
            self._started()

    def terminate_all(self) -> None:
        """See the base class; refuses connections from now on."""
        for listener in self.sockets:
            listener.close()
        super().terminate_all()

    def join_all(self) -> None:
        """See the base class; kills workers that take too long, and all at a second signal."""
        deadline = time.monotonic() + GRACE + PATIENCE
        while any(process.process.is_alive() for process in self.processes):
            late = time.monotonic() > deadline or {signal.SIGTERM, signal.SIGINT} & set(
                self.signal_queue
            )
            for process in self.processes:
                if late:
                    process.process.kill()
                else:
                    # Again: a worker that had just started would have missed it.
                    process.process.terminate()
            time.sleep(_POLL)


def set_ready(folder: Path) -> None:
    """Reports that this process is ready for requests."""
    # uvicorn's own answer may stay "no": two threads of a worker can each create a server (0.54).
    (folder / f"ready-{os.getpid()}").touch()


def are_ready(folder: Path, pids: Iterable[int | None]) -> bool:
    """Returns whether all these processes have reported that they are ready."""
    return all((folder / f"ready-{pid}").exists() for pid in pids)


def listen(host: str, port: int) -> socket.socket:
    """Returns a listening socket. Raises `OSError`."""
    family, _, _, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    return socket.create_server(address[:2], family=family, backlog=_BACKLOG)


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
