"""The audit trail of a run: `deleted.jsonl`, a line before each batch of deletions and one behind it, on the disk before anything goes on.

    {"event": "begin", "time": ..., "batch": 1, "files": [{"location": ..., "size": ..., "modified": ...}]}
    {"event": "end", "time": ..., "batch": 1, "files": [{"location": ..., "outcome": "DELETED"}]}

A batch that was begun and not ended was interrupted: each of its files was removed, or was not. A last line that is cut off was never waited for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from nessie_cli.errors import InvalidInput, StoreUnavailable
from nessie_cli.gc.removal import Candidate, Outcome, Removed


class Trail:
    """The audit trail in a file; to be written by who holds the lock of the run."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def entries(self) -> Iterator[dict[str, Any]]:
        """Its lines, the oldest first; raises `InvalidInput` for one in the middle that is none."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    entry = msgspec.json.decode(line)
                except msgspec.DecodeError:
                    if not line.endswith(b"\n"):
                        return
                    raise InvalidInput(f"{self._path}, line {number}: is no JSON") from None
                yield entry

    def settled(self) -> Iterator[str]:
        """The locations of files that were removed, or were found to be gone."""
        for entry in self.entries():
            if entry["event"] == "end":
                yield from (
                    file["location"]
                    for file in entry["files"]
                    if file["outcome"] in (Outcome.DELETED, Outcome.GONE)
                )

    def begun(self) -> set[str]:
        """The locations of the batch that was begun and not ended."""
        files: list[dict[str, Any]] = []
        for entry in self.entries():
            files = entry["files"] if entry["event"] == "begin" else []
        return {file["location"] for file in files}

    def last_batch(self) -> int:
        """The number of the last batch, 0 where there is none."""
        return max((entry["batch"] for entry in self.entries()), default=0)

    def totals(self) -> tuple[int, int, int]:
        """How many files were deleted, how many were gone before, and the bytes of those deleted."""
        sizes: dict[str, int] = {}
        deleted = gone = size = 0
        for entry in self.entries():
            if entry["event"] == "begin":
                sizes = {file["location"]: file["size"] for file in entry["files"]}
                continue
            for file in entry["files"]:
                deleted += file["outcome"] == Outcome.DELETED
                gone += file["outcome"] == Outcome.GONE
                size += sizes[file["location"]] if file["outcome"] == Outcome.DELETED else 0
        return deleted, gone, size

    def begin(self, batch: int, time: datetime, candidates: Sequence[Candidate]) -> None:
        """Note what is about to be removed."""
        files = [
            {"location": one.location, "size": one.size, "modified": one.modified}
            for one in candidates
        ]
        self._append({"event": "begin", "time": time, "batch": batch, "files": files})

    def end(self, batch: int, time: datetime, removed: Sequence[Removed]) -> None:
        """Note what became of it."""
        files = [
            {"location": one.location, "outcome": one.outcome}
            | ({"message": one.message} if one.message else {})
            for one in removed
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
                f"{self._path}: cannot be written, so nothing is deleted: {error.strerror}"
            ) from None


def _drop_cut_line(file: BinaryIO) -> None:
    """Go to the end of the last whole line, and end the file there: the process that wrote more was killed before anybody waited for it."""
    end = file.seek(0, os.SEEK_END)
    while end:
        begin = max(0, end - 2**16)
        file.seek(begin)
        found = file.read(end - begin).rfind(b"\n")
        if found >= 0:
            end = begin + found + 1
            break
        end = begin
    file.seek(end)
    file.truncate()
