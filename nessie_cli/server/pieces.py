"""Encoded parts of answers that never change: a commit's entry in a log is the same on every page, whatever is committed after it."""

from __future__ import annotations

from msgspec import Raw

from nessie_cli.model import LogEntry
from nessie_cli.server.streams import encoded
from nessie_cli.wire.encode import Json, encode_log_entry

MOST = 4096
"""Entries that are remembered; twice as many at times."""
_LARGEST = 4096
"""An entry of more bytes is not worth its place."""


class Pieces:
    """Log entries by commit. Safe to use from several threads."""

    def __init__(self) -> None:
        self._young: dict[str, Raw] = {}
        self._old: dict[str, Raw] = {}

    def log_entry(self, entry: LogEntry) -> Json | Raw:
        """The JSON of an entry of a log, API v2. Operations are not remembered: not every caller may see all of them."""
        if entry.operations is not None:
            return encode_log_entry(entry)
        found = self._young.get(entry.hash) or self._old.get(entry.hash)
        if found is None:
            found = Raw(encoded(encode_log_entry(entry)))
            if len(memoryview(found)) <= _LARGEST:
                self._keep(entry.hash, found)
        return found

    def _keep(self, hash_: str, piece: Raw) -> None:
        if len(self._young) >= MOST:
            self._old, self._young = self._young, {}
        self._young[hash_] = piece
