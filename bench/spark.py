"""Reads a history into a DataFrame, relative to the Python API; one executor against two.

As a program (`python -m bench.spark MASTER URL FOLDER CORES`) it is a Spark driver: for each line
of its input it reads the history once and reports. Each runs in its own process with its own Java,
so that no measurement warms up another one.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from bench.commands import How
from bench.lake import lake
from bench.report import Line, interleaved, ratio_of_medians
from nessie_cli import connect
from tests.spark.cluster import cluster
from tests.spark.java import java_home
from tests.spark.sessions import session

ROUNDS = 5
WARMING_UP = 3
"""The number of uncounted reads at the start, because Java is slow at first."""
_DONE = "read\n"
ROOT = Path(__file__).parents[1]


def available() -> bool:
    """Whether PySpark and a suitable Java are installed."""
    return find_spec("pyspark") is not None and java_home() is not None


def measure(scratch: Path, how: How) -> Iterator[Line]:
    folder = lake(scratch, small=how.small)
    url = f"sqlite:///{folder / '.nessie/store.sqlite'}"
    work = scratch / "spark"
    with connect(url) as repository, reading("local[2]", url, work / "local", 2) as spark:
        count = sum(1 for _ in repository.log("main"))
        frame, here = interleaved(
            ROUNDS, spark.read, lambda: sum(1 for _ in repository.log("main"))
        )
    made_of = (
        f"{median(frame):.2f} s / {median(here):.2f} s, medians of {ROUNDS}; {count:,} commits,"
        " the session is there already"
    )
    yield Line(
        "a log into a DataFrame (local[2]) : Python API",
        ratio_of_medians(frame, here),
        "x",
        None,
        made_of,
    )
    with on_a_cluster(url, work / "one", 1) as single, on_a_cluster(url, work / "two", 2) as double:
        one, two = interleaved(ROUNDS, single.read, double.read)
    made_of = (
        f"{median(one):.2f} s / {median(two):.2f} s, medians of {ROUNDS}; clusters of a master and"
        " two workers on this machine"
    )
    yield Line("the same by one executor : by two", ratio_of_medians(one, two), "x", None, made_of)


class Reading:
    """A Spark driver that reads the history on request."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log

    def read(self) -> None:
        """Reads it once."""
        assert self._process.stdin
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        self.wait()

    def wait(self) -> None:
        """Waits until the driver reports that it has read."""
        assert self._process.stdout
        while (said := self._process.stdout.readline()) != _DONE:
            if not said:
                raise SystemExit(self._log.read_text(errors="replace"))


@contextmanager
def reading(master: str, url: str, folder: Path, cores: int) -> Iterator[Reading]:
    """Yields a warmed-up driver, which ends with the block."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "bench.spark", master, url, str(folder), str(cores)]
    log = folder / "spark.log"
    with (
        log.open("wb") as said,
        subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True
        ) as process,
    ):
        found = Reading(process, log)
        for _ in range(WARMING_UP):
            found.read()
        yield found


@contextmanager
def on_a_cluster(url: str, folder: Path, cores: int) -> Iterator[Reading]:
    """Yields such a driver on its own cluster of two workers with one core each; it uses as many
    workers as it needs for this many cores."""
    folder.mkdir(parents=True, exist_ok=True)
    with cluster(folder) as master, reading(master, url, folder, cores) as found:
        yield found


def serve(master: str, url: str, folder: Path, cores: str) -> None:
    """Reads all columns of the log of `main`, and discards the rows, once per line of input."""
    from nessie_cli.spark import register

    more = {
        "spark__executorEnv__PYTHONPATH": str(ROOT),
        "spark__executor__memory": "512m",
        "spark__cores__max": cores,
    }
    with session(folder, master, **more) as spark:
        register(spark)
        for _ in sys.stdin:
            spark.read.format("nessie").options(
                url=url, table="log", ref="main"
            ).load().write.format("noop").mode("overwrite").save()
            sys.stdout.write(_DONE)
            sys.stdout.flush()


if __name__ == "__main__":
    _, master, url, folder, cores = sys.argv
    serve(master, url, Path(folder), cores)
