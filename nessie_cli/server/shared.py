"""What the processes of one server share: whose turn it is to write, one log, and their numbers."""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from struct import Struct as Packing
from types import TracebackType

from msgspec import MsgspecError, json

from nessie_cli.server.metrics import Numbers, total

_SLOT = 1 << 18
"""Bytes for the numbers of one process; they take about 10,000."""
_LENGTH = Packing("<I")
_TRIES = 20


class Lock:
    """A lock between processes: a lock on a file, so who waits sleeps, and the system lets go of it when its holder dies."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def __enter__(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)


class Turn:
    """The turn to write. SQLite's own waiting is a sleep of guessed length; here the next one is woken.

    Whoever lets go and wants it again has to queue behind those who wait: they hold the lock in front of the door while they wait for the door.
    """

    def __init__(self, folder: Path) -> None:
        self._door = Lock(folder / "door")
        self._front = Lock(folder / "front")

    def __enter__(self) -> None:
        with self._front:
            self._door.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._door.__exit__(kind, error, trace)


def one_at_a_time(write: Callable[[bytes], object], folder: Path) -> Callable[[bytes], object]:
    """A function that writes to a log, made safe against the other processes: no line of one stands in the middle of another's."""
    lock = Lock(folder / "log")

    def locked(lines: bytes) -> None:
        with lock:
            write(lines)

    return locked


class Board:
    """Memory that all processes see: each writes its numbers into a slot of its own, and everyone can read all of them.

    Made before the processes are. The last slot holds what processes that have ended had counted.
    """

    def __init__(self, processes: int) -> None:
        self._memory = mmap.mmap(-1, _SLOT * (processes + 1))
        self._ended = processes

    def publish(self, slot: int, numbers: Numbers) -> None:
        """Show the numbers of one process."""
        data = json.encode(numbers)
        if len(data) + _LENGTH.size > _SLOT:
            return
        start = slot * _SLOT
        self._memory[start : start + _LENGTH.size] = _LENGTH.pack(0)
        self._memory[start + _LENGTH.size : start + _LENGTH.size + len(data)] = data
        self._memory[start : start + _LENGTH.size] = _LENGTH.pack(len(data))

    def others(self, slot: int) -> list[Numbers]:
        """The numbers of all processes but one, those that have ended included."""
        return [found for number in range(self._ended + 1) if number != slot and (found := self._read(number)) is not None]

    def end(self, slot: int) -> None:
        """A process has ended: what it had counted stays counted."""
        counted = [found for number in (self._ended, slot) if (found := self._read(number)) is not None]
        if counted:
            self._memory[slot * _SLOT : slot * _SLOT + _LENGTH.size] = _LENGTH.pack(0)
            self.publish(self._ended, total(counted).of_the_past())

    def _read(self, slot: int) -> Numbers | None:
        start = slot * _SLOT
        for _ in range(_TRIES):
            (length,) = _LENGTH.unpack(self._memory[start : start + _LENGTH.size])
            # Caught in the middle of a write: what is read then is no JSON, or nothing, and is read again.
            with suppress(MsgspecError):
                if 0 < length <= _SLOT - _LENGTH.size:
                    return json.decode(self._memory[start + _LENGTH.size : start + _LENGTH.size + length], type=Numbers)
        return None

    def close(self) -> None:
        """Let go of the memory."""
        self._memory.close()
