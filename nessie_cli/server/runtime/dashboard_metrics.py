"""Metrics under the names and labels of the original server, for its dashboards.

There is no version store of the original. `nessie_versionstore_request_seconds` is the time of
whole requests, under the name of the call that serves them in the original.
"""

from __future__ import annotations

import os
import resource
from bisect import bisect_left
from collections import Counter, defaultdict
from http import HTTPStatus
from time import monotonic

from prometheus_client import CollectorRegistry, Gauge, Histogram, Summary

APPLICATION = "Nessie"
_WINDOW = 60.0
"""Seconds. The longest durations are those of the current and the last window."""
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
Durations = list[float]


# One observation at a time would take several microseconds of every request.


class BatchSummary(Summary):
    """A summary that takes many observations at once."""

    def observe_all(self, found: Durations) -> None:
        """Counts some durations."""
        self._count.inc(len(found))
        self._sum.inc(sum(found))


class BatchHistogram(Histogram):
    """A histogram that takes many observations at once."""

    def observe_all(self, found: Durations) -> None:
        """Counts some durations."""
        self._sum.inc(sum(found))
        for bucket, number in Counter(
            bisect_left(self._upper_bounds, one) for one in found
        ).items():
            self._buckets[bucket].inc(number)


class _Timer:
    """Durations by labels: number, sum, optional buckets, and the longest one."""

    def __init__(
        self,
        registry: CollectorRegistry,
        name: str,
        meaning: str,
        labels: Labels,
        buckets: tuple[float, ...] = (),
    ) -> None:
        every = ("application", *labels)
        self._timer: BatchHistogram | BatchSummary = (
            BatchHistogram(name, meaning, every, buckets=buckets, registry=registry)
            if buckets
            else BatchSummary(name, meaning, every, registry=registry)
        )
        self._max = Gauge(
            f"{name}_max",
            f"{meaning} The recent maximum.",
            every,
            registry=registry,
            multiprocess_mode="livemax",
        )
        self._waiting: defaultdict[Labels, Durations] = defaultdict(list)
        self._longest: dict[Labels, tuple[float, float]] = {}
        self._began = monotonic()

    def durations(self, labels: Labels) -> Durations:
        """Returns the list for new durations. The next sample reads and empties it."""
        return self._waiting[labels]

    def sample(self) -> None:
        """Updates the metrics."""
        if turn := monotonic() - self._began >= _WINDOW:
            self._began = monotonic()
        for labels, found in self._waiting.items():
            self._timer.labels(APPLICATION, *labels).observe_all(found)
            now, before = self._longest.get(labels, (0.0, 0.0))
            now = max([now, *found])
            found.clear()
            self._max.labels(APPLICATION, *labels).set(max(now, before))
            self._longest[labels] = (0.0, now) if turn else (now, before)


class DashboardMetrics:
    """The metrics that dashboards of the original read, updated by `sample`."""

    def __init__(self, registry: CollectorRegistry, buckets: tuple[float, ...]) -> None:
        self._store = _Timer(
            registry,
            "nessie_versionstore_request_seconds",
            "Time of requests, by the call of the original's version store.",
            ("exception", "method"),
            buckets,
        )
        self._requests = _Timer(
            registry,
            "http_server_requests_seconds",
            "Time of requests.",
            ("method", "outcome", "status", "uri"),
        )
        self._usage = _gauge(registry, "process_cpu_usage", "Recent use of all processors, 0 to 1.")
        self._measured, self._used = monotonic(), _processor_time()

    def durations(self, method: str, route: str, status: int) -> list[Durations]:
        """Returns the lists for the duration of an answered request."""
        uri = _URIS.get(route, route)
        found = [self._requests.durations((method, _outcome(status), str(status), uri))]
        call = _CALLS.get(route[len("/api/v1/") :], {}).get("GET" if method == "HEAD" else method)
        if call is not None and route.startswith("/api/v"):
            found.append(self._store.durations((_exception(status), call)))
        return found

    def sample(self) -> None:
        """Updates the metrics."""
        self._requests.sample()
        self._store.sample()
        now, used = monotonic(), _processor_time()
        if now - self._measured >= 1:
            self._usage.set((used - self._used) / (now - self._measured) / (os.cpu_count() or 1))
            self._measured, self._used = now, used


def _gauge(registry: CollectorRegistry, name: str, meaning: str) -> Gauge:
    return Gauge(
        name, meaning, ("application",), registry=registry, multiprocess_mode="livesum"
    ).labels(APPLICATION)


def _processor_time() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _outcome(status: int) -> str:
    outcomes = ("INFORMATIONAL", "SUCCESS", "REDIRECTION", "CLIENT_ERROR", "SERVER_ERROR")
    return outcomes[status // 100 - 1]


def _exception(status: int) -> str:
    """Returns the name for the class of the original's exception."""
    return "none" if status < HTTPStatus.BAD_REQUEST else HTTPStatus(status).name
