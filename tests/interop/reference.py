"""Iceberg's reference server of its REST catalog, as a process on a free loopback port."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.interop.machine import Machine
from tests.original.conftest import SOON_WARM


@contextmanager
def reference(
    machine: Machine, warehouse: Path, *catalog: str, options: Sequence[str] = SOON_WARM
) -> Iterator[str]:
    """Yields the URL of a server with an empty catalog. `options` are Java's.

    The catalog is at a JDBC URL, or in memory for one client at a time.
    """
    main = "org.apache.iceberg.rest.ReferenceServer"
    process = subprocess.Popen(
        [machine.program, *options, "-cp", machine.classpath, main, str(warehouse), *catalog],
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
