"""A real pseudo-terminal of a given size, and commands on it, each in its own session, as a
terminal window starts them."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

PATIENCE = 120
STYLE = re.compile(r"\x1b\[[0-9;]*m")
ESCAPES = re.compile(r"\x1b(?:\[[0-9;?>=]*[ -/]*[@-~]|[()][A-Z0-9]|[=>78])")


class Shown(NamedTuple):
    """The outcome of a command on a terminal, and its output, including escape sequences."""

    code: int
    raw: str

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


class Forker:
    """The process that commands are forked from; `loaded` are the modules that it has loaded for
    them."""

    def __init__(self, *loaded: str) -> None:
        command = [sys.executable, str(Path(__file__).with_name("forking.py")), *loaded]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )

    def _ask(self, **request: Any) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def start(
        self, args: tuple[str, ...], folder: Path, environment: Mapping[str, str], tty: str
    ) -> int:
        return self._ask(args=args, cwd=str(folder), env=dict(environment), tty=tty)

    def wait(self, process: int) -> int:
        return self._ask(wait=process)

    def close(self) -> None:
        self._process.communicate("")


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
        self._forker = forker
        self.process = forker.start(
            args, folder, {"TERM": "xterm-256color", **environment}, os.ttyname(slave)
        )
        self._code: int | None = None
        self.raw = b""
        # This keeps the terminal open until the command has opened it as well.
        self._slave: int | None = slave

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
        self._code = self._forker.wait(self.process)
        self._drain()
        for descriptor in (self._master, self._slave):
            if descriptor is not None:
                os.close(descriptor)
        return self._code

    def _ended(self) -> bool:
        """Returns whether it is a zombie: its exit status has not been read yet."""
        return Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"

    def _drain(self) -> None:
        while self._read(0):
            pass

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], seconds)
        if not ready:
            return False
        some = os.read(self._master, 65536)
        self.raw += some
        return bool(some)
