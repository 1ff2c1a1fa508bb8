"""From states of tables to the files that they need, the places where tables lie, and what is broken, on this machine.

A content that is broken is isolated: nobody knows which files it needs, so nothing below the places that it is known to have had is collected, and it
is reported. All others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
_TRIES = 3
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
        self._broken: list[Finding] = []

    def add(self, content_id: str, key: str, bases: Iterator[str] | list[str]) -> None:
        """A content lies at these bases."""
        for base in bases:
            self._bases.setdefault(content_id, {}).setdefault(base, key)

    def broke(self, finding: Finding) -> None:
        """A content is broken."""
        self._broken.append(finding)

    @property
    def broken(self) -> int:
        """How many contents are broken."""
        return len({finding.content_id for finding in self._broken})

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """The dataset `bases`."""
        for content_id, bases in self._bases.items():
            for base, key in bases.items():
                yield base, content_id, key

    def findings(self) -> Iterator[Finding]:
        """About each file that is broken one for each base that has to be left alone because of it."""
        for finding in self._broken:
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
        self._tried: dict[tuple[str, str], int] = {}

    def follow(self, state: TableState) -> None:
        """One state; live ones have to come first."""
        if state.type not in (IcebergTable.type, IcebergView.type):
            self._leave_alone(state)
        elif state.live:
            self._live(state)
        else:
            self._dead(state)

    def _leave_alone(self, state: TableState) -> None:
        if state.live:
            place = place_of(state.metadata_location)
            message = f"{state.key}: is a content of type {state.type}, whose files nobody here can follow"
            self.findings.append(Finding(FOREIGN, state.content_id, state.key, state.reference, state.metadata_location, place, message))

    def _live(self, state: TableState) -> None:
        location = state.metadata_location
        try:
            self._tell(needed(location, Kind.METADATA, location), state.content_id)
            table = read_table(self._files, location)
            self.places.add(state.content_id, state.key, bases_of(table, location))
        except Broken as broken:
            self.places.add(state.content_id, state.key, [place_of(location)])
            self._broke(state, broken)
            return
        self._settled.add((state.content_id, _folder(location)))
        for found in self._walker.below(table, location, state.snapshot_id):
            if isinstance(found, Broken):
                self._broke(state, found)
            else:
                self._tell(found, state.content_id)

    def _broke(self, state: TableState, broken: Broken) -> None:
        message = f"{state.key} on {state.reference}: {broken.message}"
        self.places.broke(Finding(BROKEN, state.content_id, state.key, state.reference, broken.location, None, message))

    def _dead(self, state: TableState) -> None:
        """Only where it was has to be known; one metadata file in each folder tells that."""
        place = (state.content_id, _folder(state.metadata_location))
        if place in self._settled or self._tried.get(place, 0) >= _TRIES:
            return
        self._tried[place] = self._tried.get(place, 0) + 1
        try:
            table = read_table(self._files, state.metadata_location)
            self.places.add(state.content_id, state.key, bases_of(table, state.metadata_location))
            self._settled.add(place)
        except Broken as broken:
            # A file that is missing was collected before, as it should be.
            if broken.fault is not Fault.MISSING:
                message = f"{state.key}, dead: where its files are is not known: {broken.message}"
                self.findings.append(Finding(UNKNOWN_PLACE, state.content_id, state.key, state.reference, broken.location, None, message))


def _folder(location: str) -> str:
    return location.rpartition("/")[0]


def follow(marks: Marks, properties: Mapping[str, str], snapshots: Snapshots, told: Callable[[int], None]) -> dict[str, int]:
    """Read the dataset `contents`, and write the other three. Memory: some 200 bytes for each manifest and each place of a table."""
    with marks.live.writing(LIVE) as write_live, marks.bases.writing(BASES) as write_bases, marks.findings.writing(FINDINGS) as write_findings:
        live, bases, findings = Rows(LIVE, write_live), Rows(BASES, write_bases), Rows(FINDINGS, write_findings)

        def tell(file: Needed, content_id: str) -> None:
            live.add(file.path, file.kind.value, content_id)
            told(live.count)

        follower = Follower(properties, snapshots, tell)
        for record in marks.contents.records():
            follower.follow(TableState(**record))
        for row in follower.places.rows():
            bases.add(*row)
        for finding in (*follower.findings, *follower.places.findings()):
            findings.add(*(getattr(finding, field) for field in Finding.__struct_fields__))
        for rows in (live, bases, findings):
            rows.flush()
    return {"live": live.count, "bases": bases.count, "broken": follower.places.broken}
