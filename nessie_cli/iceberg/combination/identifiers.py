"""Rows that both sides added with the same identifier, which Iceberg does not forbid.

https://iceberg.apache.org/spec/#identifier-field-ids
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from itertools import product
from typing import Any

from pyiceberg.conversions import from_bytes
from pyiceberg.schema import Schema
from pyiceberg.types import PrimitiveType

from nessie_cli.iceberg.builder.values import Document
from nessie_cli.iceberg.combination.manifests import bound
from nessie_cli.iceberg.combination.states import TableFile

MOST_PAIRS = 100_000
"""The most pairs of files that are compared. With more of them, keys may overlap."""


def files_with_same_keys(
    schema: Document,
    fields: Collection[int],
    ours: Sequence[TableFile],
    theirs: Sequence[TableFile],
) -> list[TableFile]:
    """Returns the data files of theirs that may contain identifiers of rows in files of ours.

    `fields` are the ids of the columns that identify a row; without any, no files are returned.
    Compares partitions and bounds of columns. Without bounds, identifiers may be equal.
    """
    if not fields or not ours or not theirs:
        return []
    if len(ours) * len(theirs) > MOST_PAIRS:
        return list(theirs)
    types = {id_: Schema.model_validate(schema).find_type(id_) for id_ in fields}
    ranges = {
        file.identity: {id_: value_range(file, id_, type_) for id_, type_ in types.items()}
        for file in (*ours, *theirs)
    }
    overlapping = {
        second.identity: second
        for first, second in product(ours, theirs)
        if (first.spec_id != second.spec_id or first.partition == second.partition)
        and all(
            _overlap(ranges[first.identity][id_], ranges[second.identity][id_]) for id_ in fields
        )
    }
    return list(overlapping.values())


def value_range(file: TableFile, id_: int, type_: Any) -> tuple[Any, Any] | None:
    """Returns the smallest and the largest value of a column, or None if they are unknown."""
    lower, upper = (bound(file.row.get(name), id_) for name in ("lower_bounds", "upper_bounds"))
    if lower is None or upper is None or not isinstance(type_, PrimitiveType):
        return None
    try:
        # Texts and bytes are cut off: the upper bound is then a larger value of the same length.
        return from_bytes(type_, lower), from_bytes(type_, upper)
    except (ValueError, TypeError, ArithmeticError, struct.error):
        return None


def _overlap(first: tuple[Any, Any] | None, second: tuple[Any, Any] | None) -> bool:
    if first is None or second is None:
        return True
    return bool(first[0] <= second[1] and second[0] <= first[1])
