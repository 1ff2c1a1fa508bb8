"""The chains of the reflog: each entry has the digest of the one before it.

They show rows that are missing, repeated or old. Each reference and each setting has a chain, and
its row has the digest of the newest entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from nessie_cli.model import SETTING_PREFIX
from nessie_cli.store.rows import (
    DamagedRow,
    Row,
    anchor_of,
    check_order,
    checked_row,
    reflog_row_of,
    shown,
    with_check,
)


def chain_of_setting(name: str) -> str:
    """Returns the name of a setting in the reflog."""
    return f"{SETTING_PREFIX}{name}"


def is_setting(name: object) -> bool:
    """Returns whether a name in the reflog is that of a setting."""
    return isinstance(name, str) and name.startswith(SETTING_PREFIX)


def broken_chains(
    anchors: Iterable[Row],
    reflog: Iterable[Row],
    references: Iterable[Row],
    settings: Iterable[Row] | None = None,
) -> Iterator[str]:
    """Yields a line for each reference and setting whose row and reflog do not belong together.

    The rows are those of `ANCHOR`, of `REFLOG` in the order of their numbers, of `REFERENCE`, and
    of `SETTINGS` (None: not verified), of one state of the store. Memory grows with the number of
    names. Rows whose own check fails are reported by the reads of their tables, and are passed over
    here, except anchors. Raises `DamagedRow` if the numbers are out of order.
    """
    chains = _Chains()
    yield from chains.read_anchors(anchors)
    yield from chains.read_reflog(reflog)
    yield from chains.compare("refs", {row[0]: row for row in references})
    if settings is not None:
        rows = {chain_of_setting(row[0]): row for row in settings}
        yield from chains.compare("settings", rows)


class _Chains:
    """The chains of all names: the digest of the newest entry, and whether its row must exist."""

    def __init__(self) -> None:
        self._newest: dict[str, bytes] = {}
        self._deleted: set[str] = set()
        self._broken: set[str] = set()

    def read_anchors(self, rows: Iterable[Row]) -> Iterator[str]:
        """Begins each chain at its last expired entry."""
        for row in rows:
            try:
                name, digest = anchor_of(row)
            except DamagedRow as error:
                yield str(error)
                continue
            self._newest[name] = digest

    def read_reflog(self, rows: Iterable[Row]) -> Iterator[str]:
        """Follows each chain to its end. Yields a line for its first gap."""
        last = 0
        for row in rows:
            number, name, after, previous, digest = row[0], row[1], row[4], row[-2], row[-1]
            check_order("reflog", [number], last)
            last = number
            try:
                reflog_row_of(row)
            except DamagedRow:
                self._broken.add(name)
            if previous != self._newest.get(name, b"") and name not in self._broken:
                self._broken.add(name)
                yield f"{_described(name)}: an entry is missing before number {number} of its reflog"
            self._newest[name] = digest
            if after is None and not is_setting(name):
                self._deleted.add(name)
            else:
                self._deleted.discard(name)

    def compare(self, table: str, rows: Mapping[str, Row]) -> Iterator[str]:
        """Compares the ends of the chains with the rows of a table, by name."""
        names = {name for name in self._newest if is_setting(name) == (table == "settings")}
        for name in sorted(names - rows.keys() - self._deleted - self._broken):
            yield f"{_described(name)} is missing, but its reflog does not end with a deletion"
        for name, row in rows.items():
            if name in self._broken or not _is_valid(table, row):
                continue
            if row[-2] != self._newest.get(name, b""):
                yield f"{_described(name)} does not belong to the newest entry of its reflog"
            elif name in self._deleted:
                yield f"{_described(name)} exists, but the newest entry of its reflog deleted it"


def _is_valid(table: str, row: Row) -> bool:
    try:
        checked_row(table, row)
    except DamagedRow:
        return False
    return True


def _described(name: str) -> str:
    if is_setting(name):
        return f"setting {shown(name.removeprefix(SETTING_PREFIX))}"
    return f"reference {shown(name)}"


class Expiry:
    """Decides which entries of the reflog expire, and how the chains of the others begin.

    Rows are number, name, digest, whether the entry has no hash after it, and whether it is old.
    They come in the order of their numbers, some at a time.
    """

    def __init__(self) -> None:
        self._with_entries: set[str] = set()

    def expired(self, rows: Iterable[Row]) -> list[Row]:
        """Returns the old rows, except those of names with an older entry that stays."""
        expired = []
        for row in rows:
            name, is_old = row[1], row[-1]
            if is_old and name not in self._with_entries:
                expired.append(row)
            else:
                self._with_entries.add(name)
        return expired

    @staticmethod
    def anchors(expired: Iterable[Row]) -> tuple[list[Row], list[str]]:
        """Returns the rows of anchors for expired entries, and the names of deleted references.

        A reference that does not exist needs no anchor, unless it is created again.
        """
        last = {name: (digest, is_end) for _, name, digest, is_end, _ in expired}
        anchors = [with_check("anchors", name, digest) for name, (digest, _) in last.items()]
        return anchors, [n for n, (_, is_end) in last.items() if is_end and not is_setting(n)]
