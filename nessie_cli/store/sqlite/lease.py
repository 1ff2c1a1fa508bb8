"""Leases of references in a SQLite store: a small table of tickets, served in order.

A ticket has an end that is set when it is drawn: that of the ticket before it plus `LEASE`.
Returning a lease moves the ends of later tickets forward. So a dead holder costs only its own time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

import apsw

from nessie_cli.store.base import LEASE

_LONGEST = 60.0
"""The longest queue in seconds; a longer one is not joined.

A later end comes from a clock that was set back since, and is ignored.
"""

_TICKETS = (
    "SELECT token, ends FROM leases WHERE name = ? AND ends > ? AND ends <= ? ORDER BY number"
)


def draw(cursor: apsw.Cursor, name: str) -> str:
    """Joins the queue for a reference. Returns the token, or "" if the queue is too long."""
    now = time.time()
    cursor.execute("DELETE FROM leases WHERE ends <= ? OR ends > ?", (now, now + _LONGEST))
    tickets = _tickets(cursor, name, now)
    ends = (tickets[-1][1] if tickets else now) + LEASE
    if ends > now + _LONGEST:
        return ""
    token = os.urandom(8).hex()
    cursor.execute("INSERT INTO leases (name, token, ends) VALUES (?, ?, ?)", (name, token, ends))
    return token


def waiting(cursor: apsw.Cursor, name: str, token: str) -> bool:
    """Returns whether valid tickets are ahead of a ticket."""
    tickets = [queued for queued, _ in _tickets(cursor, name, time.time())]
    return token in tickets[1:]


def give_back(cursor: apsw.Cursor, name: str, token: str) -> None:
    """Leaves the queue at any position, and moves later tickets forward."""
    now = time.time()
    tickets = _tickets(cursor, name, now)
    tokens = [queued for queued, _ in tickets]
    if token in tokens:
        place = tokens.index(token)
        begins = tickets[place - 1][1] if place else now
        saved = tickets[place][1] - begins
        behind = (
            "UPDATE leases SET ends = ends - ?3 WHERE name = ?1 AND number > (SELECT number FROM"
            " leases WHERE token = ?2)"
        )
        cursor.execute(behind, (name, token, saved))
    cursor.execute("DELETE FROM leases WHERE token = ?", (token,))


def leased(cursor: apsw.Cursor, names: Iterable[str], token: str) -> bool:
    """Returns whether a caller with a ticket waits for the lease of one of these references.

    The holder of one of them waits for no other: two holders would wait for each other.
    """
    now = time.time()
    holders = {tickets[0][0] for name in names if (tickets := _tickets(cursor, name, now))}
    return bool(holders) and token not in holders


def _tickets(cursor: apsw.Cursor, name: str, now: float) -> list[tuple[str, float]]:
    return cursor.execute(_TICKETS, (name, now, now + _LONGEST)).fetchall()  # type: ignore[return-value]
