"""The original's conversions of JSON scalars, for servers that must take what its clients have always been allowed to send.

The guards are strict. Inside `lenient()` a value that a guard refused is converted where the original converts it, and looked at once more: `"17"`
and `1.5` are whole numbers (17 and 1), null is the number 0, numbers and truth values are texts, numbers and texts are truth values. What passes the
guards at once pays nothing. Source: recorded answers (content types, malformed bodies).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from pydantic_core import ErrorDetails

_LENIENT: ContextVar[bool] = ContextVar("lenient", default=False)
_REFUSED = object()
_NUMBER = re.compile(r"[+-]?\d{1,30}")
_TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


class lenient:  # noqa: N801 - used as a function that gives a context is
    """What is decoded inside is read as the original reads it."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = _LENIENT.set(True)

    def __exit__(self, *_: object) -> None:
        _LENIENT.reset(self._token)


def is_lenient() -> bool:
    """Whether scalars are converted here."""
    return _LENIENT.get()


def coerce(data: Any, faults: Sequence[ErrorDetails]) -> Any:
    """The same JSON with the refused scalars converted; None where one of them cannot be. The given value is left as it is."""
    copy = data
    for found in faults:
        convert = _CONVERSIONS.get(found["type"])
        value = _REFUSED if convert is None else convert(found["input"])
        if value is _REFUSED or not found["loc"]:
            return None
        copy = _replaced(copy, found["loc"], value)
    return copy


def _replaced(data: Any, path: Sequence[int | str], value: Any) -> Any:
    """A copy of a JSON value with another value at a path."""
    if not path:
        return value
    copy = data.copy()
    copy[path[0]] = _replaced(data[path[0]], path[1:], value)
    return copy


def _whole_number(value: Any) -> Any:
    if value is None or value == "":
        return 0
    if isinstance(value, float) and math.isfinite(value):
        return int(value)
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        return int(value)
    return _REFUSED


def _text(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, bool | int | float) else _REFUSED


def _truth(value: Any) -> Any:
    if isinstance(value, int):
        return value != 0
    return _TRUTH.get(value.strip(), _REFUSED) if isinstance(value, str) else _REFUSED


_CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "int_type": _whole_number,
    "int_from_float": _whole_number,
    "string_type": _text,
    "bool_type": _truth,
}
"""By what pydantic calls the fault."""
