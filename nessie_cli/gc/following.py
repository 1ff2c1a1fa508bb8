"""From states of tables to the files that they need, the places where tables lie, and what is broken, on this machine.

A content that is broken is isolated: nobody knows which files it needs, so nothing below the places that it is known to have had is collected, and it
is reported. All others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from msgspec import Struct

from nessie_cli.errors import InvalidInput
from nessie_cli.gc.history import TableState
from nessie_cli.gc.run import Marks
from nessie_cli.gc.schemas import BASES, FINDINGS, LIVE
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.locations import normalised
from nessie_cli.iceberg.reachable import Broken, Fault, Kind, Needed, Snapshots, TableFiles, Walker, needed, read_table
from nessie_cli.model import IcebergTable, IcebergView

BROKEN = "BROKEN"
FOREIGN = "FOREIGN"
UNKNOWN_PLACE = "UNKNOWN_PLACE"
TRIES = 3
"""Metadata files of a dead content in one folder that are tried until one of them tells where the table was."""
_ROWS = 10_000


class Finding(Struct, frozen=True):
    """Something that is not as it should be: the fields of the dataset `findings`."""

    kind: str
    content_id: str | None = None
    key: str | None = None
    reference: str | None = None
    location: str | None = None
    base: str | None = None
    message: str = ""


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
            self._write(pa.table([pa.array(values, field.type) for values, field in zip(columns, self._schema, strict=True)], schema=self._schema))
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
                yield Finding(finding.kind, finding.content_id, finding.key, finding.reference, finding.location, base, finding.message)


def bases_of(table: TableFiles, location: str) -> list[str]:
    """The normal forms of the folders that a table writes below; raises `Broken` for one that is none."""
    return [needed(base, Kind.DATA, location).path for base in table.bases]


def place_of(location: str) -> str:
    """Where a table most likely is whose metadata file cannot be read: the folder around `metadata/`. Only ever to be left alone."""
    folder, _, _ = location.rstrip("/").rpartition("/")
    around, _, name = folder.rpartition("/")
    try:
        return normalised(around if name in ("metadata", "_delta_log") and around else folder or location)
    except InvalidInput:
        return location


def foreign(state: TableState) -> Finding:
    """About a live content of another format: its place is left alone."""
    message = f"{state.key}: is a content of type {state.type}, whose files nobody here can follow"
    return Finding(FOREIGN, state.content_id, state.key, state.reference, state.metadata_location, place_of(state.metadata_location), message)


def is_followed(state: TableState) -> bool:
    """Whether it is a table or view of Iceberg."""
    return state.type in (IcebergTable.type, IcebergView.type)


def broken(state: TableState, found: Broken) -> Finding:
    """About a live content that is broken; the places to be left alone are told later, when all are known."""
    return Finding(BROKEN, state.content_id, state.key, state.reference, found.location, None, f"{state.key} on {state.reference}: {found.message}")


def folder_of(location: str) -> str:
    """The folder of a metadata file, as it is written."""
    return location.rpartition("/")[0]


def dead_places(files: Files, states: Sequence[TableState]) -> tuple[list[str], list[Finding]]:
    """Where a dead content was whose metadata files are in one folder, and what cannot be read about it.

    One metadata file tells that, the first of `states` that can be read. One that is missing was collected before, as it should be.
    """
    findings = []
    for state in states[:TRIES]:
        try:
            table = read_table(files, state.metadata_location)
            return bases_of(table, state.metadata_location), []
        except Broken as found:
            if found.fault is not Fault.MISSING:
                message = f"{state.key}, dead: where its files are is not known: {found.message}"
                findings.append(Finding(UNKNOWN_PLACE, state.content_id, state.key, state.reference, found.location, None, message))
    return [], findings


class Follower:
    """Follows states one after the other."""

    def __init__(self, properties: Mapping[str, str], snapshots: Snapshots, tell: Callable[[Needed, str], None]) -> None:
        """Take what hears of each file that is needed, with the content id."""
        self._files = Files(properties)
        self._walker = Walker(self._files, snapshots)
        self._tell = tell
        self.places = Places()
        self.findings: list[Finding] = []
        self._settled: set[tuple[str, str]] = set()
        """Content ids and folders of metadata files that have told where the table is."""
        self._dead: dict[tuple[str, str], list[TableState]] = {}

    def follow(self, state: TableState) -> None:
        """One state; live ones have to come first."""
        place = (state.content_id, folder_of(state.metadata_location))
        if not is_followed(state):
            if state.live:
                self.findings.append(foreign(state))
        elif state.live:
            self._live(state)
        elif place not in self._settled and len(self._dead.setdefault(place, [])) < TRIES:
            self._dead[place].append(state)

    def finish(self) -> None:
        """Look for the places of what is dead."""
        for (content_id, _), states in self._dead.items():
            bases, findings = dead_places(self._files, states)
            self.places.add(content_id, states[0].key, bases)
            self.findings += findings

    def _live(self, state: TableState) -> None:
        location = state.metadata_location
        try:
            self._tell(needed(location, Kind.METADATA, location), state.content_id)
            table = read_table(self._files, location)
            self.places.add(state.content_id, state.key, bases_of(table, location))
        except Broken as found:
            self.places.add(state.content_id, state.key, [place_of(location)])
            self.places.broke(broken(state, found))
            return
        self._settled.add((state.content_id, folder_of(location)))
        for one in self._walker.below(table, location, state.snapshot_id):
            if isinstance(one, Broken):
                self.places.broke(broken(state, one))
            else:
                self._tell(one, state.content_id)


def write_places(marks: Marks, places: Places, findings: Sequence[Finding]) -> dict[str, int]:
    """Write the datasets `bases` and `findings`; answers counts."""
    with marks.bases.writing(BASES) as write_bases, marks.findings.writing(FINDINGS) as write_findings:
        bases, told = Rows(BASES, write_bases), Rows(FINDINGS, write_findings)
        for row in sorted(places.rows()):
            bases.add(*row)
        for finding in (*findings, *places.findings()):
            told.add(*(getattr(finding, field) for field in Finding.__struct_fields__))
        bases.flush()
        told.flush()
    return {"bases": bases.count, "broken": places.broken}


def follow(marks: Marks, properties: Mapping[str, str], snapshots: Snapshots, told: Callable[[int], None]) -> dict[str, int]:
    """Read the dataset `contents`, and write the other three. Memory: some 200 bytes for each manifest and each place of a table."""
    with marks.live.writing(LIVE) as write:
        live = Rows(LIVE, write)

        def tell(file: Needed, content_id: str) -> None:
            live.add(file.path, file.kind.value, content_id)
            told(live.count)

        follower = Follower(properties, snapshots, tell)
        for record in marks.contents.records():
            follower.follow(TableState(**record))
        follower.finish()
        live.flush()
    return {"live": live.count, **write_places(marks, follower.places, follower.findings)}
