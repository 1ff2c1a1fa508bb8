"""Lists and maps of Arrow, taken apart and put together."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def as_list(array: pa.Array) -> pa.Array:
    """Returns a map as a list of structs, and a list unchanged."""
    if not pa.types.is_map(array.type):
        return array
    entry = [pa.field("key", array.type.key_type), pa.field("value", array.type.item_type)]
    return array.cast(pa.list_(pa.struct(entry)))


def offsets(array: pa.Array) -> pa.Array:
    """Returns the offsets of lists in their flattened values. Null has no values."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int64())
    return pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths)])


def list_like(array: pa.Array, values: pa.Array) -> pa.Array:
    """Returns lists of the same lengths as `array`, with other values."""
    return pa.LargeListArray.from_arrays(offsets(array), values, mask=array.is_null())
