"""The command of a run: in the foreground, with the signals that git and env pass on."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from nessie_cli.errors import CannotRun

_OF_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
_PASSED_ON = (signal.SIGTERM, signal.SIGHUP)
NOT_EXECUTABLE, NOT_FOUND, BY_SIGNAL = 126, 127, 128
"""Exit codes of a command that cannot be executed or found; a signal adds its number."""


def check_command(command: Sequence[str]) -> None:
    """Raises `CannotRun` for a command that is not there or not executable."""
    program = command[0]
    if shutil.which(program) is not None:
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
        """Starts it, with another stream as its output if one is given. Raises `CannotRun`.

        It gets Ctrl-C from the terminal itself, as this process does, which waits for it. SIGTERM
        and SIGHUP are passed on.
        """
        self._interrupted: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._handlers = _handle(dict.fromkeys(_OF_TERMINAL, self._note))
        self._handlers |= _handle(dict.fromkeys(_PASSED_ON, self._pass_on))
        try:
            # `restore_signals` gives it the usual SIGPIPE, which Python ignores.
            self._process = subprocess.Popen(  # noqa: S603 - what the user asked for
                list(command), env=dict(environment), stdout=stdout, restore_signals=True
            )
        except OSError as error:
            self._restore()
            code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
            raise CannotRun(f"{command[0]}: {error.strerror}", code) from None

    def stop(self) -> None:
        """Asks the command to end."""
        assert self._process is not None
        self._process.terminate()

    def wait(self) -> Ending:
        """Waits for the end of the command."""
        assert self._process is not None
        try:
            if self._interrupted in _PASSED_ON:
                # It came before the command was there.
                self._process.send_signal(self._interrupted)
            code = self._process.wait()
        finally:
            self._restore()
        return Ending(BY_SIGNAL - code if code < 0 else code, self._interrupted)

    def _note(self, number: int, _: FrameType | None) -> None:
        self._interrupted = number

    def _pass_on(self, number: int, _: FrameType | None) -> None:
        self._interrupted = number
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def _restore(self) -> None:
        _handle(self._handlers)


@contextmanager
def ending_by_signals() -> Iterator[None]:
    """Ends the block by `SystemExit` at SIGTERM and SIGHUP, so that it leaves nothing behind."""

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(BY_SIGNAL + number)

    before = _handle(dict.fromkeys(_PASSED_ON, end))
    try:
        yield
    finally:
        _handle(before)


def _handle(handlers: Mapping[signal.Signals, Any]) -> dict[signal.Signals, Any]:
    """Sets handlers of signals that are not ignored, as by nohup, and returns those before."""
    return {
        number: signal.signal(number, handler)
        for number, handler in handlers.items()
        if signal.getsignal(number) is not signal.SIG_IGN
    }
