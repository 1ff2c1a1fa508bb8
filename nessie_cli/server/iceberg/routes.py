"""The endpoint that a path names, and the reference and warehouse in it.

Paths are matched raw, each segment decoded once, so an encoded slash stays inside a name. As Java's
clients encode names as forms do, a `+` is a space.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from urllib.parse import unquote

from nessie_cli.errors import InvalidInput
from nessie_cli.server.iceberg import oauth
from nessie_cli.server.iceberg.config import configuration
from nessie_cli.server.iceberg.endpoints import ENDPOINTS, SIGN
from nessie_cli.server.iceberg.prefix import BELOW
from nessie_cli.server.pipeline.table import (
    FORM,
    Doc,
    Endpoint,
    Match,
    NoRoute,
    Param,
    bind,
    check_escapes,
)

CONFIG = Endpoint(
    "GET", f"{BELOW}/v1/config", configuration, cacheable=True, doc=Doc(query=(Param("warehouse"),))
)
TOKEN = Endpoint(
    "POST", f"{BELOW}/v1/oauth/tokens", oauth.token, body=FORM, is_open=True, is_page=True
)
_CACHED, _LONGEST_CACHED = 1024, 512
"""The number of paths whose endpoints are cached, and their most characters."""
_MOST_SEGMENTS = 40
"""The most segments of a path: the number of its readings grows with their square."""
_PATTERNS: dict[int, list[tuple[Endpoint, tuple[str, ...]]]] = {}
"""The endpoints by their number of segments after `v1`."""
for _endpoint in (CONFIG, TOKEN, *ENDPOINTS, SIGN):
    _pattern = tuple(_endpoint.path.split("/")[3:])
    _PATTERNS.setdefault(len(_pattern), []).append((_endpoint, _pattern))


def match(method: str, raw_path: str) -> Match:
    """Returns the endpoint of a request, with the reference before `v1` as the segment `ref`.

    Raises `NoRoute`, and `InvalidInput` for a wrong path.
    """
    find = _find_cached if len(raw_path) <= _LONGEST_CACHED else _find
    return find(method, raw_path)


def _find(method: str, raw_path: str) -> Match:
    segments = raw_path.removeprefix(BELOW).strip("/").split("/", _MOST_SEGMENTS)
    allowed: set[str] = set()
    if len(segments) > _MOST_SEGMENTS:
        raise NoRoute(allowed)
    for front, rest in _splits(segments):
        for endpoint, pattern in _PATTERNS.get(len(rest), ()):
            bound = bind(pattern, rest, empty=True)
            if bound is not None:
                if endpoint.method == method:
                    return _matched(endpoint, front, bound)
                allowed.add(endpoint.method)
        if allowed:
            break
    raise NoRoute(allowed)


_find_cached = lru_cache(_CACHED)(_find)


def _splits(segments: Sequence[str]) -> Iterator[tuple[str | None, list[str]]]:
    """Yields the reference in front of `v1`, and the segments behind it.

    A name may have slashes that its client did not encode. The shortest reading comes first: so a
    branch `v1` can be named on both sides of the segment `v1`.
    """
    places = [place for place, segment in enumerate(segments) if segment == "v1"]
    readings = [
        ("/".join(segments[:place]) or None, list(segments[place + 1 :])) for place in places
    ]
    yield from readings
    for front, rest in readings:
        for end in range(2, len(rest)):
            yield front, ["/".join(rest[:end]), *rest[end:]]


def _matched(endpoint: Endpoint, front: str | None, bound: Mapping[str, str]) -> Match:
    segments = {name: _decoded(text) for name, text in bound.items()}
    for name, text in segments.items():
        if not text and name != "prefix":
            raise InvalidInput(
                f"{name}: is empty. Tables and views at the root have no namespace; Iceberg REST"
                " cannot address them"
            )
    if front:
        segments["ref"] = _decoded(front)
    return Match(endpoint, segments)


def _decoded(segment: str) -> str:
    check_escapes(segment)
    return unquote(segment.replace("+", " "), errors="replace")
