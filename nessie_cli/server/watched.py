"""Files that a running server reads again when they change: what was last good stays in force while a file is broken, and one line says so."""

from __future__ import annotations

import os
import stat
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from nessie_cli.errors import InvalidInput, NessieError, NotAllowed

T = TypeVar("T")
Stamp = tuple[int, int, int, int, int]
Tell = Callable[[str], None]
"""Takes a line for whoever runs the server."""

SECRET = stat.S_IROTH | stat.S_IWOTH | stat.S_IXOTH | stat.S_IWGRP
"""What the mode of a file with secrets must not allow: anything to others, writing to the group."""
TRUSTED = stat.S_IWOTH
"""What the mode of a file that decides about rights must not allow."""
_MOST_BYTES = 64 * 1024 * 1024


def tell_stderr(line: str) -> None:
    """Write a line to stderr."""
    sys.stderr.write(f"nessie: {line}\n")
    sys.stderr.flush()


def read_guarded(path: Path, forbidden: int, what: str) -> tuple[bytes, Stamp]:
    """The bytes of a file and its stamp; raises `InvalidInput` for one that is missing, and `NotAllowed` for one that others may read or write."""
    try:
        # A pipe would hold the server up until somebody writes to it.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise InvalidInput(f"{what} {path}: cannot be read: {error.strerror}") from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise InvalidInput(f"{what} {path}: is no file")
        if found.st_mode & forbidden:
            fix = "chmod 600" if forbidden & stat.S_IROTH else "chmod o-w"
            raise NotAllowed(f"{what} {path}: others may read or change it (mode {stat.S_IMODE(found.st_mode):03o}); `{fix} {path}`")
        if found.st_size > _MOST_BYTES:
            raise InvalidInput(f"{what} {path}: is larger than {_MOST_BYTES} bytes")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(), _stamp(found)
    finally:
        os.close(descriptor)


def _stamp(found: os.stat_result) -> Stamp:
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_mode


class WatchedFile(Generic[T]):
    """A value made from a file, made again when the file is another (its times, size, inode or mode). Each `value` looks at the file system once."""

    def __init__(self, path: Path, forbidden: int, what: str, read: Callable[[bytes], T], tell: Tell = tell_stderr) -> None:
        self._path, self._forbidden, self._what = path, forbidden, what
        self._read, self._tell = read, tell
        self._lock = threading.Lock()
        self._seen: Stamp | None
        data, self._seen = read_guarded(path, forbidden, what)
        self._value = self._made(data)

    def value(self) -> T:
        """What the file says, or last said well."""
        try:
            stamp: Stamp | None = _stamp(self._path.stat())
        except OSError:
            stamp = None
        if stamp != self._seen:
            with self._lock:
                self._renew(stamp)
        return self._value

    def _renew(self, stamp: Stamp | None) -> None:
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            data, self._seen = read_guarded(self._path, self._forbidden, self._what)
            self._value = self._made(data)
        except NessieError as error:
            self._tell(f"{error.message}; what it said before stays in force")

    def _made(self, data: bytes) -> T:
        try:
            return self._read(data)
        except InvalidInput as error:
            raise InvalidInput(f"{self._what} {self._path}: {error.message}") from None
