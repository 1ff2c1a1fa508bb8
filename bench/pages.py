"""The pages of the web interface on a large repository, and commits beside them.

The first byte of each page is timed at its client, on a server process of its own; the medians are
those of warm requests. `--by processor` takes the processor time of the server as the clock
instead, for a machine that is busy. The store is a copy of that of `reading`, with branches that
change all tables, few tables, and tables that `main` changed, too. A writer over REST then commits
in turns, alone, and beside a client that loads pages at a fixed rate or without a pause.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from html import unescape
from http.client import HTTPConnection
from itertools import count, cycle
from pathlib import Path
from statistics import median
from threading import Event, Thread
from urllib.parse import urlencode, urlsplit

from bench import corpus
from bench.commands import How
from bench.lake import lake
from bench.report import MILLI, Line, ratio_of_medians
from nessie_cli import connect
from nessie_cli.model import CommitMeta, ContentKey, Put, ReferenceType
from nessie_cli.repository.base import Repository

Clock = Callable[[], float]
"""Returns seconds."""
FIRST_BYTE, SIZE, BESIDE = 100.0, 100.0, 0.9
"""Goals: milliseconds, kB, and the rate of commits beside pages divided by that without."""
BULK, CONFLICTS, FEW = "bench/bulk", "bench/conflicts", "bench/few"
OK = 200
RARE = [
    ("no author", {"author": "nobody"}),
    ("no message", {"message": "nothing"}),
    ("namespace", {"key": "area_0000"}),
    ("absent namespace", {"key": "area_9999"}),
]
"""Filters of histories that few commits pass, or none."""
OLDER = 5
"""The older page that is measured for these filters."""
_NEXT = re.compile('rel="next" href="([^"]+)"')
ROUNDS = 9
TURNS, SECONDS = 6, 3.0
"""The turns of the writer, alone and beside pages, and their seconds."""
_TICK = 0.005
"""Seconds between two looks at the clock."""
RATES = (1.0, 2.5, 5.0, 10.0, None)
"""The pages per second of the client beside the writer; None is without a pause."""
USUAL = [
    "branches",
    "history",
    "commit",
    "catalog",
    "table",
    "search",
    "compare",
    "merge",
    "reflog",
]
"""The pages that the client loads."""


def measure(scratch: Path, how: How) -> Iterator[Line]:
    """Returns the first byte of each page, and the ratio of commits."""
    source = lake(scratch, small=how.small) / ".nessie" / "store.sqlite"
    store = scratch / ("pages-small.sqlite" if how.small else "pages.sqlite")
    if not store.exists():
        shutil.copy(source, store)
    with connect(str(store)) as repository:
        _prepare(repository)
    branch = f"team/feature-{25 if how.small else 501}"
    with _serving(store) as (url, pid):
        client = _Client(url)
        pages = _pages(branch)
        for name, _ in RARE:
            older = client.older(dict(pages)[f"history by {name}"])
            pages += [(f"history by {name}, older", older)] if older else []
        for name, page in pages:
            if how.only in name:
                yield from client.lines(name, page, pid if how.by == "processor" else None)
        if how.only in "commits beside pages":
            usual = [page for name, page in _pages(branch) if name in USUAL]
            clock = partial(_processor_time, pid) if how.by == "processor" else time.perf_counter
            yield from _beside(url, usual, clock)


def _pages(branch: str) -> list[tuple[str, str]]:
    """Returns the pages by name."""
    table = str(corpus.table_key(10))
    merge = {"from": "main", "base": "merge"}

    def page(path: str, **query: object) -> str:
        return f"/ui/{path}?{urlencode(query)}"

    return [
        ("branches", page("branches")),
        ("branches, page 10", page("branches", page=10)),
        ("tags", page("tags")),
        ("history", page("history", ref="main")),
        ("history of a branch", page("history", ref=branch)),
        ("history by author", page("history", ref="main", author="writer-7")),
        ("history by key", page("history", ref="main", key=table)),
        *((f"history by {name}", page("history", ref="main", **filter_)) for name, filter_ in RARE),
        ("commit", page("commit", ref="main~1000")),
        ("commit of all tables", page("commit", ref=BULK)),
        ("catalog", page("catalog", ref="main")),
        ("catalog, a namespace", page("catalog", ref="main", key="area_0003")),
        ("table", page("content", ref="main", key=table)),
        ("search", page("search", ref="main", q="00123")),
        ("search on all branches", page("search", ref="main", q="00123", all=1)),
        ("compare", page("compare", to=branch, **merge)),
        ("compare all tables", page("compare", to=BULK, **merge)),
        ("merge", page("merge", source=branch, into="main")),
        ("merge of few changes", page("merge", source=FEW, into="main")),
        ("merge of all tables", page("merge", source=BULK, into="main")),
        ("merge with conflicts", page("merge", source=CONFLICTS, into="main")),
        ("revert", page("revert", ref="main", into="main")),
        ("revert of an old commit", page("revert", ref="main~5000", into="main")),
        ("revert of all tables", page("revert", ref=BULK, into=BULK)),
        ("reflog", page("reflog")),
        ("old reflog of main", page("reflog", ref="main", before=50_000)),
        ("server", page("server")),
    ]


def _prepare(repository: Repository) -> None:
    """Creates branches with many changes, once."""
    if any(each.name == BULK for each in repository.references(prefix="bench/")):
        return
    entries = [each for each in repository.entries("main", content=True) if each.content]
    tables = [each for each in entries if each.type == "ICEBERG_TABLE"]
    for branch, number in ((BULK, len(tables)), (CONFLICTS, 300), (FEW, 450)):
        head = repository.reference("main").hash
        repository.create_reference(ReferenceType.BRANCH, branch, head)
        # The new tables of a branch, and new states of the first tables of main.
        operations = [
            Put(ContentKey((each.key.elements[0], f"new_{n}")), corpus.table(n))
            if branch == FEW
            else Put(each.key, corpus.table(n, 1_000_000).with_id(each.content_id))
            for n, each in enumerate(tables[:number])
        ]
        repository.commit(branch, operations, corpus.meta("many tables"))
    conflicting = [
        Put(each.key, corpus.table(n, 2_000_000).with_id(each.content_id))
        for n, each in enumerate(tables[:300])
    ]
    repository.commit("main", conflicting, CommitMeta("other states", authors=(corpus.AUTHOR,)))


class _Client:
    """A connection of a browser."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._connection = HTTPConnection(parts.hostname or "", parts.port)

    def load(self, page: str) -> tuple[float, int]:
        """Returns the seconds until the first byte of a page, and its bytes."""
        first, body = self._loaded(page)
        return first, len(body)

    def _loaded(self, page: str) -> tuple[float, bytes]:
        begun = time.perf_counter()
        self._connection.request("GET", page)
        answer = self._connection.getresponse()
        first = time.perf_counter() - begun
        body = answer.read()
        if answer.status != OK:
            raise RuntimeError(f"{page}: {answer.status} {body[-500:]!r}")
        return first, body

    def older(self, page: str) -> str:
        """Returns the address of an older page of a list, or an empty text."""
        for _ in range(OLDER):
            _, body = self._loaded(page)
            match = _NEXT.search(body.decode())
            if match is None:
                return ""
            page = unescape(match[1])
        return page

    def lines(self, name: str, page: str, pid: int | None) -> Iterator[Line]:
        """Returns the lines of a page, by the processor time of a process, if it is given."""
        cold, size = self.load(page)
        spent = _processor_time(pid) if pid else 0.0
        times = [self.load(page)[0] for _ in range(ROUNDS)]
        made_of = f"fastest {MILLI * min(times):.0f} ms, first request {MILLI * cold:.0f} ms"
        seconds = (_processor_time(pid) - spent) / ROUNDS if pid else median(times)
        unit = "processor time" if pid else "first byte"
        yield Line(f"page {name}: {unit}", MILLI * seconds, "ms", FIRST_BYTE, made_of)
        if size > SIZE * 1000:
            yield Line(f"page {name}: size", size / 1000, "kB", SIZE, "")


def _processor_time(pid: int) -> float:
    """Returns the seconds that a process has computed (on Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def _beside(url: str, pages: list[str], clock: Clock) -> Iterator[Line]:
    """Compares the commits of a writer with and without a client that loads pages."""
    alone: list[float] = []
    beside: dict[float | None, list[float]] = {rate: [] for rate in RATES}
    loaded = dict.fromkeys(RATES, 0)
    writer = _Writer(url, clock)
    for _ in range(TURNS):
        alone.append(writer.rate())
        for rate in RATES:
            reader = _Reader(url, pages, rate, clock)
            beside[rate].append(writer.rate())
            loaded[rate] += reader.stop()
    for rate in RATES:
        name = f"{rate:g} pages/s" if rate else "pages without a pause"
        made_of = (
            f"{median(beside[rate]):,.0f}/s beside {loaded[rate] / TURNS / SECONDS:,.1f} pages/s"
            f" : {median(alone):,.0f}/s"
        )
        ratio = ratio_of_medians(beside[rate], alone)
        yield Line(f"commits beside {name} : alone (rates)", ratio, "x", BESIDE, made_of, True)


class _Writer:
    """Commits new states of tables to a branch, one after the other."""

    def __init__(self, url: str, clock: Clock) -> None:
        self._repository = connect(url)
        self._clock = clock
        self._branch = f"bench/writer-{time.time_ns()}"
        head = self._repository.reference("main").hash
        self._repository.create_reference(ReferenceType.BRANCH, self._branch, head)
        self._numbers = count()

    def rate(self) -> float:
        """Returns the commits per second of a turn."""
        begun = self._clock()
        commits = 0
        while self._clock() - begun < SECONDS:
            number = next(self._numbers)
            put = Put(ContentKey((f"written_{number}",)), corpus.table(number))
            self._repository.commit(self._branch, [put], corpus.meta("load"))
            commits += 1
        return commits / (self._clock() - begun)


class _Reader(Thread):
    """A client that loads pages until it is stopped, so many per second if `rate` is given."""

    def __init__(self, url: str, pages: list[str], rate: float | None, clock: Clock) -> None:
        super().__init__(daemon=True)
        self._clock = clock
        self._client, self._pages = _Client(url), pages
        self._pause = 1 / rate if rate else 0.0
        self._is_over = Event()
        self._loaded = 0
        self.start()

    def run(self) -> None:
        due = self._clock()
        for page in cycle(self._pages):
            while self._pause and self._clock() < due:
                if self._is_over.wait(_TICK):
                    return
            if self._is_over.is_set():
                return
            self._client.load(page)
            self._loaded += 1
            due += self._pause

    def stop(self) -> int:
        """Stops the client; returns the number of its pages."""
        self._is_over.set()
        self.join()
        return self._loaded


@contextmanager
def _serving(store: Path) -> Iterator[tuple[str, int]]:
    """Yields the URL of a server of a store, and its process."""
    command = [sys.executable, "-m", "nessie_cli", "serve", "--store", f"sqlite:///{store}"]
    with subprocess.Popen(
        [*command, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        try:
            yield line.partition(" at ")[2].partition("/api/")[0], server.pid
        finally:
            server.terminate()
