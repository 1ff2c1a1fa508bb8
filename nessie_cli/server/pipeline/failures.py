"""Errors of requests, as clients see them and as the log has them."""

from __future__ import annotations

import traceback

from nessie_cli.errors import NessieError, OutcomeUnknown
from nessie_cli.server.auth.identity import Unauthenticated
from nessie_cli.server.http.failures import (
    RETRY_AFTER,
    InternalFault,
    Unavailable,
    client_error,
    ends_connection,
)
from nessie_cli.server.http.messages import Headers
from nessie_cli.server.pipeline.exchange import Exchange

_BUSY = frozenset({429, 503})


def shown_error(error: Exception, exchange: Exchange) -> NessieError:
    """Returns the error for the client. Details that clients must not see go into the log."""
    shown = client_error(error)
    if isinstance(shown, InternalFault | Unavailable):
        exchange.error = (
            error.message
            if isinstance(error, NessieError)
            else "".join(traceback.format_exception(error))
        )
    # Drops the frames of the error, which refer to the body, and often to the error itself.
    error.__traceback__ = error.__context__ = None
    return shown


def failure_headers(error: Exception, status: int) -> Headers:
    """Returns the headers of the answer for an error, which every dialect sends."""
    headers: Headers = []
    if status in _BUSY:
        headers.append((b"retry-after", RETRY_AFTER.encode()))
    if isinstance(error, Unauthenticated):
        headers.append((b"www-authenticate", error.challenge))
    if isinstance(error, NessieError) and ends_connection(error):
        headers.append((b"connection", b"close"))
    return headers


def stopped_error(exchange: Exchange) -> NessieError:
    """Returns the error for a request that has not ended when the server ends."""
    if exchange.is_write:
        return OutcomeUnknown("the server was stopped during the write", exchange.id)
    return Unavailable("The server has been stopped; come again later")
