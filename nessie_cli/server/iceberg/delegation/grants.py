"""Grants: texts that permit a caller to have requests for one table signed."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Callable
from typing import NamedTuple

from msgspec import DecodeError, msgpack

from nessie_cli.errors import NotAllowed
from nessie_cli.model import ContentKey, Secret

LIFETIME = 12 * 3600
"""Seconds that a grant is valid.

Clients keep it as long as they use a loaded table; rights are checked at each request.
"""
_PURPOSE = b"nessie remote signing 1"


class Grant(NamedTuple):
    """The content of a grant: the location, the second of its expiry, and whether it may write."""

    location: str
    expires: int
    writable: bool


class Holder(NamedTuple):
    """The caller and the table of a grant."""

    warehouse: str
    ref: str
    key: ContentKey
    caller: str


class Grants:
    """Issues grants and reads them. A grant is authenticated by HMAC, not encrypted."""

    def __init__(self, secret: Secret, clock: Callable[[], float] = time.time) -> None:
        self._secret, self._clock = secret, clock

    def issue(self, holder: Holder, location: str, *, writable: bool) -> tuple[str, Grant]:
        """Returns a new grant as text and in parsed form."""
        grant = Grant(location, int(self._clock()) + LIFETIME, writable)
        payload = msgpack.encode(grant)
        return f"{_text(payload)}.{_text(self._mac(holder, payload))}", grant

    def read(self, text: str, holder: Holder) -> Grant:
        """Returns the parsed grant of this holder.

        Raises `NotAllowed` if it belongs to another holder, is invalid, or has expired.
        """
        payload, _, mac = text.partition(".")
        try:
            data, given = _bytes(payload), _bytes(mac)
            right = hmac.compare_digest(given, self._mac(holder, data))
            grant = msgpack.decode(data, type=Grant) if right else None
        except (ValueError, binascii.Error, DecodeError):
            grant = None
        if grant is None:
            raise NotAllowed("the grant is not for this table, branch and caller")
        if grant.expires <= self._clock():
            raise NotAllowed("the grant has expired; load the table again")
        return grant

    def _mac(self, holder: Holder, payload: bytes) -> bytes:
        whose = (holder.warehouse, holder.ref, list(holder.key.elements), holder.caller)
        message = msgpack.encode((_PURPOSE, whose, payload))
        return hmac.digest(self._secret.reveal().encode(), message, hashlib.sha256)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
