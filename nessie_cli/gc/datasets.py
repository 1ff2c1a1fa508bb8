"""The datasets of a run: folders of Parquet files that are replaced atomically.

A new folder is written next to the old one, then `run.json` names the new one. Datasets are read in
batches, so their size does not matter.
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
"""The number of rows in a batch."""


class Dataset:
    """One dataset of a run.

    `current` returns the name of its folder or None, `becomes` switches to another folder.
    """

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
        """Whether the dataset has been written."""
        return self._current(self.name) is not None

    @property
    def folder(self) -> Path:
        """The folder of its Parquet files. Raises `InvalidInput` if it is missing."""
        current = self._current(self.name)
        if current is None:
            raise InvalidInput(f"{self._run}: the run has no {self.name} yet")
        if not (self._run / current).is_dir():
            raise InvalidInput(
                f"{self._run / current} is missing", hint="begin a new run with `nessie gc mark`"
            )
        return self._run / current

    @property
    def parts(self) -> Path:
        """A folder for its finished parts, which survive an interruption."""
        return self._run / f"{self.name}-parts"

    @property
    def files(self) -> list[Path]:
        """Returns its Parquet files in a fixed order."""
        return sorted(
            path for path in self.folder.rglob("*.parquet") if not path.name.startswith((".", "_"))
        )

    @property
    def rows(self) -> int:
        """Returns the number of rows, from the footers of the files."""
        from pyarrow import parquet

        return sum(parquet.read_metadata(path).num_rows for path in self.files)

    def digest(self) -> str:
        """Returns a SHA-256 over all rows, so that an approval covers exactly these."""
        sha256 = hashlib.sha256()
        for path in self.files:
            sha256.update(f"{path.relative_to(self.folder)}:{path.stat().st_size}:".encode())
            with path.open("rb") as file:
                while chunk := file.read(2**20):
                    sha256.update(chunk)
        return sha256.hexdigest()

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Yields its rows as `pyarrow.RecordBatch`es. Memory: one batch. Raises `InvalidInput`."""
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
                    f"{path} cannot be read: {str(error).partition(chr(10))[0]}"
                ) from None

    def records(self, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
        """Yields its rows."""
        for batch in self.batches(columns):
            yield from batch.to_pylist()

    @contextmanager
    def writing(self, schema: Any) -> Iterator[Callable[[Any], None]]:
        """Replaces the rows: a context manager of a function that takes batches of this schema.

        A batch is a `pyarrow.RecordBatch` or `Table` of any size. If the block raises an error, the
        old rows are kept.
        """
        with self.replacing() as folder, parquet_writer(folder, schema) as write:
            yield write

    @contextmanager
    def replacing(self) -> Iterator[Path]:
        """Replaces the rows: a context manager of a new folder for Parquet files, for Spark."""
        before = self._current(self.name)
        number = 0 if before is None else int(before.rpartition("-")[2]) + 1
        name = f"{self.name}-{number}"
        folder = self._run / name
        try:
            # A process that was killed may have left the folder. It never was the current one.
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            yield folder
            make_durable(folder)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise StoreUnavailable(
                f"{folder} cannot be written: {error.strerror or error}"
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
    """Writes one Parquet file: a context manager of a function that takes batches."""
    from pyarrow import parquet

    with parquet.ParquetWriter(folder / name, schema) as file:

        def write(rows: Any) -> None:
            if rows.num_rows:
                file.write(rows)

        yield write


def make_durable(folder: Path) -> None:
    """Syncs the files of a folder and the folder itself to the disk."""
    for place in (*folder.rglob("*"), folder, folder.parent):
        descriptor = os.open(place, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
