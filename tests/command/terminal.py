"""A real pseudo-terminal of a given size, and commands on it, each in its own session, as a
terminal window starts them."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.command.outcome import Outcome
from tests.command.process import PATIENCE, Forker

END_OF_INPUT = "\x04"
STYLE = re.compile(r"\x1b\[[0-9;]*m")
ESCAPES = re.compile(r"\x1b(?:\[[0-9;?>=]*[ -/]*[@-~]|[()][A-Z0-9]|[=>78])")


class Shown(NamedTuple):
    """The outcome of a command on a terminal, and its output, including escape sequences."""

    code: int
    raw: str

    def expect(self, code: int, *texts: str, without: tuple[str, ...] = ()) -> None:
        """Asserts the exit code, texts of the output, and texts that it lacks."""
        __tracebackhide__ = True
        Outcome(self.code, "", self.plain).expect(code, *texts, without=without)

    @property
    def plain(self) -> str:
        """The output without escape sequences."""
        return STYLE.sub("", self.raw)

    @property
    def lines(self) -> list[str]:
        return self.plain.replace("\r\n", "\n").splitlines()


def columns(text: str) -> int:
    """Returns the number of columns that a text takes on a terminal."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return len(text) + wide - sum(unicodedata.category(c) in ("Mn", "Me", "Cf") for c in text)


class Running:
    """A running command on a terminal."""

    def __init__(
        self,
        forker: Forker,
        args: tuple[str, ...],
        folder: Path,
        environment: Mapping[str, str],
        *,
        width: int,
        height: int,
    ) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self._process = forker.start(
            args,
            folder,
            {"TERM": "xterm-256color", **environment},
            [slave] * 3,
            terminal=True,
        )
        self.process = self._process.pid
        self._code: int | None = None
        self.raw = b""
        os.close(slave)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def interrupt(self) -> None:
        """Sends Ctrl-C: the terminal sends SIGINT to every process in its foreground."""
        self.type("\x03")

    def wait_for(self, text: str | Callable[[str], bool]) -> None:
        """Reads until a text is on the terminal."""
        deadline = time.monotonic() + PATIENCE
        there = text if callable(text) else lambda shown: text in shown
        while not there(ESCAPES.sub("", self.text)):
            assert time.monotonic() < deadline, f"never came: {text!r}; what came: {self.raw!r}"
            self._read(0.05)
            if self._ended():
                self._drain()
                assert there(ESCAPES.sub("", self.text)), (
                    f"ended before {text!r} came: {self.raw!r}"
                )

    @property
    def text(self) -> str:
        return self.raw.decode(errors="replace")

    def end(self) -> Shown:
        """Waits for the end."""
        deadline = time.monotonic() + PATIENCE
        while not self._ended():
            self._read(0.02)
            assert time.monotonic() < deadline, f"does not end: {self.raw!r}"
        code = self._finish()
        return Shown(code, self.text)

    def kill(self) -> None:
        if self._code is None:
            os.kill(self.process, signal.SIGKILL)
            self._finish()

    def _finish(self) -> int:
        self._code = self._process.wait()
        self._drain()
        os.close(self._master)
        return self._code

    def _ended(self) -> bool:
        return self._process.ended()

    def _drain(self) -> None:
        while self._read(0):
            pass

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # Linux reports an error when no process has the terminal open.
            return False
        self.raw += data
        return bool(data)
