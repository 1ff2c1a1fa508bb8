"""The structs of errors: those that the command line shares, and those of REST alone."""

from __future__ import annotations

from typing import Any, Self

from msgspec import UNSET, Struct, UnsetType

from nessie_cli import errors
from nessie_cli.model import Conflict, ConflictType
from nessie_cli.model.conflicts import MOST_REPORTED
from nessie_cli.wire.contents import Key
from nessie_cli.wire.merges import BareConflict

REASONS = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    408: "Request Timeout",
    409: "Conflict",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    499: "Client Closed Request",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
"""Reason phrases of the statuses that errors carry."""


class ErrorLine(Struct, rename="camel"):
    """An error without its details."""

    status: int
    reason: str
    message: str
    error_code: str


def error_line(error: errors.NessieError) -> dict[str, Any]:
    """Returns the attributes of an error without its details."""
    return {
        "status": error.status,
        "reason": REASONS.get(error.status, "Error"),
        "message": error.message,
        "error_code": error.code,
    }


class KeyDetails(Struct, rename="camel", tag_field="type", tag="CONTENT_KEY"):
    """The key that has no content."""

    content_key: Key


# -- the REST API ----------------------------------------------------------------------------------


class BareConflictDetails(Struct, tag_field="type", tag="REFERENCE_CONFLICTS"):
    """The first conflicts of an operation, as the REST API reports them."""

    conflicts: list[BareConflict]


class NessieError(ErrorLine, kw_only=True):
    """The body of an error answer."""

    error_details: BareConflictDetails | KeyDetails | UnsetType = UNSET
    server_stack_trace: None

    @classmethod
    def of(cls, error: errors.NessieError, *, details: bool = True) -> Self:
        """Returns the body. `details=False` is for clients that do not announce specification 2."""
        return cls(
            **error_line(error),
            error_details=_details(error) if details else UNSET,
            server_stack_trace=None,
        )


def _details(error: errors.NessieError) -> BareConflictDetails | KeyDetails | UnsetType:
    if isinstance(error, errors.ContentNotFound):
        return KeyDetails(Key.of(error.key))
    conflicts = _reported(error)
    return BareConflictDetails(list(map(BareConflict.of, conflicts))) if conflicts else UNSET


def _reported(error: errors.NessieError) -> list[Conflict]:
    """Returns the conflicts to report. A failed merge lists other keys as KEY_CONFLICT."""
    if isinstance(error, errors.MergeConflict):
        details = error.result.details
        if any(d.conflict for d in details):
            if len(details) > MOST_REPORTED:
                details = sorted(details, key=lambda d: d.conflict is None)[:MOST_REPORTED]
            return [
                d.conflict or Conflict(ConflictType.KEY_CONFLICT, d.key, "UNKNOWN") for d in details
            ]
    return list(error.conflicts) if isinstance(error, errors.ReferenceConflict) else []
