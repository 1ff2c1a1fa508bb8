"""Which data files equality deletes can reach: by partitions, and by the bounds of columns.

Sequence numbers are left aside. The rules are those of Iceberg's `DeleteFileIndex`, except that
what it does not know to be disjoint is not: values of unknown types, for example.

https://iceberg.apache.org/spec/#scan-planning
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pyiceberg.types import DoubleType, FloatType, NestedField, PrimitiveType, UUIDType

from nessie_cli.iceberg.builder.values import Document
from nessie_cli.iceberg.combination.bounds import value_range
from nessie_cli.iceberg.combination.manifests import bound
from nessie_cli.iceberg.combination.states import Identity, TableFile

_UNORDERED = (FloatType, DoubleType, UUIDType)
"""Bounds leave NaN out, and writers do not agree on the order of UUIDs."""


class EqualityScope:
    """Compares equality deletes with data files and with each other.

    `schemas` are all schemas of the table. A column whose type differs in them, or that no schema
    has at its top level, has no bounds that can be compared.
    """

    def __init__(self, schemas: Sequence[Document]) -> None:
        self._schemas = schemas
        self._columns: dict[int, _Column | None] = {}
        self._ranges: dict[tuple[Identity, int], tuple[Any, Any] | None] = {}

    def reaches(self, deletes: TableFile, file: TableFile) -> bool:
        """Returns whether a data file can contain rows that equality deletes name."""
        if not (_is_global(deletes) or _may_share_partition(deletes, file)):
            return False
        return not self._are_disjoint(_columns_of(deletes), deletes, file)

    def meets(self, first: TableFile, second: TableFile) -> bool:
        """Returns whether two files of equality deletes can delete one row."""
        if not (_is_global(first) or _is_global(second) or _may_share_partition(first, second)):
            return False
        return not self._are_disjoint(_columns_of(first) & _columns_of(second), first, second)

    def _are_disjoint(self, ids: Iterable[int], first: TableFile, second: TableFile) -> bool:
        return any(self._has_other_values(id_, first, second) for id_ in ids)

    def _has_other_values(self, id_: int, first: TableFile, second: TableFile) -> bool:
        column = self._column(id_)
        if column is None:
            return False
        if not column.is_required and _may_be_null(first, id_) and _may_be_null(second, id_):
            return False
        here, there = (self._range(file, id_, column.type) for file in (first, second))
        return here is not None and there is not None and (here[1] < there[0] or there[1] < here[0])

    def _range(self, file: TableFile, id_: int, type_: PrimitiveType) -> tuple[Any, Any] | None:
        place = file.identity, id_
        if place not in self._ranges:
            self._ranges[place] = value_range(file, id_, type_)
        return self._ranges[place]

    def _column(self, id_: int) -> _Column | None:
        if id_ not in self._columns:
            fields = (field for schema in self._schemas for field in schema["fields"])
            self._columns[id_] = _column([field for field in fields if field["id"] == id_])
        return self._columns[id_]


class _Column(NamedTuple):
    """A column: its type, and whether it has no nulls in any file."""

    type: PrimitiveType
    is_required: bool


def _column(fields: Sequence[Document]) -> _Column | None:
    """Returns a column by its definitions in all schemas, None if it cannot be compared."""
    try:
        types = [NestedField.model_validate(field).field_type for field in fields]
    except ValueError:
        # PyIceberg does not know the type.
        return None
    type_ = types[0] if types else None
    if not isinstance(type_, PrimitiveType) or isinstance(type_, _UNORDERED):
        return None
    if any(other != type_ for other in types):
        return None
    return _Column(type_, all(field["required"] for field in fields))


def _columns_of(deletes: TableFile) -> set[int]:
    return set(deletes.row.get("equality_ids") or ())


def _is_global(deletes: TableFile) -> bool:
    """Returns whether deletes can be those of an unpartitioned table, which reach all files.

    A partition spec whose transforms are all void counts as unpartitioned, and has nulls.
    """
    return all(value == _NULL for _, value in deletes.partition)


def _may_share_partition(first: TableFile, second: TableFile) -> bool:
    if first.spec_id != second.spec_id:
        return False
    pairs = zip(first.partition, second.partition, strict=False)
    return not any(name == other and _differ(here, there) for (name, here), (other, there) in pairs)


def _differ(first: str, second: str) -> bool:
    """Returns whether two values of a partition field are certainly different.

    Writers store some values with different types: a date as a number, for example.
    """
    is_comparable = _NULL in (first, second) or _type_of(first) == _type_of(second)
    return first != second and is_comparable


def _type_of(value: str) -> str:
    return value.partition(" ")[0]


_NULL = "NoneType None"


def _may_be_null(file: TableFile, id_: int) -> bool:
    count = bound(file.row.get("null_value_counts"), id_)
    return count is None or int(count) > 0
