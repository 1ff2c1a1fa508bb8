"""Failures of requests: status and error body, without details of the store or stack traces."""

from __future__ import annotations

from typing import ClassVar

from nessie_cli.errors import (
    DamagedObject,
    InvalidInput,
    MergeConflict,
    NessieError,
    OutcomeUnknown,
    ReferenceConflict,
    StoreNotFound,
    StoreUnavailable,
)
from nessie_cli.model import ConflictType
from nessie_cli.wire import errors as wire

RETRY_AFTER = "2"
"""Seconds that a client is asked to wait if the store is unavailable or busy."""
UNEXPECTED = (
    "The server failed on this request; its log says why, under the request id of the answer"
)
_NO_MEMORY = (
    "The request was carried out, but its answer is too large while many others are sent; read the"
    " reference to see the result"
)
_AWAY = "The store cannot be used at the moment; nothing was written"
_UNKNOWN_OUTCOME = (
    "The connection to the store was lost, or the server was stopped, while it was written; read"
    " the reference to see whether the request was carried out"
)
_DAMAGED = (
    "A stored object that this request needs is damaged or missing; `nessie fsck` on the server"
    " names it"
)
_SEVERAL = "There are multiple conflicts that prevent committing the provided operations"
_OF_NAMESPACES = frozenset(
    {ConflictType.NAMESPACE_ABSENT, ConflictType.NOT_A_NAMESPACE, ConflictType.NAMESPACE_NOT_EMPTY}
)
_DETAILS_SINCE = 2
_MANY_DIGITS = 10
_CLOSING = frozenset({408, 413, 431})


class HttpFault(InvalidInput):
    """A request that is refused before a handler runs: unknown path or method, media type, size."""

    def __init__(self, status: int, message: str, code: str = "UNKNOWN") -> None:
        super().__init__(message)
        self.status = status  # type: ignore[misc]
        self.code = code  # type: ignore[misc]


class UnreadBody(HttpFault):
    """A request whose body cannot be read, so its connection ends with the answer."""


def ends_connection(error: NessieError) -> bool:
    """Returns whether the connection ends with this error: the client may still be sending."""
    return error.status in _CLOSING or isinstance(error, UnreadBody)


class InternalFault(NessieError):
    """The error for a failure of the server itself."""

    code: ClassVar[str] = "UNKNOWN"
    status: ClassVar[int] = 500


class AnswerDropped(InternalFault):
    """The error for a write that was carried out, and whose answer is too large to be sent now."""

    def __init__(self) -> None:
        super().__init__(_NO_MEMORY)


class Unavailable(NessieError):
    """The error if the store is unavailable."""

    code: ClassVar[str] = "SERVICE_UNAVAILABLE"
    status: ClassVar[int] = 503


class ClientGone(NessieError):
    """The client has closed the connection, so the answer is not sent. nginx logs this status."""

    code: ClassVar[str] = "UNKNOWN"
    status: ClassVar[int] = 499

    def __init__(self) -> None:
        super().__init__("The client has hung up")


def client_error(error: Exception) -> NessieError:
    """Returns the error for the client."""
    if isinstance(error, ReferenceConflict) and not isinstance(error, MergeConflict):
        return _namespaces_first(error)
    if isinstance(error, OutcomeUnknown):
        return InternalFault(_UNKNOWN_OUTCOME)
    if isinstance(error, DamagedObject):
        return InternalFault(_DAMAGED)
    # It existed when the server was started.
    if isinstance(error, StoreUnavailable | StoreNotFound):
        return Unavailable(_AWAY)
    return error if isinstance(error, NessieError) else InternalFault(UNEXPECTED)


def _namespaces_first(error: ReferenceConflict) -> ReferenceConflict:
    """Reports the conflicts of namespaces alone, as the original server does."""
    first = [conflict for conflict in error.conflicts if conflict.type in _OF_NAMESPACES]
    if not first or len(first) == len(error.conflicts):
        return error
    texts = [conflict.message for conflict in first]
    message = (
        f"{texts[0][:1].upper()}{texts[0][1:]}."
        if len(texts) == 1
        else f"{_SEVERAL}: {', '.join(texts)}."
    )
    return ReferenceConflict(
        message,
        first,
        reference=error.reference,
        head=error.head,
        expected_hash=error.expected_hash,
    )


def error_body(error: NessieError, client_spec: str) -> wire.NessieError:
    """Returns the body of an error answer.

    It has `errorDetails` only for clients that announce specification 2 or newer.
    """
    major = client_spec.strip().partition(".")[0]
    announced = (
        int(major) if major.isascii() and major.isdigit() and len(major) < _MANY_DIGITS else 0
    )
    return wire.NessieError.of(error, details=announced >= _DETAILS_SINCE)
