"""The tables of a run: folders of Parquet files that appear whole or not at all, and are read in pieces, however long they are.

A dataset is replaced by writing another folder beside it, and then naming that one in `run.json`: one atomic step.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nessie_cli.errors import InvalidInput, StoreUnavailable

ROWS_PER_BATCH = 65_536
"""Rows that are in memory at a time."""


class Dataset:
    """One table of a run. `current` tells the name of the folder that holds it, None where there is none; `becomes` makes another one current."""

    def __init__(
        self,
        run: Path,
        name: str,
        current: Callable[[str], str | None],
        becomes: Callable[[str, str], None],
    ) -> None:
        self.name = name
        self._run = run
        self._current = current
        self._becomes = becomes

    @property
    def exists(self) -> bool:
        """Whether it has been written."""
        return self._current(self.name) is not None

    @property
    def folder(self) -> Path:
        """The folder of its Parquet files, also for Spark; raises `InvalidInput` where it has not been written or is gone."""
        current = self._current(self.name)
        if current is None:
            raise InvalidInput(f"{self._run}: the run has no {self.name} yet")
        if not (self._run / current).is_dir():
            raise InvalidInput(
                f"{self._run / current}: is gone, though the run needs it; make a new run"
            )
        return self._run / current

    @property
    def pieces(self) -> Path:
        """A folder for what is finished of it while it is being made: that is still there when the process was stopped."""
        return self._run / f"{self.name}-pieces"

    @property
    def files(self) -> list[Path]:
        """Its Parquet files, in an order that does not change."""
        return sorted(
            path for path in self.folder.rglob("*.parquet") if not path.name.startswith((".", "_"))
        )

    @property
    def rows(self) -> int:
        """How many rows it has, by the files' footers."""
        from pyarrow import parquet

        return sum(parquet.read_metadata(path).num_rows for path in self.files)

    def digest(self) -> str:
        """A SHA-256 over all of it: what was reviewed is what is done."""
        found = hashlib.sha256()
        for path in self.files:
            found.update(f"{path.relative_to(self.folder)}:{path.stat().st_size}:".encode())
            with path.open("rb") as file:
                while piece := file.read(2**20):
                    found.update(piece)
        return found.hexdigest()

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Its rows as `pyarrow.RecordBatch`es. Memory: one batch. Raises `InvalidInput` for a file that is no Parquet."""
        import pyarrow as pa
        from pyarrow import parquet

        for path in self.files:
            try:
                with parquet.ParquetFile(path) as file:
                    yield from file.iter_batches(
                        ROWS_PER_BATCH, columns=None if columns is None else list(columns)
                    )
            except (pa.ArrowInvalid, OSError) as error:
                raise InvalidInput(
                    f"{path}: cannot be read: {str(error).partition(chr(10))[0]}"
                ) from None

    def records(self, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
        """Its rows, one by one."""
        for batch in self.batches(columns):
            yield from batch.to_pylist()

    @contextmanager
    def writing(self, schema: Any) -> Iterator[Callable[[Any], None]]:
        """Write it anew: the block is given a function that takes a `pyarrow.RecordBatch` or `Table` of this schema, in whatever size.

        When the block ends well the new rows take the place of the old ones; when it does not, the old ones are still there.
        """
        with self.replacing() as folder, parquet_writer(folder, schema) as write:
            yield write

    @contextmanager
    def replacing(self) -> Iterator[Path]:
        """A new folder to put Parquet files into, below it or deeper, as Spark does; it takes the place of the old one when the block ends well."""
        before = self._current(self.name)
        number = 0 if before is None else int(before.rpartition("-")[2]) + 1
        name = f"{self.name}-{number}"
        folder = self._run / name
        try:
            # What a process that was killed has left there was never current.
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            yield folder
            make_durable(folder)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise StoreUnavailable(
                f"{folder}: cannot be written: {error.strerror or error}"
            ) from None
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self._becomes(self.name, name)
        if before is not None:
            shutil.rmtree(self._run / before, ignore_errors=True)


@contextmanager
def parquet_writer(
    folder: Path, schema: Any, name: str = "part-00000.parquet"
) -> Iterator[Callable[[Any], None]]:
    """Write one Parquet file: the block is given a function that takes a `pyarrow.RecordBatch` or `Table` of this schema."""
    from pyarrow import parquet

    with parquet.ParquetWriter(folder / name, schema) as file:

        def write(rows: Any) -> None:
            if rows.num_rows:
                file.write(rows)

        yield write


def make_durable(folder: Path) -> None:
    """Wait until the disk has every file of a folder, and the folder's own entries."""
    for place in (*folder.rglob("*"), folder, folder.parent):
        descriptor = os.open(place, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
