"""What a process has counted about requests, as values that can be added and encoded."""

from __future__ import annotations

from bisect import bisect_left

from msgspec import Struct, field

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
        self.buckets = [one + more for one, more in zip(self.buckets, other.buckets, strict=True)]
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
