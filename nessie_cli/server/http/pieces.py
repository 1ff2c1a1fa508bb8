"""Cached JSON of log entries, which never change."""

from __future__ import annotations

from msgspec import Raw

from nessie_cli.model import LogEntry
from nessie_cli.server.http.streams import encoded
from nessie_cli.wire.commits import BareLogEntry

MOST = 4096
"""The number of entries that are cached; sometimes twice as many."""
_LARGEST = 4096
"""The largest entry in bytes that is cached."""


class Pieces:
    """Log entries by commit. Threads may share it."""

    def __init__(self) -> None:
        self._young: dict[str, Raw] = {}
        self._old: dict[str, Raw] = {}

    def log_entry(self, entry: LogEntry) -> BareLogEntry | Raw:
        """Returns the JSON of an entry of a log, API v2.

        It has no operations, because what a caller may see of them differs.
        """
        if entry.operations is not None:
            return BareLogEntry.of(entry)
        text = self._young.get(entry.hash) or self._old.get(entry.hash)
        if text is None:
            text = Raw(encoded(BareLogEntry.of(entry)))
            if len(memoryview(text)) <= _LARGEST:
                self._keep(entry.hash, text)
        return text

    def _keep(self, hash_: str, piece: Raw) -> None:
        if len(self._young) >= MOST:
            self._old, self._young = self._young, {}
        self._young[hash_] = piece
