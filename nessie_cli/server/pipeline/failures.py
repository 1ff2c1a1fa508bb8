"""Errors of requests, as clients see them and as the log has them."""

from __future__ import annotations

import traceback

from nessie_cli.errors import NessieError, OutcomeUnknown
from nessie_cli.server.http.failures import InternalFault, Unavailable, client_error
from nessie_cli.server.pipeline.exchange import Exchange


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


def stopped_error(exchange: Exchange) -> NessieError:
    """Returns the error for a request that has not ended when the server ends."""
    if exchange.is_write:
        return OutcomeUnknown("the server was stopped during the write", exchange.id)
    return Unavailable("The server has been stopped; come again later")
