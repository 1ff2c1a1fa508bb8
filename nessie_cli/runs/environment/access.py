"""Addresses and credentials of the branch of a run."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote

from nessie_cli.errors import InvalidInput

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_RESERVED = {"spark_catalog": "Spark", "system": "DuckDB", "temp": "DuckDB"}


class RunAccess(NamedTuple):
    """Where the programs of a run reach its branch, and as whom."""

    id: str
    """The run's id, such as `20261130-0145-x7k2`."""
    api: str
    """The URL of REST v2, such as `http://127.0.0.1:40123/api/v2`."""
    iceberg: str
    """The URL of Iceberg REST without a reference, such as `http://127.0.0.1:40123/iceberg`."""
    branch: str
    base: str
    """The hash of the commit that the run began at."""
    token: str | None = None
    warehouse: str | None = None
    """The name of the warehouse; None stands for the server's first one."""
    catalog: str = "lake"
    """The name that the engines know the catalog by: the setting `run.catalog`."""

    @property
    def branch_uri(self) -> str:
        """The URI of the branch's Iceberg REST catalog."""
        return f"{self.iceberg}/{quote(self.branch, safe='')}"


def check_catalog_name(name: str) -> None:
    """Raises `InvalidInput` if engines cannot have a catalog of this name."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"run.catalog: {name!r} is not a name of a catalog",
            hint="use letters, digits, _ and -, beginning with a letter",
        )
    if engine := _RESERVED.get(name.lower()):
        raise InvalidInput(
            f"run.catalog: {engine} reserves the name {name}", hint="use another name, such as lake"
        )
