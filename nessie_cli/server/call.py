"""One request and its answer, as the handlers see them: no HTTP library, no JSON text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from json import detect_encoding
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from msgspec import DecodeError, json

from nessie_cli.errors import InvalidInput
from nessie_cli.model import ContentKey
from nessie_cli.model.keys import MAX_ELEMENTS, MAX_LENGTH
from nessie_cli.repository.base import Repository
from nessie_cli.server.failures import HttpFault
from nessie_cli.server.pieces import Pieces
from nessie_cli.wire import keys
from nessie_cli.wire.extensions import HEADER

_INT32 = range(-(2**31), 2**31)
_DIGITS = 11
_OURS = HEADER.lower().encode()
MOST_VALUES = 8_000_000
"""JSON values of one body, counted by its commas and brackets: small ones take many times the memory of their text."""


class Catalog(NamedTuple):
    """What is served: the repository, the name of its default branch, which never changes, and what is known of it in encoded form."""

    repository: Repository
    default_branch: str
    pieces: Pieces


class Answer(NamedTuple):
    """What a handler gives back: a JSON value, or no body at all (status 204)."""

    body: Any
    status: int = 200


NO_CONTENT = Answer(None, 204)


class UnreadableParameter(InvalidInput):
    """A query parameter that is no value of its type. The original's web framework answers 404 then, and so do we."""

    status = 404


class KeyTooLong(InvalidInput):
    """A content key in a path that is longer than any that can exist: there is no such content."""

    status = 404


class Call:
    """A request: its path segments, query parameters, headers and body, read as the API reads them. Raises `InvalidInput` for wrong ones."""

    def __init__(self, catalog: Catalog, segments: Mapping[str, str], query: str, headers: Iterable[tuple[bytes, bytes]], body: bytes = b"") -> None:
        self.repository = catalog.repository
        self.default_branch = catalog.default_branch
        self.pieces = catalog.pieces
        self.segments = segments
        self._query = query
        self._headers = headers
        self.body = body
        self._json: Any = _UNREAD

    # -- query ------------------------------------------------------------------------------------------------------------------

    @cached_property
    def _parameters(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, value in parse_qsl(self._query, keep_blank_values=True, errors="replace") if self._query else ():
            found.setdefault(name, []).append(value)
        return found

    def texts(self, name: str) -> list[str]:
        """Every value of a parameter."""
        return self._parameters.get(name, [])

    def text(self, name: str) -> str | None:
        """The first value of a parameter, None where it was not given."""
        values = self._parameters.get(name)
        return values[0] if values else None

    def number(self, name: str) -> int | None:
        """A whole number of 32 bits."""
        text = self.text(name)
        if not text:
            return None
        digits = text.removeprefix("-").removeprefix("+")
        if not (digits.isascii() and digits.isdigit() and len(digits) < _DIGITS and int(text) in _INT32):
            raise UnreadableParameter(f"{name}: must be a whole number of 32 bits, not {text!r}")
        return int(text)

    def flag(self, name: str) -> bool:
        """A truth value; everything but `true` is false."""
        return (self.text(name) or "").lower() == "true"

    def fetches_all(self) -> bool:
        """The parameter `fetch`: MINIMAL (the default) or ALL."""
        text = self.text("fetch")
        if text not in (None, "", "MINIMAL", "ALL"):
            raise UnreadableParameter(f"fetch: must be MINIMAL or ALL, not {text!r}")
        return text == "ALL"

    def key(self, name: str) -> ContentKey | None:
        """A content key in any of its encodings; None where it is missing or has no elements."""
        text = self.text(name)
        key = None if text is None else keys.decode(text)
        return key if key is not None and key.elements else None

    def path_key(self, name: str) -> ContentKey:
        """The content key of a path segment, possibly one without elements."""
        text = self.segments[name]
        elements = keys.decode_elements(text)
        if len(elements) > MAX_ELEMENTS or (2 * len(text) > MAX_LENGTH and len("".join(elements).encode("utf-16-le", "replace")) > 2 * MAX_LENGTH):
            raise KeyTooLong(f"{name}: a content key has at most {MAX_ELEMENTS} elements and {MAX_LENGTH} characters; there is none like this")
        return ContentKey(tuple(elements))

    # -- headers ----------------------------------------------------------------------------------------------------------------

    @cached_property
    def is_ours(self) -> bool:
        """Whether our own client asks (`wire.extensions`)."""
        return _OURS in dict(self._headers)

    def headers(self, name: bytes) -> list[str]:
        """Every value of a header (name in lower case); UTF-8 where it is that, else Latin-1."""
        return [_header_text(value) for found, value in self._headers if found == name]

    def headers_from(self, prefix: bytes) -> Iterable[tuple[str, str]]:
        """(rest of the name, value) of all headers whose name begins with a prefix."""
        return [(name[len(prefix) :].decode("latin-1"), _header_text(value)) for name, value in self._headers if name.startswith(prefix)]

    # -- body -------------------------------------------------------------------------------------------------------------------

    def take(self, body: bytes) -> None:
        """Have this body, and read its JSON value now. What is wrong with it is told to the handler, when it asks."""
        self.body = body
        with suppress(InvalidInput):
            self.json()

    def json(self) -> Any:
        """The body's JSON value; None for an empty one and for null. Read once; the body itself is let go of then."""
        if self._json is _UNREAD:
            body, self.body = self.body, b""
            try:
                self._json = _read_json(body)
            except InvalidInput as error:
                self._json = error.with_traceback(None)
        if isinstance(self._json, InvalidInput):
            raise self._json
        return self._json

    def needed_json(self, parameter: str) -> Any:
        """The body's JSON value, which has to be there."""
        value = self.json()
        if value is None:
            raise InvalidInput(f"{parameter}: must not be null")
        return value


_UNREAD = object()
_decode = json.Decoder().decode


def _read_json(body: bytes) -> Any:
    text = body.removeprefix(b"\xef\xbb\xbf")
    if not text.strip():
        return None
    if len(text) > MOST_VALUES and sum(map(text.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise HttpFault(413, f"body: has more than {MOST_VALUES:,} values", "BAD_REQUEST")
    try:
        return _decode(text if text[:1] in _FIRST_BYTES and text[1:2] != b"\0" else _as_utf8(text))
    except RecursionError:
        raise InvalidInput("body: is nested too deeply") from None
    except (DecodeError, UnicodeDecodeError, ValueError) as error:
        raise InvalidInput(f"body: is not JSON: {_lower_first(str(error))}") from None


_FIRST_BYTES = (b"{", b"[", b'"', b" ", b"\n")


def _as_utf8(text: bytes) -> bytes:
    """JSON in UTF-16 or UTF-32 as UTF-8, as the JSON of old told them apart: by where its zero bytes are."""
    encoding = detect_encoding(text)
    return text if encoding.startswith("utf-8") else text.decode(encoding).encode()


def _lower_first(text: str) -> str:
    return text if text[:2].isupper() else text[:1].lower() + text[1:]


def _header_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
