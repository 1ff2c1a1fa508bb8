"""The columns in which rows are compared, and the conversion of a file's columns to them.

Columns are matched by field id, so a renamed, moved or promoted column keeps its values, and a new
column has its initial default in older rows.

https://iceberg.apache.org/spec/#column-projection
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ValidationError
from pyiceberg.exceptions import ResolveError
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema, index_name_by_id, promote
from pyiceberg.types import (
    DateType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    TimestampNanoType,
    TimestampType,
)

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder.values import Document, by_id
from nessie_cli.iceberg.combination.states import TableFile
from nessie_cli.iceberg.files import first_line
from nessie_cli.iceberg.row_diff.arrays import as_list, list_like, offsets

_FIELD_ID = b"PARQUET:field_id"
_NAME_MAPPING = "schema.name-mapping.default"
_NESTED = {
    StructType: pa.types.is_struct,
    ListType: lambda type_: pa.types.is_list(type_) or pa.types.is_large_list(type_),
    MapType: pa.types.is_map,
}


# -- the schema of the comparison -----------------------------------------------------------------


def schema_of(document: Document) -> Schema:
    """Returns the current schema of normalized metadata. Raises `InvalidInput`."""
    id_ = document["current-schema-id"]
    return _schema(by_id(document["schemas"], "schema-id")[id_])


def check_columns(before: Document, after: Document, ids: Iterable[int]) -> None:
    """Raises `InvalidInput` if two branches gave one of some ids to columns of different names.

    An id means the same in both if a schema that has it is that of both.
    """
    schemas = [list(map(_schema, each["schemas"])) for each in (before, after)]
    both = [schema for schema in schemas[0] if any(schema == other for other in schemas[1])]
    shared = {id_ for schema in both for id_ in index_name_by_id(schema)}
    old, new = (index_name_by_id(schema_of(each)) for each in (before, after))
    for id_ in sorted(old.keys() & new.keys() & set(ids) - shared):
        if old[id_] != new[id_]:
            raise InvalidInput(
                f"the rows cannot be compared: column {old[id_]} of one state and column"
                f" {new[id_]} of the other one have the same id, {id_}",
                hint="compare other columns only",
            )


def every_field(documents: Iterable[Document]) -> dict[int, NestedField]:
    """Returns the columns of all schemas of some metadata by id, each with its widest type."""
    fields: dict[int, NestedField] = {}
    for document in documents:
        for field in (field for schema in document["schemas"] for field in _schema(schema).fields):
            other = fields.get(field.field_id)
            is_narrower = other is not None and _promotes(field.field_type, other.field_type)
            if other is None or not is_narrower:
                fields[field.field_id] = field
    return fields


def _schema(document: Document) -> Schema:
    try:
        return Schema.model_validate({**document, "identifier-field-ids": []})
    except ValidationError as error:
        message = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
        raise InvalidInput(f"the rows cannot be compared: {message}") from None


def widened(columns: Schema, earlier: Schema) -> Schema:
    """Returns columns, each with the wider one of its types in them and in an earlier schema.

    Raises `InvalidInput` for types that cannot be compared.
    """
    struct = _wider(earlier.as_struct(), columns.as_struct(), "")
    assert isinstance(struct, StructType)
    return Schema(*struct.fields)


def _wider(old: IcebergType, new: IcebergType, path: str) -> IcebergType:
    """Returns the fields of the new type, each with the wider one of its types."""
    if old == new:
        return new
    if isinstance(old, StructType) and isinstance(new, StructType):
        return StructType(*(_wider_field(old, field, path) for field in new.fields))
    if isinstance(old, ListType) and isinstance(new, ListType):
        element = _wider(old.element_type, new.element_type, f"{path}.element")
        return new.model_copy(update={"element_type": element})
    if isinstance(old, MapType) and isinstance(new, MapType):
        key = _wider(old.key_type, new.key_type, f"{path}.key")
        value = _wider(old.value_type, new.value_type, f"{path}.value")
        return new.model_copy(update={"key_type": key, "value_type": value})
    if _promotes(old, new):
        return new
    if _promotes(new, old):
        return old
    raise InvalidInput(f"column {path} has the types {old} and {new}, which cannot be compared")


def _wider_field(old: StructType, field: NestedField, path: str) -> NestedField:
    earlier = old.field(field.field_id)
    if earlier is None:
        return field
    type_ = _wider(earlier.field_type, field.field_type, f"{path}.{field.name}".lstrip("."))
    return field.model_copy(update={"field_type": type_})


def _promotes(old: IcebergType, new: IcebergType) -> bool:
    if isinstance(old, DateType) and isinstance(new, TimestampType | TimestampNanoType):
        return True
    try:
        return bool(promote(old, new) == new)
    except ResolveError:
        return False


def selected(schema: Schema, names: Sequence[str]) -> Schema:
    """Returns a schema with the named columns only, in their order. Raises `InvalidInput`."""
    fields = {field.name: field for field in schema.fields}
    for name in names:
        if name not in fields:
            raise missing_column(name, schema)
    return Schema(*(fields[name] for name in dict.fromkeys(names)))


def missing_column(name: str, schema: Schema) -> InvalidInput:
    """Returns the error for a column that a schema lacks."""
    columns = ", ".join(field.name for field in schema.fields)
    return InvalidInput(f"there is no column '{name}'", hint=f"columns: {columns}")


def arrow_type(type_: IcebergType) -> pa.DataType:
    """Returns the Arrow type of an Iceberg type. All fields are nullable."""
    if isinstance(type_, StructType):
        return pa.struct([pa.field(f.name, arrow_type(f.field_type)) for f in type_.fields])
    if isinstance(type_, ListType):
        return pa.large_list(pa.field("element", arrow_type(type_.element_type)))
    if isinstance(type_, MapType):
        return pa.map_(arrow_type(type_.key_type), arrow_type(type_.value_type))
    return schema_to_pyarrow(type_, include_field_ids=False)


# -- the columns of a file ------------------------------------------------------------------------


class Projection:
    """Converts the columns of a file to the fields of a schema.

    `constants` are the values of columns that the file lacks, by field id.
    """

    def __init__(
        self,
        fields: Sequence[NestedField],
        file_schema: pa.Schema,
        names: Sequence[Document],
        constants: Mapping[int, Any],
    ) -> None:
        self._fields = fields
        self._source = pa.struct(_with_ids(list(file_schema), names))
        self._constants = constants
        self.schema = pa.schema([pa.field(f.name, arrow_type(f.field_type)) for f in fields])

    @property
    def columns(self) -> list[str]:
        """The names of the columns to read."""
        ids = {field.field_id for field in self._fields}
        return [field.name for field in self._source if _id_of(field) in ids]

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the columns of the schema. Raises `pyarrow.ArrowException`."""
        by_name = dict(zip(batch.schema.names, batch.columns, strict=True))
        children = {
            _id_of(field): (by_name[field.name], field.type)
            for field in self._source
            if field.name in by_name
        }
        arrays = [
            self._field(field, children.get(field.field_id), batch.num_rows)
            for field in self._fields
        ]
        return pa.record_batch(arrays, schema=self.schema)

    def _field(
        self, field: NestedField, source: tuple[pa.Array, pa.DataType] | None, rows: int
    ) -> pa.Array:
        if source is not None:
            return self._converted(*source, field.field_type)
        value = self._constants.get(field.field_id, field.initial_default)
        type_ = arrow_type(field.field_type)
        if value is None:
            return pa.nulls(rows, type_)
        storage = getattr(type_, "storage_type", type_)
        raw = value.bytes if hasattr(value, "bytes") else value
        return pa.repeat(pa.scalar(raw, storage), rows).cast(type_)

    def _converted(self, array: pa.Array, source: pa.DataType, target: IcebergType) -> pa.Array:
        """Converts an array. `source` is its type with the field ids."""
        for nested, is_nested in _NESTED.items():
            if isinstance(target, nested) and not is_nested(source):
                raise pa.ArrowTypeError(f"a column of the type {source} is not a {target}")
        if isinstance(target, StructType):
            children = {
                _id_of(field): (child, field.type)
                for field, child in zip(source, array.flatten(), strict=True)
            }
            arrays = [
                self._field(field, children.get(field.field_id), len(array))
                for field in target.fields
            ]
            return pa.StructArray.from_arrays(
                arrays, fields=list(arrow_type(target)), mask=array.is_null()
            )
        if isinstance(target, ListType):
            values = self._converted(array.flatten(), source.value_type, target.element_type)
            return list_like(array, values).cast(arrow_type(target))
        if isinstance(target, MapType):
            entries = as_list(array)
            keys, values = entries.flatten().flatten()
            return pa.MapArray.from_arrays(
                _with_nulls(offsets(entries), array),
                self._converted(keys, source.key_type, target.key_type),
                self._converted(values, source.item_type, target.value_type),
                arrow_type(target),
            )
        return _cast(array, arrow_type(target))


def _with_nulls(starts: pa.Array, array: pa.Array) -> pa.Array:
    """Returns the offsets of a map, with null for each map that is null."""
    valid = pa.concat_arrays([array.is_valid(), pa.array([True])])
    return pc.if_else(valid, starts, None).cast(pa.int32())


def _cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    if array.type == target:
        return array
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if isinstance(target, pa.ExtensionType):
        return array.cast(target.storage_type).cast(target)
    # Files with timestamps in nanoseconds for a column in microseconds are common: INT96.
    return array.cast(target, safe=not pa.types.is_timestamp(target))


def _id_of(field: pa.Field) -> int | None:
    id_ = (field.metadata or {}).get(_FIELD_ID)
    return None if id_ is None else int(id_)


def name_mapping(document: Document) -> Sequence[Document]:
    """Returns the field ids for files without any, by the names of the columns."""
    text = document["properties"].get(_NAME_MAPPING)
    try:
        mapping: Any = json.loads(text) if text else []
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"the property {_NAME_MAPPING} is not valid: {first_line(error)}"
        ) from None
    return list(mapping)


def partition_values(document: Document, file: TableFile) -> dict[int, Any]:
    """Returns the values of identity partitions by the ids of their columns.

    Files that were added to a table from elsewhere may lack these columns.
    """
    spec = by_id(document["partition-specs"], "spec-id")[file.spec_id]
    values = (file.row["partition"] or {}).values()
    return {
        field["source-id"]: value
        for field, value in zip(spec["fields"], values, strict=False)
        if field["transform"] == "identity" and value is not None
    }


def _with_ids(fields: Sequence[pa.Field], names: Sequence[Document]) -> list[pa.Field]:
    """Returns the fields with ids: their own, or if there are none, those of a name mapping."""
    if not names or any(_id_of(field) is not None for field in fields):
        return list(fields)
    return [_with_id(field, field.name, names) for field in fields]


def _with_id(field: pa.Field, name: str, names: Sequence[Document]) -> pa.Field:
    mapped = next((entry for entry in names if name in entry["names"]), {})
    inner = mapped.get("fields", ())
    type_ = field.type
    if pa.types.is_struct(type_):
        type_ = pa.struct([_with_id(child, child.name, inner) for child in type_])
    elif pa.types.is_map(type_):
        type_ = pa.map_(
            _with_id(type_.key_field, "key", inner), _with_id(type_.item_field, "value", inner)
        )
    elif pa.types.is_list(type_) or pa.types.is_large_list(type_):
        type_ = pa.list_(_with_id(type_.value_field, "element", inner))
    id_ = mapped.get("field-id")
    metadata = None if id_ is None else {_FIELD_ID: str(id_)}
    return pa.field(field.name, type_, field.nullable, metadata)
