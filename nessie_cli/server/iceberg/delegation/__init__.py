"""Access delegation: clients get access to the files of one table in S3, and to no others.

The server gives them temporary credentials (`vending.py`), or signs each of their requests
(`signing.py`). Neither works for a location that the server did not issue for this very table,
unless the caller may choose locations.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from msgspec import DecodeError, msgpack

from nessie_cli.errors import InvalidInput, NotAllowed
from nessie_cli.iceberg.locations import Allowed, issued_uuid
from nessie_cli.iceberg.warehouses.warehouse import (
    REMOTE_SIGNING,
    VENDED_CREDENTIALS,
    Warehouse,
    Warehouses,
)
from nessie_cli.model import ContentKey, Secret
from nessie_cli.server.iceberg.delegation.s3 import Account, Folder
from nessie_cli.server.iceberg.delegation.signing import Signed, Signer, SignRequest
from nessie_cli.server.iceberg.delegation.vending import Vendor

DELETE_ENABLED = "s3.delete-enabled"
"""The setting of Iceberg's S3FileIO that lets it delete files."""
GRANT = "grant"
"""The parameter of the signing endpoint that holds a grant."""


class DelegatedTable(NamedTuple):
    """A table whose files a caller accesses, as the caller sees it.

    `content_id` is the id that a staged table will have; for one, `last_change` is the commit that
    changed the key last, empty if none did. `resource` is the path of the table below the client's
    catalog (`v1/PREFIX/namespaces/NS/tables/NAME`), `catalog` its URI. `trusted`: the caller may
    choose locations.
    """

    ref: str
    key: ContentKey
    content_id: str
    location: str
    resource: str
    catalog: str
    caller: str
    writable: bool
    trusted: bool
    last_change: str | None = None


class FileAccess(NamedTuple):
    """The configuration of a table, storage credentials, and the second of their expiry."""

    config: Mapping[str, str] = {}
    credentials: tuple[Mapping[str, Any], ...] = ()
    expires: int | None = None


class Delegation:
    """Gives clients access to tables of warehouses in S3."""

    def __init__(self, warehouses: Warehouses, clock: Callable[[], float] = time.time) -> None:
        accounts = {warehouse.name: Account(warehouse) for warehouse in warehouses.all}
        self._signers = {name: Signer(account) for name, account in accounts.items()}
        self._vendors = {
            warehouse.name: Vendor(accounts[warehouse.name], warehouse.vending, clock)
            for warehouse in warehouses.all
            if warehouse.vending is not None
        }
        self._allowed = {warehouse.name: Allowed(warehouse.allowed) for warehouse in warehouses.all}
        self._grants = Grants(warehouses.secret, clock)

    def access(self, mode: str, warehouse: Warehouse, table: DelegatedTable) -> FileAccess:
        """Returns the access of a caller to a table, empty if it cannot be limited to its location.

        Raises `StoreUnavailable` if there are no credentials. Cost: at most one request to STS.
        """
        own = table.trusted or is_issued(table.location, table.content_id)
        allowed = mode and own and self._allowed[warehouse.name].holds(table.location)
        folder = Folder.of(table.location) if allowed else None
        if folder is None:
            return FileAccess()
        by_mode = self._vended if mode == VENDED_CREDENTIALS else self._signing
        access = by_mode(warehouse, table, folder)
        if access.config and not warehouse.delete_files:
            # Otherwise clients try it, and report errors.
            return access._replace(config={**access.config, DELETE_ENABLED: "false"})
        return access

    def grant(self, warehouse: Warehouse, holder: Holder, text: str) -> Grant:
        """Returns the grant of a holder. Raises `NotAllowed`; see `Grants.read`."""
        if REMOTE_SIGNING not in warehouse.delegation:
            raise NotAllowed(f"warehouse '{warehouse.name}' does not offer remote signing")
        return self._grants.read(text, holder)

    def sign(
        self, warehouse: Warehouse, grant: Grant, request: SignRequest, *, writable: bool
    ) -> Signed:
        """Returns a signed request.

        `writable`: whether the caller may write now. Raises `NotAllowed`, `InvalidInput`.
        """
        folder = Folder.of(grant.location)
        if folder is None:
            raise InvalidInput("requests for the location of the table cannot be signed")
        may_write = writable and grant.writable
        return self._signers[warehouse.name].sign(request, folder, writable=may_write)

    def _vended(self, warehouse: Warehouse, table: DelegatedTable, folder: Folder) -> FileAccess:
        vendor = self._vendors[warehouse.name]
        credentials = vendor.credentials(folder, table.caller, writable=table.writable)
        if credentials is None:
            return FileAccess()
        refreshed = {"client.refresh-credentials-endpoint": f"{table.resource}/credentials"}
        prefix = f"{table.location.rstrip('/')}/"
        return FileAccess(
            # Older clients read the credentials here.
            {**credentials.config, **refreshed},
            ({"prefix": prefix, "config": credentials.config},),
            credentials.expires,
        )

    def _signing(self, warehouse: Warehouse, table: DelegatedTable, _: Folder) -> FileAccess:
        holder = Holder(warehouse.name, table.ref, table.key, table.caller)
        text, grant = self._grants.issue(holder, table)
        endpoint = f"{table.resource}/sign?{GRANT}={text}"
        config = {
            "s3.remote-signing-enabled": "true",
            "signer.endpoint": endpoint,
            # Clients before Iceberg 1.11, and PyIceberg, know these names.
            "s3.signer": "S3V4RestSigner",
            "s3.signer.endpoint": endpoint,
        }
        if table.catalog:
            config |= {"signer.uri": table.catalog, "s3.signer.uri": table.catalog}
        return FileAccess(config, (), grant.expires)


def is_issued(location: str, content_id: str) -> bool:
    """Whether the server issued a location for the table with this content id.

    Its UUID is the content id then, which no client can choose.
    """
    return issued_uuid(location) == content_id


LIFETIME = 12 * 3600
"""Seconds that a grant is valid.

Clients keep it as long as they use a loaded table; rights are checked at each request.
"""
_PURPOSE = b"nessie remote signing 1"


class Grant(NamedTuple):
    """The content of a grant: the table, the second of its expiry, and whether it may write."""

    location: str
    expires: int
    writable: bool
    content_id: str
    last_change: str | None

    def is_for(self, content_id: str | None, last_change: str) -> bool:
        """Whether it is for the content that its key has now.

        A grant for a staged table is also valid as long as the key has not been changed.
        """
        return (
            self.last_change == last_change if content_id is None else self.content_id == content_id
        )


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

    def issue(self, holder: Holder, table: DelegatedTable) -> tuple[str, Grant]:
        """Returns a new grant as text and in parsed form."""
        expires = int(self._clock()) + LIFETIME
        grant = Grant(table.location, expires, table.writable, table.content_id, table.last_change)
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
