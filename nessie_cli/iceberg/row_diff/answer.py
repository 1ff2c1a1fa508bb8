"""The changed rows in the answer of a server (`wire.rows`)."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from msgspec import json
from pyiceberg.schema import Schema

from nessie_cli.errors import StoreUnavailable
from nessie_cli.iceberg.row_diff.difference import DifferenceSummary, FileTotals
from nessie_cli.wire.answers import decode_error, understood
from nessie_cli.wire.rows import FAULT, ROWS, FileCounts, RowEnd, RowSummary, frames


class RowAnswer:
    """An answer: the summary of the difference, and the rows as batches, if they were requested.

    The batches are like those of `RowChanges`.
    """

    def __init__(self, data: bytes, place: str) -> None:
        """Raises the error in the answer, and `StoreUnavailable` if it is cut off or damaged.

        `place` names the server in messages.
        """
        try:
            received = list(frames(data))
        except ValueError as error:
            raise StoreUnavailable(f"{place}: its answer is incomplete: {error}") from None
        first, *middle, last = (received[0], *received)
        if last.kind == FAULT:
            fault = json.decode(last.content)
            raise understood(lambda: decode_error(fault["status"], fault, place), "error")
        self.size = len(data)
        self.summary = understood(lambda: _summary(first.content), "summary")
        end = understood(lambda: json.decode(last.content, type=RowEnd), "end")
        self.ambiguous_keys = end.ambiguous_keys
        """The keys whose rows are not paired, because several rows have them."""
        self._place = place
        self._stream = b"".join(frame.content for frame in middle if frame.kind == ROWS)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches."""
        return pa.ipc.open_stream(self._stream).schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yields the batches."""
        try:
            with pa.ipc.open_stream(self._stream) as stream:
                for batch in stream:
                    _validate(batch)
                    yield batch
        except pa.ArrowException:
            raise StoreUnavailable(f"{self._place}: the rows in its answer are damaged") from None

    def read_all(self) -> pa.Table:
        """Returns all rows as one table."""
        return pa.Table.from_batches(self, self.schema)


def _validate(batch: pa.RecordBatch) -> None:
    """Raises `pyarrow.ArrowInvalid` for a damaged batch. A text need not be UTF-8, as in files."""
    batch.validate()
    for column in batch.columns:
        column.cast(_with_bytes(column.type)).validate(full=True)


def _with_bytes(type_: pa.DataType) -> pa.DataType:
    """Returns a type with bytes in the place of texts."""
    if pa.types.is_string(type_):
        return pa.binary()
    if pa.types.is_large_string(type_):
        return pa.large_binary()
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(_with_bytes(field.type)) for field in type_])
    if pa.types.is_large_list(type_):
        field = type_.value_field
        return pa.large_list(field.with_type(_with_bytes(field.type)))
    if pa.types.is_map(type_):
        return pa.map_(_with_bytes(type_.key_type), _with_bytes(type_.item_type))
    return type_


def _summary(text: bytes) -> DifferenceSummary:
    summary = json.decode(text, type=RowSummary)
    schema = Schema.model_validate(summary.schema)
    return DifferenceSummary(
        schema,
        summary.key,
        _totals(summary.added),
        _totals(summary.removed),
        _totals(summary.changed),
        summary.delete_files,
        summary.bytes,
    )


def _totals(counts: FileCounts) -> FileTotals:
    return FileTotals(counts.files, counts.rows, counts.bytes)
