"""Progress of long work: a bar on a terminal, otherwise an occasional line on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.model.progress import Progress

PACE = 15.0
"""Seconds between two progress lines."""

Report = Callable[[str, int, int | None], None]
"""Progress callback: the current activity, the amount done, and the total (None if unknown)."""


@contextmanager
def reporting(call: Invocation, what: str) -> Iterator[Report]:
    """Reports progress on `what` while the block runs, as a bar on a terminal, else as lines.

    Does nothing with `--quiet`.
    """
    if sys.stderr.isatty() or call.options.quiet:
        with call.at_work(what) as progress:
            yield _shown(progress)
        return
    last = time.monotonic()

    def report(words: str, done: int, total: int | None) -> None:
        nonlocal last
        if time.monotonic() - last >= PACE:
            last = time.monotonic()
            of = f" of {total:,}" if total else ""
            call.err.print_line(f"{words}: {done:,}{of}")

    yield report


@contextmanager
def progress_of(call: Invocation, what: str) -> Iterator[Progress]:
    """Reports the progress of work that has a single activity."""
    with reporting(call, what) as report:
        yield partial(report, what)


def _shown(progress: Callable[[int, int | None], None]) -> Report:
    def report(words: str, done: int, total: int | None) -> None:
        # The bar on a terminal has its own description.
        if hasattr(progress, "what"):
            progress.what = words
        progress(done, total)

    return report
