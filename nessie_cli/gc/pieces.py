"""What is finished of a mark, piece by piece: kept while it runs, so that one that was stopped goes on behind the last finished piece.

A piece is two files in a folder of the run: the files that are needed, as Parquet, and what was found beside them, as JSON. That one comes second,
and says that the piece is whole.
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


class Finding(Struct, frozen=True):
    """Something that is not as it should be: the fields of the dataset `findings`."""

    kind: str
    content_id: str | None = None
    key: str | None = None
    reference: str | None = None
    location: str | None = None
    base: str | None = None
    message: str = ""


class Notes(Struct):
    """What one piece tells beside the files that are needed.

    `bases` are (content id, key, base), `settled` (content id, folder of metadata files that have told where the table is), `broken` findings about
    live contents, `findings` all others.
    """

    bases: list[tuple[str, str, str]] = []
    settled: list[tuple[str, str]] = []
    broken: list[Finding] = []
    findings: list[Finding] = []


class Pieces:
    """The pieces in a folder, by number."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def notes(self, number: int) -> Notes | None:
        """Those of a finished piece, else None."""
        if not self.file(number).exists():
            return None
        try:
            return msgspec.json.decode(self._notes(number).read_bytes(), type=Notes)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def file(self, number: int) -> Path:
        """The Parquet file of a piece."""
        return self._folder / f"part-{number:05}.parquet"

    def _notes(self, number: int) -> Path:
        return self._folder / f"part-{number:05}.json"

    @contextmanager
    def writing(self, number: int, notes: Notes) -> Iterator[Callable[[Any], None]]:
        """Write a piece: the block is given a function that takes rows of `LIVE`, and fills `notes`. It is finished when the block ends well."""
        try:
            self._folder.mkdir(exist_ok=True)
            self._notes(number).unlink(missing_ok=True)
            with parquet_writer(self._folder, LIVE, self.file(number).name) as write:
                yield write
            make_durable(self._folder)
        except OSError as error:
            raise StoreUnavailable(
                f"{self._folder}: cannot be written: {error.strerror or error}"
            ) from None
        replace_text(self._notes(number), msgspec.json.encode(notes).decode())

    def move_into(self, folder: Path) -> None:
        """Put the Parquet files of all pieces into a folder of the same run."""
        for path in sorted(self._folder.glob("part-*.parquet")):
            path.rename(folder / path.name)

    def drop(self) -> None:
        """Forget them."""
        shutil.rmtree(self._folder, ignore_errors=True)
