"""Several processes over one store. This process listens and hands each new connection to the worker with the fewest; the workers answer.

A worker that dies is replaced, later and later when that happens again at once. When this process is told to stop it takes no more connections,
closes its channel to each worker, and waits until they have finished what they had accepted; when it is killed the channels close by themselves.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from msgspec import json

PATIENCE = 5.0
"""Seconds that a worker has beyond the grace of its own to end; then it is killed."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_SHORT_LIFE = 2.0
_BACKLOG = 2048
_MESSAGE = 4096
READY, ENDED = b"r", b"-"
"""What a worker says: that it answers requests, and that a connection has ended."""


class _Worker:
    """One process that answers requests, as this one sees it."""

    def __init__(self, slot: int, pid: int, channel: socket.socket) -> None:
        self.slot = slot
        self.pid = pid
        self.channel = channel
        self.connections = 0
        self.ready = False
        self.begun = time.monotonic()

    def hear(self) -> bool:
        """Take what the worker says; whether it has said its last word."""
        try:
            said = self.channel.recv(_MESSAGE)
        except BlockingIOError:
            return False
        except OSError:
            said = b""
        self.ready = self.ready or READY in said
        self.connections -= said.count(ENDED)
        return not said

    def give(self, connection: socket.socket) -> bool:
        """Hand a connection over; whether that was possible."""
        try:
            socket.send_fds(self.channel, [b"c"], [connection.fileno()])
        except OSError:
            return False
        self.connections += 1
        return True


class Team:
    """The workers. `work(slot, channel)` runs in each of them, in a process of its own, and returns when the worker has done its duty."""

    def __init__(self, listener: socket.socket, size: int, work: Callable[[int, socket.socket], None]) -> None:
        self._listener = listener
        self._work = work
        self._workers: dict[int, _Worker | None] = dict.fromkeys(range(size))
        self._due = dict.fromkeys(range(size), 0.0)
        self._pauses = dict.fromkeys(range(size), 0.0)
        self._selector = selectors.DefaultSelector()
        self._listening = False
        self._stops = 0
        self._deadline = 0.0

    def run(self, *, started: Callable[[], None], lost: Callable[[int, bytes], None], grace: float) -> None:
        """Keep the workers running until the process is told to stop (SIGTERM, SIGINT).

        `started` is called once all of them are ready for the first time, `lost` with the slot of one that has died and a line for the log. `grace`
        are the seconds that they have to finish at the end.
        """
        self._listener.setblocking(False)
        with self._signals() as wake:
            self._selector.register(wake, selectors.EVENT_READ)
            told = False
            while not self._stops or any(self._workers.values()):
                self._step(wake, lost, grace)
                if not told and not self._stops and all(worker is not None and worker.ready for worker in self._workers.values()):
                    told = True
                    started()
        self._selector.close()

    def _step(self, wake: socket.socket, lost: Callable[[int, bytes], None], grace: float) -> None:
        if self._stops:
            self._wind_down(grace)
        else:
            self._fill()
        self._listen(not self._stops and any(worker is not None and worker.ready for worker in self._workers.values()))
        for key, _ in self._selector.select(self._until_due()):
            if key.fileobj is wake:
                with suppress(BlockingIOError):
                    wake.recv(_MESSAGE)
            elif key.fileobj is self._listener:
                self._accept()
            elif key.data.hear():
                self._selector.unregister(key.data.channel)
                key.data.ready = False
        self._reap(lost)

    def _fill(self) -> None:
        for slot, worker in self._workers.items():
            if worker is None and time.monotonic() >= self._due[slot]:
                self._start(slot)

    def _until_due(self) -> float | None:
        """Seconds until there is something to do though nothing happens; None where nothing is awaited."""
        if self._stops:
            return max(0.0, self._deadline - time.monotonic())
        waiting = [self._due[slot] for slot, worker in self._workers.items() if worker is None]
        return max(0.0, min(waiting) - time.monotonic()) if waiting else None

    def _listen(self, wanted: bool) -> None:
        if wanted and not self._listening:
            self._selector.register(self._listener, selectors.EVENT_READ)
        elif self._listening and not wanted:
            self._selector.unregister(self._listener)
        self._listening = wanted

    def _accept(self) -> None:
        for _ in range(_BACKLOG):
            try:
                connection, _address = self._listener.accept()
            except OSError:
                # Nobody is there any more, or this process has too many files open: those who wait go on waiting.
                return
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                ready = sorted((worker for worker in self._workers.values() if worker and worker.ready), key=lambda worker: worker.connections)
                any(worker.give(connection) for worker in ready)

    # -- starting and ending ------------------------------------------------------------------------------------------------------

    def _start(self, slot: int) -> None:
        ours, theirs = socket.socketpair()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if not pid:
            ours.close()
            self._be_a_worker(slot, theirs)
        theirs.close()
        ours.setblocking(False)
        worker = self._workers[slot] = _Worker(slot, pid, ours)
        self._selector.register(ours, selectors.EVENT_READ, worker)

    def _be_a_worker(self, slot: int, channel: socket.socket) -> None:
        """The life of a worker, in its own process. Nothing of what the parent would do at its end may happen here."""
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            # An interrupt from the terminal reaches all processes; the parent says when it is time to stop.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            self._listener.close()
            self._selector.close()
            for worker in self._workers.values():
                if worker is not None:
                    worker.channel.close()
            self._work(slot, channel)
            status = 0
        except BaseException:  # noqa: BLE001 - the process ends here, whatever happened
            traceback.print_exc()
        finally:
            with suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)

    def _reap(self, lost: Callable[[int, bytes], None]) -> None:
        for slot, worker in self._workers.items():
            if worker is None or os.waitpid(worker.pid, os.WNOHANG)[0] == 0:
                continue
            with suppress(KeyError):
                self._selector.unregister(worker.channel)
            worker.channel.close()
            self._workers[slot] = None
            short = time.monotonic() - worker.begun < _SHORT_LIFE
            self._pauses[slot] = min(_LONGEST_PAUSE, max(_FIRST_PAUSE, 2 * self._pauses[slot])) if short else 0.0
            self._due[slot] = time.monotonic() + self._pauses[slot]
            lost(slot, b"" if self._stops else json.encode({"message": f"worker {worker.pid} has ended; another one takes its place"}) + b"\n")

    def _wind_down(self, grace: float) -> None:
        now = time.monotonic()
        if not self._deadline:
            self._deadline = now + grace + PATIENCE
            self._listen(False)
            self._listener.close()
            for worker in filter(None, self._workers.values()):
                # Behind the connections that are still on their way to it.
                with suppress(OSError):
                    worker.channel.shutdown(socket.SHUT_WR)
        elif self._stops > 1 or now >= self._deadline:
            for worker in filter(None, self._workers.values()):
                os.kill(worker.pid, signal.SIGKILL)

    @contextmanager
    def _signals(self) -> Iterator[socket.socket]:
        """Signals become bytes on a socket, so that waiting for them and for everything else is one."""
        wake, into = socket.socketpair()
        with wake, into:
            wake.setblocking(False)
            into.setblocking(False)
            before = {number: signal.signal(number, self._signalled) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)}
            previous = signal.set_wakeup_fd(into.fileno(), warn_on_full_buffer=False)
            try:
                yield wake
            finally:
                signal.set_wakeup_fd(previous)
                for number, handler in before.items():
                    signal.signal(number, handler)

    def _signalled(self, number: int, _: Any) -> None:
        if number != signal.SIGCHLD:
            self._stops += 1


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; raises `OSError`."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
