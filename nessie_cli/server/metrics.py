"""Numbers about the requests of this process, in Prometheus' text format."""

from __future__ import annotations

import resource
import threading
import time
from bisect import bisect_left
from collections.abc import Iterator

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the durations that are counted together, in seconds."""


class _Durations:
    """How often a route took how long."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.total = 0.0


class Metrics:
    """Counts requests. Cheap enough for every one of them; safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[tuple[str, str, int], int] = {}
        self._durations: dict[str, _Durations] = {}
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
                durations = self._durations[route] = _Durations()
            durations.counts[bisect_left(BUCKETS, seconds)] += 1
            durations.total += seconds
            self._received += received
            self._sent += sent

    def text(self) -> str:
        """Everything, in the text format of Prometheus."""
        with self._lock:
            return "\n".join([*self._lines(), ""])

    def _lines(self) -> Iterator[str]:
        yield from _head("nessie_http_requests_total", "counter", "Requests answered.")
        for (method, route, status), count in sorted(self._requests.items()):
            yield f'nessie_http_requests_total{{method="{_label(method)}",route="{_label(route)}",status="{status}"}} {count}'
        yield from _head("nessie_http_request_duration_seconds", "histogram", "Time from the first line of a request to the last byte of its answer.")
        for route, durations in sorted(self._durations.items()):
            yield from _histogram("nessie_http_request_duration_seconds", f'route="{_label(route)}"', durations)
        yield from _single("nessie_http_requests_running", "gauge", "Requests that are being answered.", self.running)
        yield from _single("nessie_http_received_bytes_total", "counter", "Bytes of request bodies.", self._received)
        yield from _single("nessie_http_sent_bytes_total", "counter", "Bytes of answers' bodies.", self._sent)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        yield from _single("process_cpu_seconds_total", "counter", "Processor time used.", round(usage.ru_utime + usage.ru_stime, 3))
        yield from _single("process_max_resident_memory_bytes", "gauge", "The most memory that was used.", usage.ru_maxrss * 1024)
        yield from _single("process_start_time_seconds", "gauge", "When the process began, in seconds since 1970.", round(self._begun, 3))


def _head(name: str, kind: str, meaning: str) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"


def _single(name: str, kind: str, meaning: str, value: float) -> Iterator[str]:
    yield from _head(name, kind, meaning)
    yield f"{name} {value}"


def _histogram(name: str, labels: str, durations: _Durations) -> Iterator[str]:
    seen = 0
    for bound, count in zip([*BUCKETS, None], durations.counts, strict=True):
        seen += count
        yield f'{name}_bucket{{{labels},le="{"+Inf" if bound is None else bound}"}} {seen}'
    yield f"{name}_sum{{{labels}}} {durations.total:.6f}"
    yield f"{name}_count{{{labels}}} {seen}"


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
