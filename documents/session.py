"""A shell on a terminal, in an empty folder, where time and random numbers repeat."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import secrets
import select
import shlex
import shutil
import signal
import struct
import sys
import termios
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import Self

ROOT = Path(__file__).resolve().parents[1]
HERE = Path(__file__).parent / "repeatable"
ROWS, COLUMNS = 50, 100
PATIENCE = 60
SHOWN_FOLDER = "/home/ann/lake"
"""The folder of a session as pages show it.

The real path has the same length, so lines are cut and tables are aligned at the same columns.
"""
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
_TABLES = Path(__file__).with_name("tables.py")
_MARK = "\x1e"
_HASH = re.compile(r"(?:(?<![\w-])|(?<=\dm))[0-9a-f]{12}(?:[0-9a-f]{52})?(?![\w…-])")
_EMPTY_HISTORY = "2e1cfa82b035"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-LN-Za-ln-z]")
# A server in the background: wait for its address, and for the lines after it.
_SERVE = """\
serve() {
  nessie serve "$@" --port "$DOCUMENTS_PORT" >"$DOCUMENTS_HOME/served" 2>&1 &
  servers="${servers:-} $!"
  until grep -qs http:// "$DOCUMENTS_HOME/served"; do kill -0 $! || break; sleep 0.05; done
  sleep 0.5
  cat "$DOCUMENTS_HOME/served"
}
trap 'kill $servers 2>/dev/null; wait' EXIT
"""


class SessionFailed(Exception):
    """The shell of a session ended before its last command."""


class Session:
    """A folder with a shell.

    `replaced` maps texts of a page to their values in this session. `hashes` is a prefix of the
    texts from which the displayed hashes are computed.
    """

    def __init__(
        self,
        *,
        colours: bool = False,
        replaced: Mapping[str, str] | None = None,
        hashes: str = "",
    ) -> None:
        self._colours = colours
        self._seed = hashes
        self._replaced = dict(replaced or {})
        self._hashes = {_EMPTY_HISTORY: ""}
        with ExitStack() as undo:
            self.folder = _empty_folder()
            undo.callback(shutil.rmtree, self.folder, ignore_errors=True)
            self._home = _empty_folder()
            undo.callback(shutil.rmtree, self._home, ignore_errors=True)
            self._close = undo.pop_all()
        self._programs()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close.close()

    def run(self, commands: Iterable[str], answers: str = "") -> list[str]:
        """Returns what each command printed, and its exit code in a line of its own if it is not 0.

        With `answers`, the last command reads them from the terminal.
        """
        lines = [self._here(command) for command in commands]
        steps = [_step(line, interactive=False) for line in lines]
        if answers:
            steps[-1] = _step(lines[-1], interactive=True)
        script = _SERVE + "".join(steps) + f"printf '{_MARK}'\n"
        output = self._output(script, answers)
        outputs = [self.shown(part) for part in output.split(_MARK)[1:]]
        if len(outputs) != len(lines) + 1:
            raise SessionFailed(f"ended after {lines[len(outputs) - 1]!r}:\n{''.join(outputs)}")
        return outputs[:-1]

    def write(self, name: str, text: str) -> None:
        """Write a file into the folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._here(text), encoding="utf-8")

    def _programs(self) -> None:
        folder = self._home / "bin"
        folder.mkdir()
        for name, command in {
            "nessie": f"{sys.executable} {HERE / 'nessie.py'}",
            "python": sys.executable,
        }.items():
            (folder / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
            (folder / name).chmod(0o755)
        (self._home / "counter").touch()
        shutil.copy(_TABLES, self.folder)

    def _environment(self) -> dict[str, str]:
        variables = {
            "PATH": f"{self._home / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "HOME": str(self._home),
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "PYTHONPATH": f"{HERE}{os.pathsep}{ROOT}",
            "PYTHONHASHSEED": "0",
            "PYTHONWARNINGS": "ignore",
            "DOCUMENTS_COUNTER": str(self._home / "counter"),
            "DOCUMENTS_HOME": str(self._home),
            "DOCUMENTS_PORT": self._here("19120"),
            "NESSIE_AUTHOR": "ann@example.org",
            "NESSIE_PAGER": "cat",
        }
        return variables if self._colours else variables | {"NO_COLOR": "1"}

    def _output(self, script: str, answers: str) -> str:
        process, terminal = pty.fork()
        if process == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
            os.chdir(self.folder)
            os.execvpe("bash", ["bash", "-c", script], self._environment())  # noqa: S606, S607
        output = b""
        while chunk := _read(terminal, process):
            output += chunk
            if answers and output.endswith(b": "):
                os.write(terminal, answers.encode())
                answers = ""
        os.close(terminal)
        os.waitpid(process, 0)
        return output.decode().replace("\r\n", "\n")

    def _here(self, text: str) -> str:
        for shown, here in self._replaced.items():
            text = text.replace(shown, here)
        return text.replace(SHOWN_FOLDER, str(self.folder))

    def shown(self, text: str) -> str:
        """Returns an output or a page without what differs from run to run."""
        for shown, here in self._replaced.items():
            text = text.replace(here, shown)
        text = _HASH.sub(self._shown_hash, text)
        text = _CONTROLS.sub("", text.replace(str(self.folder), SHOWN_FOLDER))
        for length in range(len(SHOWN_FOLDER) - 1, len("/home/"), -1):
            text = text.replace(f"{self.folder}"[:length] + "…", SHOWN_FOLDER[:length] + "…")
        text = text if self._colours else _COLOURS.sub("", text)
        return "".join(f"{line.rstrip()}\n" for line in text.splitlines())

    def _shown_hash(self, match: re.Match[str]) -> str:
        """A hash depends on the path of the folder: pages show one that depends on its position."""
        short, length = match[0][:12], len(match[0])
        number = len(self._hashes)
        shown = sha256(f"{self._seed}commit {number}".encode()).hexdigest()
        shown = self._hashes.setdefault(short, shown)
        return shown[:length] if shown else match[0]


def _step(command: str, *, interactive: bool) -> str:
    stdin = "" if interactive else " </dev/null"
    server = re.fullmatch(r"nessie serve(.*?)&", command)
    text = f"serve {server[1]}" if server else command
    return (
        f"printf '{_MARK}'; code=0; eval {shlex.quote(text)}{stdin} || code=$?\n"
        "[ $code = 0 ] || printf '[exit code %s]\\n' $code\n"
    )


def _empty_folder() -> Path:
    """A new folder whose path is as long as the one that pages show."""
    parent = os.path.realpath("/tmp")  # noqa: S108
    length = max(len(SHOWN_FOLDER) - len(parent) - 1, 8)
    while True:
        path = Path(parent) / "".join(secrets.choice(_ALPHABET) for _ in range(length))
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return path


def _read(terminal: int, process: int) -> bytes:
    if not select.select([terminal], [], [], PATIENCE)[0]:
        os.killpg(process, signal.SIGKILL)
        raise SessionFailed(f"printed nothing for {PATIENCE} seconds")
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux reports an error when the shell has ended.
        return b""
