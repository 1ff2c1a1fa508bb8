"""The bounds of a column in a data file, as its manifest entry says.

https://iceberg.apache.org/spec/#bound-serialization
"""

from __future__ import annotations

import struct
from typing import Any

from pyiceberg.conversions import from_bytes
from pyiceberg.types import DecimalType, PrimitiveType

from nessie_cli.iceberg.combination.manifests import bound
from nessie_cli.iceberg.combination.states import TableFile

_LONGEST_DECIMAL = 16
"""The most bytes of a decimal, which has at most 38 digits.

The time that longer ones take grows with the square of their length.
"""


def value_range(file: TableFile, id_: int, type_: Any) -> tuple[Any, Any] | None:
    """Returns the smallest and the largest value of a column, or None if they are unknown."""
    lower, upper = (bound(file.row.get(name), id_) for name in ("lower_bounds", "upper_bounds"))
    if lower is None or upper is None or not isinstance(type_, PrimitiveType):
        return None
    if isinstance(type_, DecimalType) and max(len(lower), len(upper)) > _LONGEST_DECIMAL:
        return None
    try:
        # Texts and bytes are cut off: the upper bound is then a larger value of the same length.
        return from_bytes(type_, lower), from_bytes(type_, upper)
    except (ValueError, TypeError, ArithmeticError, struct.error):
        return None
