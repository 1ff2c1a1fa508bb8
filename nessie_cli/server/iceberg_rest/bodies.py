"""Encoded answers that load tables, by the digest of all that they depend on.

A metadata file is never overwritten, so an answer is valid as long as its file exists. Each use
checks the file, because another program may have deleted it.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict

from nessie_cli.iceberg.files import scheme_of
from nessie_cli.iceberg.warehouses.metadata_files import MetadataFiles

MOST_BYTES = 32 << 20
"""Bytes of all cached answers."""
MOST_OF_ONE = 1 << 20
"""The largest answer that is cached."""
Stamp = tuple[int, int, int]


class Bodies:
    """The most recent answers. Threads may share it."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[Stamp, bytes]] = OrderedDict()

    def find(self, digest: str, stamp: Stamp | None) -> bytes | None:
        """Returns the answer of a digest, if its file is unchanged."""
        with self._lock:
            known = self._kept.get(digest)
            if known is None or known[0] != stamp:
                return None
            self._kept.move_to_end(digest)
            return known[1]

    def keep(self, digest: str, stamp: Stamp | None, body: bytes) -> None:
        """Caches an answer."""
        if stamp is None or len(body) > MOST_OF_ONE:
            return
        with self._lock:
            before = self._kept.pop(digest, None)
            self._bytes += len(body) - (len(before[1]) if before else 0)
            self._kept[digest] = stamp, body
            while self._bytes > self._most:
                _, (_, oldest) = self._kept.popitem(last=False)
                self._bytes -= len(oldest)


def stamp_of(files: MetadataFiles, location: str) -> Stamp | None:
    """Returns the identity of a local metadata file, or None if it is missing or remote.

    Raises `LocationRefused`.
    """
    path = files.check(location)
    if scheme_of(location) not in ("", "file"):
        return None
    try:
        found = os.stat(path)  # noqa: PTH116 - a third of the time
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
