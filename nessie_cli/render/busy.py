"""The line on a terminal about work that takes over a second: what is done, how far it is, for how long already. It goes away when the work is done.

Where it is known how much there is to do, the line is a bar with a percentage; else it tells how many parts have been done, where these can be
counted. It is drawn only while the work goes on, by a thread of its own, and taken away before anything else is written. `rich` is loaded when the
first line is drawn, and nothing at all is done where stderr is no terminal.
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
"""Seconds without a word after which the line comes."""
_PACE = 0.2
"""Seconds between two looks at whether it is time."""
_OF_THE_COMMAND = (signal.SIGINT, signal.SIGALRM)
"""Signals that the command itself is to hear."""


class Work:
    """One thing that is being done, such as "merging", while a block of it is entered: as often as one likes, also within another's.

    Called with how much is done and how much there is, as `Progress` says; `counted` is how many parts whoever asked for them has got.
    """

    def __init__(self, busy: Busy, what: str) -> None:
        self._busy = busy
        self.what = what
        self.done = 0
        self.total: int | None = None
        self.counted = 0

    def __call__(self, done: int, total: int | None) -> None:
        """Tell how far it is."""
        self.done, self.total = done, total

    def __enter__(self) -> Self:
        """It is being done from now on."""
        self._busy.begin(self)
        return self

    def __exit__(self, *_: object) -> None:
        """It rests, or is over."""
        self._busy.end()


class Seen(NamedTuple):
    """What the line says."""

    what: str
    done: int
    total: int | None

    @property
    def how_far(self) -> str:
        """`42%` where it is known how much there is, `12,345` where something is counted, else nothing."""
        if self.total:
            return f"{min(100 * self.done // self.total, 100)}%"
        return f"{self.done:,}" if self.done else ""


class Busy:
    """Watches over the work of one command; to be stopped at its end."""

    def __init__(self, err: TextIO) -> None:
        self._err = err
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._watcher: threading.Thread | None = None
        self._shown: Drawn | None = None
        self._works: list[Work] = []
        self._quiet_since = time.monotonic()

    def at_work(self, what: str) -> Work:
        """While a block of the answer runs, `what` is being done."""
        return Work(self, what)

    def tell(self, done: int, total: int | None) -> None:
        """How far the innermost work is: the `Progress` of whoever does it and has not been handed it."""
        if self._works:
            self._works[-1](done, total)

    def begin(self, work: Work) -> None:
        """`work` is being done, until `end`."""
        if self._watcher is None and not self._ended.is_set():
            self._watcher = threading.Thread(target=self._watch, daemon=True)
            # The system gives a signal to any thread that takes it, and only in the main one it ends what the command waits for. A thread begins
            # with the signals blocked that are blocked where it is started.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, _OF_THE_COMMAND)
            try:
                self._watcher.start()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._works.append(work)

    def end(self) -> None:
        """The work that was begun last is over."""
        if self._works:
            self._works.pop()

    def rest(self) -> None:
        """Take the line away, because something else is to be written; another second has to pass before it comes again."""
        with self._lock:
            self._quiet_since = time.monotonic()
            self._hide()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the terminal to another program while the block runs."""
        works, self._works = self._works, []
        self.rest()
        try:
            yield
        finally:
            self._works = works
            self._quiet_since = time.monotonic()

    def stop(self) -> None:
        """Take the line away for good."""
        self._ended.set()
        with self._lock:
            self._hide()

    def _watch(self) -> None:
        while not self._ended.wait(_PACE):
            if self._shown is None and (
                not self._works or time.monotonic() - self._quiet_since < QUIET
            ):
                continue
            # Before the lock is taken: whoever wants to write must not wait for this.
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
        """What is being done now; the thread that does it goes on meanwhile."""
        works = self._works[-1:]
        if not works:
            return None
        work = works[0]
        done, total = work.done, work.total
        return Seen(work.what, done or work.counted, total)

    def _hide(self) -> None:
        if self._shown is not None:
            self._shown.stop()
            self._shown = None


def _line(err: TextIO, quiet: float) -> Drawn:
    """`- merging ━━━━━━━━━ 42% 0:00:04`, to be taken away without a trace."""
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
    """What the line shows when it is drawn the next time."""
    task = line.tasks[0]
    # `update` takes None for "as before".
    task.total = seen.total or None
    line.update(
        task.id,
        completed=seen.done if seen.total else 0,
        description=seen.what,
        how_far=seen.how_far,
    )
