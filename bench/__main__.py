"""Runs the benchmarks: all of them, or those named (`python -m bench startup load`)."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from bench import (
    ancestry,
    commits,
    completion,
    gc,
    iceberg,
    load,
    merging,
    pages,
    reading,
    remote,
    serving,
    size,
    spark,
    startup,
)
from bench.commands import WAYS, How
from bench.report import Line, machine

Measurement = Callable[[Path], Iterator[Line]]


def measurements(how: How) -> Mapping[str, Measurement]:
    """Returns the benchmarks by name, in the order in which they run.

    `merging` uses the large store that `load` creates, or creates one itself. `completion`,
    `reading`, `pages` and `spark` share a repository in the same way. `how` is for the benchmarks
    of commands. `spark` needs PySpark and a Java.
    """
    found: dict[str, Measurement] = {
        "startup": partial(startup.measure, how=how),
        "remote": partial(remote.measure, how=how),
        "completion": partial(completion.measure, how=how),
        "reading": partial(reading.measure, how=how),
        "pages": partial(pages.measure, how=how),
        "commits": commits.measure,
        "load": load.measure,
        "merging": merging.measure,
        "ancestry": ancestry.measure,
        "size": size.measure,
        "gc": gc.measure,
        "serving": partial(serving.measure, how=how),
        "iceberg": partial(iceberg.measure, how=how),
    }
    if spark.available():
        found["spark"] = partial(spark.measure, how=how)
    return found


WHEN_NAMED = frozenset({"serving", "iceberg"})
"""Takes minutes, so it runs only if it is named."""


def main() -> None:
    """Prints one line per goal."""
    names = list(measurements(How()))
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "names", nargs="*", choices=[*names, []], metavar="NAME", help=", ".join(names)
    )
    parser.add_argument(
        "--scratch",
        type=Path,
        metavar="FOLDER",
        help="keep what is made for the measurements there, and use what is there already",
    )
    lines = parser.add_argument_group("startup, remote, completion and reading")
    lines.add_argument(
        "--small", action="store_true", help="in a small repository, for development"
    )
    lines.add_argument(
        "--by",
        choices=WAYS,
        default=How().by,
        help="%(choices)s; the last two for a machine that is busy",
    )
    lines.add_argument("--only", default="", metavar="TEXT", help="only the lines with this text")
    lines.add_argument(
        "--rounds",
        type=int,
        default=How().rounds,
        metavar="N",
        help="interleaved runs of each command (%(default)s)",
    )
    given = parser.parse_args()
    how = How(given.by, given.rounds, given.only, given.small)
    print(machine())
    begun = time.perf_counter()
    with (
        nullcontext(given.scratch)
        if given.scratch
        else tempfile.TemporaryDirectory(prefix="nessie-bench-") as scratch
    ):
        for name, measure in measurements(how).items():
            if name in (given.names or set(names) - WHEN_NAMED):
                for line in measure(Path(scratch)):
                    print(line, flush=True)
    print(f"{time.perf_counter() - begun:.0f} s in all", file=sys.stderr)


if __name__ == "__main__":
    main()
