"""Run the measurements: all of them, or those named (`python -m bench startup load`)."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bench import ancestry, commits, completion, load, merging, size, startup
from bench.report import Line, machine

MEASUREMENTS: Mapping[str, Callable[[Path], Iterator[Line]]] = {
    "startup": startup.measure,
    "completion": completion.measure,
    "commits": commits.measure,
    "load": load.measure,
    "merging": merging.measure,
    "ancestry": ancestry.measure,
    "size": size.measure,
}
"""In this order: `merging` works on the large store that `load` leaves in the scratch folder, and makes one when there is none."""


def main() -> None:
    """Print one line per goal."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*MEASUREMENTS, []], metavar="NAME", help=", ".join(MEASUREMENTS))
    names = parser.parse_args().names or list(MEASUREMENTS)
    print(machine())
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="nessie-bench-") as scratch:
        for name, measurement in MEASUREMENTS.items():
            if name in names:
                for line in measurement(Path(scratch)):
                    print(line, flush=True)
    print(f"{time.perf_counter() - begun:.0f} s in all", file=sys.stderr)


if __name__ == "__main__":
    main()
