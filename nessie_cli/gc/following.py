"""From states of tables to the files that they need, the places where tables lie, and what is broken, on this machine.

A content that is broken is isolated: nobody knows which files it needs, so nothing below the places that it is known to have had is collected, and it
is reported. All others go on.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from nessie_cli.errors import InvalidInput, StoreUnavailable
from nessie_cli.gc.datasets import Dataset
from nessie_cli.gc.history import TableState
from nessie_cli.gc.pieces import Finding, Notes, Pieces
from nessie_cli.gc.run import Marks
from nessie_cli.gc.schemas import BASES, FINDINGS, LIVE
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.locations import normalised
from nessie_cli.iceberg.reachable import (
    Broken,
    Fault,
    Kind,
    Needed,
    Snapshots,
    TableFiles,
    Walker,
    needed,
    read_table,
)
from nessie_cli.model import IcebergTable, IcebergView, type_label

BROKEN = "BROKEN"
FOREIGN = "FOREIGN"
UNKNOWN_PLACE = "UNKNOWN_PLACE"
TRIES = 3
"""Metadata files of a dead content in one folder that are tried until one of them tells where the table was."""
STATES_PER_PIECE = 200
"""Live states, or places of dead contents, between two points that a mark which was stopped goes on from."""
_ROWS = 10_000
T = TypeVar("T")


class Rows:
    """Gathers rows, given column by column or as values, and writes them in batches."""

    def __init__(self, schema: pa.Schema, write: Callable[[Any], None]) -> None:
        self._schema = schema
        self._write = write
        self._waiting: list[tuple[Any, ...]] = []
        self.count = 0

    def add(self, *row: Any) -> None:
        """One row, its values in the order of the schema."""
        self._waiting.append(row)
        self.count += 1
        if len(self._waiting) >= _ROWS:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        if self._waiting:
            columns = zip(*self._waiting, strict=True)
            self._write(
                pa.table(
                    [
                        pa.array(values, field.type)
                        for values, field in zip(columns, self._schema, strict=True)
                    ],
                    schema=self._schema,
                )
            )
            self._waiting.clear()


class Places:
    """Where contents lie, as their metadata files say; and which contents are broken, by the findings about them."""

    def __init__(self) -> None:
        self._bases: dict[str, dict[str, str]] = {}
        """By content id: each base, and the key under which it was found."""
        self._broken: dict[tuple[str | None, str | None], Finding] = {}

    def add(self, content_id: str, key: str, bases: Sequence[str]) -> None:
        """A content lies at these bases."""
        for base in bases:
            self._bases.setdefault(content_id, {}).setdefault(base, key)

    def broke(self, finding: Finding) -> None:
        """A content is broken: one finding for each file of it, the first."""
        self._broken.setdefault((finding.content_id, finding.location), finding)

    @property
    def broken(self) -> int:
        """How many contents are broken."""
        return len({content_id for content_id, _ in self._broken})

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """The dataset `bases`."""
        for content_id, bases in self._bases.items():
            for base, key in bases.items():
                yield base, content_id, key

    def findings(self) -> Iterator[Finding]:
        """About each file that is broken one for each base that has to be left alone because of it."""
        for finding in self._broken.values():
            bases = self._bases.get(finding.content_id or "") or {}
            for base in bases:
                yield Finding(
                    finding.kind,
                    finding.content_id,
                    finding.key,
                    finding.reference,
                    finding.location,
                    base,
                    finding.message,
                )


def bases_of(table: TableFiles, location: str) -> list[str]:
    """The normal forms of the folders that a table writes below; raises `Broken` for one that is none."""
    return [needed(base, Kind.DATA, location).path for base in table.bases]


def place_of(location: str) -> str:
    """Where a table most likely is whose metadata file cannot be read: the folder around `metadata/`. Only ever to be left alone."""
    folder, _, _ = location.rstrip("/").rpartition("/")
    around, _, name = folder.rpartition("/")
    try:
        return normalised(
            around if name in ("metadata", "_delta_log") and around else folder or location
        )
    except InvalidInput:
        return location


def foreign(state: TableState) -> Finding:
    """About a live content of another format: its place is left alone."""
    message = f"{state.key}: the files of a {type_label(state.type)} cannot be followed"
    return Finding(
        FOREIGN,
        state.content_id,
        state.key,
        state.reference,
        state.metadata_location,
        place_of(state.metadata_location),
        message,
    )


def is_followed(state: TableState) -> bool:
    """Whether it is a table or view of Iceberg."""
    return state.type in (IcebergTable.type, IcebergView.type)


def broken(state: TableState, found: Broken) -> Finding:
    """About a live content that is broken; the places to be left alone are told later, when all are known."""
    return Finding(
        BROKEN,
        state.content_id,
        state.key,
        state.reference,
        found.location,
        None,
        f"{state.key} on {state.reference}: {found.message}",
    )


def folder_of(location: str) -> str:
    """The folder of a metadata file, as it is written."""
    return location.rpartition("/")[0]


def need_answer(files: Files, found: Broken) -> None:
    """Raises `StoreUnavailable` where a file system answers no more: no table is at fault. One that never did has to be got along without."""
    if found.fault is Fault.NO_ANSWER and files.has_answered(found.location):
        raise StoreUnavailable(found.message)


def dead_places(files: Files, states: Sequence[TableState]) -> tuple[list[str], list[Finding]]:
    """Where a dead content was whose metadata files are in one folder, and what cannot be read about it.

    One metadata file tells that, the first of `states` that can be read. One that is missing was collected before, as it should be. Raises
    `StoreUnavailable`.
    """
    findings = []
    for state in states[:TRIES]:
        try:
            table = read_table(files, state.metadata_location)
            return bases_of(table, state.metadata_location), []
        except Broken as found:
            need_answer(files, found)
            if found.fault is not Fault.MISSING:
                message = f"{state.key}, dead: where its files are is not known: {found.message}"
                findings.append(
                    Finding(
                        UNKNOWN_PLACE,
                        state.content_id,
                        state.key,
                        state.reference,
                        found.location,
                        None,
                        message,
                    )
                )
    return [], findings


class Follower:
    """Follows states one after the other, in pieces."""

    def __init__(self, properties: Mapping[str, str], snapshots: Snapshots) -> None:
        """Take the properties of the file systems, and which snapshots of a table are needed."""
        self._files = Files(properties)
        self._walker = Walker(self._files, snapshots)
        self.places = Places()
        self.findings: list[Finding] = []
        self._settled: set[tuple[str, str]] = set()
        """Content ids and folders of metadata files that have told where the table is."""

    def live(self, states: Sequence[TableState], notes: Notes) -> Iterator[tuple[Needed, str]]:
        """Follow live states: each file that is needed, with the content id; `notes` take the rest."""
        for state in states:
            if is_followed(state):
                yield from self._follow(state, notes)
            else:
                notes.findings.append(foreign(state))

    def dead(
        self, groups: Sequence[Sequence[TableState]], notes: Notes
    ) -> Iterator[tuple[Needed, str]]:
        """Look for the places of what is dead, which needs no files; each group are states of one content with their metadata files in one folder."""
        for states in groups:
            bases, findings = dead_places(self._files, states)
            notes.bases += [(states[0].content_id, states[0].key, base) for base in bases]
            notes.findings += findings
        return iter(())

    def take(self, notes: Notes) -> None:
        """Add what a piece has told to the whole."""
        for content_id, key, base in notes.bases:
            self.places.add(content_id, key, [base])
        for finding in notes.broken:
            self.places.broke(finding)
        self.findings += notes.findings
        self._settled.update(notes.settled)

    def remember(self, notes: Notes, manifests: Iterable[str]) -> None:
        """Do not read these manifests again that another process has followed: what is in them was told."""
        torn = {normalised(finding.location) for finding in notes.broken if finding.location}
        self._walker.remember(path for path in manifests if path not in torn)

    def groups(self, states: Iterable[TableState]) -> list[list[TableState]]:
        """Dead states, as `dead` takes them; without those whose place is known already."""
        found: dict[tuple[str, str], list[TableState]] = {}
        for state in states:
            place = (state.content_id, folder_of(state.metadata_location))
            if (
                is_followed(state)
                and place not in self._settled
                and len(group := found.setdefault(place, [])) < TRIES
            ):
                group.append(state)
        return list(found.values())

    def _follow(self, state: TableState, notes: Notes) -> Iterator[tuple[Needed, str]]:
        location = state.metadata_location
        try:
            yield needed(location, Kind.METADATA, location), state.content_id
            table = read_table(self._files, location)
            notes.bases += [
                (state.content_id, state.key, base) for base in bases_of(table, location)
            ]
        except Broken as found:
            need_answer(self._files, found)
            notes.bases.append((state.content_id, state.key, place_of(location)))
            notes.broken.append(broken(state, found))
            return
        notes.settled.append((state.content_id, folder_of(location)))
        for one in self._walker.below(table, location, state.snapshot_id):
            if isinstance(one, Broken):
                need_answer(self._files, one)
                notes.broken.append(broken(state, one))
            else:
                yield one, state.content_id


def write_places(marks: Marks, places: Places, findings: Sequence[Finding]) -> dict[str, int]:
    """Write the datasets `bases` and `findings`; answers counts."""
    with (
        marks.bases.writing(BASES) as write_bases,
        marks.findings.writing(FINDINGS) as write_findings,
    ):
        bases, told = Rows(BASES, write_bases), Rows(FINDINGS, write_findings)
        for row in sorted(places.rows()):
            bases.add(*row)
        for finding in (*findings, *places.findings()):
            told.add(*(getattr(finding, field) for field in Finding.__struct_fields__))
        bases.flush()
        told.flush()
    return {"bases": bases.count, "broken": places.broken}


def follow(
    marks: Marks,
    properties: Mapping[str, str],
    snapshots: Snapshots,
    told: Callable[[int], None],
    states_per_piece: int,
) -> dict[str, int]:
    """Read the dataset `contents`, and write the other three; what was finished when it was stopped is not done again.

    Memory: some 200 bytes for each manifest and each place of a table.
    """
    pieces, follower, count, number = (
        Pieces(marks.live.pieces),
        Follower(properties, snapshots),
        0,
        0,
    )

    def piece(needed_files: Callable[[Notes], Iterator[tuple[Needed, str]]]) -> None:
        nonlocal count, number
        notes = pieces.notes(number)
        if notes is not None:
            follower.remember(notes, _manifests(pieces.file(number)))
            count += parquet.read_metadata(pieces.file(number)).num_rows
        else:
            notes = Notes()
            with pieces.writing(number, notes) as write:
                rows = Rows(LIVE, write)
                for count, (file, content_id) in enumerate(needed_files(notes), count + 1):  # noqa: B020 - it goes on counting
                    rows.add(file.path, file.kind.value, content_id)
                    told(count)
                rows.flush()
        follower.take(notes)
        number += 1

    for states in _batched(_states(marks, live=True), states_per_piece):
        piece(partial(follower.live, states))
    for groups in _batched(follower.groups(_states(marks, live=False)), states_per_piece):
        piece(partial(follower.dead, groups))
    counts = write_places(marks, follower.places, follower.findings)
    with marks.live.replacing() as folder:
        pieces.move_into(folder)
    pieces.drop()
    return {"live": _distinct(marks.live), **counts}


def _states(marks: Marks, *, live: bool) -> Iterator[TableState]:
    return (TableState(**record) for record in marks.contents.records() if record["live"] is live)


def _batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def _manifests(file: Path) -> Iterator[str]:
    """The manifests among the files of a piece."""
    rows = parquet.read_table(file, columns=["path"], filters=[("kind", "=", Kind.MANIFEST.value)])
    yield from rows.column("path").to_pylist()


def _distinct(live: Dataset) -> int:
    """How many files are needed: one that several manifests name is one. Memory: 8 bytes for each row, and as much again."""
    hashes = array("q")
    for batch in live.batches(["path"]):
        hashes.extend(map(hash, batch.column("path").to_pylist()))
    found = pa.Array.from_buffers(pa.int64(), len(hashes), [None, pa.py_buffer(hashes)])
    return int(pc.count_distinct(found).as_py())
