"""HTTP around the handlers: headers, bodies with their limits and codings, JSON, replies."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from abc import ABC, abstractmethod
from codecs import iterdecode
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from contextlib import suppress
from json import detect_encoding, dumps
from typing import Any, NamedTuple

from msgspec import DecodeError, MsgspecError, json, to_builtins

from nessie_cli.errors import InvalidInput
from nessie_cli.server.http.failures import HttpFault, Unavailable, UnreadBody
from nessie_cli.wire.large_json import MOST_VALUES, count_values, decode, steps

Headers = list[tuple[bytes, bytes]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
JSON = b"application/json"
DRAIN_SECONDS, SILENCE = 20.0, 2.0
"""Seconds for which a refused request is read at most, and seconds of silence that end it."""
COMPRESSED_FROM = 2048
"""The size in bytes from which answers are compressed for clients that accept gzip."""
MOST_MEMBERS = 10_000
"""The most gzip members of a body; programs that compress in blocks make one per 64 KiB."""
MOST_CODINGS = 2
"""The most nested content codings of a body."""
SMALL = 1 << 20
"""The bytes up to which an answer is sent at once, and takes no share of their memory."""
LARGE = 1 << 18
"""The size in bytes from which a body counts as large."""
MOST_FORM = 8 << 10
"""The largest form in bytes; it is read on the event loop before the caller is known."""
MOST_PATH = 32 << 10
"""The most bytes of a path: two revisions of the longest names, at 12 bytes for a character.

The query has no limit of its own: a filter of 10,000 characters may take several times as many.
"""
_SEPARATORS = 4
"""Bytes around the name and value of a header."""
_MOST_DIGITS = 18
_FED, _UNFOLDED = 1 << 16, 1 << 20
"""Bytes of a compressed body that one step reads, and the most that one step produces."""
_GZIP = zlib.MAX_WBITS | 16
_UNSUPPORTED = "UNSUPPORTED_MEDIA_TYPE"
_encode = json.Encoder().encode


class Limits(NamedTuple):
    """The limits of requests.

    Bytes: `body` as it is sent, `decompressed` after decompression, `head` of the path, query and
    headers, `answers` of all large answers that are made or sent at once. Seconds: `seconds` for a
    body to arrive and for a client to read a part of a large answer, `answer_seconds` that a large
    answer waits for others, `idle_seconds` that a connection may wait for its next request.
    Numbers: `connections` with requests, and as many idle ones; `writes`, `reads`, and `long_reads`
    (filters) that may wait. A filter gets `filter_seconds` of processor time per page.
    """

    body: int = 64 * 1024 * 1024
    decompressed: int = 64 * 1024 * 1024
    seconds: float = 60.0
    head: int = 64 * 1024
    idle_seconds: int = 75
    connections: int = 1000
    writes: int = 1000
    reads: int = 500
    long_reads: int = 100
    filter_seconds: float = 10.0
    answers: int = 256 * 1024 * 1024
    answer_seconds: float = 30.0

    @property
    def most_drained(self) -> int:
        """The most bytes of a refused request that are read."""
        return 4 * self.body

    def shared_by(self, processes: int) -> Limits:
        """Returns the limits of one of several processes."""
        shared = {
            name: max(1, getattr(self, name) // processes)
            for name in ("connections", "writes", "reads", "long_reads")
        }
        return self._replace(**shared)


class Chunks:
    """The text of an answer in chunks; each is read from the store after the last one was sent.

    `held` returns the bytes of what is in memory for the next or last chunk.
    """

    def __init__(self, texts: Iterator[bytes], held: Callable[[], int]) -> None:
        self._texts = texts
        self.held = held

    def __iter__(self) -> Iterator[bytes]:
        """Yields the chunks, once."""
        return self._texts

    def __next__(self) -> bytes:
        """Returns the next chunk."""
        return next(self._texts)


class LiveChunks(ABC):
    """The bytes of an answer in chunks that the event loop waits for, without a thread.

    They are sent as they are. `close` is called at the end of the request.
    """

    @abstractmethod
    def held(self) -> int:
        """Returns the bytes of what is in memory for the next or last chunk."""

    @abstractmethod
    async def read(self) -> bytes:
        """Returns the next chunk, empty after the last one."""

    @abstractmethod
    async def close(self) -> None:
        """Ends the source of the chunks."""


class Reply(NamedTuple):
    """A reply ready to be sent: with a body, or with chunks."""

    status: int
    headers: Headers
    body: bytes = b""
    chunks: Chunks | LiveChunks | None = None

    @property
    def is_large(self) -> bool:
        """Whether it is sent in parts, and takes a share of the memory of large answers."""
        return self.chunks is not None or len(self.body) > SMALL

    @property
    def held(self) -> int:
        """The bytes that it holds in memory."""
        return len(self.body) if self.chunks is None else self.chunks.held()


def encoded(value: Any) -> bytes:
    """Returns a JSON value as text."""
    try:
        return _encode(value)
    except (MsgspecError, OverflowError):
        # Numbers in a content of an unknown type may have more than 64 bits.
        return dumps(to_builtins(value), ensure_ascii=False).encode()


def json_reply(body: bytes, *headers: tuple[bytes, bytes]) -> Reply:
    """Returns a reply of status 200 whose body is JSON text."""
    return Reply(200, [(b"content-type", JSON), *headers], body)


def header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes:
    """Returns the first value of a header, or empty bytes."""
    # Called several times per request; a generator would cost twice as much.
    for header_name, value in headers:
        if header_name == name:
            return value
    return b""


def check_headers(
    path: int, target: int, headers: Iterable[tuple[bytes, bytes]], most: int
) -> None:
    """Refuses what the web server accepts and the pipeline must not.

    A path of more than `MOST_PATH` bytes, which is decoded before the caller is known. A path and
    query of `target` bytes with headers of more than `most` bytes in all. Two headers
    `Authorization` or `Host`: a proxy may have checked the other one. A body of a request to
    upgrade the protocol: the web server does not read it, but takes its bytes for the next request.
    """
    size, credentials, hosts, upgrades = target, 0, 0, False
    for name, value in headers:
        size += len(name) + len(value) + _SEPARATORS
        if name == b"authorization":
            credentials += 1
        elif name == b"host":
            hosts += 1
        elif name == b"upgrade":
            upgrades = True
    if path > MOST_PATH:
        raise HttpFault(431, f"the request's path is larger than {MOST_PATH} bytes", "BAD_REQUEST")
    if size > most:
        raise HttpFault(
            431,
            f"the request's path, query and headers are larger than {most} bytes",
            "BAD_REQUEST",
        )
    if credentials > 1:
        raise HttpFault(400, "The header Authorization occurs more than once", "BAD_REQUEST")
    if hosts > 1:
        raise HttpFault(400, "The header Host occurs more than once", "BAD_REQUEST")
    if upgrades and has_body(headers):
        raise UnreadBody(
            400, "A request with a body must not have the header Upgrade", "BAD_REQUEST"
        )


def has_body(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Returns whether a request has a body that is not empty."""
    return bool(
        header(headers, b"content-length").strip(b"0 ") or header(headers, b"transfer-encoding")
    )


def accepts_json(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Returns whether the header `Accept` allows JSON, whatever the weight, as in the original."""
    values = [value for name, value in headers if name == b"accept"]
    if not values or JSON in values:
        return True
    accept = b",".join(values).strip()
    ranges = (part.partition(b";")[0].strip() for part in accept.lower().split(b","))
    return not accept or any(kind in (JSON, b"application/*", b"*/*") for kind in ranges)


def check_content_type(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuses a body that is not declared as JSON.

    Pages of other sites can send bodies of some other types, and without a type.
    """
    announced = header(headers, b"content-type")
    if announced == JSON or announced.partition(b";")[0].strip().lower() == JSON:
        return
    if announced or has_body(headers):
        raise HttpFault(415, "HTTP 415 Unsupported Media Type", _UNSUPPORTED)


def takes_gzip(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Returns whether the client accepts gzip."""
    for part in header(headers, b"accept-encoding").lower().split(b","):
        coding, _, quality = part.partition(b";")
        if coding.strip() == b"gzip":
            return quality.replace(b" ", b"") not in (b"q=0", b"q=0.0", b"q=0.00", b"q=0.000")
    return False


def compressed(reply: Reply, headers: Iterable[tuple[bytes, bytes]]) -> Reply:
    """Returns the reply, compressed if that pays and the client accepts it."""
    is_small = len(reply.body) < COMPRESSED_FROM and reply.chunks is None
    if is_small or isinstance(reply.chunks, LiveChunks) or not takes_gzip(headers):
        return reply
    headers_out = [*reply.headers, (b"content-encoding", b"gzip"), (b"vary", b"accept-encoding")]
    if reply.chunks is not None:
        chunks = Chunks(_packed(reply.chunks), reply.chunks.held)
        return Reply(reply.status, headers_out, chunks=chunks)
    return Reply(reply.status, headers_out, gzip.compress(reply.body, 1))


def _packed(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the chunks, compressed by gzip."""
    packer = zlib.compressobj(1, wbits=_GZIP)
    yield from filter(None, map(packer.compress, chunks))
    yield packer.flush()


def decompress(body: bytes, headers: Iterable[tuple[bytes, bytes]], limits: Limits) -> bytes:
    """Returns the body without its content codings.

    Raises an error for a body that is damaged, has an unknown coding, or becomes too large.
    Decompression stops in the step that exceeds the limit.
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
            (
                f"content-encoding: {len(codings)} nested codings; at most {MOST_CODINGS} are"
                " accepted"
            ),
            _UNSUPPORTED,
        )
    for coding in reversed(codings):
        if coding in (b"gzip", b"x-gzip", b"deflate"):
            body = _inflate(body, limits.decompressed) if body else body
        elif coding != b"identity":
            raise HttpFault(
                415,
                (
                    f"content-encoding {coding.decode('latin-1')!r} is not supported; gzip and"
                    " deflate are"
                ),
                _UNSUPPORTED,
            )
    return body


def _inflate(body: bytes, most: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    for part in _inflated(body):
        size += len(part)
        if size > most:
            # The error keeps this frame alive, which must not keep the body.
            del part, parts
            raise too_large(f"decompressed is larger than {most} bytes")
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _inflated(body: bytes) -> Iterator[bytes]:
    """Yields a decompressed body in steps. Concatenated gzip members are one, as RFC 1952 says."""
    inflater = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    members = 1
    try:
        for start in range(0, len(body), _FED):
            rest = body[start : start + _FED]
            while rest:
                if inflater.eof:
                    inflater = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
                    members += 1
                    if members > MOST_MEMBERS:
                        raise too_large(f"has more than {MOST_MEMBERS} gzip members")
                yield inflater.decompress(rest, _UNFOLDED)
                rest = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
        while not inflater.eof and (more := inflater.decompress(b"", _UNFOLDED)):
            yield more
    except zlib.error as error:
        raise HttpFault(400, f"body: cannot be decompressed: {error}", "BAD_REQUEST") from None
    if not inflater.eof:
        raise HttpFault(400, "body: the compressed data ends too early", "BAD_REQUEST")


def too_large(problem: str) -> HttpFault:
    """Returns the error for a body beyond a limit."""
    return HttpFault(413, f"body: {problem}", "BAD_REQUEST")


async def drain(headers: Headers, receive: Receive, limits: Limits) -> None:
    """Reads on for a while after a body was refused.

    A client that is disconnected while it sends may never see the answer.
    """
    if header(headers, b"expect"):
        return
    size = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            while size <= limits.most_drained:
                async with asyncio.timeout(SILENCE):
                    message = await receive()
                size += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    return


class Arriving:
    """The bytes of large bodies that are arriving, of all connections, and the most of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0

    def add(self, size: int) -> None:
        """Counts bytes. Raises `TooMuchArrives` if they are too many."""
        self._size += size
        if self._size > self._most:
            raise TooMuchArrives

    def remove(self, size: int) -> None:
        """Counts bytes no longer."""
        self._size -= size


class TooMuchArrives(Unavailable):
    """The error for a large body that arrives while too many others do."""

    def __init__(self) -> None:
        super().__init__("Too many large requests are arriving; come again later")


async def read_body(
    headers: Headers, receive: Receive, limits: Limits, arriving: Arriving
) -> bytes:
    """Reads the body. Raises an error if it is too large or does not arrive.

    `arriving` counts it meanwhile.
    """
    announced = header(headers, b"content-length")
    if announced.isdigit() and (len(announced) > _MOST_DIGITS or int(announced) > limits.body):
        raise too_large(f"is larger than {limits.body} bytes")
    try:
        async with asyncio.timeout(limits.seconds):
            return await _parts(receive, limits, arriving)
    except TimeoutError:
        raise HttpFault(
            408, f"body: did not arrive within {limits.seconds:g} seconds", "BAD_REQUEST"
        ) from None


async def _parts(receive: Receive, limits: Limits, arriving: Arriving) -> bytes:
    body = bytearray()
    size = counted = 0
    try:
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise HttpFault(400, "body: the client closed the connection", "BAD_REQUEST")
            part = message.get("body", b"")
            size += len(part)
            if size > limits.body:
                raise too_large(f"is larger than {limits.body} bytes")
            if size > LARGE:
                more, counted = size - counted, size
                arriving.add(more)
            is_last = not message.get("more_body")
            if is_last and not body:
                return bytes(part)
            # Many small parts would take many times their bytes.
            body += part
            if is_last:
                return bytes(body)
    finally:
        arriving.remove(counted)


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
