"""UUIDs of new tables, which the server recognises without storing them.

A client creates a table in two steps: it gets the metadata of a staged table, and commits it later.
The UUID is the content id of the table and the end of its location, so a client must not choose it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import uuid

from msgspec import msgpack

from nessie_cli.model import ContentKey, Secret

_PURPOSE = "nessie table uuid 2"
_HALF = 8


class UuidIssuer:
    """Issues UUIDs of version 4: one half is random, the other half authenticates it.

    They are for a table that does not exist yet. A UUID expires with the next change of its key, so
    no second table gets it: the first one may have been renamed, or live on another branch.
    """

    def __init__(self, secret: Secret) -> None:
        self._secret = secret

    def issue(self, branch: str, key: ContentKey, last_change: str) -> str:
        """Returns a new UUID for a table of a branch. A commit changed its key last, or none."""
        return self._made(secrets.token_bytes(_HALF), branch, key, last_change)

    def has_issued(self, text: str, branch: str, key: ContentKey, last_change: str) -> bool:
        """Whether a UUID was issued for a table of this branch and key since its last change."""
        try:
            random = uuid.UUID(text).bytes[:_HALF]
        except ValueError:
            return False
        return hmac.compare_digest(
            self._made(random, branch, key, last_change).encode(), text.encode()
        )

    def _made(self, random: bytes, branch: str, key: ContentKey, last_change: str) -> str:
        # The bits of the version are in this half, those of the variant in the other one.
        random = uuid.UUID(bytes=random + bytes(_HALF), version=4).bytes[:_HALF]
        message = msgpack.encode((_PURPOSE, branch, list(key.elements), last_change, random))
        mac = hmac.digest(self._secret.reveal().encode(), message, hashlib.sha256)
        return str(uuid.UUID(bytes=random + mac[:_HALF], version=4))
