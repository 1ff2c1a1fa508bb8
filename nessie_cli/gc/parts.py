"""The finished parts of a mark, after which an interrupted mark resumes.

A part is two files in a folder of the run: the live files as Parquet, and then the notes as JSON.
The JSON file shows that the part is complete.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from nessie_cli.errors import StoreUnavailable
from nessie_cli.gc.datasets import make_durable, parquet_writer
from nessie_cli.gc.schemas import LIVE
from nessie_cli.workspace.files import replace_text


class GcFinding(Struct, frozen=True):
    """A problem: the fields of the dataset `findings`."""

    kind: str
    content_id: str | None = None
    key: str | None = None
    reference: str | None = None
    location: str | None = None
    base: str | None = None
    message: str = ""


class Notes(Struct):
    """The results of a part besides the live files.

    `bases` has (content id, key, base). `settled` has (content id, folder of metadata files) of
    tables with a known location. `broken` has findings about live contents, `findings` all others.
    """

    bases: list[tuple[str, str, str]] = []
    settled: list[tuple[str, str]] = []
    broken: list[GcFinding] = []
    findings: list[GcFinding] = []


class MarkParts:
    """The parts in a folder, by number."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def notes(self, number: int) -> Notes | None:
        """Returns the notes of a finished part, otherwise None."""
        if not self.file(number).exists():
            return None
        try:
            return msgspec.json.decode(self._notes(number).read_bytes(), type=Notes)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def file(self, number: int) -> Path:
        """Returns the Parquet file of a part."""
        return self._folder / f"part-{number:05}.parquet"

    def _notes(self, number: int) -> Path:
        return self._folder / f"part-{number:05}.json"

    @contextmanager
    def writing(self, number: int, notes: Notes) -> Iterator[Callable[[Any], None]]:
        """Writes a part: a context manager of a function that takes rows of `LIVE`.

        The block fills `notes`. The part is finished unless the block raises an error.
        """
        try:
            self._folder.mkdir(exist_ok=True)
            self._notes(number).unlink(missing_ok=True)
            with parquet_writer(self._folder, LIVE, self.file(number).name) as write:
                yield write
            make_durable(self._folder)
        except OSError as error:
            raise StoreUnavailable(
                f"{self._folder} cannot be written: {error.strerror or error}"
            ) from None
        replace_text(self._notes(number), msgspec.json.encode(notes).decode())

    def move_into(self, folder: Path) -> None:
        """Moves the Parquet files of all parts to a folder of the same run."""
        for path in sorted(self._folder.glob("part-*.parquet")):
            path.rename(folder / path.name)

    def drop(self) -> None:
        """Deletes the parts."""
        shutil.rmtree(self._folder, ignore_errors=True)
