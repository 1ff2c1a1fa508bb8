"""Writes merged rows as data files, and the deletion of their earlier versions.

https://iceberg.apache.org/spec/#partitioning and https://iceberg.apache.org/spec/#delete-formats
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from pyarrow import parquet
from pyiceberg.io.pyarrow import (
    MetricModeTypes,
    MetricsMode,
    StatisticsCollector,
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform, Transform, VoidTransform
from pyiceberg.types import (
    IcebergType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
)
from pyroaring import BitMap64

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.combination.states import FileContent, Identity, Row, TableFile
from nessie_cli.iceberg.files import first_line
from nessie_cli.iceberg.row_diff.schemas import arrow_type
from nessie_cli.iceberg.vectors import puffin_file

Write = Callable[[str, bytes], None]
MOST_BYTES = 128 * 2**20
"""The bytes of rows in memory at which they are written: one data file for each partition."""
_ROW_ID = NestedField(2147483540, "_row_id", LongType(), required=False)
_PATH_ID, _POSITION_ID = 2147483546, 2147483545
_DELETE_SCHEMA = Schema(
    NestedField(_PATH_ID, "file_path", StringType(), required=True),
    NestedField(_POSITION_ID, "pos", LongType(), required=True),
)


class DataFileForm(Struct, frozen=True):
    """What new data files of a table have in common.

    `folder` is theirs. `manifest` is a manifest of the partition spec, which says how an entry
    looks. With `row_ids`, rows keep their ids in a column.
    """

    schema: Schema
    spec: PartitionSpec
    properties: Mapping[str, str]
    folder: str
    manifest: str
    row_ids: bool


class DataFileWriter:
    """Writes rows into data files of a table, many at once: one file for each partition."""

    def __init__(self, form: DataFileForm, write: Write) -> None:
        schema, row_ids = form.schema, form.row_ids
        self._row_ids = row_ids
        self._table_schema, self._spec, self._properties = schema, form.spec, dict(form.properties)
        self._folder, self._manifest, self._write = form.folder, form.manifest, write
        fields = [*schema.fields, _ROW_ID] if row_ids else list(schema.fields)
        self._schema = Schema(*fields, schema_id=schema.schema_id)
        self._arrow = pa.schema(map(_with_id, fields))
        self._statistics = _statistics_plan(self._schema, self._properties)
        self._required = [number for number, field in enumerate(schema.fields) if field.required]
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0
        self.files: list[TableFile] = []

    def add(self, rows: pa.Array, row_ids: pa.Array) -> None:
        """Writes rows with their ids, or null. Raises `InvalidInput` for a required column."""
        columns = [*rows.flatten(), *([row_ids] if self._row_ids else [])]
        for number in self._required:
            if columns[number].null_count:
                raise InvalidInput(
                    f"the rows cannot be merged: the column {self._arrow.names[number]} is"
                    " required, and would be null"
                )
        types = self._arrow.types
        arrays = [column.cast(type_) for column, type_ in zip(columns, types, strict=True)]
        batch = pa.record_batch(arrays, schema=self._arrow)
        self._batches.append(batch)
        self._bytes += batch.nbytes
        if self._bytes >= MOST_BYTES:
            self.close()

    def close(self) -> None:
        """Writes all rows that are still in memory."""
        if not self._batches:
            return
        rows = pa.concat_batches(self._batches)
        self._batches, self._bytes = [], 0
        for values, selected in _partitioned(rows, self._table_schema, self._spec):
            self._write_file(values, selected)

    def _write_file(self, values: tuple[Any, ...], rows: pa.RecordBatch) -> None:
        metadata, data = _parquet(rows)
        location = f"{self._folder}/{uuid.uuid4()}.parquet"
        self._write(location, data)
        row = {
            **{name: _entries(value) for name, value in self._statistics_of(metadata).items()},
            "content": int(FileContent.DATA),
            "file_path": location,
            "file_format": "PARQUET",
            # Manifests have names of their own for the fields.
            "partition": {
                field.field_id: value
                for field, value in zip(self._spec.fields, values, strict=True)
            },
            "file_size_in_bytes": len(data),
        }
        spec = self._spec.spec_id
        self.files.append(new_file(FileContent.DATA, Identity(location), row, spec, self._manifest))

    def _statistics_of(self, metadata: Any) -> dict[str, Any]:
        """Returns the statistics of a Parquet file as they are in a manifest."""
        paths = parquet_path_to_id_mapping(self._schema)

        def serialized(plan: dict[int, StatisticsCollector]) -> dict[str, Any]:
            return data_file_statistics_from_parquet_metadata(
                metadata, plan, paths
            ).to_serialized_dict()

        try:
            return serialized(self._statistics)
        except UnicodeError:
            # PyIceberg has no bound for a text that is cut off behind U+D7FF, or is not UTF-8.
            return serialized(_without_bounds(self._statistics, StringType))


def _parquet(rows: pa.RecordBatch) -> tuple[Any, bytes]:
    """Returns the metadata of a Parquet file and its bytes."""
    sink = pa.BufferOutputStream()
    with parquet.ParquetWriter(sink, rows.schema, compression="zstd") as writer:
        writer.write_batch(rows)
    data = sink.getvalue()
    return parquet.read_metadata(pa.BufferReader(data)), data.to_pybytes()


def new_file(
    content: FileContent, identity: Identity, row: Row, spec_id: int, manifest: str, **more: Any
) -> TableFile:
    """Returns a new file with its members in a manifest (`row`), for the next snapshot."""
    return TableFile(
        identity=identity,
        content=content,
        spec_id=spec_id,
        partition=(),
        records=int(row["record_count"]),
        sequence=0,
        file_sequence=0,
        snapshot_id=0,
        row=row,
        manifest=manifest,
        **more,
    )


# -- deletes --------------------------------------------------------------------------------------


def position_deletes(file: TableFile, positions: BitMap64, folder: str, write: Write) -> TableFile:
    """Writes a file of position deletes for one data file (format version 2)."""
    location = f"{folder}/{uuid.uuid4()}-deletes.parquet"
    fields = [_with_id(field) for field in _DELETE_SCHEMA.fields]
    count = len(positions)
    batch = pa.record_batch(
        [pa.repeat(pa.scalar(file.path, pa.large_string()), count), positions.to_array()],
        schema=pa.schema(fields),
    )
    _, data = _parquet(batch)
    write(location, data)
    path = file.path.encode()
    ends = (positions.min(), positions.max())
    low, high = (int(position).to_bytes(8, "little") for position in ends)
    row = {
        **_deletes_of(file),
        "file_path": location,
        "file_format": "PARQUET",
        "record_count": count,
        "file_size_in_bytes": len(data),
        "lower_bounds": _entries({_PATH_ID: path, _POSITION_ID: low}),
        "upper_bounds": _entries({_PATH_ID: path, _POSITION_ID: high}),
    }
    return _new_deletes(file, Identity(location), row)


def deletion_vectors(
    vectors: Sequence[tuple[TableFile, BitMap64]], folder: str, write: Write
) -> list[TableFile]:
    """Writes the deletion vectors of data files, all in one Puffin file (format version 3)."""
    if not vectors:
        return []
    location = f"{folder}/{uuid.uuid4()}-deletes.puffin"
    data, blobs = puffin_file((file.path, positions) for file, positions in vectors)
    write(location, data)
    files = []
    for (file, positions), blob in zip(vectors, blobs, strict=True):
        row = {
            **_deletes_of(file),
            "file_path": location,
            "file_format": "PUFFIN",
            "record_count": len(positions),
            "file_size_in_bytes": len(data),
            "content_offset": blob.offset,
            "content_size_in_bytes": blob.size,
        }
        files.append(_new_deletes(file, Identity(location, *blob), row))
    return files


def _deletes_of(file: TableFile) -> Row:
    """Returns the members of a delete file that those of its data file say."""
    return {
        "content": int(FileContent.POSITION_DELETES),
        "partition": file.row["partition"],
        "referenced_data_file": file.path,
    }


def _new_deletes(file: TableFile, identity: Identity, row: Row) -> TableFile:
    return new_file(
        FileContent.POSITION_DELETES,
        identity,
        row,
        file.spec_id,
        file.manifest,
        referenced=file.path,
    )


# -- values ---------------------------------------------------------------------------------------


def _partitioned(
    batch: pa.RecordBatch, schema: Schema, spec: PartitionSpec
) -> Iterator[tuple[tuple[Any, ...], pa.RecordBatch]]:
    """Yields the rows of each partition with its values."""
    if not spec.fields:
        yield (), batch
        return
    columns = []
    rows = batch.to_struct_array()
    for field in spec.fields:
        if isinstance(field.transform, VoidTransform):
            # Its column may be dropped.
            columns.append(pa.nulls(len(batch)))
            continue
        source = _nested(rows, schema.find_column_name(field.source_id) or "")
        columns.append(_transformed(source, field.transform, schema.find_type(field.source_id)))
    numbers: dict[tuple[Any, ...], list[int]] = {}
    for number, key in enumerate(zip(*map(_keys, columns), strict=True)):
        numbers.setdefault(key, []).append(number)
    for selected in numbers.values():
        values = tuple(column[selected[0]].as_py() for column in columns)
        yield values, batch.take(pa.array(selected, pa.int64()))


def _transformed(column: pa.Array, transform: Transform[Any, Any], type_: IcebergType) -> pa.Array:
    """Returns the partition values of a column. PyIceberg lacks some types of columns."""
    if isinstance(type_, TimestampNanoType | TimestamptzNanoType):
        if isinstance(transform, IdentityTransform):
            return column.view(pa.int64())
        # By the specification, these transforms have the values of microseconds, rounded down.
        zone = column.type.tz
        column = pc.floor_temporal(column, unit="microsecond").cast(pa.timestamp("us", zone))
        type_ = TimestamptzType() if zone else TimestampType()
    if pa.types.is_large_binary(column.type):
        column = column.cast(pa.binary())
    values: pa.Array = transform.pyarrow_transform(type_)(column)
    return values


def _keys(column: pa.Array) -> list[Any]:
    """Returns what distinguishes partition values: 0.0 and -0.0 are two, and NaN is one."""
    if pa.types.is_floating(column.type):
        column = column.view(pa.int32() if pa.types.is_float32(column.type) else pa.int64())
    values: list[Any] = column.to_pylist()
    return values


def _statistics_plan(
    schema: Schema, properties: Mapping[str, str]
) -> dict[int, StatisticsCollector]:
    """Returns which statistics data files have. PyIceberg has no bounds of nanoseconds."""
    try:
        plan = compute_statistics_plan(schema, dict(properties))
    except ValueError as error:
        raise InvalidInput(
            "the rows cannot be merged: a property write.metadata.metrics of the table is invalid"
            f" ({first_line(error)})"
        ) from None
    return _without_bounds(plan, TimestampNanoType, TimestamptzNanoType)


def _without_bounds(
    plan: Mapping[int, StatisticsCollector], *types: type[IcebergType]
) -> dict[int, StatisticsCollector]:
    """Returns a plan in which columns of some types have no bounds."""
    counts = MetricsMode(MetricModeTypes.COUNTS)
    return {
        id_: replace(each, mode=counts)
        if isinstance(each.iceberg_type, types) and each.mode.type is not MetricModeTypes.NONE
        else each
        for id_, each in plan.items()
    }


def _nested(rows: pa.Array, name: str) -> pa.Array:
    """Returns the column of rows with a dotted name. Names of single columns can have dots, too."""
    while name:
        columns = zip((each.name for each in rows.type), rows.flatten(), strict=True)
        part, rows = next(pair for pair in columns if f"{name}.".startswith(f"{pair[0]}."))
        name = name[len(part) + 1 :]
    return rows


def _with_id(field: NestedField) -> pa.Field:
    """Returns the Arrow field of a column with field ids. All fields are nullable."""
    return pa.field(
        field.name, _typed(field.field_type), metadata={"PARQUET:field_id": str(field.field_id)}
    )


def _typed(type_: IcebergType) -> pa.DataType:
    if isinstance(type_, StructType):
        return pa.struct(list(map(_with_id, type_.fields)))
    if isinstance(type_, ListType):
        return pa.large_list(_with_id(type_.element_field))
    if isinstance(type_, MapType):
        key = _with_id(type_.key_field).with_nullable(False)
        return pa.map_(key, _with_id(type_.value_field))
    return arrow_type(type_)


def _entries(value: Any) -> Any:
    """Returns a map with integer keys as Avro stores it."""
    if isinstance(value, dict):
        return [{"key": key, "value": each} for key, each in value.items()]
    return value
