"""The audit trail of a run: a durable line before and after each batch, in `deleted.jsonl`.

    {"event": "begin", "time": ..., "batch": 1,
     "files": [{"location": ..., "size": ..., "modified": ...}]}
    {"event": "end", "time": ..., "batch": 1, "files": [{"location": ..., "outcome": "DELETED"}]}

A batch with a `begin` and no `end` was interrupted: each of its files may have been deleted. The
writer of a truncated last line was killed before it deleted anything.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from nessie_cli.errors import InvalidInput, StoreUnavailable
from nessie_cli.gc.removal import RemovalCandidate, RemovalOutcome, Removed


class Trail:
    """The audit trail in a file. Only the holder of the run's lock may write it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def entries(self) -> Iterator[dict[str, Any]]:
        """Yields the lines, oldest first. Raises `InvalidInput` for an invalid line."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    entry = msgspec.json.decode(line)
                except msgspec.DecodeError:
                    if not line.endswith(b"\n"):
                        return
                    raise InvalidInput(f"{self._path}, line {number} is not JSON") from None
                yield entry

    def settled(self) -> Iterator[str]:
        """Returns the locations of files that were deleted or already missing."""
        for entry in self.entries():
            if entry["event"] == "end":
                yield from (
                    file["location"]
                    for file in entry["files"]
                    if file["outcome"] in (RemovalOutcome.DELETED, RemovalOutcome.GONE)
                )

    def begun(self) -> set[str]:
        """Returns the locations in an interrupted batch."""
        files: list[dict[str, Any]] = []
        for entry in self.entries():
            files = entry["files"] if entry["event"] == "begin" else []
        return {file["location"] for file in files}

    def last_batch(self) -> int:
        """Returns the number of the last batch, 0 if there is none."""
        return max((entry["batch"] for entry in self.entries()), default=0)

    def totals(self) -> tuple[int, int, int]:
        """Returns the numbers of deleted and of already missing files, and the deleted bytes."""
        sizes: dict[str, int] = {}
        deleted = gone = size = 0
        for entry in self.entries():
            if entry["event"] == "begin":
                sizes = {file["location"]: file["size"] for file in entry["files"]}
                continue
            for file in entry["files"]:
                deleted += file["outcome"] == RemovalOutcome.DELETED
                gone += file["outcome"] == RemovalOutcome.GONE
                size += sizes[file["location"]] if file["outcome"] == RemovalOutcome.DELETED else 0
        return deleted, gone, size

    def begin(self, batch: int, time: datetime, candidates: Sequence[RemovalCandidate]) -> None:
        """Records the files that are about to be deleted."""
        files = [
            {"location": candidate.location, "size": candidate.size, "modified": candidate.modified}
            for candidate in candidates
        ]
        self._append({"event": "begin", "time": time, "batch": batch, "files": files})

    def end(self, batch: int, time: datetime, removed: Sequence[Removed]) -> None:
        """Records the outcomes of a batch."""
        files = [
            {"location": removal.location, "outcome": removal.outcome}
            | ({"message": removal.message} if removal.message else {})
            for removal in removed
        ]
        self._append({"event": "end", "time": time, "batch": batch, "files": files})

    def _append(self, entry: dict[str, Any]) -> None:
        try:
            with self._path.open("r+b" if self._path.exists() else "w+b") as file:
                _drop_cut_line(file)
                file.write(msgspec.json.encode(entry) + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StoreUnavailable(
                f"{self._path} cannot be written, so nothing is deleted: {error.strerror}"
            ) from None


def _drop_cut_line(file: BinaryIO) -> None:
    """Truncates the file after its last complete line, and seeks there.

    The writer of a truncated line was killed before it deleted anything.
    """
    end = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - 2**16)
        file.seek(start)
        newline = file.read(end - start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    file.seek(end)
    file.truncate()
