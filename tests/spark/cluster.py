"""A real standalone cluster on loopback: a master and two workers, each in its own process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.spark.sessions import SHORT_LIVED, environment

PATIENCE = 240


WATCHED = '"$@" </dev/null & cat >/dev/null; kill $!; wait $!'
"""A shell command that runs a program until its stdin ends, also if this process is killed."""


class Daemon:
    """One process of the cluster. Its output goes to a file."""

    def __init__(self, name: str, folder: Path, *words: str) -> None:
        import pyspark

        home = Path(pyspark.__file__).parent
        self.log = folder / f"{name}.log"
        with (
            self.log.open("wb") as log,
            environment(
                folder,
                SPARK_HOME=str(home),
                SPARK_DAEMON_MEMORY="256m",
                SPARK_DAEMON_JAVA_OPTS=SHORT_LIVED,
            ),
        ):
            self.process = subprocess.Popen(
                ["sh", "-c", WATCHED, "sh", str(home / "bin" / "spark-class"), *words],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=folder,
                start_new_session=True,
            )

    def says(self, pattern: str) -> str:
        """Waits for a pattern in the output, and returns its first group."""
        deadline = time.monotonic() + PATIENCE
        while not (found := re.search(pattern, self.log.read_text(errors="replace"))):
            assert time.monotonic() < deadline, self.log.read_text(errors="replace")[-4000:]
            time.sleep(0.05)
        return found[1]

    def stop(self) -> None:
        """Ends the process and its children."""
        assert self.process.stdin
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """Yields the URL of a master with two workers of one core each. Logs are in the folder."""
    with ExitStack() as stack:

        def started(name: str, *words: str) -> Daemon:
            daemon = Daemon(name, folder, *words)
            stack.callback(daemon.stop)
            return daemon

        at = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        master = started("master", "org.apache.spark.deploy.master.Master", *at)
        url = master.says(r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
        for name in ("worker-1", "worker-2"):
            size = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / name))
            started(name, "org.apache.spark.deploy.worker.Worker", *at, *size, url)
        master.says(r"(?s)Registering worker .*(Registering worker )")
        yield url
