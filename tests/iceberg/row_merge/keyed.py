"""A keyed table with random changes, in files written by hand, and its rows as a dictionary."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from msgspec import structs
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType

from nessie_cli.iceberg.metadata import content_of
from nessie_cli.model import IcebergTable
from tests.iceberg.row_diff.tables import DELETED, EQUALITY, Document, Folder, column, schema

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


Place = tuple[int, tuple[tuple[str, Any], ...]]
"""A partition: its spec, and its values by name."""


class Layout(NamedTuple):
    """How the rows of a table are divided into files.

    `specs` are its partition specs. A file has up to `size` rows with adjacent keys, and
    `has_bounds` says whether its entry has the bounds of the key.
    """

    specs: Sequence[Sequence[Document]] = ((),)
    size: int = 1_000
    has_bounds: Callable[[], bool] = lambda: False

    def place(self, key: int, row: Row, spec: int) -> Place:
        """The partition of a row in a spec."""
        values = (
            (field["name"], TRANSFORMS[field["transform"]](key, row)) for field in self.specs[spec]
        )
        return spec, tuple(values)


BUCKETS = BucketTransform[int](3).transform(LongType())
TRANSFORMS: Mapping[str, Callable[[int, Row], Any]] = {
    "truncate[5]": lambda key, _: key // 5 * 5,
    "bucket[3]": lambda key, _: BUCKETS(key),
    "identity": lambda _, row: row["text"],
    "void": lambda *_: None,
}


def spec(name: str, transform: str) -> Document:
    """A partition field: by the text, or by the key."""
    by_text = transform == "identity"
    return {
        "source-id": 2 if by_text else 1,
        "field-id": 1000 + list(TRANSFORMS).index(transform),
        "name": name,
        "transform": transform,
        "avro": "string" if by_text else "int" if transform == "bucket[3]" else "long",
    }


SPECS: Sequence[Sequence[Document]] = (
    [],
    [spec("range", "truncate[5]")],
    [spec("bucket", "bucket[3]")],
    [spec("text", "identity")],
    [spec("text", "identity"), spec("bucket", "bucket[3]")],
    [spec("nothing", "void")],
)


class KeyedTable:
    """A state of a table: its rows, and the files that have them.

    `places` has the file and position of each row. `deletes` are the entries of delete files, and
    `spec` is the partition spec of new files.
    """

    def __init__(self, folder: Folder, layout: Layout) -> None:
        self.folder = folder
        self.layout = layout
        self.spec = 0
        self.rows: Rows = {}
        self.files: dict[str, Document] = {}
        self.places: dict[int, tuple[str, int]] = {}
        self.partitions: dict[str, Place] = {}
        self.gone: dict[str, set[int]] = {}
        self.deletes: list[Document] = []
        self.last = 0
        self.history: dict[int, tuple[str, list[Document]]] = {}

    def fork(self) -> KeyedTable:
        other = KeyedTable(self.folder, self.layout)
        other.rows = {key: dict(row) for key, row in self.rows.items()}
        other.files, other.places = dict(self.files), dict(self.places)
        other.partitions = dict(self.partitions)
        other.gone = {path: set(positions) for path, positions in self.gone.items()}
        other.deletes, other.last, other.spec = list(self.deletes), self.last, self.spec
        other.history = dict(self.history)
        return other

    # -- changes -----------------------------------------------------------------------------------

    def change(self, rows: Rows, how: str, sequence: int, snapshot: int | None = None) -> None:
        """Changes the rows in a snapshot, whose id is by default the sequence number.

        By copies of files (and `compact` copies all), by position deletes for each file or for all
        files of a partition (`wide`), or by equality deletes.
        """
        before = [*self.files.values(), *self.deletes]
        is_compaction = how == "compact" and same(rows, self.rows)
        self._change(rows, how, sequence)
        self.last = sequence
        id_ = sequence if snapshot is None else snapshot
        live = [*self.files.values(), *self.deletes]
        for entry in live:
            if not any(entry is each for each in before):
                entry["snapshot_id"] = id_
        gone = [
            {**entry, "status": DELETED, "snapshot_id": id_}
            for entry in before
            if not any(entry is each for each in live)
        ]
        self.history[id_] = "replace" if is_compaction else "overwrite", [*live, *gone]

    def _change(self, rows: Rows, how: str, sequence: int) -> None:
        removed = [
            key
            for key, row in self.rows.items()
            if key not in rows or any(not same(rows[key][c], row[c]) for c in COLUMNS)
        ]
        added = [key for key in rows if key not in self.rows or key in removed]
        before, self.rows = self.rows, {key: dict(row) for key, row in rows.items()}
        if how == "copy":
            by_file: dict[str, list[int]] = {self.places[key][0]: [] for key in removed}
            for key in before:
                if (path := self.places[key][0]) in by_file and key in rows:
                    by_file[path].append(key)
            self._drop(set(by_file))
            for keys in by_file.values():
                self._add(keys, sequence)
            self._add([key for key in added if key not in before], sequence)
        elif how == "compact":
            self._drop(set(self.files))
            self._add(list(self.rows), sequence)
        elif how == "equality":
            self._delete_by_value(removed, sequence)
            self._add(added, sequence)
        else:
            self._delete_positions(removed, sequence, is_wide=how == "wide")
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
        by_place: dict[Place, list[int]] = {}
        for key in sorted(keys):
            place = self.layout.place(key, self.rows[key], self.spec)
            by_place.setdefault(place, []).append(key)
        for place, group in by_place.items():
            for start in range(0, len(group), self.layout.size):
                self._write(place, group[start : start + self.layout.size], sequence)

    def _write(self, place: Place, keys: list[int], sequence: int) -> None:
        table = pa.table(
            {
                name: pa.array(
                    [key if name == "id" else self.rows[key][name] for key in keys], type_
                )
                for name, type_ in ARROW.items()
            }
        )
        bounds: Document = {}
        if self.layout.has_bounds():
            for name, end in (("lower_bounds", keys[0]), ("upper_bounds", keys[-1])):
                bounds[name] = [{"key": 1, "value": end.to_bytes(8, "little")}]
        entry = self.folder.data(table, _IDS, sequence, **_in(place), **bounds)
        path = entry["data_file"]["file_path"]
        self.files[path], self.partitions[path] = entry, place
        self.places |= {key: (path, position) for position, key in enumerate(keys)}

    def _delete_positions(self, keys: list[int], sequence: int, *, is_wide: bool) -> None:
        by_file: dict[str, set[int]] = {}
        for key in keys:
            path, position = self.places.pop(key)
            by_file.setdefault(path, set()).add(position)
        if is_wide:
            by_place: dict[Place, dict[str, list[int]]] = {}
            for path, positions in by_file.items():
                by_place.setdefault(self.partitions[path], {})[path] = sorted(positions)
            self.deletes += [
                self.folder.positions(deleted, sequence, **_in(place))
                for place, deleted in by_place.items()
            ]
            return
        for path, positions in by_file.items():
            members = _in(self.partitions[path])
            if self.folder.version == 2:
                self.deletes.append(
                    self.folder.positions(
                        {path: sorted(positions)}, sequence, named=True, **members
                    )
                )
                continue
            self.gone.setdefault(path, set()).update(positions)
            self.deletes = [
                entry
                for entry in self.deletes
                if entry["data_file"].get("referenced_data_file") != path
            ]
            self.deletes += self.folder.vectors(
                {path: sorted(self.gone[path])}, sequence, **members
            )

    def _delete_by_value(self, keys: list[int], sequence: int) -> None:
        by_place: dict[Place, list[int]] = {}
        for key in keys:
            path, _ = self.places.pop(key)
            by_place.setdefault(self.partitions[path], []).append(key)
        for place, deleted in by_place.items():
            values = pa.table({"id": pa.array(deleted, pa.int64())})
            self.deletes.append(self.folder.equality(values, {"id": 1}, sequence, **_in(place)))

    # -- as a content ------------------------------------------------------------------------------

    def content(self, line: list[int]) -> IcebergTable:
        """The table after the snapshots of a line."""
        first_row_ids = {id_: 100 * number for number, id_ in enumerate(line)}
        document = self.folder.state(
            [*self.files.values(), *self.deletes],
            SCHEMA,
            snapshots=line,
            first_row_ids=first_row_ids if self.folder.version > 2 else None,
            default_spec=self.spec,
            history=self.history,
        )
        document["last-sequence-number"] = max(line)
        location = self.folder.new("metadata.json")
        Path(location).write_text(json.dumps(document))
        table = content_of(document, location)
        assert isinstance(table, IcebergTable)
        return structs.replace(table, id="t")


def _in(place: Place) -> Document:
    """The members of a file in a partition."""
    spec_id, values = place
    return {"spec_id": spec_id, "partition": dict(values)}


# -- which files can have the same keys ----------------------------------------------------------


def read_by_rows(base: KeyedTable, ours: KeyedTable, theirs: KeyedTable) -> set[str]:
    """The data files that a merge of rows may read: those that can have a key of both sides.

    Compares each file with each, by the rules alone. Files that no side changed can have a key that
    theirs added: of these, only the partitions are compared.
    """
    states = (base, ours, theirs)
    files = {path: entry for state in states for path, entry in state.files.items()}
    deletes = [_deletes_by_file(state) for state in states]
    differing = [
        {
            path
            for path in base.files.keys() | side.files.keys()
            if (path in base.files) is not (path in side.files)
            or deletes[0][path].keys() != deletes[number][path].keys()
        }
        for number, side in ((1, ours), (2, theirs))
    ]
    changed = differing[0] | differing[1]
    groups = {path: {path} for path in changed}

    def join(paths: Iterable[str]) -> None:
        group = set[str]().union(*(groups[path] for path in paths))
        groups.update(dict.fromkeys(group, group))

    for path, other in combinations(changed, 2):
        if _may_share_key(base.layout, files[path], files[other]):
            join([path, other])
    for path in changed:
        for side in (1, 2):
            for id_ in deletes[0][path].keys() ^ deletes[side][path].keys():
                delete = (deletes[0][path] | deletes[side][path])[id_]
                values = delete["data_file"]["partition"].values()
                # Entries do not tell partitions of nulls from an unpartitioned table.
                is_wide = delete["data_file"]["content"] == EQUALITY and not any(
                    value is not None for value in values
                )
                reached = (
                    p for p in changed if is_wide or _may_be_about(base.layout, delete, files[p])
                )
                join([path, *reached])
    of_both = [
        group for group in groups.values() if not any(group.isdisjoint(each) for each in differing)
    ]
    by_rows = set[str]().union(*of_both)
    unchanged = {
        path
        for path in ours.files.keys() - changed
        if any(
            not _has_other_partition(base.layout, files[path], files[other])
            for other in by_rows & differing[1]
        )
    }
    return by_rows | unchanged


def _has_other_partition(layout: Layout, one: Document, other: Document) -> bool:
    return one["spec_id"] == other["spec_id"] and any(
        field["name"] in ("range", "bucket")
        and len({each["data_file"]["partition"][field["name"]] for each in (one, other)}) > 1
        for field in layout.specs[one["spec_id"]]
    )


def _may_share_key(layout: Layout, one: Document, other: Document) -> bool:
    if _has_other_partition(layout, one, other):
        return False
    if any("lower_bounds" not in each["data_file"] for each in (one, other)):
        return True
    (low, high), (other_low, other_high) = (
        [
            int.from_bytes(each["data_file"][name][0]["value"], "little")
            for name in ("lower_bounds", "upper_bounds")
        ]
        for each in (one, other)
    )
    return low <= other_high and other_low <= high


def _deletes_by_file(state: KeyedTable) -> dict[str, dict[Any, Document]]:
    """The delete files that apply to each data file. Others have none."""
    applying: dict[str, dict[Any, Document]] = defaultdict(dict)
    for path, file in state.files.items():
        for delete in state.deletes:
            age = delete["sequence_number"] - file["sequence_number"]
            is_newer = age > 0 if delete["data_file"]["content"] == EQUALITY else age >= 0
            if is_newer and _may_be_about(state.layout, delete, file):
                place = delete["data_file"]["file_path"], delete["data_file"].get("content_offset")
                applying[path][place] = delete
    return applying


def _may_be_about(layout: Layout, delete: Document, file: Document) -> bool:
    if (path := delete["data_file"].get("referenced_data_file")) is not None:
        return bool(path == file["data_file"]["file_path"])
    is_global = delete["data_file"]["content"] == EQUALITY and not any(
        field["transform"] != "void" for field in layout.specs[delete["spec_id"]]
    )
    places = [(each["spec_id"], each["data_file"]["partition"]) for each in (delete, file)]
    return is_global or places[0] == places[1]


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
