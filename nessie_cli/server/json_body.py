"""Reads the JSON of request bodies, in short steps if it is large.

While a library parses a text, no other thread runs. So the standard library looks for the end of
each value of a large text, in a small part of it, and msgspec reads the value.
"""

from __future__ import annotations

import re
from codecs import iterdecode
from collections.abc import Iterator
from contextlib import suppress
from json import JSONDecoder, detect_encoding
from typing import Any

from msgspec import DecodeError, json

from nessie_cli.errors import InvalidInput
from nessie_cli.server.failures import HttpFault

MOST_VALUES = 4_000_000
"""The most JSON values of a body: small ones take many times the memory of their text."""
LONGEST = 4 << 20
"""The longest text in bytes within a large body."""
READ_AT_ONCE = 1 << 18
"""The size in bytes of a body that is parsed by one call."""
_STEP = 1 << 20
_PART = 1 << 14
"""The size in bytes of what is parsed by one call in a large body."""
_MARKS = (b"{", b"[", b'"')
"""The beginnings of items. The next item of a list probably begins like the last one."""
_PARTS = (1 << 6, 1 << 11, 1 << 16, LONGEST)
"""Sizes of the parts in which the end of a text or number is looked for."""

_FIRST_BYTES = (b"{", b"[", b'"', b" ", b"\n")
_SPACE = re.compile(rb"[ \t\n\r]*")
_decode = json.Decoder().decode
_find = JSONDecoder().raw_decode


def read_json(body: bytes) -> Any:
    """Returns the value of a body; None for an empty one and for null.

    Raises `InvalidInput` for invalid JSON, and `HttpFault` for too many values.
    """
    text = body.removeprefix(b"\xef\xbb\xbf")
    if len(text) > MOST_VALUES and _values(text) > MOST_VALUES:
        raise HttpFault(413, f"body: has more than {MOST_VALUES:,} values", "BAD_REQUEST")
    try:
        if text[:1] not in _FIRST_BYTES or text[1:2] == b"\0":
            text = _as_utf8(text)
        if len(text) > READ_AT_ONCE:
            return _Reader(text).read()
        return _decode(text) if text.strip() else None
    except RecursionError:
        raise InvalidInput("body: is nested too deeply") from None
    except (DecodeError, UnicodeDecodeError, ValueError) as error:
        raise InvalidInput(f"body: is not JSON: {_lower_first(str(error))}") from None


class _Reader:
    """Reads a large text. Methods return a value and the place behind it."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._tried = 0
        """The end of the last part that was tried, so that no byte is tried at each level."""
        self._untried = 0
        """The same for runs of items."""

    def read(self) -> Any:
        """Returns the value of the whole text."""
        start = self._skip(0)
        if start == len(self._text):
            return None
        value, end = self._value(start)
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
        at = self._skip(at + 1)
        ended = self._text[at : at + 1] == b"]"
        while not ended:
            if (end := self._run_end(at)) and (run := self._run(b"[%b]", at, end)):
                values += run
                at = self._skip(end + 1)
                continue
            value, at = self._value(at)
            values.append(value)
            at, ended = self._next(at, b"]")
        return values, at + 1

    def _object(self, at: int) -> tuple[dict[str, Any], int]:
        values: dict[str, Any] = {}
        at = self._skip(at + 1)
        ended = self._text[at : at + 1] == b"}"
        while not ended:
            if (end := self._run_end(at)) and (run := self._run(b"{%b}", at, end)):
                values |= run
                at = self._skip(end + 1)
                continue
            if self._text[at : at + 1] != b'"':
                raise ValueError(f"object keys must be strings (byte {at})")
            name, at = self._scalar(at)
            at = self._skip(at)
            if self._text[at : at + 1] != b":":
                raise ValueError(f"expected ':' (byte {at})")
            values[name], at = self._value(self._skip(at + 1))
            at, ended = self._next(at, b"}")
        return values, at + 1

    def _run_end(self, at: int) -> int:
        """Returns the place of the last comma of a part that may follow a whole item, or 0."""
        mark = self._text[at : at + 1]
        comma = b"," + mark if mark in _MARKS else b","
        return max(0, self._text.rfind(comma, at, at + _PART)) if at >= self._untried else 0

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
        return self._skip(at + 1), False

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


def _values(text: bytes) -> int:
    """Returns how many values a text has at most."""
    return sum(part.count(mark) for part in _steps(text) for mark in (b",", b"[", b"{"))


def _as_utf8(text: bytes) -> bytes:
    """Converts JSON in UTF-16 or UTF-32 to UTF-8, detected by the position of zero bytes."""
    encoding = detect_encoding(text[:4])
    if encoding.startswith("utf-8"):
        return text
    return b"".join(part.encode() for part in iterdecode(_steps(text), encoding))


def _steps(text: bytes) -> Iterator[bytes]:
    return (text[start : start + _STEP] for start in range(0, len(text), _STEP))


def _lower_first(text: str) -> str:
    return text if text[:2].isupper() else text[:1].lower() + text[1:]
