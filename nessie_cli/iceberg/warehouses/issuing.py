"""UUIDs and folders of new tables, which the server recognises without storing them.

A client creates a table in two steps: it gets the metadata of a staged table, and commits it later.
The UUID is the content id of the table and the end of its location, so a client must not choose it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import uuid
from collections.abc import Collection, Iterable

from msgspec import msgpack

from nessie_cli.iceberg.locations import LocationRefused, parse, readings, without_dots
from nessie_cli.model import ContentKey, Secret

_PURPOSE = "nessie table uuid 2"
_HALF = 8
_NOT_FOR_FOLDERS = re.compile(r"[^\w.-]|^\.+")
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_ISSUED_FOLDER = re.compile(rf"[^/]*_({_UUID})")


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


def folder_for(base: str, names: Iterable[str]) -> str:
    """Returns a folder with these names below a base, without characters that need escapes."""
    folders = (_NOT_FOR_FOLDERS.sub("_", name) for name in names)
    return "/".join((base.rstrip("/"), *folders))


def issued_uuid(location: str) -> str | None:
    """Returns the UUID of the outermost folder `NAME_UUID` in which a location lies."""
    match = _ISSUED_FOLDER.fullmatch(issued_folder(location).rpartition("/")[2])
    return match[1] if match else None


def issued_folder(location: str) -> str:
    """Returns the location of the outermost folder `NAME_UUID`, or the location without one."""
    folders = location.split("/")
    for number, folder in enumerate(folders, 1):
        if _ISSUED_FOLDER.fullmatch(folder):
            return "/".join(folders[:number])
    return location


def refuse_issued(location: str, own: Collection[str | None]) -> None:
    """Refuse a folder that the server issued, unless its UUID is one of the table's own.

    Some programs decode a location or resolve its dots before they use it, so all of its readings
    count.
    """
    place = parse(location)
    for reading in readings(place.path):
        for path in (reading, without_dots(reading)):
            issued = issued_uuid(place._replace(path=path).normal)
            if issued is not None and issued not in own:
                raise LocationRefused(f"location {location} lies in the folder of another table")
