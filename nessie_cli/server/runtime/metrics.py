"""Metrics about the requests of a server, for Prometheus.

Each process counts in plain objects, and prometheus_client gets them when it is asked for its text.
With several processes, each writes what it has counted into a shared folder, several times per
second, and the one that is asked adds up all of them.
"""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic, time, time_ns

from msgspec import DecodeError, json
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from nessie_cli.server.runtime.counts import Durations, Key, Sample
from nessie_cli.server.runtime.metric_families import families

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4.encode()
_WINDOW = 60.0
"""Seconds. The longest durations are those of the current and the last window."""
_SHARED_EVERY = 0.25
"""Seconds between two copies of the counts in the shared folder."""
_LIVE, _ENDED = "metrics-", "ended-"
"""The beginnings of the names of files of running and ended processes."""


class Metrics(Collector):
    """Counts requests, on the event loop. `folder` is shared by the processes of the server."""

    def __init__(self, folder: Path | None = None) -> None:
        self.running = 0
        self._folder = folder
        self._file = folder and folder / f"{_LIVE}{os.getpid()}-{time_ns()}.json"
        self._requests: dict[Key, Durations] = {}
        self._received = self._sent = 0
        self._began = time()
        self._window = self._measured = monotonic()
        self._used, self._usage = _processor_time(), 0.0

    def observe(
        self,
        method: str,
        route: str,
        status: int,
        seconds: float,
        *,
        received: int = 0,
        sent: int = 0,
    ) -> None:
        """Counts an answered request. `route` is the pattern of its path, never the path itself."""
        key = (method, route, status)
        durations = self._requests.get(key)
        if durations is None:
            durations = self._requests[key] = Durations()
        durations.observe(seconds)
        self._received += received
        self._sent += sent

    async def keep_sharing(self) -> None:
        """Measures this process and shares what it has counted, until it is cancelled."""
        while True:
            self.share()
            await asyncio.sleep(_SHARED_EVERY)

    def share(self) -> None:
        """Measures this process, and writes what it has counted into the shared folder."""
        now, used = monotonic(), _processor_time()
        if now - self._measured >= 1:
            self._usage = (used - self._used) / (now - self._measured) / (os.cpu_count() or 1)
            self._measured, self._used = now, used
        if now - self._window >= _WINDOW:
            self._window = now
            for durations in self._requests.values():
                durations.longest_before, durations.longest = durations.longest, 0.0
        if self._file is not None:
            written = self._file.with_suffix(".new")
            # The folder is removed when the server stops.
            with suppress(OSError):
                written.write_bytes(json.encode(self._sample()))
                written.replace(self._file)

    def text(self) -> bytes:
        """Returns the metrics of all processes of the server in Prometheus' text format."""
        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry)

    def collect(self) -> Iterator[Metric]:
        """Returns the metrics of all processes for prometheus_client."""
        # A copy: the requests of this process are counted on.
        everything = json.decode(json.encode(self._sample()), type=Sample)
        for path, is_live in self._others():
            with suppress(OSError, DecodeError):
                everything.add(json.decode(path.read_bytes(), type=Sample), is_live=is_live)
        return families(everything)

    def _others(self) -> Iterator[tuple[Path, bool]]:
        """Yields the files of other processes, and whether they are running."""
        if self._folder is not None:
            for path in self._folder.glob("*.json"):
                if path != self._file and path.name.startswith((_LIVE, _ENDED)):
                    yield path, path.name.startswith(_LIVE)

    def _sample(self) -> Sample:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return Sample(
            list(self._requests.items()),
            self._received,
            self._sent,
            usage.ru_utime + usage.ru_stime,
            self.running,
            1,
            usage.ru_maxrss * 1024,
            self._usage,
            self._began,
        )


def end_process(folder: Path, pid: int) -> None:
    """Says that a process has ended. What it has counted remains."""
    for path in folder.glob(f"{_LIVE}{pid}-*.json"):
        path.rename(path.with_name(_ENDED + path.name.removeprefix(_LIVE)))


def _processor_time() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
