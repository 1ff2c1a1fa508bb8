"""From table states to live files, base locations and findings, on this machine.

The files of a broken content are unknown. So nothing below its known base locations is collected,
and a finding reports it. Other contents are not affected.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from nessie_cli.errors import StoreUnavailable
from nessie_cli.gc.datasets import Dataset
from nessie_cli.gc.history import TableState
from nessie_cli.gc.parts import GcFinding, MarkParts, Notes
from nessie_cli.gc.run import MarkDatasets
from nessie_cli.gc.schemas import BASES, FINDINGS, LIVE
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.locations import normalised, probable_location
from nessie_cli.iceberg.reachable import (
    BrokenFile,
    Fault,
    FileKind,
    ReferencedFile,
    SnapshotScope,
    TableFiles,
    Walker,
    needed,
    read_table,
)
from nessie_cli.model import IcebergTable, IcebergView, type_label
from nessie_cli.model.batches import batched

BROKEN = "BROKEN"
FOREIGN = "FOREIGN"
UNKNOWN_PLACE = "UNKNOWN_PLACE"
TRIES = 3
"""How many metadata files of a dead content in one folder are tried to find its location."""
STATES_PER_PIECE = 200
"""Live states, or locations of dead contents, between two checkpoints of a mark."""
_ROWS = 10_000
T = TypeVar("T")


class Rows:
    """Collects rows and writes them in batches."""

    def __init__(self, schema: pa.Schema, write: Callable[[Any], None]) -> None:
        self._schema = schema
        self._write = write
        self._waiting: list[tuple[Any, ...]] = []
        self.count = 0

    def add(self, *row: Any) -> None:
        """Adds a row, its values in the order of the schema."""
        self._waiting.append(row)
        self.count += 1
        if len(self._waiting) >= _ROWS:
            self.flush()

    def flush(self) -> None:
        """Writes the rows that have not been written yet."""
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


class BaseLocations:
    """The base locations of contents, and the findings about broken contents."""

    def __init__(self) -> None:
        self._bases: dict[str, dict[str, str]] = {}
        """Bases by content id, each with the key under which it was found."""
        self._broken: dict[tuple[str | None, str | None], GcFinding] = {}

    def add(self, content_id: str, key: str, bases: Sequence[str]) -> None:
        """Adds the bases of a content."""
        for base in bases:
            self._bases.setdefault(content_id, {}).setdefault(base, key)

    def add_broken(self, finding: GcFinding) -> None:
        """Adds a broken content. The first finding about each of its files counts."""
        self._broken.setdefault((finding.content_id, finding.location), finding)

    @property
    def broken(self) -> int:
        """The number of broken contents."""
        return len({content_id for content_id, _ in self._broken})

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Yields the rows of the dataset `bases`."""
        for content_id, bases in self._bases.items():
            for base, key in bases.items():
                yield base, content_id, key

    def findings(self) -> Iterator[GcFinding]:
        """Yields a finding for each broken file and each base that is protected because of it."""
        for finding in self._broken.values():
            bases = self._bases.get(finding.content_id or "") or {}
            for base in bases:
                yield GcFinding(
                    finding.kind,
                    finding.content_id,
                    finding.key,
                    finding.reference,
                    finding.location,
                    base,
                    finding.message,
                )


def bases_of(table: TableFiles, location: str) -> list[str]:
    """Returns the normal forms of the folders of a table. Raises `BrokenFile`."""
    return [needed(base, FileKind.DATA, location).path for base in table.bases]


def other_format(state: TableState) -> GcFinding:
    """Returns the finding about a live content of another format, whose files are protected."""
    message = f"{state.key}: the files of a {type_label(state.type)} cannot be followed"
    return GcFinding(
        FOREIGN,
        state.content_id,
        state.key,
        state.reference,
        state.metadata_location,
        probable_location(state.metadata_location),
        message,
    )


def is_followed(state: TableState) -> bool:
    """Whether a state is that of an Iceberg table or view."""
    return state.type in (IcebergTable.type, IcebergView.type)


def broken(state: TableState, error: BrokenFile) -> GcFinding:
    """Returns the finding about a broken live content. Its bases are added when all are known."""
    return GcFinding(
        BROKEN,
        state.content_id,
        state.key,
        state.reference,
        error.location,
        None,
        f"{state.key} on {state.reference}: {error.message}",
    )


def folder_of(location: str) -> str:
    """Returns the folder of a metadata file, as written."""
    return location.rpartition("/")[0]


def check_answer(files: Files, error: BrokenFile) -> None:
    """Raises `StoreUnavailable` if a file system has stopped answering.

    A file system that never answered is reported by findings instead.
    """
    if error.fault is Fault.NO_ANSWER and files.has_answered(error.location):
        raise StoreUnavailable(error.message)


def dead_places(files: Files, states: Sequence[TableState]) -> tuple[list[str], list[GcFinding]]:
    """Returns the bases of a dead content, and findings. Its metadata files are in one folder.

    The first of `states` whose metadata file is readable decides. A missing file is expected: an
    earlier run has collected it. Raises `StoreUnavailable`.
    """
    findings = []
    for state in states[:TRIES]:
        try:
            table = read_table(files, state.metadata_location)
            return bases_of(table, state.metadata_location), []
        except BrokenFile as error:
            check_answer(files, error)
            if error.fault is not Fault.MISSING:
                message = (
                    f"{state.key}, dead: the location of its files is unknown: {error.message}"
                )
                findings.append(
                    GcFinding(
                        UNKNOWN_PLACE,
                        state.content_id,
                        state.key,
                        state.reference,
                        error.location,
                        None,
                        message,
                    )
                )
    return [], findings


class FileFinder:
    """Finds the files of states, part by part."""

    def __init__(self, properties: Mapping[str, str], snapshots: SnapshotScope) -> None:
        """Takes the properties of the file systems, and which snapshots of a table count."""
        self._files = Files(properties)
        self._walker = Walker(self._files, snapshots)
        self.places = BaseLocations()
        self.findings: list[GcFinding] = []
        self._settled: set[tuple[str, str]] = set()
        """Content ids and folders of metadata files whose table location is known."""

    def live(
        self, states: Sequence[TableState], notes: Notes
    ) -> Iterator[tuple[ReferencedFile, str]]:
        """Yields the files of live states with their content ids. `notes` receives the rest."""
        for state in states:
            if is_followed(state):
                yield from self._follow(state, notes)
            else:
                notes.findings.append(other_format(state))

    def dead(
        self, groups: Sequence[Sequence[TableState]], notes: Notes
    ) -> Iterator[tuple[ReferencedFile, str]]:
        """Finds the bases of dead contents. A group has the states of one content in one folder."""
        for states in groups:
            bases, findings = dead_places(self._files, states)
            notes.bases += [(states[0].content_id, states[0].key, base) for base in bases]
            notes.findings += findings
        return iter(())

    def take(self, notes: Notes) -> None:
        """Adds the notes of a part."""
        for content_id, key, base in notes.bases:
            self.places.add(content_id, key, [base])
        for finding in notes.broken:
            self.places.add_broken(finding)
        self.findings += notes.findings
        self._settled.update(notes.settled)

    def remember(self, notes: Notes, manifests: Iterable[str]) -> None:
        """Marks manifests as read by another process."""
        torn = {normalised(finding.location) for finding in notes.broken if finding.location}
        self._walker.remember(path for path in manifests if path not in torn)

    def groups(self, states: Iterable[TableState]) -> list[list[TableState]]:
        """Yields groups of dead states for `dead`, without those whose location is known."""
        groups: dict[tuple[str, str], list[TableState]] = {}
        for state in states:
            place = (state.content_id, folder_of(state.metadata_location))
            if (
                is_followed(state)
                and place not in self._settled
                and len(group := groups.setdefault(place, [])) < TRIES
            ):
                group.append(state)
        return list(groups.values())

    def _follow(self, state: TableState, notes: Notes) -> Iterator[tuple[ReferencedFile, str]]:
        location = state.metadata_location
        try:
            yield needed(location, FileKind.METADATA, location), state.content_id
            table = read_table(self._files, location)
            notes.bases += [
                (state.content_id, state.key, base) for base in bases_of(table, location)
            ]
        except BrokenFile as error:
            check_answer(self._files, error)
            notes.bases.append((state.content_id, state.key, probable_location(location)))
            notes.broken.append(broken(state, error))
            return
        notes.settled.append((state.content_id, folder_of(location)))
        for file in self._walker.below(table, location, state.snapshot_id):
            if isinstance(file, BrokenFile):
                check_answer(self._files, file)
                notes.broken.append(broken(state, file))
            else:
                yield file, state.content_id


def write_places(
    marks: MarkDatasets, places: BaseLocations, findings: Sequence[GcFinding]
) -> dict[str, int]:
    """Writes the datasets `bases` and `findings`. Returns counts."""
    with (
        marks.bases.writing(BASES) as write_bases,
        marks.findings.writing(FINDINGS) as write_findings,
    ):
        bases, rows = Rows(BASES, write_bases), Rows(FINDINGS, write_findings)
        for row in sorted(places.rows()):
            bases.add(*row)
        for finding in (*findings, *places.findings()):
            rows.add(*(getattr(finding, field) for field in GcFinding.__struct_fields__))
        bases.flush()
        rows.flush()
    return {"bases": bases.count, "broken": places.broken}


def follow(
    marks: MarkDatasets,
    properties: Mapping[str, str],
    snapshots: SnapshotScope,
    progress: Callable[[int], None],
    states_per_piece: int,
) -> dict[str, int]:
    """Reads the dataset `contents` and writes the other three.

    Resumes after the last finished part.
    Memory: about 200 bytes for each manifest and each location of a table.
    """
    parts, finder, count, number = (
        MarkParts(marks.live.parts),
        FileFinder(properties, snapshots),
        0,
        0,
    )

    def part(needed_files: Callable[[Notes], Iterator[tuple[ReferencedFile, str]]]) -> None:
        nonlocal count, number
        notes = parts.notes(number)
        if notes is not None:
            finder.remember(notes, _manifests(parts.file(number)))
            count += parquet.read_metadata(parts.file(number)).num_rows
        else:
            notes = Notes()
            with parts.writing(number, notes) as write:
                rows = Rows(LIVE, write)
                for count, (file, content_id) in enumerate(needed_files(notes), count + 1):  # noqa: B020 - it goes on counting
                    rows.add(file.path, file.kind.value, content_id)
                    progress(count)
                rows.flush()
        finder.take(notes)
        number += 1

    for states in batched(_states(marks, live=True), states_per_piece):
        part(partial(finder.live, states))
    for groups in batched(finder.groups(_states(marks, live=False)), states_per_piece):
        part(partial(finder.dead, groups))
    counts = write_places(marks, finder.places, finder.findings)
    with marks.live.replacing() as folder:
        parts.move_into(folder)
    parts.drop()
    return {"live": _distinct(marks.live), **counts}


def _states(marks: MarkDatasets, *, live: bool) -> Iterator[TableState]:
    return (TableState(**record) for record in marks.contents.records() if record["live"] is live)


def _manifests(file: Path) -> Iterator[str]:
    """Yields the manifests among the files of a part."""
    rows = parquet.read_table(
        file, columns=["path"], filters=[("kind", "=", FileKind.MANIFEST.value)]
    )
    yield from rows.column("path").to_pylist()


def _distinct(live: Dataset) -> int:
    """Returns the number of distinct live files. Memory: 16 bytes for each row."""
    hashes = array("q")
    for batch in live.batches(["path"]):
        hashes.extend(map(hash, batch.column("path").to_pylist()))
    numbers = pa.Array.from_buffers(pa.int64(), len(hashes), [None, pa.py_buffer(hashes)])
    return int(pc.count_distinct(numbers).as_py())
