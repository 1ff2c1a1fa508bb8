"""The server of a run on an embedded store: it ends with the process that started it.

`python -m nessie_cli.server.for_run` reads its settings as one line of JSON on stdin, prints its
address on stdout, and ends when stdin is closed, also if the parent was killed. It accepts the
tokens of runs alone.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

from msgspec import Struct, json

from nessie_cli.errors import NessieError
from nessie_cli.iceberg.warehouses.configuration import from_options
from nessie_cli.iceberg.warehouses.warehouse import Warehouses
from nessie_cli.repository.opening import connect_store
from nessie_cli.server.auth.gate import Security
from nessie_cli.server.running import Listeners, ServerSettings, serve
from nessie_cli.server.warehouse_file import read_warehouses


class RunServerSettings(Struct, frozen=True):
    """The store, and the warehouses: a file that defines them, or locations."""

    store: str
    warehouses: str = ""
    warehouse: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()


def main() -> int:
    """Serves until stdin is closed. Prints an error as one line, and returns the exit code."""
    given = json.decode(sys.stdin.buffer.readline(), type=RunServerSettings)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    settings = ServerSettings(
        port=0, security=Security(runs_only=True), warehouses=_warehouses(given)
    )
    try:
        serve(lambda: connect_store(given.store), settings, Listeners(_print, _log, faults=True))
    except NessieError as error:
        _print(f"error: {error.message}")
        return 1
    return 0


def _warehouses(given: RunServerSettings) -> Warehouses | None:
    if given.warehouses:
        return read_warehouses(Path(given.warehouses))
    return from_options(given.warehouse, given.allowed) if given.warehouse else None


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _log(lines: bytes) -> None:
    os.write(sys.stderr.fileno(), lines)


def _end_with_parent() -> None:
    """Ends the server when the pipe of stdin is closed."""
    while sys.stdin.buffer.read(1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    raise SystemExit(main())
