"""Real server processes for tests, forked from a process that has loaded all modules, so
that each test can have its own within milliseconds."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from multiprocessing.connection import Connection

LOADED_ONCE = (
    "encodings.idna",
    # The package itself loads nothing.
    "nessie_cli.server.running",
    "nessie_cli.store.postgres.later_tables",
    "nessie_cli.store.sqlite.later_tables",
    "nessie_cli.store.sqlite.watch",
    "nessie_cli.wire.filter_engine",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
    "uvicorn.loops.uvloop",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
    "uvloop",
)


def _serve(url: str, report: Connection) -> None:
    from nessie_cli.repository.opening import connect
    from nessie_cli.server import Listeners, ServerSettings, serve

    serve(lambda: connect(url, who="served"), ServerSettings(port=0), Listeners(report.send))


def _fork_servers(requests: Connection) -> None:
    """Waits for URLs; answers each with the address of a new process that serves it."""
    for name in LOADED_ONCE:
        import_module(name)
    # The garbage collector does not touch frozen objects, so their memory stays shared.
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        url = requests.recv()
        here, there = multiprocessing.Pipe()
        child = os.fork()
        if child == 0:
            try:
                _serve(url, there)
            except BaseException:  # noqa: BLE001 (show why the process ends)
                traceback.print_exc()
            finally:
                os._exit(0)
        # Only the child holds the other end, so the wait ends if it dies before it serves.
        there.close()
        try:
            address = here.recv() + "/api/v2"
        except EOFError:
            address = None
        here.close()
        requests.send((child, address))


class Servers:
    """Starts servers, one process each."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._forker = context.Process(target=_fork_servers, args=(theirs,), daemon=True)
        self._forker.start()

    @contextmanager
    def serving(self, url: str) -> Iterator[str]:
        """Yields the address of a server over a store."""
        self._pipe.send(url)
        child, address = self._pipe.recv()
        assert address is not None, "the server did not start; its process has printed the reason"
        try:
            yield address
        finally:
            os.kill(child, signal.SIGKILL)

    def close(self) -> None:
        self._forker.kill()
        self._forker.join()
