"""Reads the JSON of request bodies."""

from __future__ import annotations

from codecs import iterdecode
from json import detect_encoding
from typing import Any

from msgspec import DecodeError

from nessie_cli.errors import InvalidInput
from nessie_cli.server.http.failures import HttpFault
from nessie_cli.wire.large_json import MOST_VALUES, count_values, decode, steps

_FIRST_BYTES = (b"{", b"[", b'"', b" ", b"\n")


def read_json(body: bytes, most_values: int = MOST_VALUES) -> Any:
    """Returns the value of a body; None for an empty one and for null.

    Raises `InvalidInput` for invalid JSON, and `HttpFault` for too many values.
    """
    text = body.removeprefix(b"\xef\xbb\xbf")
    if len(text) > most_values and count_values(text) > most_values:
        raise HttpFault(413, f"body: has more than {most_values:,} values", "BAD_REQUEST")
    try:
        if text[:1] not in _FIRST_BYTES or text[1:2] == b"\0":
            text = _as_utf8(text)
        return decode(text)
    except RecursionError:
        raise InvalidInput("body: is nested too deeply") from None
    except (DecodeError, UnicodeDecodeError, ValueError) as error:
        raise InvalidInput(f"body: is not JSON: {_lower_first(str(error))}") from None


def _as_utf8(text: bytes) -> bytes:
    """Converts JSON in UTF-16 or UTF-32 to UTF-8, detected by the position of zero bytes."""
    encoding = detect_encoding(text[:4])
    if encoding.startswith("utf-8"):
        return text
    return b"".join(part.encode() for part in iterdecode(steps(text), encoding))


def _lower_first(text: str) -> str:
    return text if text[:2].isupper() else text[:1].lower() + text[1:]
