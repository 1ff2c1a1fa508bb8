"""How requests fail: errors in the model of the Iceberg REST specification.

Clients act on the type, and on a table commit also on the status: they take 5xx for an unknown
outcome. So an error that certainly wrote nothing is never 5xx on a request that writes.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from msgspec import json

from nessie_cli.errors import (
    InvalidInput,
    NessieError,
    NotAllowed,
    NotFound,
    OutcomeUnknown,
    ReferenceConflict,
    StoreUnavailable,
)
from nessie_cli.iceberg.builder.document import RequirementFailed
from nessie_cli.server.auth.identity import Unauthenticated
from nessie_cli.server.http.failures import (
    ClientGone,
    HttpFault,
    InternalFault,
    Unavailable,
    client_error,
)
from nessie_cli.server.http.messages import JSON, Headers, Reply
from nessie_cli.server.pipeline.exchange import Exchange
from nessie_cli.server.pipeline.failures import failure_headers
from nessie_cli.server.pipeline.table import NoRoute

_READS = frozenset({"GET", "HEAD"})
_TOO_MANY = 429
_UNAVAILABLE = 503
REMEMBERED = frozenset({400, 403, 404, 406, 409, 422})
"""Statuses of refusals that are remembered for repetitions of the same request."""
_MOST_REPEATED = 2000
"""The most characters of the message of a refusal that are remembered."""
_UNKNOWN_STATE = (
    "The connection to the store was lost, or the server was stopped, while it was written; load"
    " the table to see whether the commit was carried out"
)


_INTERNAL, _FORBIDDEN = "InternalServerError", "ForbiddenException"


class Refused(NessieError):
    """An error whose type the specification names."""

    status: ClassVar[int] = 400
    type: ClassVar[str] = "BadRequestException"


class NoSuchNamespace(Refused):
    """There is no namespace of this name."""

    status = 404
    type = "NoSuchNamespaceException"


class NoSuchTable(Refused):
    """There is no table of this name."""

    status = 404
    type = "NoSuchTableException"


class NoSuchView(Refused):
    """There is no view of this name."""

    status = 404
    type = "NoSuchViewException"


class NoSuchFile(Refused):
    """A metadata file does not exist. The words are those of Iceberg's own library."""

    status = 404
    type = "NotFoundException"

    def __init__(self, location: str) -> None:
        super().__init__(f"Failed to open input stream for file: {location} (it does not exist)")


class NoWarehouse(Refused):
    """The server has no warehouse, so it has no Iceberg REST catalog."""

    status = 404
    type = "NotFoundException"

    def __init__(self) -> None:
        super().__init__(
            "this server has no warehouse for Iceberg tables",
            hint="start it with `nessie serve --warehouse URI`",
        )


class Exists(Refused):
    """A content of any type already has this name."""

    status = 409
    type = "AlreadyExistsException"


class NamespaceNotEmpty(Refused):
    """A namespace that is to be dropped holds contents."""

    status = 409
    type = "NamespaceNotEmptyException"


class CommitConflict(Refused):
    """The state has changed since the client read it. The client may read again and retry."""

    status = 409
    type = "CommitFailedException"


class IllegalArgument(Refused):
    """An illegal argument in Java's library, so that Java clients raise the same exception."""

    type = "IllegalArgumentException"


class Unprocessable(Refused):
    """A request that contradicts itself."""

    status = 422
    type = "UnprocessableEntityException"


class RepeatedRefusal(NessieError):
    """A refusal of an earlier request, for its repetitions: the answer, and nothing else of it.

    A long message is cut: it can repeat megabytes of the request.
    """

    def __init__(self, refusal: NessieError) -> None:
        status, type_, message = _described(refusal, writes=True)
        if len(message) > _MOST_REPEATED:
            message = f"{message[:_MOST_REPEATED]}..."
        super().__init__(message)
        self.answer = status, type_, message


_TYPES: tuple[tuple[Any, str], ...] = (
    (RequirementFailed | ReferenceConflict, CommitConflict.type),
    (Unauthenticated, "NotAuthorizedException"),
    (NotAllowed, _FORBIDDEN),
    (NotFound, "NotFoundException"),
    (InvalidInput, Refused.type),
)
"""The types of other errors."""


@contextmanager
def illegal_arguments() -> Iterator[None]:
    """Raise `IllegalArgument` for input that is invalid."""
    try:
        yield
    except InvalidInput as error:
        raise IllegalArgument(error.message) from None


def failure(error: Exception, exchange: Exchange) -> Reply:
    """Returns the answer for a failure. Details of internal ones go into the log only."""
    if isinstance(error, NoRoute):
        return _no_route(error, exchange)
    status, type_, message = _described(error, writes=exchange.method not in _READS)
    if status >= 500 or isinstance(error, StoreUnavailable | Unavailable):  # noqa: PLR2004 - a class of statuses
        exchange.error = (
            error.message
            if isinstance(error, NessieError)
            else "".join(traceback.format_exception(error))
        )
    headers = failure_headers(error, status)
    # The frames of an error refer to large objects, such as a body.
    error.__traceback__ = error.__context__ = None
    return error_reply(status, type_, message, headers)


def error_reply(status: int, type_: str, message: str, headers: Headers | None = None) -> Reply:
    """Returns an error answer."""
    body: dict[str, Any] = {"error": {"message": message, "type": type_, "code": status}}
    return Reply(status, [(b"content-type", JSON), *(headers or [])], json.encode(body))


def _no_route(missing: NoRoute, exchange: Exchange) -> Reply:
    if not missing.allowed:
        return error_reply(
            404,
            "NotFoundException",
            "The Iceberg REST catalog has no such path. Paths are /iceberg/v1/{prefix}/... with the"
            " prefix that /iceberg/v1/config announces; without a namespace no table can be named",
        )
    allow = (b"allow", ", ".join(missing.allowed).encode())
    if exchange.method == "OPTIONS":
        return Reply(200, [allow])
    text = f"This path takes {', '.join(missing.allowed)}, not {exchange.method}"
    return error_reply(405, "UnsupportedOperationException", text, [allow])


def _described(error: Exception, *, writes: bool) -> tuple[int, str, str]:
    """Returns the status, type and message of a failure."""
    if isinstance(error, Refused):
        return error.status, error.type, error.message
    if isinstance(error, RepeatedRefusal):
        return error.answer
    if isinstance(error, OutcomeUnknown):
        return 500, "CommitStateUnknownException", _UNKNOWN_STATE
    shown = client_error(error)
    if shown.status == _UNAVAILABLE:
        if writes or isinstance(error, Unavailable):
            return _TOO_MANY, "TooManyRequestsException", shown.message
        return _UNAVAILABLE, "ServiceUnavailableException", shown.message
    internal = isinstance(shown, InternalFault | ClientGone)
    return shown.status, _INTERNAL if internal else _type_of(shown), shown.message


def _type_of(error: NessieError) -> str:
    """Returns the type of an error of the repository."""
    if isinstance(error, HttpFault):
        return _FORBIDDEN if error.status == 403 else Refused.type  # noqa: PLR2004 - a foreign page
    return next((name for kinds, name in _TYPES if isinstance(error, kinds)), _INTERNAL)
