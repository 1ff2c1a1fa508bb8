"""Metrics about the requests of a server, for Prometheus, also under the original's names.

Each process counts in plain objects, and prometheus_client gets them when it is asked for its text.
With several processes, each writes what it has counted into a shared folder, several times per
second, and the one that is asked adds up all of them.
"""

from __future__ import annotations

import asyncio
import os
import resource
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from time import monotonic, time, time_ns

from msgspec import DecodeError, Struct, field, json
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4.encode()
_WINDOW = 60.0
"""Seconds. The longest durations are those of the current and the last window."""
_SHARED_EVERY = 0.25
"""Seconds between two copies of the counts in the shared folder."""
_LIVE, _ENDED = "metrics-", "ended-"
"""The beginnings of the names of files of running and ended processes."""
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the buckets of durations, in seconds."""

Key = tuple[str, str, int]
"""Method, route and status."""


class Durations(Struct):
    """The durations of some requests: number, sum, numbers by bucket, and the longest ones.

    The longest ones are those of the current window and the one before.
    """

    count: int = 0
    total: float = 0.0
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    longest: float = 0.0
    longest_before: float = 0.0

    def observe(self, seconds: float) -> None:
        """Adds a duration."""
        self.count += 1
        self.total += seconds
        self.buckets[bisect_left(BUCKETS, seconds)] += 1
        self.longest = max(self.longest, seconds)

    def add(self, other: Durations) -> None:
        """Adds other durations."""
        self.count += other.count
        self.total += other.total
        self.buckets = [
            mine + others for mine, others in zip(self.buckets, other.buckets, strict=True)
        ]
        self.longest = max(self.longest, other.longest)
        self.longest_before = max(self.longest_before, other.longest_before)


class Sample(Struct):
    """All that one or more processes have counted and measured."""

    requests: list[tuple[Key, Durations]] = field(default_factory=list)
    received: int = 0
    sent: int = 0
    processor: float = 0.0
    running: int = 0
    processes: int = 0
    memory: int = 0
    usage: float = 0.0
    began: float = 0.0

    def add(self, other: Sample, *, is_live: bool) -> None:
        """Adds the counts of another process, and its measures if it is running."""
        by_key = dict(self.requests)
        for key, durations in other.requests:
            if key in by_key:
                by_key[key].add(durations)
            else:
                by_key[key] = durations
        self.requests = list(by_key.items())
        self.received += other.received
        self.sent += other.sent
        self.processor += other.processor
        self.began = min(self.began, other.began)
        if is_live:
            self.running += other.running
            self.processes += other.processes
            self.memory += other.memory
            self.usage += other.usage


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


# -- the metrics that Prometheus gets -------------------------------------------------------------
#
# Some have the names of the original server. There is no version store of the original:
# `nessie_versionstore_request_seconds` is the time of whole requests, under the name of the call
# that serves them in the original.

APPLICATION = "Nessie"
_URIS = {
    "(none)": "NOT_FOUND",
    "/api/v1/diffs/{range}": "/api/v1/diffs/{diff_params}",
    "/api/v1/trees/{kind}/{ref}": "/api/v1/trees/{referenceType}/{ref}",
    "/api/v1/trees/branch/{ref}/commit": "/api/v1/trees/branch/{branchName}/commit",
    "/api/v1/trees/branch/{ref}/merge": "/api/v1/trees/branch/{branchName}/merge",
    "/api/v1/trees/branch/{ref}/transplant": "/api/v1/trees/branch/{branchName}/transplant",
    "/api/v2/trees/{from}/diff/{to}": "/api/v2/trees/{from-ref}/diff/{to-ref}",
}
"""The original's patterns of routes that have other names there."""
_CALLS = {
    "config": {"GET": "getRepositoryInformation"},
    "config/repository": {"GET": "getRepositoryConfig", "POST": "updateRepositoryConfig"},
    "trees": {"GET": "getNamedRefs", "POST": "create"},
    "trees/tree": {"GET": "getNamedRef", "POST": "create"},
    "trees/{ref}": {"GET": "getNamedRef", "PUT": "assign", "DELETE": "delete"},
    "trees/tree/{ref}": {"GET": "getNamedRef"},
    "trees/{kind}/{ref}": {"PUT": "assign", "DELETE": "delete"},
    "trees/{ref}/recent-changes": {"GET": "getReferenceHistory"},
    "trees/{ref}/entries": {"GET": "getKeys"},
    "trees/tree/{ref}/entries": {"GET": "getKeys"},
    "trees/{ref}/history": {"GET": "getCommits"},
    "trees/tree/{ref}/log": {"GET": "getCommits"},
    "trees/{from}/diff/{to}": {"GET": "getDiffs"},
    "diffs/{range}": {"GET": "getDiffs"},
    "trees/{ref}/contents/{key}": {"GET": "getValue"},
    "contents/{key}": {"GET": "getValue"},
    "trees/{ref}/contents": {"GET": "getValues", "POST": "getValues"},
    "contents": {"POST": "getValues"},
    "trees/{ref}/history/commit": {"POST": "commit"},
    "trees/branch/{ref}/commit": {"POST": "commit"},
    "trees/{ref}/history/merge": {"POST": "merge"},
    "trees/branch/{ref}/merge": {"POST": "merge"},
    "trees/{ref}/history/transplant": {"POST": "transplant"},
    "trees/branch/{ref}/transplant": {"POST": "transplant"},
    "namespaces/{ref}": {"GET": "getKeys"},
    "namespaces/namespace/{ref}/{name}": {
        "GET": "getValue",
        "PUT": "commit",
        "POST": "commit",
        "DELETE": "commit",
    },
}
"""The call of the version store for each route and method."""

Labels = tuple[str, ...]


def families(sample: Sample) -> Iterator[Metric]:
    """Yields all metrics."""
    yield from _own(sample)
    yield from _of_the_original(sample)


def _own(sample: Sample) -> Iterator[Metric]:
    requests = CounterMetricFamily(
        "nessie_http_requests", "Requests answered.", labels=("method", "route", "status")
    )
    for (method, route, status), durations in sample.requests:
        requests.add_metric((method, route, str(status)), durations.count)
    yield requests
    by_route = _grouped(sample, lambda key: (key[1],))
    yield _histogram(
        "nessie_http_request_duration_seconds",
        "Time from the first line of a request to the last byte of its answer.",
        ("route",),
        by_route,
    )
    yield GaugeMetricFamily(
        "nessie_http_requests_running", "Requests that are being answered.", sample.running
    )
    yield CounterMetricFamily(
        "nessie_http_received_bytes", "Bytes of request bodies.", sample.received
    )
    yield CounterMetricFamily("nessie_http_sent_bytes", "Bytes of answers' bodies.", sample.sent)
    yield GaugeMetricFamily("nessie_processes", "Processes that answer requests.", sample.processes)
    yield CounterMetricFamily("process_cpu_seconds", "Processor time used.", sample.processor)
    yield GaugeMetricFamily(
        "process_max_resident_memory_bytes", "The most memory that was used.", sample.memory
    )
    yield GaugeMetricFamily(
        "process_start_time_seconds",
        "When the server began, in seconds since 1970.",
        sample.began,
    )


def _of_the_original(sample: Sample) -> Iterator[Metric]:
    name, meaning = (
        "nessie_versionstore_request_seconds",
        "Time of requests, by the call of the original's version store.",
    )
    labels: Labels = ("application", "exception", "method")
    calls = _grouped(sample, _call)
    yield _histogram(name, meaning, labels, calls)
    yield _longest(name, meaning, labels, calls)
    name, meaning = "http_server_requests_seconds", "Time of requests."
    labels = ("application", "method", "outcome", "status", "uri")
    requests = _grouped(sample, _request)
    summary = SummaryMetricFamily(name, meaning, labels=labels)
    for values, durations in requests.items():
        summary.add_metric(values, durations.count, durations.total)
    yield summary
    yield _longest(name, meaning, labels, requests)
    usage = GaugeMetricFamily(
        "process_cpu_usage", "Recent use of all processors, 0 to 1.", labels=("application",)
    )
    usage.add_metric((APPLICATION,), sample.usage)
    yield usage


def _grouped(sample: Sample, labels: Callable[[Key], Labels | None]) -> dict[Labels, Durations]:
    """Returns the durations of requests by their labels; without those that have none."""
    groups: dict[Labels, Durations] = {}
    for key, durations in sample.requests:
        values = labels(key)
        if values is None:
            continue
        if values not in groups:
            groups[values] = type(durations)()
        groups[values].add(durations)
    return groups


def _histogram(
    name: str,
    meaning: str,
    labels: Labels,
    groups: dict[Labels, Durations],
) -> Metric:
    histogram = HistogramMetricFamily(name, meaning, labels=labels)
    for values, durations in groups.items():
        below, buckets = 0, []
        for bound, number in zip((*map(str, BUCKETS), "+Inf"), durations.buckets, strict=True):
            below += number
            buckets.append((bound, below))
        histogram.add_metric(values, buckets, durations.total)
    return histogram


def _longest(name: str, meaning: str, labels: Labels, groups: dict[Labels, Durations]) -> Metric:
    gauge = GaugeMetricFamily(f"{name}_max", f"{meaning} The recent maximum.", labels=labels)
    for values, durations in groups.items():
        gauge.add_metric(values, max(durations.longest, durations.longest_before))
    return gauge


def _request(key: Key) -> Labels:
    method, route, status = key
    return APPLICATION, method, _outcome(status), str(status), _URIS.get(route, route)


def _call(key: Key) -> Labels | None:
    """Returns the labels of the call of the version store, if the original has one."""
    method, route, status = key
    calls = _CALLS.get(route[len("/api/v1/") :], {}) if route.startswith("/api/v") else {}
    call = calls.get("GET" if method == "HEAD" else method)
    return None if call is None else (APPLICATION, _exception(status), call)


def _outcome(status: int) -> str:
    outcomes = ("INFORMATIONAL", "SUCCESS", "REDIRECTION", "CLIENT_ERROR", "SERVER_ERROR")
    return outcomes[status // 100 - 1]


def _exception(status: int) -> str:
    """Returns the name for the class of the original's exception."""
    return "none" if status < HTTPStatus.BAD_REQUEST else HTTPStatus(status).name
