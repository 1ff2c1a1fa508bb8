"""What a process needs to read the changed rows of one table, and its limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from nessie_cli.errors import NotAllowed
from nessie_cli.iceberg.warehouses.warehouse import Warehouse
from nessie_cli.model import IcebergTable


class RowLimits(NamedTuple):
    """The limits of a request for changed rows.

    `at_once` processes in each server process; `seconds` from the start of a process to the end of
    its answer; `bytes` read from files; `rows` and `unpacked` bytes of rows read, whether they
    changed or not; `answer` bytes of the answer; `memory` bytes of a process.
    """

    at_once: int = 2
    seconds: int = 120
    bytes: int = 2**30
    rows: int = 10_000_000
    unpacked: int = 2 * 2**30
    answer: int = 64 * 2**20
    memory: int = 2 * 2**30


class RowRequest(Struct, frozen=True, kw_only=True):
    """A table in two states, and the selected rows. A state is None if there is no table.

    `folders` are those in which the files of the table have to lie, if there are any. Temporary
    files are in `temporary`. Without `rows`, only metadata is read.
    """

    before: IcebergTable | None
    after: IcebergTable | None
    key: Sequence[str] = ()
    columns: Sequence[str] = ()
    where: str | None = None
    limit: int | None = None
    rows: bool = True
    warehouse: Warehouse
    folders: Sequence[str] = ()
    temporary: str = ""
    limits: RowLimits = RowLimits()


class LimitExceeded(NotAllowed):
    """The request would exceed a limit of the server. Clients may read the files themselves."""
