"""The metrics of a server, also under the names of the original server.

There is no version store of the original. `nessie_versionstore_request_seconds` is the time of
whole requests, under the name of the call that serves them in the original.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http import HTTPStatus

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)

from nessie_cli.server.runtime.counts import BUCKETS, Durations, Key, Sample

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
