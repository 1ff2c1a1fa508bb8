"""Writes to our own servers that happen once, by request ids."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from nessie_cli.errors import NessieError, OutcomeUnknown
from nessie_cli.repository.remote.lost import FIRST_PAUSE, look_up_outcome
from nessie_cli.repository.remote.session import Session, understood
from nessie_cli.repository.remote.transport import Lost, Query, segment

_TRIES = 4
"""How often a write is sent whose answer is lost."""

T = TypeVar("T")


class Sent(NamedTuple):
    """A request that writes, as it is sent: again and again the same."""

    method: str
    path: str
    body: Any = None
    query: Query | None = None


def send_once(
    session: Session,
    sent: Sent,
    request_id: str | None,
    decode: Callable[[Any], T],
    *,
    safe: bool = False,
) -> T:
    """Send a write under a request id.

    If its answer is lost it is sent again, and the server looks it up first.

    Once an answer was lost, only success is certain. After any error, the first submission may
    still arrive: a killed server can leave a running transaction in PostgreSQL.
    """
    request_id = request_id or session.context.random(16).hex()
    lost: Lost | None = None
    for number in range(_TRIES):
        try:
            return understood(
                session.transport.send(*_words(sent), request_id=request_id, safe=safe),
                decode,
                "write",
            )
        except Lost as found:
            if found.ended:
                return look_up_outcome(found, lambda: _earlier(session, sent, request_id, decode))
            lost = found
        except NessieError as error:
            if lost is None:
                raise
            raise OutcomeUnknown(f"{lost.message}; and then: {error.message}", request_id) from None
        if number < _TRIES - 1:
            time.sleep(FIRST_PAUSE * 3**number)
    assert lost is not None
    raise lost


def _earlier(session: Session, sent: Sent, request_id: str, decode: Callable[[Any], T]) -> T | None:
    """The answer to a request that has happened; None for one that has not."""
    if happened(session, request_id) is None:
        return None
    return understood(session.transport.send(*_words(sent), request_id=request_id), decode, "write")


def _words(sent: Sent) -> tuple[str, str, Query | None, Any]:
    return sent.method, sent.path, sent.query, sent.body


def happened(session: Session, request_id: str) -> Any:
    """The server's record of a request; None if it never happened."""
    return understood(
        session.transport.get(f"requests/{segment(request_id)}"),
        lambda found: found["result"],
        "request",
    )
