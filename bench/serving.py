"""`nessie serve` relative to the original on RocksDB, an echo route, and a bare loop.

The bare loop only writes the same rows. All servers run at once, each in its own process. Each is
warmed up for a minute, mostly by commits, because the original compiles its code while it runs.
Then each row is measured in turns of a few seconds, so that disturbances affect all alike. The
first half second of a turn does not count. A commit that is retried counts once, with its total
time. The original does not force its commits to the disk; ours does. Without a Java or the
original's jar, only the lower bounds are compared.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple, Self

import apsw

from bench.commands import How
from bench.commits import mark_of, writing, written_since
from bench.report import MILLI, Line
from bench.served import Served
from bench.traffic import Request, Script, Server, drive
from nessie_cli import create
from tests.maven import Unavailable
from tests.original.server import original

TURNS = 2
AT_LEAST, AT_MOST = 1.0, 1.0
COMMITS_REPLAYED = 300
OF_COMMITS = 2 / 3
"""The share of commits in the warm-up."""
HEAP = "4g"
"""The original's memory limit; it used as much when it was measured alone."""


class _Scale(NamedTuple):
    """The amount of data and time.

    Tables of the small and the large catalogs, commits in the log; seconds of each turn, of its
    uncounted beginning, and of the warm-up of each server.
    """

    few: int = 500
    many: int = 10_000
    sizes: tuple[int, ...] = (1_000, 10_000, 100_000)
    log: int = 1_000
    seconds: float = 2.5
    seconds_of_commits: float = 4.0
    before: float = 0.5
    warm: float = 60.0


_SMALL = _Scale(50, 300, (100, 300), 120, 0.3, 0.3, 0.05, 1.0)


class _Row(NamedTuple):
    """One kind of load: its description, its clients, and whether the goal is a rate or a time."""

    what: str
    scripts: Callable[[Served, float], list[Script]]
    clients: int
    timed: bool = False
    commits: bool = False


class _Contestant(NamedTuple):
    """A measured server, and its processes."""

    name: str
    served: Served
    pid: int


def measure(scratch: Path, how: How) -> Iterator[Line]:
    """Returns rates (and times of diff and merge) as ratios, and resident memory at the end."""
    scale = _SMALL if how.small else _Scale()
    with ExitStack() as stack:
        ours = stack.enter_context(_ours(scratch / "one.sqlite", scale, 1))
        two = stack.enter_context(_ours(scratch / "two.sqlite", scale, 2))
        others = []
        try:
            (scratch / "original").mkdir()
            found = stack.enter_context(
                original(scratch / "original", scratch / "original" / "rocksdb", heap=HEAP)
            )
            others.append(
                _Contestant("the original", Served(found.url, _sizes(scale), scale.log), found.pid)
            )
        except Unavailable as error:
            print(f"the original is not measured: {error}", file=sys.stderr)
        echo = stack.enter_context(_Echo())
        for contestant in (*others, ours, two):
            _warm(contestant.served, scale)
        for row in _rows(scale):
            if how.only in row.what:
                yield from _lines(row, [ours, two, *others], echo, scale)
        yield from _durable(ours, scratch, scale)
        for contestant in others:
            made_of = (
                f"{_resident(ours.pid)} MiB (two workers: {_resident(two.pid)}) :"
                f" {_resident(contestant.pid)} MiB with a heap of {HEAP}"
            )
            yield Line(
                "resident memory: ours : the original",
                _resident(ours.pid) / _resident(contestant.pid),
                "x",
                AT_MOST,
                made_of,
            )


def _sizes(scale: _Scale) -> list[int]:
    return sorted({scale.few, scale.many, *scale.sizes})


def _rows(scale: _Scale) -> Iterator[_Row]:
    for writers, branches in ((1, 1), (8, 1), (32, 1), (8, 8)):
        what = f"commits, {writers} on {branches} branch{'es' if branches > 1 else ''}"
        yield _Row(
            what,
            lambda served, seconds, w=writers, b=branches: served.commits(scale.few, w, b, seconds),  # type: ignore[misc]
            writers,
            commits=True,
        )
    for clients in (1, 8):
        for size in (scale.few, scale.many):
            what = f"content of {size:,}, {_many(clients)}"
            yield _Row(
                what,
                lambda served, seconds, n=size, c=clients: served.contents(n, c, seconds),  # type: ignore[misc]
                clients,
            )
        yield _Row(
            f"log page, {_many(clients)}",
            lambda served, seconds, c=clients: served.logs(c, seconds),  # type: ignore[misc]
            clients,
        )
        yield _Row(
            f"entries page of {scale.many:,}, {_many(clients)}",
            lambda served, seconds, c=clients: served.entries(scale.many, c, seconds),  # type: ignore[misc]
            clients,
        )
    for clients in (1, 8):
        for size in scale.sizes:
            what = f"of 10 in {size:,}, {_many(clients)}"
            yield _Row(
                f"diff {what}",
                lambda served, seconds, n=size, c=clients: served.diffs(n, c, seconds),  # type: ignore[misc]
                clients,
                clients == 1,
            )
            yield _Row(
                f"merge {what}",
                lambda served, seconds, n=size, c=clients: served.merges(n, c, seconds),  # type: ignore[misc]
                clients,
                clients == 1,
            )


def _many(clients: int) -> str:
    return f"{clients} client{'s' if clients > 1 else ''}"


def _warm(served: Served, scale: _Scale) -> None:
    for commits, share in ((False, 1 - OF_COMMITS), (True, OF_COMMITS)):
        rows = [row for row in _rows(scale) if row.commits is commits]
        for row in rows:
            drive(served.server, row.scripts(served, scale.warm * share / len(rows)))


# -- lines ---------------------------------------------------------------------------------------
class _Times(NamedTuple):
    """The result of a load: answers per second, and the seconds of each, sorted."""

    rate: float
    sorted: list[float]

    def at(self, share: float) -> float:
        return self.sorted[min(len(self.sorted) - 1, int(share * len(self.sorted)))]

    def __str__(self) -> str:
        return (
            f"{self.rate:,.0f}/s, p50 {MILLI * self.at(0.5):.2f} ms, p99"
            f" {MILLI * self.at(0.99):.2f} ms"
        )


def _lines(row: _Row, contestants: list[_Contestant], echo: _Echo, scale: _Scale) -> Iterator[Line]:
    if row.clients == 1:
        # Several processes serve several clients.
        contestants = [contestant for contestant in contestants if contestant.name != "two workers"]
    taken: dict[str, list[float]] = {contestant.name: [] for contestant in contestants}
    spent = dict.fromkeys(taken, 0.0)
    seconds = scale.seconds_of_commits if row.commits else scale.seconds
    for _ in range(TURNS):
        for contestant in contestants:
            drive(contestant.served.server, row.scripts(contestant.served, scale.before))
            scripts = row.scripts(contestant.served, seconds)
            begun = time.perf_counter()
            taken[contestant.name] += drive(contestant.served.server, scripts)
            spent[contestant.name] += time.perf_counter() - begun
    # The time of one client's merge excludes the commits that prepare it; the rate of several
    # clients' merges includes them.
    times = {
        name: _Times(len(found) / (sum(found) if row.timed else spent[name]), sorted(found))
        for name, found in taken.items()
    }
    ours = times["ours"]
    for name, other in times.items():
        if name != "ours" and row.timed:
            yield Line(
                f"{row.what}: ours : {name} (p50)",
                ours.at(0.5) / other.at(0.5),
                "x",
                _goal(name),
                f"{ours} : {other}",
            )
        elif name != "ours":
            yield Line(
                f"{row.what}: ours : {name} (rates)",
                ours.rate / other.rate,
                "x",
                _goal(name),
                f"{ours} : {other}",
                at_least=True,
            )
    floor = echo.rate(row, contestants[0], scale)
    yield Line(
        f"{row.what}: ours : echo (rates)",
        ours.rate / floor.rate,
        "x",
        None,
        f"{ours} : {floor}",
        at_least=True,
    )


def _goal(name: str) -> float | None:
    return AT_LEAST if name == "the original" else None


def _durable(ours: _Contestant, scratch: Path, scale: _Scale) -> Iterator[Line]:
    """Compares commits of one writer over REST with a loop that writes the same rows.

    The loop writes into a copy of the file, with the same durability.
    """
    served = ours.served
    watcher = apsw.Connection(str(scratch / "one.sqlite"), flags=apsw.SQLITE_OPEN_READONLY)
    scripts = [_limited(script, COMMITS_REPLAYED) for script in served.commits(scale.few, 1, 1, 60)]
    copy = apsw.Connection(str(scratch / "bare.sqlite"))
    with copy.backup("main", watcher, "main") as backup:
        backup.step()
    before = mark_of(watcher)
    begun = time.perf_counter()
    count = len(drive(served.server, scripts))
    spent = time.perf_counter() - begun
    copy.execute(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -16000"
    ).fetchall()
    # The server's log has its full length already and is overwritten; a growing log costs the disk
    # more.
    copy.execute(
        "CREATE TABLE growth (x); INSERT INTO growth VALUES (zeroblob(8000000)); DROP TABLE"
        " growth; PRAGMA wal_checkpoint(RESTART)"
    ).fetchall()
    begun = time.perf_counter()
    for written in written_since(watcher, before):
        writing(copy, written)()
    bare = time.perf_counter() - begun
    copy.close()
    watcher.close()
    made_of = (
        f"{MILLI * spent / count:.3f} ms, bare {MILLI * bare / count:.3f} ms per commit, mean of"
        f" {count}"
    )
    yield Line(
        "commits, 1 on 1 branch: ours : bare apsw loop (rates)",
        bare / spent,
        "x",
        None,
        made_of,
        at_least=True,
    )


def _limited(script: Script, most: int) -> Script:
    request = next(script)
    for _ in range(most - 1):
        request = script.send((yield request))
    yield request


# -- servers -------------------------------------------------------------------------------------
class _Echo:
    """The echo route, in its own process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.echo"], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self._server = Server(f"http://127.0.0.1:{self._process.stdout.readline().strip()}")

    def rate(self, row: _Row, contestant: _Contestant, scale: _Scale) -> _Times:
        """Returns how often the answer of a row's first counted request (or the body of a request
        that writes) is echoed per second."""
        data = self._server.post("/echo", _body(contestant, row), api="")
        until = time.perf_counter() + scale.seconds

        def script() -> Script:
            while time.perf_counter() < until:
                yield Request(data)

        begun = time.perf_counter()
        times = drive(self._server, [script() for _ in range(row.clients)])
        return _Times(len(times) / (time.perf_counter() - begun), sorted(times))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def _body(contestant: _Contestant, row: _Row) -> bytes:
    """Returns the larger one of a request's body and its answer's."""
    script = row.scripts(contestant.served, 60)[0]
    request = next(script)
    while True:
        answer = contestant.served.server.ask(request.data)[0]
        if request.counts:
            script.close()
            return max(request.data.partition(b"\r\n\r\n")[2], answer.body, key=len)
        request = script.send(answer)


@contextmanager
def _ours(path: Path, scale: _Scale, workers: int) -> Iterator[_Contestant]:
    """Starts our server over a new store, as a process; its REST API creates the catalog."""
    create(f"sqlite:///{path}").close()
    words = [
        sys.executable,
        "-m",
        "nessie_cli",
        "serve",
        "--store",
        str(path),
        "--port",
        "0",
        "--workers",
        str(workers),
    ]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        found = re.search(r"http://\S+?:\d+", process.stderr.readline())
        assert found
        yield _Contestant(
            "ours" if workers == 1 else "two workers",
            Served(found[0], _sizes(scale), scale.log),
            process.pid,
        )
    finally:
        process.terminate()
        process.communicate()


def _resident(pid: int) -> int:
    """Returns the resident MiB of a process and its children; shared pages count for each."""
    children = [
        int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    ]
    sizes = [
        re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{one}/status").read_text())
        for one in (pid, *children)
    ]
    return sum(int(size) for found in sizes for size in found) // 1024
