"""The table of endpoints: maps methods and paths to handlers.

Paths are matched raw: split at each literal slash, each segment percent-decoded once, so `%2F`
stays inside a name. A reference may also be written with literal slashes if an `@` ends its name
(`trees/a/b@/entries`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from nessie_cli.errors import InvalidInput

if TYPE_CHECKING:
    from nessie_cli.server.http.messages import Reply
    from nessie_cli.server.pipeline.call import Answer

_REFERENCES = frozenset({"{ref}", "{from}", "{to}"})
_BAD_ESCAPE = "path: a '%' is not followed by two hexadecimal digits"
FORM = "form"
"""The body of an endpoint that takes a form, which its handler reads itself."""


class Effect(Enum):
    """What a handler may do, which decides about its thread.

    `READS` runs on a reading thread of the dialect. `WRITES` drafts on the writing thread, in a
    group with others. `WRITES_FILES` runs on a thread that may wait: it writes metadata files, and
    then hands its change to the writing thread.
    """

    READS = "reads"
    WRITES = "writes"
    WRITES_FILES = "writes files"


READS, WRITES, WRITES_FILES = Effect.READS, Effect.WRITES, Effect.WRITES_FILES


class Param(NamedTuple):
    """A query parameter: name, JSON Schema type, whether it may be repeated, and meaning."""

    name: str
    type: str = "string"
    meaning: str = ""
    many: bool = False
    required: bool = False


class Doc(NamedTuple):
    """The description of an endpoint for OpenAPI. `answer` names a schema, or is empty."""

    summary: str = ""
    answer: str = ""
    query: tuple[Param, ...] = ()
    status: int = 200


Handler = Callable[[Any], "Answer | Reply | Awaitable[Reply]"]
"""Answers a `Call`, or what the call of its dialect gives it.

A coroutine function runs on the event loop, so it must not block.
"""


class Endpoint(NamedTuple):
    """A method and path, and the handler that answers it.

    `cacheable`: the answer depends only on the request and the store, not on the time. `reads`: the
    segments of the path that name all commits on which a cacheable answer depends. `body` names
    the schema of a JSON body, or is `FORM`. `right` is the operation of rules that a read needs;
    the refusal of a caller who may not view the reference names both. `is_open`: callers need no
    credentials. `is_page`: whatever media types the client accepts. `hides_query`: the log leaves
    out the query, which holds a secret.
    """

    method: str
    path: str
    handler: Handler
    effect: Effect = READS
    cacheable: bool = False
    reads: tuple[str, ...] = ()
    body: str = ""
    doc: Doc = Doc()
    right: str = ""
    is_open: bool = False
    is_page: bool = False
    hides_query: bool = False

    @property
    def takes_json(self) -> bool:
        """Whether requests have a JSON body."""
        return self.body not in ("", FORM)

    def takes(self, parameters: Mapping[str, Sequence[str]]) -> bool:
        """Returns whether the endpoint has all these parameters, with permitted repetitions."""
        repeatable = {parameter.name: parameter.many for parameter in self.doc.query}
        return all(
            name in repeatable and (repeatable[name] or len(values) == 1)
            for name, values in parameters.items()
        )


class Match(NamedTuple):
    """The endpoint of a request and the decoded segments of its path, by name."""

    endpoint: Endpoint
    segments: Mapping[str, str]


class NoRoute(Exception):
    """No endpoint takes this request; `allowed` are the methods of the path, if it is known."""

    def __init__(self, allowed: Iterable[str]) -> None:
        super().__init__()
        self.allowed = sorted(allowed)


class RouteTable:
    """Finds the endpoint of a method and raw path."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        self.endpoints = tuple(endpoints)
        self._by_length: dict[int, list[tuple[tuple[str, ...], Endpoint]]] = {}
        # Indexed by length and last segment, so that few routes are compared.
        self._by_end: dict[tuple[int, str | None], list[tuple[tuple[str, ...], Endpoint]]] = {}
        for endpoint in self.endpoints:
            pattern = tuple(endpoint.path.removesuffix("/").split("/"))
            self._by_length.setdefault(len(pattern), []).append((pattern, endpoint))
        for length, lines in self._by_length.items():
            ends = {pattern[-1] for pattern, _ in lines}
            for end in ends:
                self._by_end[length, end] = [
                    (pattern, endpoint)
                    for pattern, endpoint in lines
                    if pattern[-1] == end or pattern[-1][:1] == "{"
                ]
            self._by_end[length, None] = [
                (pattern, endpoint) for pattern, endpoint in lines if pattern[-1][:1] == "{"
            ]

    def match(self, method: str, raw_path: str) -> Match:
        """Returns the endpoint of a request; that of GET answers HEAD.

        Raises `NoRoute`, and `InvalidInput` for a path that cannot be decoded.
        """
        method = "GET" if method == "HEAD" else method
        raw = raw_path.removesuffix("/")
        segments = raw.split("/")
        allowed: set[str] = set()
        length = len(segments)
        lines = self._by_end.get((length, segments[-1])) or self._by_end.get((length, None)) or ()
        for pattern, endpoint in lines:
            bound = bind(pattern, segments)
            if bound is not None:
                if endpoint.method == method:
                    return Match(endpoint, _decoded(bound))
                allowed.add(endpoint.method)
        return self._match_slashes(method, segments, allowed)

    def _match_slashes(self, method: str, segments: list[str], allowed: set[str]) -> Match:
        """Matches references whose names contain literal slashes."""
        if any(_ends_a_name(segment) for segment in segments):
            for length in sorted(self._by_length, reverse=True):
                for pattern, endpoint in self._by_length[length] if length < len(segments) else ():
                    bound = _bind_slashes(pattern, segments)
                    if bound is not None:
                        if endpoint.method == method:
                            return Match(endpoint, _decoded(bound))
                        allowed.add(endpoint.method)
        raise NoRoute(allowed)


def bind(
    pattern: Sequence[str], segments: Sequence[str], *, empty: bool = False
) -> dict[str, str] | None:
    """Returns the segments of a path by the names in a pattern; None if they do not match.

    A named segment is not empty, unless `empty` allows it.
    """
    bound = {}
    for part, segment in zip(pattern, segments, strict=True):
        if part[:1] == "{":
            if not segment and not empty:
                return None
            bound[part[1:-1]] = segment
        elif part != segment:
            return None
    return bound


def _ends_a_name(segment: str) -> bool:
    return "@" in segment or "%40" in segment


def _bind_slashes(pattern: tuple[str, ...], segments: list[str]) -> dict[str, str] | None:
    """Returns `bind` for a reference over several segments, through the first one with an `@`."""
    if not pattern:
        return None if segments else {}
    if not segments:
        return None
    wanted = pattern[0]
    if wanted[:1] != "{":
        return _bind_slashes(pattern[1:], segments[1:]) if wanted == segments[0] else None
    name = wanted[1:-1]
    if segments[0] and (rest := _bind_slashes(pattern[1:], segments[1:])) is not None:
        return {name: segments[0], **rest}
    end = (
        next((i for i, segment in enumerate(segments) if _ends_a_name(segment)), 0)
        if wanted in _REFERENCES
        else 0
    )
    if not end or (rest := _bind_slashes(pattern[1:], segments[end + 1 :])) is None:
        return None
    return {name: "/".join(segments[: end + 1]), **rest}


def _decoded(bound: Mapping[str, str]) -> dict[str, str]:
    return {name: decode_segment(segment) for name, segment in bound.items()}


def decode_segment(segment: str) -> str:
    """Returns a path segment, percent-decoded once; invalid UTF-8 becomes U+FFFD."""
    if "%" not in segment:
        return segment
    check_escapes(segment)
    return unquote(segment, errors="replace")


def check_escapes(segment: str) -> None:
    """Raises `InvalidInput` for a percent sign that is not an escape."""
    for escape in segment.split("%")[1:]:
        if len(escape) < 2 or not all(c in "0123456789abcdefABCDEF" for c in escape[:2]):  # noqa: PLR2004 - two digits make a byte
            raise InvalidInput(_BAD_ESCAPE)
