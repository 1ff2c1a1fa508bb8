"""The part of the server that gives clients access to files. Without one, clients use their own."""

from __future__ import annotations

from typing import Any, Protocol

from nessie_cli.iceberg.warehouses.warehouse import Warehouse
from nessie_cli.model import ContentKey


class Delegation(Protocol):
    """Gives clients access to the files of a table."""

    def modes(self, header: str | None) -> str:
        """Returns what a client gets that sends this `X-Iceberg-Access-Delegation`."""

    def table_config(
        self,
        asked: str | None,
        warehouse: Warehouse,
        location: str,
        /,
        *,
        ref: str,
        key: ContentKey,
        caller: str,
        writable: bool,
    ) -> tuple[dict[str, str], list[dict[str, Any]]]:
        """Returns the configuration of a table for a client, and its storage credentials."""


class NoDelegation:
    """Tells clients the settings of the warehouse that are no secrets."""

    def modes(self, header: str | None) -> str:  # noqa: ARG002 - the interface
        """See `Delegation`."""
        return ""

    def table_config(
        self, _asked: str | None, warehouse: Warehouse, _location: str, **_: Any
    ) -> tuple[dict[str, str], list[dict[str, Any]]]:
        """See `Delegation`."""
        return dict(warehouse.client_config), []
