"""Rows in temporary files, so that a diff needs little memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")
BYTES_DIVIDED = 4 * 2**20
"""The size of the batches that are divided: many small ones take more time."""


class Spool:
    """Batches of rows in temporary files: rows with the same hash are in the same part.

    The first column of the batches is the hash. `parts` is a power of two, up to 65,536.
    """

    def __init__(self, schema: pa.Schema, parts: int) -> None:
        self._schema = schema
        self._folder = TemporaryDirectory(prefix="nessie-rows-")
        self._writers: dict[int, Any] = {}
        self.parts = range(parts)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()
        self._folder.cleanup()

    def fill(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Writes all batches."""
        for batch in larger(batches):
            for part, rows in divided(batch, len(self.parts)):
                if part not in self._writers:
                    self._writers[part] = pa.ipc.new_stream(
                        self._path(part), self._schema, options=_OPTIONS
                    )
                self._writers[part].write_batch(rows)
        self._close()

    def read(self, part: int, columns: Sequence[int] | None = None) -> Iterator[pa.RecordBatch]:
        """Yields the batches of a part, or only some of their columns, in the order of writing."""
        path = Path(self._path(part))
        if not path.exists():
            return
        options = pa.ipc.IpcReadOptions(included_fields=columns)
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file, options=options) as stream:
            yield from stream

    def remove(self, part: int) -> None:
        """Removes a part that was read, so that it takes no space beside the next rows."""
        Path(self._path(part)).unlink(missing_ok=True)

    def _close(self) -> None:
        while self._writers:
            self._writers.popitem()[1].close()

    def _path(self, part: int) -> str:
        return str(Path(self._folder.name) / f"{part}.arrow")


def divided(batch: pa.RecordBatch, parts: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yields the rows of each part by the hash in the first column.

    `parts` is a power of two, up to 65,536. A null hash is in the first part.
    """
    if parts == 1:
        yield 0, batch
        return
    first = pc.binary_slice(batch.column(0), 0, 2).view(pa.uint16())
    numbers = pc.fill_null(pc.bit_wise_and(first, pa.scalar(parts - 1, pa.uint16())), 0)
    order = pc.sort_indices(numbers)
    batch = batch.take(order)
    runs = pc.run_end_encode(numbers.take(order))
    start = 0
    for part, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield part, batch.slice(start, end - start)
        start = end


def larger(
    batches: Iterable[pa.RecordBatch], least: int = BYTES_DIVIDED
) -> Iterator[pa.RecordBatch]:
    """Yields the rows of batches in fewer batches, of at least some bytes except the last one."""
    group: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        group.append(batch)
        size += batch.nbytes
        if size >= least:
            yield pa.concat_batches(group)
            group, size = [], 0
    if group:
        yield pa.concat_batches(group)
