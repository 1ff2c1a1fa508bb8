"""A keyed table with random changes, in files written by hand, and its rows as a dictionary."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from msgspec import structs

from nessie_cli.iceberg.metadata import content_of
from nessie_cli.model import IcebergTable
from tests.iceberg.row_diff.tables import Document, Folder, column, schema

Row = dict[str, Any]
Rows = dict[int, Row]

_STRUCT = {
    "type": "struct",
    "fields": [{"id": 8, "name": "x", "required": False, "type": "long"}],
}
_LIST = {"type": "list", "element-id": 9, "element": "long", "element-required": False}
_MAP = {
    "type": "map",
    "key-id": 10,
    "key": "string",
    "value-id": 11,
    "value": "long",
    "value-required": False,
}
SCHEMA = schema(
    column(1, "id", "long", required=True),
    column(2, "text", "string"),
    column(3, "number", "double"),
    column(4, "money", "decimal(9, 2)"),
    column(5, "place", _STRUCT),
    column(6, "list", _LIST),
    column(7, "map", _MAP),
    keys=[1],
)
SCHEMA["fields"][0]["required"] = True
_IDS = {"id": 1, "text": 2, "number": 3, "money": 4, "place": 5, "list": 6, "map": 7}


def _inner(name: str, type_: pa.DataType, id_: int, *, nullable: bool = True) -> pa.Field:
    return pa.field(name, type_, nullable, {"PARQUET:field_id": str(id_)})


ARROW = {
    "id": pa.int64(),
    "text": pa.string(),
    "number": pa.float64(),
    "money": pa.decimal128(9, 2),
    "place": pa.struct([_inner("x", pa.int64(), 8)]),
    "list": pa.list_(_inner("element", pa.int64(), 9)),
    "map": pa.map_(_inner("key", pa.string(), 10, nullable=False), _inner("value", pa.int64(), 11)),
}
VALUES: Mapping[str, list[Any]] = {
    "text": ["", "x", "y", None],
    "number": [float("nan"), 0.0, -0.0, 1.5, None],
    "money": [Decimal("0.00"), Decimal("1.50"), None],
    "place": [{"x": 1}, {"x": None}, None],
    "list": [[], [1], [1, None], None],
    "map": [[], [("a", 1)], [("a", 1), ("b", None)], None],
}
COLUMNS = tuple(VALUES)


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal: NaN is itself, and -0.0 is not 0.0."""
    return repr(one) == repr(other)


def random_row(rng: random.Random) -> Row:
    return {name: rng.choice(values) for name, values in VALUES.items()}


class KeyedTable:
    """A state of a table: its rows, and the files that have them.

    `places` has the file and position of each row. `deletes` are the entries of delete files.
    """

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.rows: Rows = {}
        self.files: dict[str, Document] = {}
        self.places: dict[int, tuple[str, int]] = {}
        self.sizes: dict[str, int] = {}
        self.gone: dict[str, set[int]] = {}
        self.deletes: list[Document] = []
        self.last = 0

    def fork(self) -> KeyedTable:
        other = KeyedTable(self.folder)
        other.rows = {key: dict(row) for key, row in self.rows.items()}
        other.files, other.places = dict(self.files), dict(self.places)
        other.sizes = dict(self.sizes)
        other.gone = {path: set(positions) for path, positions in self.gone.items()}
        other.deletes, other.last = list(self.deletes), self.last
        return other

    # -- changes -----------------------------------------------------------------------------------

    def change(self, rows: Rows, how: str, sequence: int) -> None:
        """Changes the rows: by copies of files, by position deletes, or by equality deletes."""
        self.last = sequence
        removed = [
            key
            for key, row in self.rows.items()
            if key not in rows or any(not same(rows[key][c], row[c]) for c in COLUMNS)
        ]
        added = [key for key in rows if key not in self.rows or key in removed]
        before, self.rows = self.rows, {key: dict(row) for key, row in rows.items()}
        if how == "copy":
            touched = {self.places[key][0] for key in removed}
            kept = [k for k in before if self.places[k][0] in touched and k not in removed]
            self._drop(touched)
            self._add([*kept, *added], sequence)
        elif how == "compact":
            self._drop(set(self.files))
            self._add(list(self.rows), sequence)
        elif how == "equality":
            self._delete_by_value(removed, sequence)
            self._add(added, sequence)
        else:
            self._delete_positions(removed, sequence)
            self._add(added, sequence)

    def _drop(self, paths: set[str]) -> None:
        for path in paths:
            del self.files[path]
            self.gone.pop(path, None)
        self.deletes = [
            entry
            for entry in self.deletes
            if entry["data_file"].get("referenced_data_file") not in paths
        ]
        self.places = {k: place for k, place in self.places.items() if place[0] not in paths}

    def _add(self, keys: list[int], sequence: int) -> None:
        if not keys:
            return
        table = pa.table(
            {
                name: pa.array(
                    [key if name == "id" else self.rows[key][name] for key in keys], type_
                )
                for name, type_ in ARROW.items()
            }
        )
        entry = self.folder.data(table, _IDS, sequence)
        path = entry["data_file"]["file_path"]
        self.files[path], self.sizes[path] = entry, len(keys)
        self.places |= {key: (path, position) for position, key in enumerate(keys)}

    def _delete_positions(self, keys: list[int], sequence: int) -> None:
        by_file: dict[str, set[int]] = {}
        for key in keys:
            path, position = self.places.pop(key)
            by_file.setdefault(path, set()).add(position)
        for path, positions in by_file.items():
            if self.folder.version == 2:
                self.deletes.append(
                    self.folder.positions({path: sorted(positions)}, sequence, named=True)
                )
                continue
            self.gone.setdefault(path, set()).update(positions)
            self.deletes = [
                entry
                for entry in self.deletes
                if entry["data_file"].get("referenced_data_file") != path
            ]
            self.deletes += self.folder.vectors({path: sorted(self.gone[path])}, sequence)

    def _delete_by_value(self, keys: list[int], sequence: int) -> None:
        if keys:
            values = pa.table({"id": pa.array(keys, pa.int64())})
            self.deletes.append(self.folder.equality(values, {"id": 1}, sequence))
            for key in keys:
                del self.places[key]

    # -- as a content ------------------------------------------------------------------------------

    def content(self, line: list[int]) -> IcebergTable:
        """The table after the snapshots of a line."""
        first_row_ids = {id_: 100 * number for number, id_ in enumerate(line)}
        document = self.folder.state(
            [*self.files.values(), *self.deletes],
            SCHEMA,
            snapshots=line,
            first_row_ids=first_row_ids if self.folder.version > 2 else None,
        )
        document["last-sequence-number"] = max(line)
        location = self.folder.new("metadata.json")
        Path(location).write_text(json.dumps(document))
        table = content_of(document, location)
        assert isinstance(table, IcebergTable)
        return structs.replace(table, id="t")


def edited(rows: Rows, rng: random.Random, keys: int) -> Rows:
    """Some random edits of rows."""
    rows = {key: dict(row) for key, row in rows.items()}
    for _ in range(rng.randint(1, 4)):
        key = rng.randrange(keys)
        if key not in rows:
            rows[key] = random_row(rng)
        elif rng.random() < 0.3:
            del rows[key]
        else:
            for name in rng.sample(COLUMNS, rng.randint(1, 2)):
                rows[key][name] = rng.choice(VALUES[name])
    return rows


Conflicts = set[tuple[int, str | None]]


def merged(
    base: Rows,
    ours: Rows,
    theirs: Rows,
    *,
    whole: bool,
    side: Callable[[int, str | None], str],
    columns: Sequence[str] = COLUMNS,
) -> tuple[Rows, Conflicts]:
    """The rows of a merge, and its conflicts, in which the rows of `side` are taken."""
    rows: Rows = {}
    conflicts: Conflicts = set()
    for key in sorted({*base, *ours, *theirs}):
        before, here, there = base.get(key), ours.get(key), theirs.get(key)
        row: Row | None
        if same(here, there) or same(before, there):
            row = here
        elif same(before, here):
            row = there
        elif here is None or there is None or whole:
            conflicts.add((key, None))
            row = there if side(key, None) == "theirs" else here
        else:
            row = {}
            for name in columns:
                if same(here[name], there[name]) or (
                    before is not None and same(before[name], there[name])
                ):
                    row[name] = here[name]
                elif before is not None and same(before[name], here[name]):
                    row[name] = there[name]
                else:
                    conflicts.add((key, name))
                    row[name] = (there if side(key, name) == "theirs" else here)[name]
        if row is not None:
            rows[key] = row
    return rows, conflicts
