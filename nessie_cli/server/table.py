"""The route table: maps methods and paths to handlers, and describes them for OpenAPI.

Paths are matched raw: split at each literal slash, each segment percent-decoded once, so `%2F`
stays inside a name. A reference may also be written with literal slashes if an `@` ends its name
(`trees/a/b@/entries`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from nessie_cli.errors import InvalidInput

if TYPE_CHECKING:
    from nessie_cli.server.call import Answer, Call

_REFERENCES = frozenset({"{ref}", "{from}", "{to}"})
_BAD_ESCAPE = "path: a '%' is not followed by two hexadecimal digits"


class Param(NamedTuple):
    """A query parameter: name, JSON Schema type, whether it may be repeated, and meaning."""

    name: str
    type: str
    meaning: str
    many: bool = False
    required: bool = False


class Route(NamedTuple):
    """A route. `writes` sends the handler to the writing thread.

    `body` and `answer` name schemas of the OpenAPI document. `lasts` means that the answer of a
    read depends only on the request and the store, not on the time. `right` is the operation of
    rules that a read needs; the refusal of a caller who may not view the reference names both.
    """

    method: str
    path: str
    handler: Callable[[Call], Answer]
    summary: str
    answer: str
    query: tuple[Param, ...] = ()
    body: str = ""
    writes: bool = False
    status: int = 200
    lasts: bool = True
    right: str = ""

    def takes(self, parameters: Mapping[str, Sequence[str]]) -> bool:
        """Returns whether the route has all these query parameters, with permitted repetitions."""
        known = {parameter.name: parameter.many for parameter in self.query}
        return all(
            name in known and (known[name] or len(values) == 1)
            for name, values in parameters.items()
        )


class Match(NamedTuple):
    """The route of a request and the decoded segments of its path, by name."""

    route: Route
    segments: Mapping[str, str]


class NoRoute(Exception):
    """No route takes this request; `allowed` are the methods of the path, if it is known."""

    def __init__(self, allowed: Iterable[str]) -> None:
        super().__init__()
        self.allowed = sorted(allowed)


class RouteTable:
    """Finds the route of a method and raw path."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._by_length: dict[int, list[tuple[tuple[str, ...], Route]]] = {}
        # Indexed by length and last segment, so that few routes are compared.
        self._by_end: dict[tuple[int, str], list[tuple[tuple[str, ...], Route]]] = {}
        for route in self.routes:
            pattern = tuple(route.path.split("/"))
            self._by_length.setdefault(len(pattern), []).append((pattern, route))
        for length, lines in self._by_length.items():
            ends = {pattern[-1] for pattern, _ in lines}
            for end in ends:
                self._by_end[length, end] = [
                    (pattern, route)
                    for pattern, route in lines
                    if pattern[-1] == end or pattern[-1][:1] == "{"
                ]
            self._by_end[length, ""] = [
                (pattern, route) for pattern, route in lines if pattern[-1][:1] == "{"
            ]

    def match(self, method: str, raw_path: str) -> Match:
        """Returns the route of a request; the route of GET answers HEAD.

        Raises `NoRoute`, and `InvalidInput` for a path that cannot be decoded.
        """
        method = "GET" if method == "HEAD" else method
        raw = raw_path.removesuffix("/")
        segments = raw.split("/")
        allowed: set[str] = set()
        length = len(segments)
        lines = self._by_end.get((length, segments[-1])) or self._by_end.get((length, "")) or ()
        for pattern, route in lines:
            bound = _bind(pattern, segments)
            if bound is not None:
                if route.method == method:
                    return Match(route, _decoded(bound))
                allowed.add(route.method)
        return self._match_slashes(method, segments, allowed)

    def _match_slashes(self, method: str, segments: list[str], allowed: set[str]) -> Match:
        """Matches references whose names contain literal slashes."""
        if any(_ends_a_name(segment) for segment in segments):
            for length in sorted(self._by_length, reverse=True):
                for pattern, route in self._by_length[length] if length < len(segments) else ():
                    bound = _bind_slashes(pattern, segments)
                    if bound is not None:
                        if route.method == method:
                            return Match(route, _decoded(bound))
                        allowed.add(route.method)
        raise NoRoute(allowed)


def _bind(pattern: tuple[str, ...], segments: list[str]) -> dict[str, str] | None:
    bound = {}
    for wanted, segment in zip(pattern, segments, strict=True):
        if wanted[:1] == "{":
            if not segment:
                return None
            bound[wanted[1:-1]] = segment
        elif wanted != segment:
            return None
    return bound


def _ends_a_name(segment: str) -> bool:
    return "@" in segment or "%40" in segment


def _bind_slashes(pattern: tuple[str, ...], segments: list[str]) -> dict[str, str] | None:
    """Returns `_bind` for a reference over several segments, through the first one with an `@`."""
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
