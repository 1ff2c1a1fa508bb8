"""The table of endpoints: maps methods and paths to handlers.

Paths are matched raw: split at each literal slash, each segment percent-decoded once, so `%2F`
stays inside a name. A reference may also be written with literal slashes if an `@` ends its name
(`trees/a/b@/entries`).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from nessie_cli.errors import InvalidInput
from nessie_cli.server.http.messages import MOST_FORM

if TYPE_CHECKING:
    from nessie_cli.server.http.messages import Reply
    from nessie_cli.server.pipeline.call import Answer

_WITH_SLASHES = frozenset({"{ref}", "{from}", "{to}", "{prefix}"})
"""The names that may contain literal slashes: references."""
_CACHED, _LONGEST_CACHED = 1024, 512
"""The number of paths whose endpoints are cached, and their most characters."""
_BROKEN = re.compile("%(?![0-9a-fA-F]{2})")
_BAD_ESCAPE = "path: a '%' is not followed by two hexadecimal digits"
FORM = "form"
"""The body of an endpoint that takes a form, which its handler reads itself."""


class Effect(Enum):
    """What a handler may do, which decides about its thread.

    `READS` runs on a reading thread of the dialect. `WRITES` drafts on the writing thread, in a
    group with others. So does `MERGES`, but a merge of many contents is drafted on another thread,
    which hands the draft to the writing thread; likewise a write with a large body, and one that
    makes a long history reachable. `WRITES_FILES` runs on a thread that may wait: it writes
    metadata files, and then hands its change to the writing thread.
    """

    READS = "reads"
    WRITES = "writes"
    MERGES = "merges"
    WRITES_FILES = "writes files"


READS, WRITES, MERGES = Effect.READS, Effect.WRITES, Effect.MERGES
WRITES_FILES = Effect.WRITES_FILES


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
    the schema of a JSON body of at most `most_values` values, or is `FORM`: a form of at most
    `most_form` bytes. `right` is the
    operation of rules that a read needs; the refusal of a caller who may not view the reference
    names both. `is_open`: callers need no
    credentials. `is_page`: whatever media types the client accepts. `hides_query`: the log leaves
    out the query, which holds a secret. `is_short`: the handler reads few objects, so it runs on
    the event loop if they are in memory.
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
    most_values: int = 1_000_000
    most_form: int = MOST_FORM
    is_page: bool = False
    hides_query: bool = False
    is_short: bool = False

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


_Line = tuple[tuple[str, ...], Endpoint]
"""The segments of the path of an endpoint."""


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
    """Finds the endpoint of a method and raw path.

    Names may contain slashes, so a path has several readings as segments. The paths of an API are
    a subclass, if they are not written like those of Nessie's REST API.
    """

    answers_head = True
    """Whether endpoints of GET answer HEAD."""
    is_final = False
    """Whether the first reading that is the path of any endpoint is the only one."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        by_length: dict[int, list[_Line]] = {}
        for endpoint in endpoints:
            pattern = self.pattern(endpoint)
            by_length.setdefault(len(pattern), []).append((pattern, endpoint))
        # Indexed by length and last segment, so that few routes are compared.
        self._lines: dict[tuple[int, str | None], list[_Line]] = {}
        for length, lines in by_length.items():
            named = [line for line in lines if line[0][-1][:1] == "{"]
            self._lines[length, None] = named
            for end in {pattern[-1] for pattern, _ in lines}:
                self._lines[length, end] = [
                    line for line in lines if line in named or line[0][-1] == end
                ]
        self._most = max(by_length, default=0)
        self._find_cached = lru_cache(_CACHED)(self._find)

    def pattern(self, endpoint: Endpoint) -> tuple[str, ...]:
        """Returns the segments of the path of an endpoint."""
        return tuple(endpoint.path.removesuffix("/").split("/"))

    def readings(self, raw_path: str) -> Iterator[Sequence[str]]:
        """Yields the segments of a path in each of its readings, the likeliest first.

        A reference may be written with slashes, through the first segment with an `@`.
        """
        segments = raw_path.removesuffix("/").split("/")
        if "" not in segments[1:]:
            yield segments
        if any(map(_ends_a_name, segments)):
            for reading in sorted(_joined(segments, 1, self._most), key=len, reverse=True):
                if "" not in reading[1:]:
                    yield reading

    def decoded(self, bound: Mapping[str, str]) -> Mapping[str, str]:
        """Returns the decoded segments. Raises `InvalidInput`."""
        return {name: decode_segment(segment) for name, segment in bound.items()}

    def match(self, method: str, raw_path: str) -> Match:
        """Returns the endpoint of a request.

        Raises `NoRoute`, and `InvalidInput` for a path that cannot be decoded.
        """
        if method == "HEAD" and self.answers_head:
            method = "GET"
        find = self._find_cached if len(raw_path) <= _LONGEST_CACHED else self._find
        return find(method, raw_path)

    def _find(self, method: str, raw_path: str) -> Match:
        allowed: set[str] = set()
        for segments in self.readings(raw_path):
            length = len(segments)
            lines = self._lines.get((length, segments[-1])) or self._lines.get((length, None))
            for pattern, endpoint in lines or ():
                bound = _bind(pattern, segments)
                if bound is not None:
                    if endpoint.method == method:
                        return Match(endpoint, self.decoded(bound))
                    allowed.add(endpoint.method)
            if allowed and self.is_final:
                break
        raise NoRoute(allowed)


def _bind(pattern: Sequence[str], segments: Sequence[str]) -> dict[str, str] | None:
    """Returns the segments of a path by the names in a pattern; None if they do not match."""
    bound = {}
    for part, segment in zip(pattern, segments, strict=True):
        if part[:1] == "{":
            if "/" in segment and part not in _WITH_SLASHES:
                return None
            bound[part[1:-1]] = segment
        elif part != segment:
            return None
    return bound


def _ends_a_name(segment: str) -> bool:
    return "@" in segment or "%40" in segment


def _joined(segments: Sequence[str], start: int, most: int) -> Iterator[Sequence[str]]:
    """Yields readings of at most `most` segments in which names from `start` on have slashes.

    Such a name ends with the first segment that ends a name.
    """
    for first in range(start, min(len(segments), most)):
        rest = segments[first:]
        last = next((place for place, segment in enumerate(rest) if _ends_a_name(segment)), 0)
        if last:
            name, behind = "/".join(rest[: last + 1]), rest[last + 1 :]
            reading = [*segments[:first], name, *behind]
            if len(reading) <= most:
                yield reading
            yield from _joined(reading, first + 1, most)


def decode_segment(segment: str) -> str:
    """Returns a path segment, percent-decoded once; invalid UTF-8 becomes U+FFFD."""
    if "%" not in segment:
        return segment
    if _BROKEN.search(segment):
        raise InvalidInput(_BAD_ESCAPE)
    return unquote(segment, errors="replace")
