"""Simulates a killed process: from one change of the file system on, every change raises.

After a real kill no clean-up runs. So the changes of error handlers fail in the same way.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CHANGES = frozenset({"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"})


class Killed(BaseException):
    """The error that ends the process."""


class Death:
    """Raises `Killed` from a change of the file system on. `changes` counts the changes."""

    def __init__(self, folder: Path, number: int) -> None:
        self.changes = 0
        self._folder = str(folder)
        self._number = number

    def on_event(self, event: str, args: tuple[object, ...]) -> None:
        if not self._is_change(event, args):
            return
        self.changes += 1
        if self.changes > self._number:
            raise Killed

    def _is_change(self, event: str, args: tuple[object, ...]) -> bool:
        if event == "open":
            path, mode, _ = args
            return (
                str(path).startswith(self._folder)
                and isinstance(mode, str)
                and bool(set(mode) & set("wax+"))
            )
        return event in _CHANGES and (
            str(args[0]).startswith(self._folder) or (event == "os.remove" and args[1] != -1)
        )


_deaths: list[Death] = []


def _hook(event: str, args: tuple[object, ...]) -> None:
    for death in _deaths:
        death.on_event(event, args)


@contextmanager
def killed_at(number: int, folder: Path) -> Iterator[Death]:
    """Runs a block that is killed before change `number` (from 0) below a folder.

    `changes` shows whether the block reached it.
    """
    if not _hooked:
        sys.addaudithook(_hook)
        _hooked.append(True)
    death = Death(folder, number)
    _deaths.append(death)
    try:
        yield death
    except Killed:
        pass
    finally:
        _deaths.remove(death)


_hooked: list[bool] = []
