"""Metrics about the requests of a server, for Prometheus.

With several processes, prometheus_client stores the metrics of each in a shared folder.
"""

from __future__ import annotations

import asyncio
import os
import resource
from pathlib import Path
from time import time
from typing import Literal

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    disable_created_metrics,
    generate_latest,
    values,
)
from prometheus_client.multiprocess import MultiProcessCollector

from nessie_cli.server.runtime.dashboard_metrics import BatchHistogram, DashboardMetrics, Durations

_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable in which prometheus_client looks for the folder."""
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the buckets of durations, in seconds."""
_SAMPLED_EVERY = 1.0
"""Seconds between two samples of metrics that only the process itself can measure."""

disable_created_metrics()  # type: ignore[no-untyped-call]

Key = tuple[str, str, int]
"""Method, route and status."""


class Metrics:
    """Counts requests, on the event loop.

    Counts and durations of requests are exact after `sample`, the other metrics are samples.
    `folder` is shared by the processes of the server, if there are several.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        if folder is not None:
            # prometheus_client chooses when it is imported, which was before the fork.
            os.environ[_FOLDER] = str(folder)
            values.ValueClass = values.MultiProcessValue()  # type: ignore[no-untyped-call]
        self.running = 0
        self._received = self._sent = 0
        self._used = 0.0
        self._registry = CollectorRegistry()
        self._requests = self._counter(
            "nessie_http_requests_total", "Requests answered.", "method", "route", "status"
        )
        self._durations = BatchHistogram(
            "nessie_http_request_duration_seconds",
            "Time from the first line of a request to the last byte of its answer.",
            ("route",),
            buckets=BUCKETS,
            registry=self._registry,
        )
        # Counting each request on its own takes a tenth of the time of a request.
        self._waiting: dict[Key, tuple[Durations, list[Durations]]] = {}
        self._running = self._gauge(
            "nessie_http_requests_running", "Requests that are being answered."
        )
        self._received_total = self._counter(
            "nessie_http_received_bytes_total", "Bytes of request bodies."
        )
        self._sent_total = self._counter(
            "nessie_http_sent_bytes_total", "Bytes of answers' bodies."
        )
        self._gauge("nessie_processes", "Processes that answer requests.").set(1)
        self._processor = self._counter("process_cpu_seconds_total", "Processor time used.")
        self._memory = self._gauge(
            "process_max_resident_memory_bytes", "The most memory that was used."
        )
        began = self._gauge(
            "process_start_time_seconds",
            "When the server began, in seconds since 1970.",
            of_all="min",
        )
        began.set(time())
        self._dashboard = DashboardMetrics(self._registry, BUCKETS)
        self.sample()

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(name, meaning, labels, registry=self._registry)

    def _gauge(
        self, name: str, meaning: str, of_all: Literal["livesum", "min"] = "livesum"
    ) -> Gauge:
        return Gauge(name, meaning, registry=self._registry, multiprocess_mode=of_all)

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
        found = self._waiting.get(key)
        if found is None:
            found = self._waiting[key] = ([], self._dashboard.durations(*key))
        exact, sampled = found
        exact.append(seconds)
        for one in sampled:
            one.append(seconds)
        if self._folder is not None:
            # Another process may be asked for the metrics next.
            self._count(key, exact)
        self._received += received
        self._sent += sent

    def _count(self, key: Key, found: Durations) -> None:
        if found:
            self._requests.labels(*key).inc(len(found))
            self._durations.labels(key[1]).observe_all(found)
            found.clear()

    def sample(self) -> None:
        """Updates the sampled metrics."""
        for key, (exact, _) in self._waiting.items():
            self._count(key, exact)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        used = usage.ru_utime + usage.ru_stime
        self._processor.inc(used - self._used)
        self._used = used
        self._memory.set(usage.ru_maxrss * 1024)
        self._running.set(self.running)
        self._received_total.inc(self._received)
        self._sent_total.inc(self._sent)
        self._received = self._sent = 0
        self._dashboard.sample()

    async def keep_sampling(self) -> None:
        """Samples until it is cancelled."""
        while True:
            await asyncio.sleep(_SAMPLED_EVERY)
            self.sample()

    def text(self) -> bytes:
        """Returns the metrics of all processes of the server in Prometheus' text format."""
        if self._folder is None:
            return generate_latest(self._registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry, str(self._folder))  # type: ignore[no-untyped-call]
        return generate_latest(registry)
