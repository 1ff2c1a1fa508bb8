"""The rows that differ between two states of a table.

Reads the files that differ, once. Rows that are in both states cancel out, also if they were
written to other files. The rows go through temporary files, divided by their hashes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.row_diff.difference import TableDifference
from nessie_cli.iceberg.row_diff.encoding import HASH, hashes
from nessie_cli.iceberg.row_diff.filters import matching, row_filter
from nessie_cli.iceberg.row_diff.parquet import Reader
from nessie_cli.iceberg.row_diff.predicates import Condition
from nessie_cli.iceberg.row_diff.reading import Check, RowReader
from nessie_cli.iceberg.row_diff.schemas import arrow_type
from nessie_cli.iceberg.row_diff.spool import Spool
from nessie_cli.model.progress import Progress

CHANGE_TYPE = "_change_type"
"""The column with the kind of change, as in the changelog views of Iceberg."""
INSERT, DELETE, BEFORE, AFTER = "INSERT", "DELETE", "UPDATE_BEFORE", "UPDATE_AFTER"
ROWS_OF_PART = 200_000
"""The rows that are compared at once in memory, as far as `_MOST_PARTS` allow."""
_BYTES_OF_PART = 8 * 2**20
_MOST_PARTS = 64
"""More parts would need more open files than some systems allow."""


class RowChanges:
    """The rows that differ, as batches of Arrow. To be iterated once.

    A batch has the column `_change_type` and the compared columns. The two rows of an update follow
    each other. Rows with a key are sorted by it within each batch. `check` is called with each
    batch of rows that was read, and may raise an error.
    """

    def __init__(
        self,
        difference: TableDifference,
        reader: Reader,
        progress: Progress | None = None,
        rows_of_part: int = ROWS_OF_PART,
        check: Check | None = None,
    ) -> None:
        self.difference = difference
        self._rows_of_part = rows_of_part
        self.ambiguous_keys = 0
        """The keys whose rows are not paired, because several rows have them. Counted so far."""
        self._rows = RowReader(difference, reader, progress, check)
        columns = arrow_type(difference.schema.as_struct())
        if CHANGE_TYPE in columns.names:
            raise InvalidInput(
                f"the rows cannot be compared: the table has a column {CHANGE_TYPE}, which is that"
                " of the changes here",
                hint="--columns selects the others",
            )
        self.schema = pa.schema([pa.field(CHANGE_TYPE, pa.string()), *columns])

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yields the batches. Raises `InvalidInput` or `StoreUnavailable` for a file."""
        left = self.difference.limit
        if left is None:
            yield from self._matching()
            return
        for batch in self._matching() if left else ():
            changes = _changes_in(batch)
            yield batch if len(changes) <= left else batch.slice(0, changes[left])
            left -= min(len(changes), left)
            if not left:
                return

    def _matching(self) -> Iterator[pa.RecordBatch]:
        if self.difference.where is None:
            yield from self._changes()
            return
        condition = row_filter(self.difference.where, self.difference.schema)
        for batch in self._changes():
            changes = _matching(batch, condition)
            if changes.num_rows:
                yield changes

    def read_all(self) -> pa.Table:
        """Returns all rows as one table."""
        return pa.Table.from_batches(self, self.schema)

    def _changes(self) -> Iterator[pa.RecordBatch]:
        files = self.difference.files
        if all(pair.before is None for pair in files) or all(pair.after is None for pair in files):
            # No row can cancel out, and none was updated.
            yield from map(self._unpaired, self._rows)
            return
        with self._spool() as spool:
            spool.fill(map(with_hashes, self._rows))
            rows = _not_cancelled_in(spool)
            if not self.difference.key and self.difference.next_row_id is None:
                yield from map(self._unpaired, rows)
                return
            with self._spool() as by_key:
                by_key.fill(map(self._with_keys, rows))
                for part in by_key.parts:
                    if batches := list(by_key.read(part)):
                        yield self._paired(pa.Table.from_batches(batches))

    def _spool(self) -> Spool:
        difference = self.difference
        rows = sum(pair.file.records for pair in difference.files) // self._rows_of_part
        parts = 1 << max(rows, difference.bytes // _BYTES_OF_PART).bit_length()
        schema = pa.schema([("hash", HASH), *self._rows.schema])
        return Spool(schema, min(parts, _MOST_PARTS))

    def _batch(self, change: pa.Array, rows: pa.Array) -> pa.RecordBatch:
        return pa.record_batch([change, *rows.flatten()], schema=self.schema)

    def _unpaired(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        change = pc.if_else(pc.greater(batch["sign"], 0), INSERT, DELETE)
        return self._batch(change, batch["row"])

    def _with_keys(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Replaces the hashes of rows by those of their keys, null for rows that have none."""
        if self.difference.key:
            keys = hashes(_columns(batch["row"], self.difference.key))
        else:
            shared = pc.less(batch["row_id"], self.difference.next_row_id)
            keys = pc.if_else(shared, hashes([batch["row_id"]]), None)
        return batch.set_column(0, "hash", keys)

    def _paired(self, table: pa.Table) -> pa.RecordBatch:
        """Returns the changes of some rows. Two rows with the same key are an update."""
        groups = table.select(["hash", "sign"]).filter(pc.field("hash").is_valid())
        groups = groups.group_by("hash").aggregate([("sign", "count"), ("sign", "sum")])
        is_pair = (pc.field("sign_count") == 2) & (pc.field("sign_sum") == 0)  # noqa: PLR2004
        pairs = groups.filter(is_pair)["hash"].combine_chunks()
        is_of_both = pc.abs(pc.field("sign_sum")) < pc.field("sign_count")
        self.ambiguous_keys += groups.filter(is_of_both & ~is_pair).num_rows
        rows = table["row"].combine_chunks()
        key = _columns(rows, self.difference.key) or [table["row_id"].combine_chunks()]
        order = _order([*key, table["sign"].combine_chunks()])
        is_new = pc.greater(table["sign"], 0).combine_chunks()
        change = pc.if_else(
            pc.is_in(table["hash"].combine_chunks(), value_set=pairs),
            pc.if_else(is_new, AFTER, BEFORE),
            pc.if_else(is_new, INSERT, DELETE),
        )
        return self._batch(change.take(order), rows.take(order))


def with_hashes(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Adds the hash of each row, as the first column."""
    schema = pa.schema([("hash", HASH), *batch.schema])
    return pa.record_batch([hashes([batch["row"]]), *batch.columns], schema=schema)


def _columns(rows: pa.Array, names: Iterable[str]) -> list[pa.Array]:
    """Returns some columns of rows."""
    arrays = dict(zip((field.name for field in rows.type), rows.flatten(), strict=True))
    return [arrays[name] for name in names]


def _not_cancelled_in(spool: Spool) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a spool that do not cancel out, and removes its parts."""
    for part in spool.parts:
        yield from not_cancelled(partial(spool.read, part))
        spool.remove(part)


def not_cancelled(
    read: Callable[[Sequence[int] | None], Iterable[pa.RecordBatch]],
) -> Iterator[pa.RecordBatch]:
    """Yields rows without those that are in both states equally often.

    `read` returns all rows, or some of their columns. The first ones are the hash and the sign.
    """
    signs = list(read([0, 1]))
    if not signs:
        return
    net = pa.Table.from_batches(signs).group_by("hash").aggregate([("sign", "sum")])
    net = net.filter(pc.field("sign_sum") != 0)
    # How many rows of a hash are left, with their sign.
    left = dict(zip(net["hash"].to_pylist(), net["sign_sum"].to_pylist(), strict=True))
    values = net["hash"].combine_chunks()
    for whole in read(None) if left else ():
        batch = whole.filter(pc.is_in(whole["hash"], value_set=values))
        rows = zip(batch["hash"].to_pylist(), batch["sign"].to_pylist(), strict=True)
        chosen = []
        for number, (hash_, sign) in enumerate(rows):
            count = left.get(hash_, 0)
            if count * sign > 0:
                left[hash_] = count - sign
                chosen.append(number)
        if chosen:
            yield batch.take(pa.array(chosen))


def _order(columns: Sequence[pa.Array]) -> pa.Array:
    """Returns the order of rows by some columns, ascending."""
    arrays = [c.storage if isinstance(c, pa.ExtensionArray) else c for c in columns]
    names = list(map(str, range(len(arrays))))
    return pc.sort_indices(pa.table(arrays, names), sort_keys=[(n, "ascending") for n in names])


def _changes_in(batch: pa.RecordBatch) -> list[int]:
    """Returns the number of the first row of each change."""
    kinds = batch[CHANGE_TYPE].to_pylist()
    return [number for number, kind in enumerate(kinds) if kind != AFTER]


def _matching(batch: pa.RecordBatch, condition: Condition) -> pa.RecordBatch:
    """Returns the changes whose row matches before or after."""
    rows = set(matching(batch, condition))
    for number, change in enumerate(batch[CHANGE_TYPE].to_pylist()):
        if change == BEFORE and not rows.isdisjoint({number, number + 1}):
            rows |= {number, number + 1}
    return batch.take(pa.array(sorted(rows), pa.int64()))
