"""A simulated kill of this process: every change of the file system after one point raises.

A real kill runs no clean-up either, so every handler fails in the same way.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CHANGES = frozenset({"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"})


class Killed(BaseException):
    """What ends the process."""


class Death:
    """Comes with the change of this number below a folder; `changes` counts them."""

    def __init__(self, folder: Path, number: int) -> None:
        self.changes = 0
        self._folder = str(folder)
        self._number = number

    def hear(self, event: str, args: tuple[object, ...]) -> None:
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
        death.hear(event, args)


@contextmanager
def killed_at(number: int, folder: Path) -> Iterator[Death]:
    """Run a block that is killed before its change number `number` (from 0) below a folder;
    `changes` tells whether it came so far."""
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
