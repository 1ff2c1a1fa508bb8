"""Reading a history into a DataFrame against reading it with the Python API, and one executor against two.

As a program (`python -m bench.spark MASTER URL FOLDER CORES`) it is the job: it prints the seconds of each reading as JSON. A session is a process of
its own with a Java of its own, so that no measurement warms up another one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from bench.commands import How
from bench.lake import lake
from bench.report import Line, ratio_of_medians, seconds
from nessie_cli import connect
from tests.spark.cluster import cluster
from tests.spark.java import java_home
from tests.spark.sessions import session

ROUNDS = 5
ROOT = Path(__file__).parents[1]


def available() -> bool:
    """Whether there are PySpark and a Java for it."""
    return find_spec("pyspark") is not None and java_home() is not None


def measure(scratch: Path, how: How) -> Iterator[Line]:
    folder = lake(scratch, small=how.small)
    url = f"sqlite:///{folder / '.nessie/store.sqlite'}"
    with connect(url) as repository:
        count = sum(1 for _ in repository.log("main"))
        here = [seconds(lambda: sum(1 for _ in repository.log("main"))) for _ in range(ROUNDS)]
    work = scratch / "spark"
    work.mkdir(exist_ok=True)
    frame = _job("local[2]", url, work, 2)
    made_of = f"{median(frame):.2f} s / {median(here):.2f} s, medians of {ROUNDS}; {count:,} commits, the session is there already"
    yield Line("a log into a DataFrame (local[2]) : Python API", ratio_of_medians(frame, here), "x", None, made_of)
    with cluster(work) as master:
        one, two = (_job(master, url, work, cores) for cores in (1, 2))
    made_of = f"{median(one):.2f} s / {median(two):.2f} s, medians of {ROUNDS}; a cluster of a master and two workers on this machine"
    yield Line("the same by one executor : by two", ratio_of_medians(one, two), "x", None, made_of)


def _job(master: str, url: str, folder: Path, cores: int) -> list[float]:
    command = [sys.executable, "-m", "bench.spark", master, url, str(folder), str(cores)]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


def job(master: str, url: str, folder: Path, cores: str) -> list[float]:
    """The seconds that it takes to read the log of `main`, all of its columns, and to throw the rows away."""
    from nessie_cli.spark import register

    more = {"spark__executorEnv__PYTHONPATH": str(ROOT), "spark__executor__memory": "512m", "spark__cores__max": cores}
    with session(folder, master, **more) as spark:
        register(spark)

        def read() -> None:
            spark.read.format("nessie").options(url=url, table="log", ref="main").load().write.format("noop").mode("overwrite").save()

        read()
        return [seconds(read) for _ in range(ROUNDS)]


if __name__ == "__main__":
    _, master, url, folder, cores = sys.argv
    print(json.dumps(job(master, url, Path(folder), cores)))
