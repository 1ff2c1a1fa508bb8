"""Changes footers of Parquet files, as an attacker or a damaged disk could.

https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

BOOLEANS, BYTE, NUMBERS, TEXT, LIST, STRUCT = (1, 2), 3, (4, 5, 6), 8, 9, 12
INT32, INT64 = 5, 6

Fields = dict[int, list[Any]]
"""The fields of a struct by their ids: the type and the value of each."""


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def number(self) -> int:
        value = shift = 0
        while (byte := self.byte()) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift

    def value(self, type_: int) -> Any:
        if type_ in NUMBERS:
            number = self.number()
            return number >> 1 ^ -(number & 1)
        if type_ == TEXT:
            size = self.number()
            self._at += size
            return self._data[self._at - size : self._at]
        if type_ == LIST:
            header = self.byte()
            size = header >> 4
            size = self.number() if size == 15 else size
            return header & 15, [self.value(header & 15) for _ in range(size)]
        return self.fields() if type_ == STRUCT else self.byte()

    def fields(self) -> Fields:
        fields: Fields = {}
        id_ = 0
        while header := self.byte():
            type_ = header & 15
            id_ = id_ + (header >> 4) if header >> 4 else self.value(INT32)
            fields[id_] = [type_, None if type_ in BOOLEANS else self.value(type_)]
        return fields


def _number(value: int) -> bytes:
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])


def _encoded(type_: int, value: Any) -> bytes:
    if type_ in NUMBERS:
        return _number(value * 2 if value >= 0 else -value * 2 - 1)
    if type_ == TEXT:
        return _number(len(value)) + value
    if type_ == LIST:
        items, values = value
        head = bytes([0xF0 | items]) + _number(len(values))
        return head + b"".join(_encoded(items, each) for each in values)
    if type_ == BYTE:
        return bytes([value])
    data = bytearray()
    for id_, (kind, content) in sorted(value.items()):
        data += bytes([kind]) + _encoded(INT32, id_)
        data += b"" if kind in BOOLEANS else _encoded(kind, content)
    return bytes(data) + b"\0"


def change_footer(path: str, change: Callable[[Fields], None]) -> None:
    """Changes the footer (`FileMetaData`) of a file."""
    data = Path(path).read_bytes()
    size = int.from_bytes(data[-8:-4], "little")
    fields = _Reader(data[-8 - size : -8]).fields()
    change(fields)
    footer = _encoded(STRUCT, fields)
    new = data[: -8 - size] + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    Path(path).write_bytes(new)


def group_of(footer: Fields) -> Fields:
    """The first row group: its columns are field 1, its bytes 2 and its rows 3."""
    return footer[4][1][1][0]


def column_of(footer: Fields) -> Fields:
    """The metadata of the first column: its values are field 5, and statistics of sizes 16."""
    return group_of(footer)[1][1][1][0][3][1]


def element_of(footer: Fields) -> Fields:
    """The first column in the schema: its name is field 4."""
    return footer[2][1][1][1]
