"""The line on a terminal about work that takes over a second: what is done, and for how long already. It goes away when the work is done.

It is drawn only while the work goes on, by a thread of its own, and taken away before anything else is written. `rich` is loaded when the first line
is drawn, and nothing at all is done where stderr is no terminal.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress

QUIET = 1.0
"""Seconds without a word after which the line comes."""
_PACE = 0.2
"""Seconds between two looks at whether it is time."""
_OF_THE_COMMAND = (signal.SIGINT, signal.SIGALRM)
"""Signals that the command itself is to hear."""


class Busy:
    """Watches over the work of one command; to be stopped at its end."""

    def __init__(self, err: TextIO) -> None:
        self._err = err
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._watcher: threading.Thread | None = None
        self._shown: Progress | None = None
        self._what: list[str] = []
        self._quiet_since = time.monotonic()

    @contextmanager
    def at_work(self, what: str) -> Iterator[None]:
        """While this block runs, `what` is being done, such as "merging"."""
        if self._watcher is None and not self._ended.is_set():
            self._watcher = threading.Thread(target=self._watch, daemon=True)
            # The system gives a signal to any thread that takes it, and only in the main one it ends what the command waits for. A thread begins
            # with the signals blocked that are blocked where it is started.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, _OF_THE_COMMAND)
            try:
                self._watcher.start()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._what.append(what)
        try:
            yield
        finally:
            self._what.pop()

    def rest(self) -> None:
        """Take the line away, because something else is to be written; another second has to pass before it comes again."""
        with self._lock:
            self._quiet_since = time.monotonic()
            self._hide()

    def stop(self) -> None:
        """Take the line away for good."""
        self._ended.set()
        with self._lock:
            self._hide()

    def _watch(self) -> None:
        while not self._ended.wait(_PACE):
            if self._shown is None and (not self._what or time.monotonic() - self._quiet_since < QUIET):
                continue
            # Before the lock is taken: whoever wants to write must not wait for this.
            import rich.progress  # noqa: F401

            with self._lock:
                self._look()

    def _look(self) -> None:
        quiet = time.monotonic() - self._quiet_since
        if self._ended.is_set() or not self._what or quiet < QUIET:
            self._hide()
        elif self._shown is None:
            self._shown = _line(self._err, self._what[-1], quiet)
            self._shown.start()
        else:
            self._shown.update(self._shown.task_ids[0], description=self._what[-1])

    def _hide(self) -> None:
        if self._shown is not None:
            self._shown.stop()
            self._shown = None


def _line(err: TextIO, what: str, quiet: float) -> Progress:
    """`- merging ━━━━━━ 0:00:04`, to be taken away without a trace."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    progress = Progress(
        SpinnerColumn("line"),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TimeElapsedColumn(),
        console=Console(file=err, force_terminal=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    task = progress.add_task(what, total=None)
    progress.tasks[task].start_time = progress.get_time() - quiet
    return progress
