"""The JSON shapes that servers and the command line share, each defined once.

The command line adds attributes to those named `Bare...`, in `documents`. Shapes that only servers
send, and all of REST v1, are in `rest`; the bodies of requests are in `bodies`. Attributes are
added, never renamed or removed.
"""
# ruff: noqa: N815 (attributes of JSON)

from typing import Literal, NewType

from nessie_cli.model import ConflictType
from nessie_cli.wire.contents import CONTENTS, ForeignContent, Key
from nessie_cli.wire.references import DetachedReference, NamedReference
from nessie_cli.wire.shape import SCALARS, OneOf, Shape, of

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

# -- scalars ---------------------------------------------------------------------------------------


Hash = NewType("Hash", str)
Digest = NewType("Digest", str)
Instant = NewType("Instant", str)
ContentId = NewType("ContentId", str)
ConflictKind = NewType("ConflictKind", str)
Count = NewType("Count", int)

SCALARS |= {
    Hash: {"description": "The hash of a commit, in full.", "pattern": "^[0-9a-f]{64}$"},
    Digest: {
        "description": "The hash of an object that is not a commit.",
        "pattern": "^[0-9a-f]{64}$",
    },
    Instant: {
        "description": "An ISO instant in UTC with no fraction, or with three or six digits of it.",
        "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
        r"(\.[0-9]{3}|\.[0-9]{6})?Z$",
    },
    ContentId: {
        "description": "The identity of a content, kept through renames and merges; usually a UUID."
    },
    ConflictKind: {
        "description": "The kind of a conflict.",
        "enum": [str(kind) for kind in ConflictType],
    },
    Count: {"description": "How many there are.", "minimum": 0},
}


# -- contents --------------------------------------------------------------------------------------


class Content(OneOf):
    """A content."""

    shapes = (*CONTENTS.values(), ForeignContent)


# -- references ------------------------------------------------------------------------------------


class Reference(OneOf):
    """A reference or a detached commit."""

    shapes = (NamedReference, DetachedReference)


class SingleReference(Shape):
    """One reference."""

    reference: Reference


# -- entries and differences -----------------------------------------------------------------------


class ContentResponse(Shape):
    """One content, and the reference it was read from."""

    content: Content
    effectiveReference: Reference


# -- errors ----------------------------------------------------------------------------------------


class ErrorLine(Shape):
    """An error without its details."""

    status: int
    reason: str = of(lambda error: REASONS.get(error.status, "Error"))
    message: str
    errorCode: str = of("code")


class KeyDetails(Shape):
    """The key that has no content."""

    type: Literal["CONTENT_KEY"]
    contentKey: Key = of("key")
