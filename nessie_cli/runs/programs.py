"""The command of a run: in the foreground, with the signals that git and env pass on."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

from nessie_cli.errors import CannotRun

NOT_EXECUTABLE, NOT_FOUND, BY_SIGNAL = 126, 127, 128
"""Exit codes of a command that cannot be executed or found; a signal adds its number."""


def check_command(command: Sequence[str], path: str | None = None) -> None:
    """Raises `CannotRun` for a command that is not there or not executable."""
    program = command[0]
    if shutil.which(program, path=path) is not None:
        return
    if os.sep in program and os.path.exists(program):  # noqa: PTH110 - as shutil.which does
        raise CannotRun(f"{program}: not an executable program", NOT_EXECUTABLE)
    raise CannotRun(f"{program}: command not found", NOT_FOUND)


class Ending:
    """How a command has ended: its exit code, and the signal that ended it or this process."""

    def __init__(self, exit_code: int, interrupted: int | None) -> None:
        self.exit_code = exit_code
        self.interrupted = interrupted

    @property
    def code(self) -> int:
        """The exit code of this process: that of the command, or of the signal."""
        if self.exit_code or self.interrupted is None:
            return self.exit_code
        return BY_SIGNAL + self.interrupted


class RunningProgram:
    """A command in the foreground."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], stdout: int | None = None
    ) -> None:
        """Starts it, with another stream as its output if one is given. Raises `CannotRun`."""
        self._interrupted: int | None = None
        try:
            # `restore_signals` gives it the usual SIGPIPE, which Python ignores.
            self._process = subprocess.Popen(  # noqa: S603 - what the user asked for
                list(command), env=dict(environment), stdout=stdout, restore_signals=True
            )
        except OSError as error:
            code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
            raise CannotRun(f"{command[0]}: {error.strerror}", code) from None

    def stop(self) -> None:
        """Asks the command to end."""
        self._process.terminate()

    def wait(self) -> Ending:
        """Waits for the end of the command.

        It gets Ctrl-C from the terminal itself, as this process does, which waits for it. SIGTERM
        and SIGHUP are passed on.
        """

        def note(number: int, _: FrameType | None) -> None:
            self._interrupted = number

        def forward(number: int, _: FrameType | None) -> None:
            self._interrupted = number
            if self._process.poll() is None:
                self._process.send_signal(number)

        handlers: dict[signal.Signals, Any] = {
            signal.SIGINT: note,
            signal.SIGQUIT: note,
            signal.SIGTERM: forward,
            signal.SIGHUP: forward,
        }
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            code = self._process.wait()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        return Ending(BY_SIGNAL - code if code < 0 else code, self._interrupted)
