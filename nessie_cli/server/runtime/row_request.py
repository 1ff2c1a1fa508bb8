"""What a process needs to read or merge the rows of tables, and its limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from nessie_cli.errors import NotAllowed
from nessie_cli.iceberg.warehouses.warehouse import Warehouse
from nessie_cli.model import ContentKey, IcebergTable

if TYPE_CHECKING:
    import pyarrow as pa


class RowLimits(NamedTuple):
    """The limits of a request for rows.

    `at_once` processes in each server process; `seconds` from the start of a process to the end of
    its answer; `bytes` read from files; `rows` and `unpacked` bytes of rows read, whether they
    changed or not; `answer` bytes of the answer, which contains the new files of merged rows;
    `memory` bytes of a process.
    """

    at_once: int = 2
    seconds: int = 120
    bytes: int = 2**30
    rows: int = 10_000_000
    unpacked: int = 2 * 2**30
    answer: int = 64 * 2**20
    memory: int = 2 * 2**30


class RowRequest(Struct, frozen=True, kw_only=True, tag=True):
    """A table in two states, and the selected rows. A state is None if there is no table.

    `folders` are those in which the files of the table have to lie, if there are any. Temporary
    files are in `temporary`. Without `rows`, only metadata is read. The limit of the answer is that
    of `compressed` rows, or of their bytes in memory.
    """

    before: IcebergTable | None
    after: IcebergTable | None
    key: Sequence[str] = ()
    columns: Sequence[str] = ()
    where: str | None = None
    limit: int | None = None
    rows: bool = True
    compressed: bool = True
    warehouse: Warehouse
    folders: Sequence[str] = ()
    temporary: str = ""
    limits: RowLimits = RowLimits()


class TableRows(Struct, frozen=True, kw_only=True):
    """A table whose rows are to be merged: its states, and the decisions about its rows.

    `folders` are those of `RowRequest`. Without `reads`, only manifests are read, which say how
    many bytes the merge would read. `decisions` say by the digests of rows and cells in conflict
    (`row_digest`) whether theirs is taken, and `rest` says it for all others, if it is not None.
    """

    key: ContentKey
    base: IcebergTable
    ours: IcebergTable
    theirs: IcebergTable
    warehouse: Warehouse
    folders: Sequence[str] = ()
    reads: bool = True
    decisions: Mapping[str, bool] = {}
    rest: bool | None = None


class RowMergeRequest(Struct, frozen=True, kw_only=True, tag=True):
    """Tables whose rows are merged, for a merge with a `description`.

    With `writes`, the answer has all new files of each table, otherwise only its metadata file. At
    most `most_shown` conflicts of each table are in the answer. The `limits` are those of all
    tables together; those of what is read hold once more after decisions.
    """

    tables: Sequence[TableRows]
    description: str
    writes: bool
    most_shown: int
    temporary: str = ""
    limits: RowLimits = RowLimits()


class LimitExceeded(NotAllowed):
    """The request would exceed a limit of the server. Clients may read the files themselves."""


class RowCounter:
    """Counts what a process reads. Raises `LimitExceeded`."""

    def __init__(self, limits: RowLimits) -> None:
        self._limits = limits
        self._bytes = self._rows = self._unpacked = 0

    def read(self, size: int) -> None:
        """Counts bytes of files."""
        self._bytes += size
        if self._bytes > self._limits.bytes:
            raise LimitExceeded(f"the server reads at most {self._limits.bytes >> 20} MiB of files")

    def rows(self, batch: pa.RecordBatch) -> None:
        """Counts rows of files."""
        self._rows += batch.num_rows
        self._unpacked += batch.nbytes
        if self._rows > self._limits.rows:
            raise LimitExceeded(f"the server compares at most {self._limits.rows:,} rows")
        if self._unpacked > self._limits.unpacked:
            raise LimitExceeded(
                f"the server compares at most {self._limits.unpacked >> 20} MiB of rows"
            )
