"""Commit metadata in request headers (`Nessie-Commit-*`, v2 only)."""

from __future__ import annotations

from msgspec import structs

from nessie_cli.model import CommitMeta
from nessie_cli.server.pipeline.call import Call

_ANY = b"nessie-commit-"
_MESSAGE = b"nessie-commit-message"
_AUTHORS = b"nessie-commit-authors"
_SIGNED_OFF_BY = b"nessie-commit-signedoffby"
_PROPERTY = b"nessie-commit-property-"


def merged_with_headers(call: Call, meta: CommitMeta | None) -> CommitMeta | None:
    """Returns the metadata of a body with the headers applied.

    The message is replaced; authors, signatures and properties are added. Returns None if both are
    empty. An empty message means that none is given.
    """
    if not call.headers_from(_ANY):
        return meta
    message = next((text for text in call.headers(_MESSAGE) if text.strip()), None)
    authors, signed_off_by = _names(call, _AUTHORS), _names(call, _SIGNED_OFF_BY)
    properties = _properties(call)
    if message is None and not authors and not signed_off_by and not properties:
        return meta
    base = meta or CommitMeta("")
    return structs.replace(
        base,
        message=base.message if message is None else message,
        authors=base.authors + authors,
        signed_off_by=base.signed_off_by + signed_off_by,
        properties={**base.properties, **properties},
    )


def _names(call: Call, header: bytes) -> tuple[str, ...]:
    found = (name.strip() for value in call.headers(header) for name in value.split(","))
    return tuple(name for name in found if name)


def _properties(call: Call) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, value in call.headers_from(_PROPERTY):
        if value:
            found[name.lower()] = (*found.get(name.lower(), ()), value)
    return found
