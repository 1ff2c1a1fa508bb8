"""The server that a run on an embedded store starts for its programs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec

from msgspec import Struct, json

from nessie_cli.errors import StoreUnavailable

_ENDS_WITHIN = 10.0
"""Seconds that the requests of programs which still run have at the end of the run."""


class WarehouseChoice(Struct, frozen=True):
    """The warehouses of the server: a file that defines them, or locations."""

    warehouses: str = ""
    warehouse: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()


@contextmanager
def temporary_server(store: str, choice: WarehouseChoice) -> Iterator[str]:
    """Yields the address of a server on this machine, which ends with the block.

    It also ends if this process is killed. Raises `StoreUnavailable` if it cannot start.
    """
    if find_spec("uvicorn") is None:
        raise StoreUnavailable(
            "the server of the run cannot be started: the package uvicorn is not installed",
            hint="pip install 'nessie-cli[serve]'",
        )
    command = [sys.executable, "-m", "nessie_cli.server.for_run"]
    settings = {"store": store, **_fields(choice)}
    # In a session of its own it gets no Ctrl-C: the programs of the run need it until they end.
    process = subprocess.Popen(  # noqa: S603 - this program
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        # Secrets of the URL must not be in a command line, which others can read.
        with suppress(BrokenPipeError):
            process.stdin.write(json.encode(settings) + b"\n")
            process.stdin.flush()
        line = process.stdout.readline().decode().strip()
        if not line.startswith("http://"):
            reason = line.removeprefix("error: ") or "see the lines above"
            raise StoreUnavailable(f"the server of the run cannot be started: {reason}")
        yield line
    finally:
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
        try:
            process.wait(_ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _fields(choice: WarehouseChoice) -> dict[str, str | Sequence[str]]:
    return {
        "warehouses": choice.warehouses,
        "warehouse": choice.warehouse,
        "allowed": choice.allowed,
    }
