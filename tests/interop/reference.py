"""Iceberg's reference server of its REST catalog, as a process on a free loopback port."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.interop.machine import Machine


@contextmanager
def reference(machine: Machine, warehouse: Path) -> Iterator[str]:
    """The URL of a server with an empty catalog, while the block lasts."""
    process = subprocess.Popen(
        machine.command("org.apache.iceberg.rest.ReferenceServer", str(warehouse)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()
