"""Parses JSON text from outside strictly.

It uses the standard library's parser, but refuses NaN and Infinity, numbers that are not finite,
duplicate attributes, and text that cannot be encoded as UTF-8. Each fault is an `InvalidInput` of
one line that names the place in the text or value.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from nessie_cli.errors import InvalidInput

_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_MOST_SHOWN: Final = 60
"""The most characters of a value in a message."""
_BYTE_ORDER_MARK: Final = "\ufeff"


class _NoNumber(str):
    """Represents NaN, Infinity or a number beyond all floats in the text."""

    __slots__ = ()


class _Doubled(dict[str, Any]):
    """Represents an object with a duplicate attribute, whose name is `name`."""

    name: str = ""


class _Parser:
    """One run of the parser.

    It records whether there may be faults, so that valid input costs nothing.
    """

    def __init__(self) -> None:
        self.suspicious = False
        self.decoder = json.JSONDecoder(
            object_pairs_hook=self._object, parse_constant=self._constant, parse_float=self._float
        )

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        attributes = dict(pairs)
        if len(attributes) == len(pairs):
            return attributes
        self.suspicious = True
        doubled = _Doubled(attributes)
        names = [name for name, _ in pairs]
        doubled.name = Counter(names).most_common(1)[0][0]
        return doubled

    def _constant(self, text: str) -> Any:
        self.suspicious = True
        return _NoNumber(text)

    def _float(self, text: str) -> Any:
        value = float(text)
        return value if abs(value) < float("inf") else self._constant(text)


def fault(place: str, problem: str) -> InvalidInput:
    """Returns the error for a problem at a place, which may be empty."""
    return InvalidInput(f"{place}: {problem}" if place else problem)


def at(place: str, path: str) -> str:
    """Returns a place within a text: `batch.json: operations[3].key`."""
    return f"{place}: {path}" if place and path else place or path


def join(path: str, *parts: str | int) -> str:
    """Returns a path below a path: `join("operations", 3, "key")` is `operations[3].key`."""
    for part in parts:
        path = f"{path}[{part}]" if isinstance(part, int) else f"{path}.{part}" if path else part
    return path


def read_text(data: str | bytes, place: str) -> str:
    """Returns the text of UTF-8 bytes without a byte order mark.

    Raises `InvalidInput` for other encodings and for an empty text.
    """
    if isinstance(data, bytes):
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise fault(place, "the text is UTF-16; write it as UTF-8")
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise fault(
                place,
                f"the text is not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}",
            ) from None
    else:
        text = data
        try:
            text.encode()
        except UnicodeEncodeError as error:
            where = f"character {error.start + 1}"
            raise fault(
                place, f"the text is not valid Unicode: {where} is half a surrogate pair"
            ) from None
    text = text.removeprefix(_BYTE_ORDER_MARK)
    if not text.strip():
        raise fault(place, "the text is empty; JSON is expected")
    return text


def parse_json(data: str | bytes, place: str = "") -> Any:
    """Returns the value of a JSON text. `place` names the text in errors, for example a file."""
    text = read_text(data, place)
    value, end = parse_first(text, place)
    rest = text[end:].lstrip()
    if rest:
        line = text.count("\n", 0, len(text) - len(rest)) + 1
        raise fault(
            place,
            f"line {line}: more text follows the end of the JSON value: {_excerpt(rest)}",
        )
    return value


def parse_first(text: str, place: str) -> tuple[Any, int]:
    """Returns the first JSON value of a text, and the position where it ends."""
    parser = _Parser()
    try:
        value, end = parser.decoder.raw_decode(text, len(text) - len(text.lstrip()))
        if parser.suspicious or _SURROGATE.search(text):
            _refuse_oddities(value, place)
    except json.JSONDecodeError as error:
        raise fault(
            place, f"line {error.lineno} column {error.colno} is not JSON: {_reason(error, text)}"
        ) from None
    except RecursionError:
        raise fault(place, "the JSON is nested too deeply") from None
    except ValueError:  # Python refuses to convert numbers of more than some thousand digits
        raise fault(place, "the JSON is not usable: a number has too many digits") from None
    return value, end


def _reason(error: json.JSONDecodeError, text: str) -> str:
    if not text[error.pos :].strip():
        return "the text ends too early"
    return error.msg[:1].lower() + error.msg[1:].replace(" at", "")


def _excerpt(text: str) -> str:
    line = text.partition("\n")[0]
    return json.dumps(line if len(line) <= 40 else line[:37] + "...", ensure_ascii=False)  # noqa: PLR2004 - what fits into a message


def _refuse_oddities(value: Any, place: str) -> None:
    for path, node in walk(value):
        if isinstance(node, _NoNumber):
            raise fault(at(place, path), f"{node} is not a valid JSON number")
        if isinstance(node, _Doubled):
            raise fault(at(place, path), f"the attribute {json.dumps(node.name)} occurs twice")
        if isinstance(node, str) and not _is_unicode(node):
            raise fault(at(place, path), "is not valid Unicode text: half a surrogate pair")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def walk(value: Any) -> Iterator[tuple[str, Any]]:
    """Yields every value and attribute name within a JSON value, with its path."""
    pending: list[tuple[str, Any]] = [("", value)]
    while pending:
        path, node = pending.pop()
        yield path, node
        if isinstance(node, dict):
            pending += [
                (join(path, name.encode(errors="replace").decode()), item)
                for name, item in reversed(node.items())
            ]
            pending += [(path, name) for name in node]
        elif isinstance(node, list):
            pending += [(join(path, index), node[index]) for index in reversed(range(len(node)))]


def describe(value: Any) -> str:
    """Returns a JSON value for a message: short, one line."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        value = value[:_MOST_SHOWN]
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 3] + "..."
