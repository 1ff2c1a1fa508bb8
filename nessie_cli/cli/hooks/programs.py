"""Finding and running the program of a hook."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from nessie_cli.render.terminal import json_text
from nessie_cli.workspace.environment import HOOK, REFERENCE

if TYPE_CHECKING:
    from nessie_cli.workspace.folder import Workspace

TERMINATION_TIMEOUT = 2.0
"""Seconds between the interrupt of a hook and its termination by force."""


class HookFailed(Exception):
    """A hook could not be started, or ended with a nonzero exit code."""

    def __init__(self, reason: str, *, has_run: bool) -> None:
        super().__init__(reason)
        self.has_run = has_run


class Programs(Struct, frozen=True):
    """The hooks of a workspace.

    `print_line` writes to stderr. `pause` releases the terminal while a hook runs.
    """

    workspace: Workspace
    environment: Mapping[str, str]
    print_line: Callable[[str], None]
    pause: Callable[[], AbstractContextManager[None]]

    def find(self, name: str) -> Path | None:
        """Returns the program of a hook. Prints a hint if the file is not executable."""
        path = self.workspace.hooks_path / name
        if not path.is_file():
            return None
        if os.access(path, os.X_OK):
            return path
        shown = path.relative_to(self.workspace.root)
        self.print_line(
            f"hint: the hook {shown} is ignored because it is not executable; `chmod +x {shown}`"
        )
        return None

    def run(self, name: str, branch: str, document: Mapping[str, Any]) -> None:
        """Runs a hook, if there is one. Raises `HookFailed`."""
        path = self.find(name)
        if path is None:
            return
        text = json_text({"hook": name, **document}) + "\n"
        environment = {**self.environment, HOOK: name, REFERENCE: branch}
        with suppress(OSError):
            sys.stdout.flush()
        try:
            with self.pause():
                code = _run(path, text, self.workspace.root, environment)
        except OSError as error:
            reason = (
                f"{path}: the hook cannot be run: {error.strerror}; a script begins with a line"
                " such as #!/bin/sh"
            )
            raise HookFailed(reason, has_run=False) from None
        if code:
            ending = f"exit code {code}" if code > 0 else f"ended by {signal.Signals(-code).name}"
            raise HookFailed(ending, has_run=True)


def _run(path: Path, text: str, folder: Path, environment: Mapping[str, str]) -> int:
    """Runs a program and returns its exit code. An interrupt of this process ends it."""
    # An interrupt while the process starts would leave it running, so it is delivered afterwards.
    interrupts: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _frame: interrupts.append(number))
    try:
        # The user installed this program. Its output goes to stderr: stdout is the command's
        # result.
        with subprocess.Popen(  # noqa: S603
            [path], stdin=subprocess.PIPE, stdout=2, cwd=folder, env=environment
        ) as process:  # noqa: RUF100, S603
            try:
                signal.signal(signal.SIGINT, handler)
                if interrupts:
                    signal.raise_signal(signal.SIGINT)
                process.communicate(text.encode())
            except BaseException:
                _end(process)
                raise
        return process.returncode
    finally:
        signal.signal(signal.SIGINT, handler)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a hook, which may have received the same interrupt from the terminal."""
    process.terminate()
    try:
        process.wait(TERMINATION_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
