"""The progress line on a terminal for work that takes over a second.

It is a bar with a percentage if the total is known, otherwise a count if parts can be counted. A
thread draws it while the work runs, and removes it before other output. `rich` is loaded with the
first line. Nothing happens if stderr is not a terminal.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Self, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as Drawn

QUIET = 1.0
"""Seconds of silence after which the line appears."""
_PACE = 0.2
"""Seconds between checks."""
_OF_THE_COMMAND = (signal.SIGINT, signal.SIGALRM)
"""Signals for the command itself."""


class Activity:
    """A kind of work, such as "merging", that runs while its block is entered.

    It is a `Progress` callback. `counted` is the number of parts that a consumer has got. Blocks
    may be entered repeatedly and nested.
    """

    def __init__(self, busy: Busy, activity: str) -> None:
        self._busy = busy
        self.activity = activity
        self.done = 0
        self.total: int | None = None
        self.counted = 0

    def __call__(self, done: int, total: int | None) -> None:
        """Reports progress."""
        self.done, self.total = done, total

    def report(self, activity: str, done: int, total: int | None) -> None:
        """Reports progress of work with several activities."""
        self.activity = activity
        self(done, total)

    def __enter__(self) -> Self:
        """Starts or resumes the work."""
        self._busy.begin(self)
        return self

    def __exit__(self, *_: object) -> None:
        """Pauses or ends the work."""
        self._busy.end()


class Seen(NamedTuple):
    """The state that the line shows."""

    activity: str
    done: int
    total: int | None

    @property
    def how_far(self) -> str:
        """Returns `42%` if the total is known, `12,345` for a count, otherwise nothing."""
        if self.total:
            return f"{min(100 * self.done // self.total, 100)}%"
        return f"{self.done:,}" if self.done else ""


class Busy:
    """Watches the work of one command; to be stopped at its end."""

    def __init__(self, err: TextIO) -> None:
        self._err = err
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._watcher: threading.Thread | None = None
        self._shown: Drawn | None = None
        self._works: list[Activity] = []
        self._quiet_since = time.monotonic()

    def at_work(self, activity: str) -> Activity:
        """Names the work of a block."""
        return Activity(self, activity)

    def report(self, done: int, total: int | None) -> None:
        """Reports progress of the innermost work, for code that got no `Progress`."""
        if self._works:
            self._works[-1](done, total)

    def begin(self, work: Activity) -> None:
        """Starts `work`, which lasts until `end`."""
        if self._watcher is None and not self._ended.is_set():
            self._watcher = threading.Thread(target=self._watch, daemon=True)
            # The system delivers a signal to any thread that accepts it, but only in the main
            # thread it interrupts the command. A new thread inherits the blocked signals.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, _OF_THE_COMMAND)
            try:
                self._watcher.start()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._works.append(work)

    def end(self) -> None:
        """Ends the innermost work."""
        if self._works:
            self._works.pop()

    def rest(self) -> None:
        """Removes the line before other output. It appears again after another second."""
        with self._lock:
            self._quiet_since = time.monotonic()
            self._hide()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leaves the terminal to another program while the block runs."""
        works, self._works = self._works, []
        self.rest()
        try:
            yield
        finally:
            self._works = works
            self._quiet_since = time.monotonic()

    def stop(self) -> None:
        """Removes the line for good."""
        self._ended.set()
        with self._lock:
            self._hide()

    def _watch(self) -> None:
        while not self._ended.wait(_PACE):
            if self._shown is None and (
                not self._works or time.monotonic() - self._quiet_since < QUIET
            ):
                continue
            # Before taking the lock, because other output must not wait for this.
            import rich.progress  # noqa: F401

            with self._lock:
                self._look()

    def _look(self) -> None:
        quiet = time.monotonic() - self._quiet_since
        seen = self._seen()
        if self._ended.is_set() or seen is None or quiet < QUIET:
            self._hide()
            return
        shown = self._shown or _line(self._err, quiet)
        _tell(shown, seen)
        if self._shown is None:
            self._shown = shown
            shown.start()

    def _seen(self) -> Seen | None:
        """Returns the state of the current work, whose thread continues meanwhile."""
        works = self._works[-1:]
        if not works:
            return None
        work = works[0]
        done, total = work.done, work.total
        return Seen(work.activity, done or work.counted, total)

    def _hide(self) -> None:
        if self._shown is not None:
            self._shown.stop()
            self._shown = None


def _line(err: TextIO, quiet: float) -> Drawn:
    """Returns the line `- merging ━━━━━━━━━ 42% 0:00:04`, which can be removed."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    progress = Progress(
        SpinnerColumn("line"),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[how_far]}", markup=False),
        TimeElapsedColumn(),
        console=Console(file=err, force_terminal=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    task = progress.add_task("", total=None, how_far="")
    progress.tasks[task].start_time = progress.get_time() - quiet
    return progress


def _tell(line: Drawn, seen: Seen) -> None:
    """Sets what the next drawing shows."""
    task = line.tasks[0]
    # `update` reads None as "unchanged".
    task.total = seen.total or None
    line.update(
        task.id,
        completed=seen.done if seen.total else 0,
        description=seen.activity,
        how_far=seen.how_far,
    )
