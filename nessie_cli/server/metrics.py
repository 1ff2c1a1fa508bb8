"""Numbers about the requests of a server, in Prometheus' text format."""

from __future__ import annotations

import resource
import threading
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator

from msgspec import Struct, structs

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the durations that are counted together, in seconds."""


class Durations(Struct):
    """How often a route took how long: a count for each of the `BUCKETS` and one for what is longer, and the sum of seconds."""

    counts: list[int]
    total: float = 0.0


class Numbers(Struct):
    """What one process has counted, or several together. `requests` has rows of method, route, status, count."""

    requests: list[tuple[str, str, int, int]]
    durations: dict[str, Durations]
    received: int
    sent: int
    running: int
    processor: float
    memory: int
    begun: float
    processes: int = 1

    def of_the_past(self) -> Numbers:
        """What remains of these numbers when the process has ended."""
        return structs.replace(self, running=0, memory=0, processes=0)


class Metrics:
    """Counts requests. Cheap enough for every one of them; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[tuple[str, str, int], int] = {}
        self._durations: dict[str, Durations] = {}
        self._received = 0
        self._sent = 0
        self.running = 0
        self._begun = time.time()

    def observe(self, method: str, route: str, status: int, seconds: float, *, received: int = 0, sent: int = 0) -> None:
        """Count one answered request. `route` is the pattern of its path, never the path itself."""
        with self._lock:
            key = (method, route, status)
            self._requests[key] = self._requests.get(key, 0) + 1
            durations = self._durations.get(route)
            if durations is None:
                durations = self._durations[route] = Durations([0] * (len(BUCKETS) + 1))
            durations.counts[bisect_left(BUCKETS, seconds)] += 1
            durations.total += seconds
            self._received += received
            self._sent += sent

    def numbers(self) -> Numbers:
        """What has been counted until now."""
        usage = resource.getrusage(resource.RUSAGE_SELF)
        with self._lock:
            return Numbers(
                requests=[(*key, count) for key, count in self._requests.items()],
                durations={route: Durations(list(found.counts), found.total) for route, found in self._durations.items()},
                received=self._received,
                sent=self._sent,
                running=self.running,
                processor=usage.ru_utime + usage.ru_stime,
                memory=usage.ru_maxrss * 1024,
                begun=self._begun,
            )


def total(parts: Iterable[Numbers]) -> Numbers:
    """The numbers of several processes together, at least one."""
    first, *rest = parts
    requests = {(method, route, status): count for method, route, status, count in first.requests}
    durations = {route: Durations(list(found.counts), found.total) for route, found in first.durations.items()}
    found = structs.replace(first)
    for part in rest:
        for method, route, status, count in part.requests:
            requests[method, route, status] = requests.get((method, route, status), 0) + count
        for route, more in part.durations.items():
            known = durations.setdefault(route, Durations([0] * len(more.counts)))
            known.counts = [a + b for a, b in zip(known.counts, more.counts, strict=True)]
            known.total += more.total
        found.received += part.received
        found.sent += part.sent
        found.running += part.running
        found.processor += part.processor
        found.memory += part.memory
        found.begun = min(found.begun, part.begun)
        found.processes += part.processes
    found.requests = [(*key, count) for key, count in requests.items()]
    found.durations = durations
    return found


def text(numbers: Numbers) -> str:
    """The numbers in the text format of Prometheus."""
    return "\n".join([*_lines(numbers), ""])


def _lines(found: Numbers) -> Iterator[str]:
    yield from _head("nessie_http_requests_total", "counter", "Requests answered.")
    for method, route, status, count in sorted(found.requests):
        yield f'nessie_http_requests_total{{method="{_label(method)}",route="{_label(route)}",status="{status}"}} {count}'
    yield from _head("nessie_http_request_duration_seconds", "histogram", "Time from the first line of a request to the last byte of its answer.")
    for route, durations in sorted(found.durations.items()):
        yield from _histogram("nessie_http_request_duration_seconds", f'route="{_label(route)}"', durations)
    yield from _single("nessie_http_requests_running", "gauge", "Requests that are being answered.", found.running)
    yield from _single("nessie_http_received_bytes_total", "counter", "Bytes of request bodies.", found.received)
    yield from _single("nessie_http_sent_bytes_total", "counter", "Bytes of answers' bodies.", found.sent)
    yield from _single("nessie_processes", "gauge", "Processes that answer requests.", found.processes)
    yield from _single("process_cpu_seconds_total", "counter", "Processor time used.", round(found.processor, 3))
    yield from _single("process_max_resident_memory_bytes", "gauge", "The most memory that was used.", found.memory)
    yield from _single("process_start_time_seconds", "gauge", "When the server began, in seconds since 1970.", round(found.begun, 3))


def _head(name: str, kind: str, meaning: str) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"


def _single(name: str, kind: str, meaning: str, value: float) -> Iterator[str]:
    yield from _head(name, kind, meaning)
    yield f"{name} {value}"


def _histogram(name: str, labels: str, durations: Durations) -> Iterator[str]:
    seen = 0
    for bound, count in zip([*BUCKETS, None], durations.counts, strict=True):
        seen += count
        yield f'{name}_bucket{{{labels},le="{"+Inf" if bound is None else bound}"}} {seen}'
    yield f"{name}_sum{{{labels}}} {durations.total:.6f}"
    yield f"{name}_count{{{labels}}} {seen}"


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
