"""HTTP around the handlers: headers that decide whether a request is taken, bodies within their limits, answers as bytes."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from contextlib import suppress
from typing import Any, NamedTuple

from nessie_cli.server.failures import HttpFault
from nessie_cli.server.streams import packed

Headers = list[tuple[bytes, bytes]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
ARRIVED = "arrived"
"""In the state of a request's scope, where the whole body is there already."""
AT_ONCE = "at once"
"""In the state of a request's scope: a function that sends headers and body of an answer of status 200 in one piece, where it can."""
LOST = "lost"
"""In the state of a request's scope: a function that tells whether the client has hung up. One that only sends nothing more has not."""

JSON = b"application/json"
HEARD_FOR, SILENCE = 20.0, 2.0
"""Seconds for which a client that is refused is heard out at most, and seconds without a byte after which it has said everything."""
COMPRESSED_FROM = 2048
"""Answers of so many bytes are compressed for clients that take gzip."""
MOST_CODINGS = 2
"""Content codings of one body, one within the other: each is a work of its own."""
_FED, _UNFOLDED = 1 << 16, 1 << 20
"""Bytes of a compressed body that are looked at in one step, and what one step makes of them at most."""
_UNSUPPORTED = "UNSUPPORTED_MEDIA_TYPE"


class Limits(NamedTuple):
    """How much is taken from clients.

    Bytes of a body: `body` as it is sent, `decompressed` what it may become; `head`: of a request's first line and headers together. Seconds:
    `seconds` for a body to arrive and for a client to take what it was sent, `head_seconds` for the head, `idle_seconds` that a connection may
    wait for its next request. `connections` at once; `writes`, `reads`, and `long_reads` (filters) that may wait for their turn. A filter is
    tested for `filter_seconds` of processor time on one page.
    """

    body: int = 64 * 1024 * 1024
    decompressed: int = 256 * 1024 * 1024
    seconds: float = 60.0
    head: int = 64 * 1024
    head_seconds: float = 20.0
    idle_seconds: float = 75.0
    connections: int = 1000
    writes: int = 1000
    reads: int = 500
    long_reads: int = 100
    filter_seconds: float = 10.0

    @property
    def heard(self) -> int:
        """Bytes for which a client that is refused is heard out at most."""
        return 4 * self.body

    def shared_by(self, processes: int) -> Limits:
        """The limits of one of several processes."""
        shared = {
            name: max(1, getattr(self, name) // processes)
            for name in ("connections", "writes", "reads", "long_reads")
        }
        return self._replace(**shared)


class Reply(NamedTuple):
    """An answer ready to be sent. One with `pieces` has them in the place of a body; each is read from the store when the one before is sent."""

    status: int
    headers: Headers
    body: bytes = b""
    pieces: Iterator[bytes] | None = None


def header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes:
    """The first value of a header, empty where there is none."""
    # Asked several times for each request; a generator would cost twice as much.
    for found, value in headers:
        if found == name:
            return value
    return b""


def accepts_json(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether the header `Accept` names JSON, with whatever weight, as in the original; one that is missing or empty does."""
    accept = b",".join([value for name, value in headers if name == b"accept"]).strip()
    ranges = (part.partition(b";")[0].strip() for part in accept.lower().split(b","))
    return accept in (b"", JSON) or any(kind in (JSON, b"application/*", b"*/*") for kind in ranges)


def check_content_type(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse a body that is not announced as JSON. Pages of other sites can send bodies of some other types, and of none."""
    announced = header(headers, b"content-type")
    if announced == JSON or announced.partition(b";")[0].strip().lower() == JSON:
        return
    has_body = header(headers, b"content-length").strip(b"0 ") or header(
        headers, b"transfer-encoding"
    )
    if announced or has_body:
        raise HttpFault(415, "HTTP 415 Unsupported Media Type", _UNSUPPORTED)


def takes_gzip(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether the client takes a compressed answer."""
    for part in header(headers, b"accept-encoding").lower().split(b","):
        coding, _, quality = part.partition(b";")
        if coding.strip() == b"gzip":
            return quality.replace(b" ", b"") not in (b"q=0", b"q=0.0", b"q=0.00", b"q=0.000")
    return False


def compressed(reply: Reply, headers: Iterable[tuple[bytes, bytes]]) -> Reply:
    """The reply, compressed where that is worth it and the client takes it."""
    if (len(reply.body) < COMPRESSED_FROM and reply.pieces is None) or not takes_gzip(headers):
        return reply
    told = [*reply.headers, (b"content-encoding", b"gzip"), (b"vary", b"accept-encoding")]
    if reply.pieces is not None:
        return Reply(reply.status, told, pieces=packed(reply.pieces))
    return Reply(reply.status, told, gzip.compress(reply.body, 1))


def decompress(body: bytes, headers: Iterable[tuple[bytes, bytes]], limits: Limits) -> bytes:
    """The body without its content codings; raises for one that is damaged, unknown, or becomes too large.

    What becomes too large costs at most the time of what is allowed: it is given up in the step that goes beyond that.
    """
    announced = header(headers, b"content-encoding")
    codings = (
        [coding.strip() for coding in announced.lower().split(b",") if coding.strip()]
        if announced
        else []
    )
    if len(codings) > MOST_CODINGS:
        raise HttpFault(
            415,
            f"content-encoding: has {len(codings)} codings, one within the other; at most {MOST_CODINGS} are taken",
            _UNSUPPORTED,
        )
    for coding in reversed(codings):
        if coding in (b"gzip", b"x-gzip", b"deflate"):
            body = _inflate(body, limits.decompressed) if body else body
        elif coding != b"identity":
            raise HttpFault(
                415,
                f"content-encoding {coding.decode('latin-1')!r} is not supported; gzip and deflate are",
                _UNSUPPORTED,
            )
    return body


def _inflate(body: bytes, most: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    for part in _inflated(body):
        size += len(part)
        if size > most:
            # The error holds this frame for a while, and should not hold what it is about.
            del part, parts
            raise too_large(f"decompressed is larger than {most} bytes")
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _inflated(body: bytes) -> Iterator[bytes]:
    """What a compressed body becomes, some of it in each step; several compressed pieces behind each other are one, as RFC 1952 says."""
    inflater = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    try:
        for start in range(0, len(body), _FED):
            rest = body[start : start + _FED]
            while rest:
                if inflater.eof:
                    inflater = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
                yield inflater.decompress(rest, _UNFOLDED)
                rest = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
        while not inflater.eof and (more := inflater.decompress(b"", _UNFOLDED)):
            yield more
    except zlib.error as error:
        raise HttpFault(400, f"body: cannot be decompressed: {error}", "BAD_REQUEST") from None
    if not inflater.eof:
        raise HttpFault(400, "body: the compressed data ends too early", "BAD_REQUEST")


def too_large(problem: str) -> HttpFault:
    """The error for a body beyond a limit."""
    return HttpFault(413, f"body: {problem}", "BAD_REQUEST")


async def drain(headers: Headers, receive: Receive, limits: Limits) -> None:
    """Read on, for a while, what a client still sends of a body that is refused: one that is hung up on while it sends may never see the answer."""
    if header(headers, b"expect"):
        return
    size = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(HEARD_FOR):
            while size <= limits.heard:
                async with asyncio.timeout(SILENCE):
                    message = await receive()
                size += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    return


async def read_body(
    headers: Headers, receive: Receive, limits: Limits, *, arrived: bool = False
) -> bytes:
    """The body as it was sent; raises when it is larger than it may be, as early as that is known, and when it does not arrive.

    `arrived` says that all of it is there, so that no clock has to be set.
    """
    announced = header(headers, b"content-length")
    if announced.isdigit() and int(announced) > limits.body:
        raise too_large(f"is larger than {limits.body} bytes")
    if arrived:
        return await _parts(receive, limits)
    try:
        async with asyncio.timeout(limits.seconds):
            return await _parts(receive, limits)
    except TimeoutError:
        raise HttpFault(
            408, f"body: did not arrive within {limits.seconds:g} seconds", "BAD_REQUEST"
        ) from None


async def _parts(receive: Receive, limits: Limits) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise HttpFault(400, "body: the client went away", "BAD_REQUEST")
        part = message.get("body", b"")
        size += len(part)
        if size > limits.body:
            raise too_large(f"is larger than {limits.body} bytes")
        parts.append(part)
        if not message.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)
