"""ETags of tables. A conditional load with a current ETag reads no file.

An ETag is a digest, and behind a dot the second until which a client can go on with the credentials
that it got with it.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping

from msgspec import msgpack, structs

from nessie_cli.model import IcebergTable

MARGIN = 300
"""Before credentials expire, the seconds in which a client gets new ones instead of a 304."""
_DIGITS = 32
_MOST_DIGITS = 12
"""The most digits of the second until which credentials are valid."""
_encode = msgpack.Encoder(order="sorted").encode


def digest_of(
    content: IcebergTable, snapshots: str, config: Mapping[str, str], delegation: str
) -> str:
    """Returns the digest of an answer that loads a table."""
    what = (structs.astuple(content), snapshots, dict(config), delegation)
    return hashlib.sha256(_encode(what)).hexdigest()[:_DIGITS]


def etag(digest: str, expires: int | None) -> bytes:
    """Returns the ETag of an answer whose credentials expire at a second, if it has any."""
    return f'"{digest}"'.encode() if expires is None else f'"{digest}.{expires}"'.encode()


def known_to(header: str | None, digest: str, *, delegated: bool = False) -> bytes | None:
    """Returns the ETag of the answer if `If-None-Match` says that the client has this answer."""
    if header is None:
        return None
    if header.strip() == "*":
        # How long the credentials of the client are good is unknown.
        return None if delegated else f'"{digest}"'.encode()
    for part in header.split(","):
        # Our ETags contain no commas and no quotes.
        quoted = part.strip().removeprefix("W/")
        tag = quoted[1:-1] if quoted[:1] == quoted[-1:] == '"' else ""
        found, _, expires = tag.partition(".")
        if found == digest and (not expires or _is_far(expires)):
            return f'"{tag}"'.encode()
    return None


def _is_far(expires: str) -> bool:
    """Whether credentials are good for a while."""
    return (
        expires.isdecimal() and len(expires) <= _MOST_DIGITS and int(expires) - MARGIN > time.time()
    )
