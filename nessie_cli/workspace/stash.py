"""Stashed batches, newest first: `stash.json`, replaced under the workspace's lock.

A batch is written there before it leaves `batch.json`, and the other way round, so it is always in
one of the files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from nessie_cli.errors import InvalidInput, NothingStaged
from nessie_cli.workspace.batch import StagedBatch, decode_document, encode_batch
from nessie_cli.workspace.files import LARGEST_BATCH, read_text, remove, replace_text
from nessie_cli.workspace.folder import Workspace

VERSION = 1


class Stashed(Struct, frozen=True):
    """A stashed batch: its message, the current reference, and the time."""

    batch: StagedBatch
    message: str
    reference: str
    time: datetime


class StashFile:
    """The stashed batches of a workspace, to be changed under its lock."""

    def __init__(self, workspace: Workspace) -> None:
        self._path = workspace.stash_path

    def read(self) -> list[Stashed]:
        """Returns all of them, newest first. Raises `InvalidInput` that names file and place."""
        text = read_text(self._path, limit=LARGEST_BATCH)
        return [] if text is None else _decode(text, str(self._path))

    def get(self, number: int) -> Stashed:
        """Returns one of them. Raises `NothingStaged`, or `InvalidInput` for a wrong number."""
        stashed = self.read()
        if not stashed:
            raise NothingStaged(
                "the stash is empty", hint="`nessie stash` stashes the staged batch"
            )
        if not 0 <= number < len(stashed):
            raise InvalidInput(
                f"{number}: the stash has {len(stashed)} batch{'' if len(stashed) == 1 else 'es'},"
                " numbered from 0"
            )
        return stashed[number]

    def push(self, stashed: Stashed) -> None:
        """Adds a batch."""
        self._write([stashed, *self.read()])

    def drop(self, number: int) -> Stashed:
        """Removes a batch and returns it."""
        dropped = self.get(number)
        self._write([stashed for place, stashed in enumerate(self.read()) if place != number])
        return dropped

    def _write(self, stashes: Sequence[Stashed]) -> None:
        import json

        if stashes:
            replace_text(
                self._path,
                json.dumps({"version": VERSION, "stashes": list(map(_encode, stashes))}, indent=1)
                + "\n",
                limit=LARGEST_BATCH,
            )
        else:
            remove(self._path)


def _encode(stashed: Stashed) -> dict[str, Any]:
    from nessie_cli.wire.scalars import instant

    return {
        "message": stashed.message,
        "reference": stashed.reference,
        "time": instant(stashed.time),
        "batch": encode_batch(stashed.batch),
    }


def _decode(text: str, place: str) -> list[Stashed]:
    from nessie_cli.wire.json_text import parse_json

    document = parse_json(text, place)
    stashes = (
        document.get("stashes")
        if isinstance(document, Mapping) and document.get("version") == VERSION
        else None
    )
    if not isinstance(stashes, list):
        raise InvalidInput(f"{place} is not a file of stashed batches of version {VERSION}")
    return [_decode_one(item, f"{place}: stashes[{number}]") for number, item in enumerate(stashes)]


def _decode_one(item: Any, place: str) -> Stashed:
    values = (
        [item.get(name) for name in ("message", "reference", "time")]
        if isinstance(item, Mapping)
        else []
    )
    texts = [value for value in values if isinstance(value, str)]
    if not texts or len(texts) != len(values):
        raise InvalidInput(f"{place}: message, reference or time is missing or not a string")
    message, reference, time = texts
    return Stashed(
        decode_document(item.get("batch"), f"{place}.batch"),
        message,
        reference,
        _decode_time(time, f"{place}.time"),
    )


def _decode_time(text: str, place: str) -> datetime:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        when = None
    if when is None or when.tzinfo is None:
        raise InvalidInput(f"{place}: {text[:80]!r} is not an ISO instant")
    return when
