"""Idempotent writes: `nessie serve` commits a request id once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from nessie_cli.errors import NessieError, OutcomeUnknown
from nessie_cli.repository.remote.lost_answers import FIRST_PAUSE, look_up_outcome
from nessie_cli.repository.remote.session import RestSession, understood
from nessie_cli.repository.remote.transport import Lost, segment
from nessie_cli.repository.remote.write_request import WriteRequest

_TRIES = 4
"""How often a write whose answer is lost is sent."""

T = TypeVar("T")


def send_idempotent(
    session: RestSession,
    request: WriteRequest,
    request_id: str | None,
    decode: Callable[[Any], T],
    *,
    safe: bool = False,
    wrote: Callable[[T], bool] = lambda _: True,
) -> T:
    """Sends a write under a request id, again if its answer is lost. Returns the decoded answer.

    After a lost answer, only success is certain. After any error, or an answer that the request
    `wrote` nothing, the first request may still arrive: a killed server can leave a running
    transaction in PostgreSQL.
    """
    request_id = request_id or session.random(16).hex()
    last_lost: Lost | None = None
    for number in range(_TRIES):
        try:
            answer = understood(
                request.send(session, request_id=request_id, safe=safe), decode, "write"
            )
        except Lost as lost:
            if lost.ended:
                return look_up_outcome(
                    lost, lambda: _recorded_answer(session, request, request_id, decode)
                )
            last_lost = lost
        except NessieError as error:
            if last_lost is None:
                raise
            raise OutcomeUnknown(
                f"{last_lost.message}; and then: {error.message}", request_id
            ) from None
        else:
            if last_lost is None or wrote(answer):
                return answer
            raise OutcomeUnknown(f"{last_lost.message}; repeated, it had no effect", request_id)
        if number < _TRIES - 1:
            time.sleep(FIRST_PAUSE * 3**number)
    assert last_lost is not None
    raise last_lost


def _recorded_answer(
    session: RestSession, request: WriteRequest, request_id: str, decode: Callable[[Any], T]
) -> T | None:
    """Returns the answer to a request that was committed, or None."""
    if request_record(session, request_id) is None:
        return None
    return understood(request.send(session, request_id=request_id), decode, "write")


def request_record(session: RestSession, request_id: str) -> Any:
    """Returns the server's record of a committed request, or None."""
    return understood(
        session.transport.get(f"requests/{segment(request_id)}"),
        lambda answer: answer["result"],
        "request",
    )
