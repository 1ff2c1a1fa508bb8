"""Files that a running server reads again when they change.

While a file is invalid, its last valid state remains in use, and one line reports that.
"""

from __future__ import annotations

import os
import stat
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from nessie_cli.errors import InvalidInput, NessieError, NotAllowed

T = TypeVar("T")
Stamp = tuple[int, int, int, int, int]
Report = Callable[[str], None]
"""A function that shows a line to the operator of the server."""

SECRET = stat.S_IROTH | stat.S_IWOTH | stat.S_IXOTH | stat.S_IWGRP
"""Mode bits that a file with secrets must not have: any for others, write for the group."""
TRUSTED = stat.S_IWOTH
"""Mode bits that a file about permissions must not have."""
_MOST_BYTES = 64 * 1024 * 1024


def report_on_stderr(line: str) -> None:
    """Writes a line to stderr."""
    sys.stderr.write(f"nessie: {line}\n")
    sys.stderr.flush()


def read_guarded(path: Path, forbidden: int, kind: str) -> bytes:
    """Reads a file.

    Raises `InvalidInput` if it is missing, and `NotAllowed` if others may access it.
    """
    try:
        # Opening a pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise InvalidInput(f"{kind} {path} cannot be read: {error.strerror}") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidInput(f"{kind} {path} is not a file")
        if status.st_mode & forbidden:
            fix = "chmod 600" if forbidden & stat.S_IROTH else "chmod o-w"
            raise NotAllowed(
                f"{kind} {path}: others may read or change it (mode"
                f" {stat.S_IMODE(status.st_mode):03o}); `{fix} {path}`"
            )
        if status.st_size > _MOST_BYTES:
            raise InvalidInput(f"{kind} {path} is larger than {_MOST_BYTES} bytes")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


class Watched(Generic[T]):
    """A value made from files, and made again when one of them changes.

    `make` raises a `NessieError` for invalid files: the first time to the caller, later the message
    goes to `report`.
    """

    def __init__(
        self, paths: Sequence[Path], make: Callable[[], T], report: Report = report_on_stderr
    ) -> None:
        self._paths, self._make, self._report = paths, make, report
        self._lock = threading.Lock()
        # Checked before they are read: later changes are read again.
        self._seen = self._stamps()
        self._value = make()

    def value(self) -> T:
        """Returns the current value, or the last valid one."""
        stamps = self._stamps()
        if stamps != self._seen:
            with self._lock:
                self._renew(stamps)
        return self._value

    def _stamps(self) -> tuple[Stamp | None, ...]:
        return tuple(map(_stamp, self._paths))

    def _renew(self, stamps: tuple[Stamp | None, ...]) -> None:
        if stamps == self._seen:
            return
        try:
            self._value = self._make()
        except NessieError as error:
            self._report(f"{error.message}; its last valid state stays in force")
        finally:
            # Until then, others wait for the new value: a token may have been revoked.
            self._seen = stamps


class WatchedFile(Watched[T]):
    """A value that `read` makes from one file without the mode bits `forbidden`.

    `kind` is its name in messages.
    """

    def __init__(
        self,
        path: Path,
        forbidden: int,
        kind: str,
        read: Callable[[bytes], T],
        report: Report = report_on_stderr,
    ) -> None:
        def make() -> T:
            data = read_guarded(path, forbidden, kind)
            try:
                return read(data)
            except InvalidInput as error:
                raise InvalidInput(f"{kind} {path}: {error.message}") from None

        super().__init__([path], make, report)


def _stamp(path: Path) -> Stamp | None:
    """Returns the identity of a file's state, or None if there is no file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_mode
