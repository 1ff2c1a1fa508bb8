"""Rows as bytes: two rows are equal if and only if their bytes are equal.

Values are equal as the Iceberg specification says: NaN equals NaN, and -0.0 is not 0.0. A map is a
set of entries. A text is its bytes. Null equals null, and is not an empty list or text.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import pyarrow as pa
import pyarrow.compute as pc

from nessie_cli.iceberg.row_diff.arrays import as_list, list_like, offsets

HASH = pa.binary(16)
"""The type of hashes. Different rows do not get the same hash by accident."""
_BYTES = pa.large_binary()
_NULL, _PRESENT, _NOTHING = (pa.scalar(value, _BYTES) for value in (b"\0", b"\1", b""))


def hashes(columns: Sequence[pa.Array]) -> pa.Array:
    """Returns a hash of 128 bits for each row of some columns, of which there is at least one."""
    rows = _joined(*map(encoded, columns)).to_pylist()
    return pa.array([blake2b(row, digest_size=HASH.byte_width).digest() for row in rows], HASH)


def encoded(array: pa.Array) -> pa.Array:
    """Returns the bytes of each value. None is a prefix of another one, and none is null."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if not array.null_count and not pa.types.is_null(array.type):
        return _joined(_PRESENT, _content(array))
    content = pc.if_else(array.is_valid(), _content(array), None)
    return pc.fill_null(_joined(_PRESENT, content), _NULL)


def _joined(*parts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(*parts, _NOTHING)


def _content(array: pa.Array) -> pa.Array:
    """Returns the bytes of values that are not null. The result for null has no meaning."""
    type_ = array.type
    if pa.types.is_null(type_):
        return pa.nulls(len(array), _BYTES)
    if pa.types.is_struct(type_):
        # The bytes of a struct without fields are empty.
        return _joined(pa.repeat(_NOTHING, len(array)), *map(encoded, array.flatten()))
    if pa.types.is_map(type_):
        return _list_content(_sorted(as_list(array)))
    if pa.types.is_nested(type_):
        return _list_content(array)
    if pa.types.is_large_string(type_) or pa.types.is_large_binary(type_):
        content = array.cast(_BYTES)
        return _joined(_fixed(pc.binary_length(content).cast(pa.int64())), content)
    if pa.types.is_boolean(type_):
        array = array.cast(pa.uint8())
    elif pa.types.is_floating(type_):
        array = pc.if_else(pc.is_nan(array), pa.scalar(float("nan"), type_), array)
    return _fixed(array)


def _fixed(array: pa.Array) -> pa.Array:
    """Returns the bytes of values that all have the same width."""
    width = array.type.byte_width if pa.types.is_fixed_size_binary(array.type) else None
    return array.view(pa.binary(width or array.type.bit_width // 8)).cast(_BYTES)


def _list_content(array: pa.Array) -> pa.Array:
    lengths = pc.list_value_length(array).cast(pa.int64())
    values = list_like(array, encoded(array.flatten()))
    return _joined(_fixed(lengths), pc.binary_join(values, _NOTHING))


def _sorted(maps: pa.Array) -> pa.Array:
    """Returns lists of entries in the order of their bytes."""
    entries = maps.flatten()
    table = pa.table({"list": pc.list_parent_indices(maps), "entry": encoded(entries)})
    order = pc.sort_indices(table, sort_keys=[("list", "ascending"), ("entry", "ascending")])
    return pa.LargeListArray.from_arrays(offsets(maps), entries.take(order), mask=maps.is_null())
