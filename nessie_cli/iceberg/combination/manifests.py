"""Manifests and manifest lists: reading their entries, and writing new ones.

A new manifest is a copy of one that exists: with its schema, its metadata and the unknown fields of
its entries, but with other entries. So nothing is lost that another writer has stored.

https://iceberg.apache.org/spec/#manifests
"""

from __future__ import annotations

import io
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Annotated, Any, NamedTuple

import fastavro
from msgspec import Meta, Struct, ValidationError, convert, structs

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.avro import (
    USUAL,
    AvroFile,
    AvroLimits,
    LimitExceeded,
    Projection,
    Reduction,
    each_row,
    read_avro,
)
from nessie_cli.iceberg.builder.document import ROW_LINEAGE
from nessie_cli.iceberg.combination.engines import ManifestJob, Read
from nessie_cli.iceberg.combination.states import FileContent, Identity, Row, TableFile
from nessie_cli.iceberg.combination.summaries import partition_names, with_partitions
from nessie_cli.iceberg.files import first_line
from nessie_cli.iceberg.locations import shown

_PATH_FIELD = 2147483546
"""The field id of the column `file_path` of position deletes."""
WITHOUT_SERVER = "rewrite the manifests, or merge with access to the files"
"""What helps against the limits of a server."""
_DECIDING = ("null_value_counts", "lower_bounds", "upper_bounds")
"""The statistics of columns that decisions can depend on."""
_STATISTICS = frozenset(
    {*_DECIDING, "column_sizes", "value_counts", "nan_value_counts", "distinct_counts"}
)
"""The members of a file with a value for each column: most of the memory of a manifest."""
_OfColumns = dict[Any, Any] | list[dict[str, Any]] | None


class Status(IntEnum):
    """What a manifest entry says about its file. The numbers are those of manifests."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


class Entry(Struct, frozen=True):
    """An entry of a manifest. The numbers and ids that it inherits are set."""

    status: Status
    file: TableFile


class Manifest(Struct, frozen=True):
    """A manifest with its entries.

    `listed` is its row in the manifest list, `schema` the Avro schema of its entries, and
    `metadata` the text that its file contains about them.
    """

    listed: Row
    schema: Row
    metadata: Mapping[str, str]
    entries: Sequence[Entry]

    @property
    def path(self) -> str:
        """Its path, as written."""
        return str(self.listed["manifest_path"])

    @property
    def is_data(self) -> bool:
        """Whether its files are data files."""
        return not self.listed.get("content")


class ManifestList(Struct, frozen=True):
    """The manifests of a snapshot: their rows by path, and the Avro schema of the rows."""

    rows: Mapping[str, Row]
    schema: Row


class _ListedMembers(Struct):
    """The members of a row of a manifest list that decisions depend on, for their types."""

    manifest_path: str
    added_snapshot_id: int
    manifest_length: int | None = None
    sequence_number: int | None = None
    partition_spec_id: int | None = None
    content: int | None = None
    first_row_id: int | None = None


class _FileMembers(Struct):
    """The members of a file in a manifest that decisions depend on."""

    file_path: str
    record_count: Annotated[int, Meta(ge=0)]
    partition: dict[str, Any] | None
    file_format: str = ""
    file_size_in_bytes: int = 0
    content: int | None = None
    content_offset: int | None = None
    content_size_in_bytes: int | None = None
    referenced_data_file: str | None = None
    first_row_id: int | None = None
    equality_ids: list[int] | None = None
    column_sizes: _OfColumns = None
    lower_bounds: _OfColumns = None
    upper_bounds: _OfColumns = None


class _EntryMembers(Struct):
    """The members of an entry of a manifest that decisions depend on."""

    status: int
    data_file: _FileMembers
    snapshot_id: int | None = None
    sequence_number: int | None = None
    file_sequence_number: int | None = None


def read_list(
    data: bytes, location: str, *, added_by: int | None = None, limits: AvroLimits = USUAL
) -> ManifestList:
    """Returns the manifests in a manifest list, or those that the snapshot `added_by` added.

    Raises `InvalidInput` if it is damaged or exceeds a limit.
    """
    rows, schema, _ = _records(data, location, "manifest list", limits)
    try:
        _check_rows(rows, _ListedMembers)
        if added_by is not None:
            rows = [row for row in rows if row["added_snapshot_id"] == added_by]
        return ManifestList({str(row["manifest_path"]): _renamed(row) for row in rows}, schema)
    except ValidationError as error:
        raise _damaged(location, "manifest list", error) from None


def _renamed(row: Row) -> Row:
    """Returns a row with today's names of the counts of files, which version 1 called otherwise."""
    return {name.replace("_data_files_count", "_files_count"): v for name, v in row.items()}


def read_manifest(
    data: bytes, listed: Row, limits: AvroLimits = USUAL, reduced: Reduction | None = None
) -> Manifest:
    """Returns a manifest with all entries, of each the part that `reduced` returns.

    Raises `InvalidInput` if it is damaged or exceeds a limit.
    """
    location = str(listed["manifest_path"])
    rows, schema, metadata = _records(data, location, "manifest", limits, reduced=reduced)
    try:
        _check_rows(rows, _EntryMembers)
        return Manifest(listed, schema, metadata, list(_entries(rows, listed)))
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(location, "manifest", error) from None


class Reading(ManifestJob, frozen=True):
    """Reading a manifest for a decision, which depends on the statistics of some columns."""

    columns: Collection[int] = ()
    limits: AvroLimits = USUAL


def read_entries(read: Read, job: Reading) -> list[Entry]:
    """Returns the entries of a manifest, without the statistics of most columns of data files.

    With them, an entry has ten times the size. Raises `InvalidInput` if the manifest is damaged or
    exceeds a limit, and the errors of `read`.
    """
    listed = job.listed
    data = read(job.path)
    if listed.get("content"):
        return list(read_manifest(data, listed, job.limits).entries)
    projection = None if job.columns else _without_statistics

    def reduced(row: Row) -> Row:
        return {**row, "data_file": _with_statistics(row["data_file"], job.columns)}

    rows, _, _ = _records(
        data,
        job.path,
        "manifest",
        job.limits,
        projection=projection,
        reduced=reduced if job.columns else None,
    )
    try:
        _check_rows(rows, _EntryMembers)
        return list(_entries(rows, listed))
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(job.path, "manifest", error) from None


def _without_statistics(schema: Row) -> Row:
    """Returns the schema of entries without the statistics of columns."""
    fields = [dict(field) for field in schema["fields"]]
    for field in fields:
        if field["name"] == "data_file":
            members = field["type"]["fields"]
            members = [each for each in members if each["name"] not in _STATISTICS]
            field["type"] = {**field["type"], "fields": members}
    return {**schema, "fields": fields}


def _with_statistics(file: Row, columns: Collection[int]) -> Row:
    """Returns a file with the statistics of these columns only."""
    return {name: value for name, value in file.items() if name not in _STATISTICS} | {
        name: {column: bound(file.get(name), column) for column in columns} for name in _DECIDING
    }


def _check_rows(rows: Iterable[Row], type_: type[Struct]) -> None:
    """Raises `ValidationError` for a row without the members of a type. Each takes one call."""
    for row in rows:
        convert(row, type_)


def _records(
    data: bytes,
    location: str,
    kind: str,
    limits: AvroLimits,
    *,
    projection: Projection | None = None,
    reduced: Reduction | None = None,
) -> AvroFile:
    try:
        return read_avro(data, limits, projection, reduced)
    except LimitExceeded as error:
        message = f"the {kind} {shown(location)} is too large: {error}"
        raise InvalidInput(message, hint=WITHOUT_SERVER) from None
    except Exception as error:  # noqa: BLE001 - damaged bytes raise any error in the decoder
        raise _damaged(location, kind, error) from None


def _damaged(location: str, kind: str, error: Exception) -> InvalidInput:
    return InvalidInput(f"{shown(location)} is not a valid {kind}: {first_line(error)}")


def _entries(rows: Iterable[Row], listed: Row) -> Iterator[Entry]:
    sequence = listed.get("sequence_number") or 0
    next_row_id = listed.get("first_row_id")
    for row in rows:
        status = Status(row["status"])
        file = row["data_file"]
        data_sequence, file_sequence = row.get("sequence_number"), row.get("file_sequence_number")
        is_added = status is Status.ADDED
        first_row_id = file.get("first_row_id")
        if first_row_id is None and next_row_id is not None and status is not Status.DELETED:
            first_row_id = next_row_id
            next_row_id += file["record_count"]
        snapshot_id = row.get("snapshot_id")
        yield Entry(
            status,
            TableFile(
                identity=Identity(
                    file["file_path"], file.get("content_offset"), file.get("content_size_in_bytes")
                ),
                content=FileContent(file.get("content") or 0),
                spec_id=listed.get("partition_spec_id") or 0,
                partition=_hashable(file["partition"]),
                records=file["record_count"],
                sequence=_inherited(data_sequence, sequence, is_added=is_added),
                file_sequence=_inherited(file_sequence, sequence, is_added=is_added),
                snapshot_id=listed["added_snapshot_id"] if snapshot_id is None else snapshot_id,
                row=file,
                referenced=_referenced(file),
                manifest=str(listed["manifest_path"]),
                first_row_id=first_row_id,
            ),
        )


def _inherited(number: int | None, of_manifest: int, *, is_added: bool) -> int:
    # Entries of format version 1 have no number: it counts as 0.
    return number if number is not None else of_manifest if is_added else 0


def _hashable(partition: Any) -> tuple[Hashable, ...]:
    return tuple(sorted((name, _text(value)) for name, value in (partition or {}).items()))


def _text(value: Any) -> str:
    return f"{type(value).__name__} {value!r}"


def _referenced(file: Row) -> str | None:
    """Returns the only data file that a delete file is about: by its field, or by its bounds."""
    if (file.get("content") or 0) != FileContent.POSITION_DELETES:
        return None
    if (path := file.get("referenced_data_file")) is not None:
        return str(path)
    lower, upper = (bound(file.get(name), _PATH_FIELD) for name in ("lower_bounds", "upper_bounds"))
    return lower.decode() if lower is not None and lower == upper else None


def bound(bounds: Any, field: int) -> Any:
    """Returns the bound of a column, or its value in another map of a file."""
    pairs = (
        bounds.items()
        if isinstance(bounds, dict)
        else ((pair["key"], pair["value"]) for pair in bounds or ())
    )
    return next((value for key, value in pairs if str(key) == str(field)), None)


# -- writing --------------------------------------------------------------------------------------


class NewEntry(Struct, frozen=True):
    """An entry for a new manifest; numbers that are None are those of the new snapshot."""

    status: Status
    file: TableFile
    snapshot_id: int
    sequence: int | None = None
    file_sequence: int | None = None
    first_row_id: int | None = None


class NewSnapshot(NamedTuple):
    """The snapshot that new manifests are for, and the format version of the table."""

    id: int
    sequence: int
    version: int


def write_manifest(
    source: Manifest,
    entries: Sequence[NewEntry],
    location: str,
    snapshot: NewSnapshot,
    files: Iterable[Row] | None = None,
) -> tuple[bytes, Row]:
    """Returns the bytes of a manifest like `source`, and its row for the manifest list.

    `files` are the whole rows of the files of the entries, in the same order, if those have parts.
    """
    _, sequence, version = snapshot
    schema = _complete_schema(source.schema, version)
    metadata = {**source.metadata, "format-version": str(version)}
    # A manifest of data files can be the model of one of deletes.
    is_data = all(entry.file.is_data for entry in entries) if entries else source.is_data
    if version > 1:
        metadata["content"] = "data" if is_data else "deletes"
    files = (entry.file.row for entry in entries) if files is None else files
    rows = (_row(entry, file, version) for entry, file in zip(entries, files, strict=True))
    data = _avro(schema, rows, metadata)
    live = [entry for entry in entries if entry.status is not Status.DELETED]
    numbers = [sequence if e.sequence is None else e.sequence for e in live]
    counts = {
        f"{name}_{what}_count": sum(
            1 if what == "files" else entry.file.records
            for entry in entries
            if entry.status is status
        )
        for name, status in (
            ("added", Status.ADDED),
            ("existing", Status.EXISTING),
            ("deleted", Status.DELETED),
        )
        for what in ("files", "rows")
    }
    listed = {
        **source.listed,
        **counts,
        "manifest_path": location,
        "manifest_length": len(data),
        "sequence_number": sequence,
        "min_sequence_number": min(numbers, default=sequence),
        "added_snapshot_id": snapshot.id,
        "first_row_id": None,
    }
    if version > 1:
        listed["content"] = int(not is_data)
    return data, listed


class Rewriting(ManifestJob, frozen=True):
    """Writing a manifest like another one, with the rows of its files.

    The new one is at `location`. It has the files of `added`, or the live files of the other one
    without those of `removed`.
    """

    location: str
    snapshot: NewSnapshot
    added: Sequence[NewEntry] = ()
    removed: Collection[Identity] = ()
    limits: AvroLimits = USUAL


def rewrite_manifest(read: Read, job: Rewriting) -> tuple[bytes, Row]:
    """Returns the bytes of a new manifest, and its row for the manifest list.

    Raises `InvalidInput` if the other one is damaged or exceeds a limit, and the errors of `read`.
    """
    data = read(job.path)
    try:
        return _with_added(data, job) if job.added else _without_removed(data, job)
    except ValueError as error:
        raise InvalidInput(
            f"a partition of the table does not fit in a manifest like {shown(job.path)}: the type"
            f" of its column may have changed ({first_line(error)})"
        ) from None


def _with_added(data: bytes, job: Rewriting) -> tuple[bytes, Row]:
    """Writes the files of `added`. New files are not in the manifest whose form they have."""
    source = read_manifest(data, job.listed, job.limits)
    live = [entry.file for entry in source.entries if entry.status is not Status.DELETED]
    rows = {file.identity: file.row for file in live}
    new = [e.file for e in job.added if e.file.identity not in rows]
    rows |= {file.identity: _named(file.row, source.schema) for file in new}
    entries = [
        structs.replace(e, file=structs.replace(e.file, row=rows[e.file.identity]))
        for e in job.added
    ]
    written, listed = write_manifest(source, entries, job.location, job.snapshot)
    if any(file.is_data for file in new):
        added = [rows[file.identity]["partition"] for file in new if file.is_data]
        old = source.listed.get("partitions")
        listed["partitions"] = with_partitions(old, source.schema, source.metadata, added)
    return written, listed


def _without_removed(data: bytes, job: Rewriting) -> tuple[bytes, Row]:
    """Rewrites the live files of a manifest. Their statistics, which are large, are read twice."""

    def reduced(row: Row) -> Row:
        file = row["data_file"]
        small = {name: value for name, value in file.items() if name not in _STATISTICS}
        return {**row, "data_file": small}

    source = read_manifest(data, job.listed, job.limits, reduced)
    live = [entry.file for entry in source.entries if entry.status is not Status.DELETED]
    rows = (
        row["data_file"]
        for row in each_row(data, job.limits)
        if Status(row["status"]) is not Status.DELETED
    )
    entries = list(_remaining(live, job))
    return write_manifest(source, entries, job.location, job.snapshot, rows)


def _named(row: Row, schema: Row) -> Row:
    """Returns a row whose partition values are by the names that a manifest has for the fields.

    Avro allows only some names: writers replace other letters. A new data file has ids instead.
    """
    names = partition_names(schema)
    values = row["partition"].items()
    return {**row, "partition": {names.get(field, field): value for field, value in values}}


def _remaining(files: Iterable[TableFile], job: Rewriting) -> Iterator[NewEntry]:
    for file in files:
        is_removed = file.identity in job.removed
        yield NewEntry(
            Status.DELETED if is_removed else Status.EXISTING,
            file,
            job.snapshot.id if is_removed else file.snapshot_id,
            file.sequence,
            file.file_sequence,
            file.first_row_id,
        )


def _row(entry: NewEntry, file: Row, version: int) -> Row:
    file = {**file}
    if version >= ROW_LINEAGE and entry.file.is_data:
        file["first_row_id"] = entry.first_row_id
    row: Row = {"status": int(entry.status), "snapshot_id": entry.snapshot_id, "data_file": file}
    if version > 1:
        row["sequence_number"] = entry.sequence
        row["file_sequence_number"] = entry.file_sequence
    return row


def write_list(
    rows: Sequence[Row], version: int, unknown: Row, metadata: Mapping[str, str]
) -> bytes:
    """Returns the bytes of a manifest list.

    `unknown` is the schema of an earlier list; its further fields are kept.
    """
    fields = [field for since, field in _LIST_FIELDS if since <= version]
    if version == 1:
        fields = [_nullable(field) if field["field-id"] in _COUNTS else field for field in fields]
    ids = {field["field-id"] for _, field in _LIST_FIELDS}
    fields += [field for field in unknown.get("fields", ()) if field.get("field-id") not in ids]
    schema = {"type": "record", "name": "manifest_file", "fields": fields}
    defaults = (
        {} if version == 1 else {"content": 0, "sequence_number": 0, "min_sequence_number": 0}
    )
    return _avro(schema, [{**defaults, **row} for row in rows], metadata)


def _nullable(field: Row) -> Row:
    return _optional(field["field-id"], field["name"], field["type"])


def _avro(schema: Row, rows: Iterable[Row], metadata: Mapping[str, str]) -> bytes:
    file = io.BytesIO()
    fastavro.writer(file, schema, rows, codec="deflate", metadata=dict(metadata))
    return file.getvalue()


def _complete_schema(schema: Row, version: int) -> Row:
    """Returns the schema of entries with the fields that a format version needs.

    Files of older versions remain in a table after an upgrade.
    """
    fields = [dict(field) for field in schema["fields"]]
    data_file = next(field for field in fields if field["name"] == "data_file")
    if version > 1:
        fields = _with(fields, _ENTRY_FIELDS)
        for field in fields:
            if field["name"] == "snapshot_id":
                field["type"], field["default"] = ["null", "long"], None
    needed = [field for since, field in _FILE_FIELDS if since <= version]
    file_type = dict(data_file["type"])
    file_type["fields"] = _with(file_type["fields"], needed)
    next(field for field in fields if field["name"] == "data_file")["type"] = file_type
    return {**schema, "fields": fields}


def _with(fields: Sequence[Row], more: Iterable[Row]) -> list[Row]:
    names = {field["name"] for field in fields}
    return [*fields, *(field for field in more if field["name"] not in names)]


def _required(id_: int, name: str, type_: Any) -> Row:
    return {"name": name, "type": type_, "field-id": id_}


def _optional(id_: int, name: str, type_: Any) -> Row:
    return {"name": name, "type": ["null", type_], "default": None, "field-id": id_}


_ENTRY_FIELDS = (
    _optional(3, "sequence_number", "long"),
    _optional(4, "file_sequence_number", "long"),
)
_FILE_FIELDS: Sequence[tuple[int, Row]] = (
    (2, {"name": "content", "type": "int", "default": 0, "field-id": 134}),
    (3, _optional(142, "first_row_id", "long")),
    (3, _optional(143, "referenced_data_file", "string")),
    (3, _optional(144, "content_offset", "long")),
    (3, _optional(145, "content_size_in_bytes", "long")),
)
_SUMMARY = {
    "type": "record",
    "name": "r508",
    "fields": [
        _required(509, "contains_null", "boolean"),
        _optional(518, "contains_nan", "boolean"),
        _optional(510, "lower_bound", "bytes"),
        _optional(511, "upper_bound", "bytes"),
    ],
}
_LIST_FIELDS: Sequence[tuple[int, Row]] = (
    (1, _required(500, "manifest_path", "string")),
    (1, _required(501, "manifest_length", "long")),
    (1, _required(502, "partition_spec_id", "int")),
    (2, _required(517, "content", "int")),
    (2, _required(515, "sequence_number", "long")),
    (2, _required(516, "min_sequence_number", "long")),
    (1, _required(503, "added_snapshot_id", "long")),
    (1, _required(504, "added_files_count", "int")),
    (1, _required(505, "existing_files_count", "int")),
    (1, _required(506, "deleted_files_count", "int")),
    (1, _required(512, "added_rows_count", "long")),
    (1, _required(513, "existing_rows_count", "long")),
    (1, _required(514, "deleted_rows_count", "long")),
    (1, _optional(507, "partitions", {"type": "array", "items": _SUMMARY, "element-id": 508})),
    (1, _optional(519, "key_metadata", "bytes")),
    (3, _optional(520, "first_row_id", "long")),
)
_COUNTS = frozenset({504, 505, 506, 512, 513, 514})
"""The fields that lists of format version 1 may lack."""
