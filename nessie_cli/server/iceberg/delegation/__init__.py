"""Access delegation: clients get access to the files of one table in S3, and to no others.

The server gives them temporary credentials (`vending.py`), or signs each of their requests
(`signing.py`). Neither works for a location that the server did not issue for this very table,
unless the caller may choose locations.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from nessie_cli.errors import InvalidInput, NotAllowed
from nessie_cli.iceberg.warehouses.locations import Allowed, issued_uuid
from nessie_cli.iceberg.warehouses.warehouse import (
    REMOTE_SIGNING,
    VENDED_CREDENTIALS,
    Warehouse,
    Warehouses,
)
from nessie_cli.model import ContentKey
from nessie_cli.server.iceberg.delegation.grants import Grants, Holder
from nessie_cli.server.iceberg.delegation.s3 import Account, Folder
from nessie_cli.server.iceberg.delegation.signing import Signed, Signer, SignRequest
from nessie_cli.server.iceberg.delegation.vending import Vendor

GRANT = "grant"
"""The parameter of the signing endpoint that holds a grant."""


class Table(NamedTuple):
    """A table as a caller sees it.

    `content_id` is None for a staged table whose location was issued just now. `resource` is its
    path below the client's catalog (`v1/PREFIX/namespaces/NS/tables/NAME`), `catalog` its URI.
    `trusted`: the caller may choose locations.
    """

    ref: str
    key: ContentKey
    content_id: str | None
    location: str
    resource: str
    catalog: str
    caller: str
    writable: bool
    trusted: bool


class FileAccess(NamedTuple):
    """The configuration of a table, storage credentials, and the second of their expiry."""

    config: Mapping[str, str] = {}
    credentials: tuple[Mapping[str, Any], ...] = ()
    expires: int | None = None


class Delegation:
    """Gives clients access to tables of warehouses in S3."""

    def __init__(self, warehouses: Warehouses, clock: Callable[[], float] = time.time) -> None:
        accounts = {one.name: Account(one) for one in warehouses.all}
        self._signers = {name: Signer(account) for name, account in accounts.items()}
        self._vendors = {
            one.name: Vendor(accounts[one.name], one.vending, clock)
            for one in warehouses.all
            if one.vending is not None
        }
        self._allowed = {one.name: Allowed(one.allowed) for one in warehouses.all}
        self._grants = Grants(warehouses.secret, clock)

    def access(self, mode: str, warehouse: Warehouse, table: Table) -> FileAccess:
        """Returns the access of a caller to a table, empty if it cannot be limited to its location.

        Raises `StoreUnavailable` if there are no credentials. Cost: at most one request to STS.
        """
        allowed = mode and _is_own(table) and self._allowed[warehouse.name].holds(table.location)
        folder = Folder.of(table.location) if allowed else None
        if folder is None:
            return FileAccess()
        if mode == VENDED_CREDENTIALS:
            return self._vended(warehouse, table, folder)
        return self._signing(warehouse, table)

    def sign(
        self,
        warehouse: Warehouse,
        holder: Holder,
        grant: str,
        request: SignRequest,
        *,
        writable: bool,
    ) -> Signed:
        """Returns a signed request.

        `writable`: whether the caller may write now. Raises `NotAllowed`, `InvalidInput`.
        """
        if REMOTE_SIGNING not in warehouse.delegation:
            raise NotAllowed(f"warehouse '{warehouse.name}' does not offer remote signing")
        given = self._grants.read(grant, holder)
        folder = Folder.of(given.location)
        if folder is None:
            raise InvalidInput("requests for the location of the table cannot be signed")
        may_write = writable and given.writable
        return self._signers[warehouse.name].sign(request, folder, writable=may_write)

    def _vended(self, warehouse: Warehouse, table: Table, folder: Folder) -> FileAccess:
        vendor = self._vendors[warehouse.name]
        found = vendor.credentials(folder, table.caller, writable=table.writable)
        if found is None:
            return FileAccess()
        refreshed = {"client.refresh-credentials-endpoint": f"{table.resource}/credentials"}
        prefix = f"{table.location.rstrip('/')}/"
        return FileAccess(
            # Older clients read the credentials here.
            {**found.config, **refreshed},
            ({"prefix": prefix, "config": found.config},),
            found.expires,
        )

    def _signing(self, warehouse: Warehouse, table: Table) -> FileAccess:
        holder = Holder(warehouse.name, table.ref, table.key, table.caller)
        text, grant = self._grants.issue(holder, table.location, writable=table.writable)
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


def _is_own(table: Table) -> bool:
    """Whether the server issued the location for this very table.

    Its UUID is the content id then, which no client can choose.
    """
    return (
        table.trusted or table.content_id is None or issued_uuid(table.location) == table.content_id
    )
