"""JSON texts of any size, decoded and encoded by calls that are all short.

While a library parses or writes a text, no other thread runs. So the standard library looks for the
end of each value of a large text, in a small part of it, and msgspec reads the value.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from json import JSONDecoder
from typing import Any

from msgspec import DecodeError, json

from nessie_cli.model.batches import batched

MOST_VALUES = 4_000_000
"""The most JSON values of a text: small ones take many times the memory of their text."""
LONGEST = 4 << 20
"""The longest text in bytes within a large one."""
READ_AT_ONCE = 1 << 18
"""The size in bytes of a text that is parsed by one call."""
_STEP = 1 << 20
_PART = 1 << 14
"""The size in bytes of what is parsed by one call in a large text."""
_BATCH = 1_000
"""The number of items that are joined by one call."""
_MARKS = (b"{", b"[", b'"')
"""The beginnings of items. The next item of a list probably begins like the last one."""
_LONGEST_COMMA = 100
"""The most bytes of a comma and the space behind it in which programs indent the next item."""
_PARTS = (1 << 6, 1 << 11, 1 << 16, LONGEST)
"""Sizes of the parts in which the end of a text or number is looked for."""

_SPACE = re.compile(rb"[ \t\n\r]*")
_decode = json.Decoder().decode
_encode = json.Encoder().encode
_find = JSONDecoder().raw_decode


def decode(text: bytes) -> Any:
    """Returns the value of a text; None for an empty one.

    Raises `ValueError` (also its subclass `msgspec.DecodeError`) and `RecursionError`.
    """
    if len(text) > READ_AT_ONCE:
        return _Reader(text).read()
    return _decode(text) if text.strip() else None


def decode_members(text: bytes, names: Collection[str]) -> Any:
    """Returns the object of a text with some of its members, of which only scalars are complete.

    Takes little memory, however large the other members are. Raises what `decode` raises.
    """
    value = _MemberReader(text, names).read()
    if not isinstance(value, dict):
        return value
    return {name: value[name] for name in names if name in value}


def encode(value: Mapping[str, Any]) -> bytes:
    """Returns the text of an object. Each item of its members is encoded by one call."""
    members = [b"%b:%b" % (_encode(name), _encoded(member)) for name, member in value.items()]
    return b"{%b}" % b",".join(members)


def _encoded(member: Any) -> bytes:
    if isinstance(member, list):
        return b"[%b]" % _joined(map(_encode, member))
    if isinstance(member, dict):
        items = (b"%b:%b" % (_encode(name), _encode(item)) for name, item in member.items())
        return b"{%b}" % _joined(items)
    return _encode(member)


def _joined(items: Iterator[bytes]) -> bytes:
    """Returns items with commas between them. Freeing a list of a million takes one long call."""
    return b",".join([b",".join(batch) for batch in batched(items, _BATCH)])


def free(values: list[Any]) -> None:
    """Frees JSON values and lists of structs, by calls that are all short. Empties `values`.

    Freeing a list that nothing else refers to frees its items, too, by the same call. So all items
    are collected first, and freed after the lists and objects that have them.
    """
    for parent in values:
        kind = type(parent)
        if kind is dict:
            values += parent
            values += parent.values()
        elif kind is list or kind is tuple:
            values += parent
    parent = None  # the last value must not outlive its turn
    for start in range(0, len(values), _BATCH):
        values[start : start + _BATCH] = [None] * len(values[start : start + _BATCH])
    values.clear()


def count_values(text: bytes) -> int:
    """Returns how many values a text has at most."""
    return sum(part.count(mark) for part in steps(text) for mark in (b",", b"[", b"{"))


def steps(text: bytes) -> Iterator[bytes]:
    """Yields a text in parts of a megabyte."""
    return (text[start : start + _STEP] for start in range(0, len(text), _STEP))


class _Reader:
    """Reads a large text. Methods return a value and the place behind it."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._tried = 0
        """The end of the last part that was tried, so that no byte is tried at each level."""
        self._untried = 0
        """The same for runs of items."""
        self._comma = b","
        """The last comma between two items that were read, with the space behind it."""
        self._open: list[Any] = []
        """The lists and objects whose ends have not been read."""

    def read(self) -> Any:
        """Returns the value of the whole text."""
        try:
            return self._whole()
        except (ValueError, RecursionError) as error:
            # The frames of the traceback refer to the values that were read.
            error.__traceback__ = None
            free(self._open)
            raise

    def _whole(self) -> Any:
        start = self._skip(0)
        if start == len(self._text):
            return None
        value, end = self._value(start)
        self._open.append(value)
        end = self._skip(end)
        if end < len(self._text):
            raise ValueError(f"trailing characters (byte {end})")
        return value

    def _value(self, at: int) -> tuple[Any, int]:
        mark = self._text[at : at + 1]
        if mark not in (b"{", b"["):
            return self._scalar(at)
        if at >= self._tried:
            try:
                return self._parsed(at, at + self._length(at, _PART))
            except ValueError:
                # A longer value, or an invalid one, which is found again.
                self._tried = at + _PART
        return self._object(at) if mark == b"{" else self._list(at)

    def _list(self, at: int) -> tuple[list[Any], int]:
        values: list[Any] = []
        self._open.append(values)
        at = self._skip(at + 1)
        ended = self._text[at : at + 1] == b"]"
        while not ended:
            if (end := self._run_end(at)) and (run := self._run(b"[%b]", at, end)):
                values += run
                self._keep(values)
                at = self._skip(end + 1)
                continue
            value, at = self._value(at)
            values.append(value)
            self._keep(values)
            at, ended = self._next(at, b"]")
        self._open.pop()
        return values, at + 1

    def _object(self, at: int) -> tuple[dict[str, Any], int]:
        values: dict[str, Any] = {}
        self._open.append(values)
        at = self._skip(at + 1)
        ended = self._text[at : at + 1] == b"}"
        while not ended:
            if (end := self._run_end(at)) and (run := self._run(b"{%b}", at, end)):
                values |= run
                self._keep(values)
                at = self._skip(end + 1)
                continue
            if self._text[at : at + 1] != b'"':
                raise ValueError(f"object keys must be strings (byte {at})")
            name, at = self._scalar(at)
            at = self._skip(at)
            if self._text[at : at + 1] != b":":
                raise ValueError(f"expected ':' (byte {at})")
            values[name], at = self._value(self._skip(at + 1))
            self._keep(values)
            at, ended = self._next(at, b"}")
        self._open.pop()
        return values, at + 1

    def _keep(self, values: list[Any] | dict[str, Any]) -> None:
        """Called when values were added to an open list or object."""

    def _run_end(self, at: int) -> int:
        """Returns the place of the last comma of a part that may follow a whole item, or 0."""
        if at < self._untried:
            return 0
        mark = self._text[at : at + 1]
        comma = self._comma + mark if mark in _MARKS else b","
        end = self._text.rfind(comma, at, at + _PART)
        if end < 0:
            self._untried = at + _PART
        return max(0, end)

    def _run(self, form: bytes, at: int, end: int) -> Any:
        """Returns the items between two places, or None if the comma is within one of them."""
        try:
            return _decode(form % self._text[at:end])
        except (DecodeError, UnicodeDecodeError):
            self._untried = at + _PART
            return None

    def _next(self, at: int, end: bytes) -> tuple[int, bool]:
        """Returns the place of the next item or of the end, and whether it is the end."""
        at = self._skip(at)
        mark = self._text[at : at + 1]
        if mark == end:
            return at, True
        if mark != b",":
            raise ValueError(f"expected ',' or '{end.decode()}' (byte {at})")
        item = self._skip(at + 1)
        self._comma = self._text[at : min(item, at + _LONGEST_COMMA)]
        return item, False

    def _scalar(self, at: int) -> tuple[Any, int]:
        for size in _PARTS:
            with suppress(ValueError):
                length = self._length(at, size)
                # A number may continue behind the part.
                if length < size:
                    return self._parsed(at, at + length)
        raise ValueError(f"no value, or one of more than {LONGEST:,} bytes (byte {at})")

    def _length(self, at: int, most: int) -> int:
        # Structure is ASCII, and each byte is one character of Latin-1.
        return _find(self._text[at : at + most].decode("latin-1"))[1]

    def _parsed(self, at: int, end: int) -> tuple[Any, int]:
        return _decode(self._text[at:end]), end

    def _skip(self, at: int) -> int:
        """Returns the next place that is not white space."""
        while True:
            space = _SPACE.match(self._text, at, at + _STEP)
            assert space is not None
            if space.end() < at + _STEP:
                return space.end()
            at += _STEP


class _MemberReader(_Reader):
    """Keeps only some members of the outermost object, and no values in large ones."""

    def __init__(self, text: bytes, names: Collection[str]) -> None:
        super().__init__(text)
        self._names = frozenset(names)

    def _keep(self, values: list[Any] | dict[str, Any]) -> None:
        if len(self._open) > 1 or isinstance(values, list):
            values.clear()
        else:
            for name in values.keys() - self._names:
                del values[name]
