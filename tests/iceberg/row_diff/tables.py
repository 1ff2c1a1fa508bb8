"""Tables written by hand: any data files and deletes, with any sequence numbers."""

from __future__ import annotations

import itertools
import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap64

from nessie_cli.iceberg.files import Files

Document = dict[str, Any]
DATA, POSITIONS, EQUALITY = 0, 1, 2
DELETED = 2
"""The status of an entry of a removed file."""
UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"


def column(id_: int, name: str, type_: Any, **others: Any) -> Document:
    return {"id": id_, "name": name, "required": False, "type": type_, **others}


def schema(*columns: Document, id_: int = 0, keys: Sequence[int] = ()) -> Document:
    return {
        "type": "struct",
        "schema-id": id_,
        "fields": list(columns),
        "identifier-field-ids": list(keys),
    }


def with_ids(table: pa.Table, ids: Mapping[str, int]) -> pa.Table:
    """A table whose columns have the field ids of Iceberg."""
    fields = [
        field.with_metadata({"PARQUET:field_id": str(ids[field.name])}) for field in table.schema
    ]
    return table.cast(pa.schema(fields))


class CountingFiles(Files):
    """Counts the bytes that are read of each file."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes_of: dict[str, int] = {}

    def open(self, uri: str) -> Any:
        return _Counting(super().open(uri), uri, self.bytes_of)

    @property
    def read_bytes(self) -> int:
        return sum(self.bytes_of.values())


class _Counting:
    def __init__(self, file: Any, uri: str, bytes_of: dict[str, int]) -> None:
        self._file = file
        self._uri = uri
        self._bytes_of = bytes_of
        bytes_of.setdefault(uri, 0)

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._bytes_of[self._uri] += len(data)
        return bytes(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class Folder:
    """A folder for the files of a table with the partition specs 0 (`spec`), 1 and so on.

    A file is in spec 0 if its members have no other `spec_id`.
    """

    def __init__(
        self,
        path: Path,
        version: int = 2,
        spec: Sequence[Document] = (),
        later_specs: Sequence[Sequence[Document]] = (),
    ) -> None:
        self.path = path
        self.version = version
        self.specs = [list(spec), *map(list, later_specs)]
        self._numbers = itertools.count(1)

    def new(self, suffix: str) -> str:
        return str(self.path / f"{next(self._numbers):05}.{suffix}")

    # -- files: each is an entry of a manifest -----------------------------------------------------

    def data(
        self, rows: pa.Table, ids: Mapping[str, int], sequence: int = 1, **others: Any
    ) -> Document:
        options = {name: others.pop(name) for name in ("row_group_size",) if name in others}
        path = self.new("parquet")
        pq.write_table(with_ids(rows, ids) if ids else rows, path, **options)
        return self._entry(DATA, path, rows.num_rows, sequence, **others)

    def positions(
        self,
        deleted: Mapping[str, Sequence[int]],
        sequence: int,
        *,
        named: bool = False,
        **others: Any,
    ) -> Document:
        """A file of position deletes; `named` only if it is about one data file."""
        pairs = [(path, position) for path in sorted(deleted) for position in sorted(deleted[path])]
        rows = pa.table(
            {
                "file_path": pa.array([path for path, _ in pairs], pa.string()),
                "pos": pa.array([position for _, position in pairs], pa.int64()),
            }
        )
        path = self.new("parquet")
        pq.write_table(with_ids(rows, {"file_path": 2147483546, "pos": 2147483545}), path)
        referenced = next(iter(deleted)) if named else None
        return self._entry(
            POSITIONS, path, len(pairs), sequence, referenced_data_file=referenced, **others
        )

    def vectors(
        self, deleted: Mapping[str, Sequence[int]], sequence: int, **others: Any
    ) -> list[Document]:
        """Deletion vectors, all in one Puffin file."""
        data, blobs = b"PFA1", []
        for path, positions in deleted.items():
            body = struct.pack("<I", 1681511377) + BitMap64(positions).serialize()
            blob = struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))
            blobs.append((path, len(data), len(blob), len(positions)))
            data += blob
        footer = json.dumps(
            {
                "blobs": [
                    {
                        "type": "deletion-vector-v1",
                        "fields": [2147483545],
                        "snapshot-id": -1,
                        "sequence-number": -1,
                        "offset": offset,
                        "length": length,
                        "properties": {"referenced-data-file": path, "cardinality": str(count)},
                    }
                    for path, offset, length, count in blobs
                ]
            }
        ).encode()
        data += b"PFA1" + footer + struct.pack("<i", len(footer)) + bytes(4) + b"PFA1"
        puffin = self.new("puffin")
        Path(puffin).write_bytes(data)
        return [
            self._entry(
                POSITIONS,
                puffin,
                count,
                sequence,
                file_format="PUFFIN",
                referenced_data_file=path,
                content_offset=offset,
                content_size_in_bytes=length,
                **others,
            )
            for path, offset, length, count in blobs
        ]

    def equality(
        self, rows: pa.Table, ids: Mapping[str, int], sequence: int, **others: Any
    ) -> Document:
        path = self.new("parquet")
        pq.write_table(with_ids(rows, ids), path)
        return self._entry(
            EQUALITY, path, rows.num_rows, sequence, equality_ids=list(ids.values()), **others
        )

    def _entry(
        self, content: int, path: str, records: int, sequence: int, **others: Any
    ) -> Document:
        return {
            "spec_id": others.pop("spec_id", 0),
            "status": 1,
            "snapshot_id": sequence,
            "sequence_number": sequence,
            "file_sequence_number": sequence,
            "data_file": {
                "content": content,
                "file_path": path,
                "file_format": "PARQUET",
                "partition": {},
                "record_count": records,
                "file_size_in_bytes": Path(path).stat().st_size,
                **others,
            },
        }

    # -- states ------------------------------------------------------------------------------------

    def state(
        self,
        entries: Sequence[Document],
        *schemas: Document,
        snapshots: Sequence[int] = (1,),
        first_row_ids: Mapping[int, int] | None = None,
        properties: Mapping[str, str] | None = None,
        default_spec: int = 0,
        history: Mapping[int, tuple[str, Sequence[Document]]] | None = None,
    ) -> Document:
        """The metadata of a table with some files; the last schema is the current one.

        `snapshots` are the ids of the current snapshot's line, oldest first, and `history` their
        operations and entries. Without it, all have the entries of the table.
        """
        every = self._list(entries)
        listed = []
        for parent, id_ in zip((None, *snapshots), snapshots, strict=False):
            operation, its = history[id_] if history else ("", ())
            snapshot = {
                "snapshot-id": id_,
                "sequence-number": id_,
                "timestamp-ms": 1,
                "summary": {"operation": operation} if operation else {},
            }
            location = self._list(its) if history else every
            snapshot |= {"manifest-list": location, "parent-snapshot-id": parent}
            if first_row_ids is not None:
                snapshot |= {"first-row-id": first_row_ids[id_], "added-rows": 100}
            listed.append({name: value for name, value in snapshot.items() if value is not None})
        document = {
            "format-version": self.version,
            "table-uuid": UUID,
            "location": str(self.path),
            "last-sequence-number": 1000,
            "last-updated-ms": 1,
            "last-column-id": 1000,
            "schemas": list(schemas),
            "current-schema-id": schemas[-1]["schema-id"],
            "partition-specs": [
                {"spec-id": id_, "fields": spec} for id_, spec in enumerate(self.specs)
            ],
            "default-spec-id": default_spec,
            "last-partition-id": 1000,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "properties": dict(properties or {}),
            "current-snapshot-id": snapshots[-1],
            "snapshots": listed,
        }
        return document | ({"next-row-id": 10_000} if self.version > 2 else {})

    def _list(self, entries: Sequence[Document]) -> str:
        location = self.new("avro")
        self._write(location, _LIST, [self._manifest(entry) for entry in entries])
        return location

    def _manifest(self, entry: Document) -> Document:
        """Each file is in a manifest of its own, which states share by its name."""
        file = entry["data_file"]
        offset = file.get("content_offset") or 0
        path = f"{file['file_path']}.{offset}.{entry['sequence_number']}.avro"
        if entry["status"] == DELETED:
            path += f".{entry['snapshot_id']}.avro"
        if not Path(path).exists():
            self._write(path, self._entries(entry["spec_id"]), [entry])
        return {
            "manifest_path": path,
            "manifest_length": Path(path).stat().st_size,
            "partition_spec_id": entry["spec_id"],
            "content": int(file["content"] != DATA),
            "sequence_number": entry["sequence_number"],
            "min_sequence_number": entry["sequence_number"],
            "added_snapshot_id": entry["snapshot_id"],
            **dict.fromkeys(_COUNTS, 0),
            "added_files_count": 1,
            "added_rows_count": file["record_count"],
        }

    def _write(self, path: str, fields: Sequence[Document], rows: Sequence[Document]) -> None:
        avro = {"type": "record", "name": "row", "fields": list(fields)}
        with Path(path).open("wb") as file:
            fastavro.writer(file, avro, rows)

    def _entries(self, spec_id: int) -> list[Document]:
        partition = [
            _optional(field["name"], field["avro"], field["field-id"])
            for field in self.specs[spec_id]
        ]
        files = [
            _field("content", "int", 134),
            _field("file_path", "string"),
            _field("file_format", "string"),
            _field("partition", {"type": "record", "name": "r102", "fields": partition}),
            _field("record_count", "long"),
            _field("file_size_in_bytes", "long"),
            _optional("lower_bounds", _bounds(126, 127)),
            _optional("upper_bounds", _bounds(129, 130)),
            _optional("equality_ids", {"type": "array", "items": "int", "element-id": 136}),
            _optional("first_row_id", "long"),
            _optional("referenced_data_file", "string"),
            _optional("content_offset", "long"),
            _optional("content_size_in_bytes", "long"),
        ]
        return [
            _field("status", "int"),
            _field("snapshot_id", "long"),
            _optional("sequence_number", "long", 3),
            _optional("file_sequence_number", "long"),
            _field("data_file", {"type": "record", "name": "r2", "fields": files}),
        ]


def _field(name: str, type_: Any, id_: int | None = None) -> Document:
    return {"name": name, "type": type_, "field-id": _FIELD_IDS[name] if id_ is None else id_}


def _optional(name: str, type_: Any, id_: int | None = None) -> Document:
    return {**_field(name, ["null", type_], id_), "default": None}


def _bounds(key: int, value: int) -> Document:
    fields = [_field("key", "int", key), _field("value", "bytes", value)]
    record = {"type": "record", "name": f"k{key}_v{value}", "fields": fields}
    return {"type": "array", "items": record, "logicalType": "map"}


_FIELD_IDS = {
    "status": 0,
    "snapshot_id": 1,
    "data_file": 2,
    "file_sequence_number": 4,
    "file_path": 100,
    "file_format": 101,
    "partition": 102,
    "record_count": 103,
    "file_size_in_bytes": 104,
    "lower_bounds": 125,
    "upper_bounds": 128,
    "equality_ids": 135,
    "first_row_id": 142,
    "referenced_data_file": 143,
    "content_offset": 144,
    "content_size_in_bytes": 145,
    "manifest_path": 500,
    "manifest_length": 501,
    "partition_spec_id": 502,
    "added_snapshot_id": 503,
    "added_files_count": 504,
    "existing_files_count": 505,
    "deleted_files_count": 506,
    "added_rows_count": 512,
    "existing_rows_count": 513,
    "deleted_rows_count": 514,
    "min_sequence_number": 516,
}
"""https://iceberg.apache.org/spec/#manifests"""


_COUNTS = [
    f"{change}_{what}_count"
    for change in ("added", "existing", "deleted")
    for what in ("files", "rows")
]
_LIST = [
    _field("manifest_path", "string"),
    _field("manifest_length", "long"),
    _field("partition_spec_id", "int"),
    _field("content", "int", 517),
    _field("sequence_number", "long", 515),
    _field("min_sequence_number", "long"),
    _field("added_snapshot_id", "long"),
    *(_field(name, "long") for name in _COUNTS),
]
