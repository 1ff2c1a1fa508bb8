"""Files of the on-disk cache of facts about commits, in the user's cache folder.

They may be deleted at any time. Nothing here fails: an unreadable file is empty, and a failed write
is ignored. A file that another user owns or can write is not read.
"""

# os.path: importing pathlib costs a tenth of a command's start-up.
# ruff: noqa: PTH103, PTH105, PTH108, PTH117, PTH118

from __future__ import annotations

import os
import stat
from contextlib import suppress
from zlib import crc32

from nessie_cli.workspace.locations import cache

_LONGEST = 16 << 20
"""The largest file. A larger one was not written here."""
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class FactFiles:
    """The cache of one store: a file for each name."""

    def __init__(self, store: str) -> None:
        # The path may be relative, for a user without a home. Then nothing is cached.
        self._folder = os.path.join(cache(), "facts")
        # Facts are true in every store: two stores with the same number only replace each other's.
        self._number = f"{crc32(store.encode(errors='surrogatepass')):08x}"

    def read(self, name: str) -> bytes:
        """Returns the bytes that were last written under a name.

        Returns nothing if others can write the file.
        """
        if not os.path.isabs(self._folder):
            return b""
        try:
            file = os.open(self._path(name), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return b""
        try:
            found = os.fstat(file)
            trusted = (
                stat.S_ISREG(found.st_mode)
                and found.st_uid == os.geteuid()
                and not found.st_mode & _OTHERS_WRITE
            )
            return os.read(file, found.st_size) if trusted and found.st_size <= _LONGEST else b""
        except OSError:
            return b""
        finally:
            os.close(file)

    def write(self, name: str, data: bytes) -> None:
        """Replaces the file atomically."""
        path = self._path(name)
        beside = f"{path}.{os.getpid()}"
        if not os.path.isabs(self._folder):
            return
        with suppress(OSError):
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            try:
                file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                try:
                    whole = os.write(file, data) == len(data)
                finally:
                    os.close(file)
                if whole:
                    os.replace(beside, path)
            finally:
                if os.path.lexists(beside):
                    os.unlink(beside)

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, f"{self._number}-{name}")
