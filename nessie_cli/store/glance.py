"""What a keystroke of shell completion reads of a store file: a few rows, in milliseconds.

Opening a store the proper way costs more than a keystroke may take. Here nothing is checked, migrated or written; a file that is not as expected
gives an `apsw.Error` and the keystroke completes nothing. Everybody else opens a store by `opening`.
"""

from __future__ import annotations

import apsw

# Importing `typing` takes longer than reading the rows; checkers know this name without the import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PATIENCE_MS = 200
_RAW, _HEADER = 0, 5
_BEHIND = "\U0010ffff"


def path_of(url: str) -> str | None:
    """The file that a store's URL or bare path names; None for a store that is no file."""
    scheme, colon, rest = url.partition(":")
    if colon and scheme.lower() == "sqlite" and rest.startswith("///"):
        return rest[3:]
    return None if colon and "/" not in scheme else url


class Glance:
    """A look at one store file; raises `LookupError` where there is none."""

    def __init__(self, path: str) -> None:
        self._connection = _open(path)
        self._connection.set_busy_timeout(_PATIENCE_MS)

    def references(self, prefix: str, kind: str | None = None) -> list[tuple[str, str, bytes]]:
        """Name, kind and target of the references whose name begins so, in order."""
        sql = "SELECT name, kind, target FROM refs WHERE name >= ?1 AND name < ?2 AND (?3 IS NULL OR kind = ?3) ORDER BY name"
        return self._rows(sql, (prefix, prefix + _BEHIND, kind))

    def reference(self, name: str) -> bytes | None:
        """Where a reference points."""
        return next((row[0] for row in self._rows("SELECT target FROM refs WHERE name = ?", (name,))), None)

    def deleted(self, prefix: str) -> list[str]:
        """Names in the reflog that no reference has any more."""
        sql = """SELECT DISTINCT name FROM reflog WHERE name >= ?1 AND name < ?2 AND name NOT IN (SELECT name FROM refs) ORDER BY name"""
        return [name for (name,) in self._rows(sql, (prefix, prefix + _BEHIND))]

    def moves(self, name: str, limit: int) -> list[tuple[int, str, str]]:
        """Number, operation and message of a reference's last moves, newest first."""
        return self._rows("SELECT number, operation, message FROM reflog WHERE name = ? ORDER BY number DESC LIMIT ?", (name, limit))

    def ids(self, kind: int, prefix: str, limit: int) -> list[bytes]:
        """At most so many ids of this kind whose lower-case hex form begins so, in order."""
        low, high = bytes.fromhex(prefix.ljust(64, "0")), bytes.fromhex(prefix.ljust(64, "f"))
        sql = "SELECT id FROM objects WHERE id BETWEEN ? AND ? AND kind = ? ORDER BY id LIMIT ?"
        return [id_ for (id_,) in self._rows(sql, (low, high, kind, limit))]

    def get(self, id_: bytes) -> bytes | None:
        """The raw bytes of an object."""
        for kind, blob in self._rows("SELECT kind, packed FROM objects WHERE id = ?", (id_,)):
            if blob[0] == _RAW:
                return bytes(blob[_HEADER:])
            from nessie_cli.store.codec import unpack

            return unpack(id_, kind, blob)
        return None

    def setting(self, name: str) -> str | None:
        """The value of a setting."""
        return next((row[0] for row in self._rows("SELECT value FROM settings WHERE name = ?", (name,))), None)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def _rows(self, sql: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, values).fetchall()


def _open(path: str) -> apsw.Connection:
    try:
        return apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    except apsw.CantOpenError:
        # As the store itself does it in a folder that cannot be written.
        escaped = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        try:
            return apsw.Connection(f"file:{escaped}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        except apsw.CantOpenError:
            raise LookupError(path) from None
