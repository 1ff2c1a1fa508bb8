"""How far long work is, where nobody sees a bar: a line on stderr now and then, for the log of a job."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.model.progress import Progress

PACE = 15.0
"""Seconds between two lines."""

Told = Callable[[str, int, int | None], None]
"""Hears what is being done, how much of it is done, and how much there is (None: nobody knows)."""


@contextmanager
def heard(call: Invocation, what: str) -> Iterator[Told]:
    """While this block runs, `what` is being done: a bar on a terminal, else a line each 15 seconds; nothing with `--quiet`."""
    if sys.stderr.isatty() or call.options.quiet:
        with call.at_work(what) as progress:
            yield _shown(progress)
        return
    last = time.monotonic()

    def tell(words: str, done: int, total: int | None) -> None:
        nonlocal last
        if time.monotonic() - last >= PACE:
            last = time.monotonic()
            of = f" of {total:,}" if total else ""
            call.err.print_line(f"{words}: {done:,}{of}")

    yield tell


@contextmanager
def progress_of(call: Invocation, what: str) -> Iterator[Progress]:
    """The same, for work that is one thing from its beginning to its end."""
    with heard(call, what) as tell:
        yield partial(tell, what)


def _shown(progress: Callable[[int, int | None], None]) -> Told:
    def tell(words: str, done: int, total: int | None) -> None:
        # The line of a terminal says what is being done in words of its own.
        if hasattr(progress, "what"):
            progress.what = words
        progress(done, total)

    return tell
