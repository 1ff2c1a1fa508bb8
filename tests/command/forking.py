"""Runs command lines, each in a process forked from this one, which has loaded modules.

The arguments are the address of a Unix socket and the modules to load. A client connects and sends
its stdin, stdout and stderr with a JSON request; the answers are the process id and, when the
process has ended, its exit code, each as 8 bytes. This process ends when its stdin is closed.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import selectors
import signal
import socket
import sys
import termios
import traceback
from contextlib import suppress
from importlib import import_module
from typing import Any


def become(request: dict[str, Any], streams: list[int]) -> None:
    """Turns the child into a command, with `terminal` in a session of its own."""
    if request["terminal"]:
        os.setsid()
        fcntl.ioctl(streams[0], termios.TIOCSCTTY, 0)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, encoding="utf-8", closefd=False)
        for number, mode in enumerate("rww")
    )
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    if request["seconds"]:
        # A command that never ends is killed.
        signal.alarm(request["seconds"])
    sys.argv = ["nessie", *request["args"]]
    from nessie_cli.cli.main import main

    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        main()
    except KeyboardInterrupt:
        # The interrupt came before the command had begun.
        os._exit(130)
    except BaseException:  # noqa: BLE001 - a command must not end so; the test sees it on stderr
        traceback.print_exc()
        sys.stderr.flush()


class Forks:
    """Forks a process for each connection, and answers when it has ended."""

    def __init__(self, address: str) -> None:
        self._running: dict[int, socket.socket] = {}
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(address)
        self._listener.listen(100)
        self._wakes, self._wake = os.pipe()
        os.set_blocking(self._wakes, False)
        os.set_blocking(self._wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)

    def serve(self) -> None:
        # A child receives the signal when it has become a command.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        with selectors.DefaultSelector() as selector:
            for source in (0, self._wakes, self._listener):
                selector.register(source, selectors.EVENT_READ)
            while True:
                ready = {key.fileobj for key, _ in selector.select()}
                if self._wakes in ready:
                    os.read(self._wakes, 1 << 16)
                    self._answer()
                if self._listener in ready:
                    self._accept()
                if 0 in ready:
                    return

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        length, streams, _, _ = socket.recv_fds(client, 8, 3)
        data = b""
        while len(data) < int.from_bytes(length):
            data += client.recv(1 << 20)
        child = os.fork()
        if child == 0:
            try:
                self._leave(client)
                become(json.loads(data), list(streams))
            finally:
                os._exit(99)
        for stream in streams:
            os.close(stream)
        client.sendall(child.to_bytes(8))
        self._running[child] = client

    def _leave(self, client: socket.socket) -> None:
        """Closes in the child what belongs to this process."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for source in (self._listener, client, *self._running.values()):
            source.close()
        os.close(self._wake)
        os.close(self._wakes)

    def _answer(self) -> None:
        for child, client in list(self._running.items()):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                del self._running[child]
                with client:
                    code = os.waitstatus_to_exitcode(status)
                    # The client may not wait for the end.
                    with suppress(BrokenPipeError):
                        client.sendall(code.to_bytes(8, signed=True))


if __name__ == "__main__":
    for name in sys.argv[2:]:
        import_module(name)
    # A child that looks for garbage would copy the pages of everything that it shares with this
    # process.
    gc.freeze()
    forks = Forks(sys.argv[1])
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    forks.serve()
