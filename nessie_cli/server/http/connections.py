"""Connections: how much of what clients send is parsed in a turn of the event loop.

uvicorn parses whatever has arrived in one call, and queues every request in it. So a
`ClientConnection` stands between the transport and uvicorn's protocol, and hands on the bytes in
parts. A part is small, and ends with the head or with the body of a request. What follows a request
stays here, and then in the socket, until the request has been answered: uvicorn refuses bytes that
are not HTTP at once, and this would be taken for the answer. `Framing` follows where a body ends.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from functools import partial
from itertools import pairwise
from typing import Any, cast

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from nessie_cli.server.http.messages import Headers, header

PART = 16 << 10
"""The most bytes of a part. A connection with more bytes than that is not read.

As many bytes are handed on as they arrive, until connections have to wait.
"""
TURN = 2 << 10
"""The bytes after which a turn hands on no more parts: tiny chunks take 0.3 µs per byte."""
LEAST = 256
"""The bytes that a smaller part counts as, because it may begin a request."""
ROUND = 256 << 10
"""The most bytes that waiting connections hand on until the first one has its next part."""
_BLANK_LINE, _LINE_END = b"\n\r\n", b"\r\n"
"""The end of a head. llhttp accepts LF without CR only after the first line of HTTP/0.9."""
_CONNECTION = "connection"
_TRAILER = b"trailer-"
"""The beginning of the names that the parser gets for the fields of a trailer."""
_TOO_LONG = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"connection: close\r\ncontent-length: 0\r\n\r\n"
)
_MALFORMED = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_BROKEN = re.compile(rb"%(?![0-9A-Fa-f]{2})")
MOST_BROKEN = 1_000
"""The most percent signs before other characters than two digits, in a path and query.

Decoding one takes 0.4 µs, five times as long as other characters, and happens in one call.
"""
_SIZE = re.compile(rb"([0-9a-fA-F]{1,16})[\r;]")
_SIZE_LINE = re.compile(rb"([0-9a-fA-F]{1,16})(?:;[^\n]*)?\r\n")
_LONGEST = 32
"""The bytes of a line that are looked at: the size of a chunk."""
LONGEST_HEAD = 128 << 10
"""The most bytes of a head while it arrives, and of the lines after the last chunk.

A head that ends before is answered if it exceeds the limit of the server.
"""
MOST_LINES = 1_000
"""The most lines of a head, and of a trailer. The parser makes an object of each of them."""


def connections(most: int, head_seconds: float) -> type[asyncio.Protocol]:
    """Returns the setting `http` of a server of uvicorn, whose connections take turns.

    A connection is closed at once if there are `most` others, and later if its next request has not
    begun after `head_seconds`.
    """
    return cast("type[asyncio.Protocol]", partial(ClientConnection, Turns(most), head_seconds))


def connection_of(scope: Any) -> ClientConnection | None:
    """Returns the connection of a request, if it is one of `connections`."""
    return cast("ClientConnection | None", scope.get("state", {}).get(_CONNECTION))


class Turns:
    """The connections that wait. In each turn of the event loop, the first ones hand on a part.

    `left` is the number of bytes that may be handed on as they arrive: none while others wait.
    `open` are all connections that are not lost. At most `most` of them stay.
    """

    def __init__(self, most: int) -> None:
        self.left = PART
        self.most = most
        self.open: set[ClientConnection] = set()
        self._waiting: deque[ClientConnection] = deque()
        self._is_scheduled = False

    def add(self, connection: ClientConnection) -> None:
        """Adds a connection that is ready for its next part."""
        self._waiting.append(connection)
        self._schedule()

    def _schedule(self) -> None:
        if self._waiting and not self._is_scheduled:
            self._is_scheduled = True
            self.left = 0
            asyncio.get_running_loop().call_soon(self._take_turn)

    def _take_turn(self) -> None:
        left = TURN
        share = min(PART, ROUND // len(self._waiting) + 1)
        # The application gets a request before its connection has the next turn.
        for _ in range(len(self._waiting)):
            left -= max(LEAST, self._waiting.popleft().take_turn(share))
            if left <= 0:
                break
        self.left = PART
        self._is_scheduled = False
        self._schedule()


class ClientConnection(asyncio.Protocol):
    """A connection of a client, in front of the protocol that uvicorn uses by default."""

    def __init__(
        self, turns: Turns, head_seconds: float, app_state: dict[str, Any], **others: Any
    ) -> None:
        self._turns = turns
        self._head_seconds = head_seconds
        self._protocol: asyncio.Protocol = cast("Any", AutoHTTPProtocol)(
            app_state=app_state | {_CONNECTION: self}, **others
        )
        self._rest = b""
        self._is_waiting = False
        self._is_paused = False
        self._body: Framing | None = None
        self._is_answered = False
        self._head_bytes = self._head_lines = self._broken = 0
        self._has_target = False
        self._is_full = False
        self._is_ended = False
        self._is_starting = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        self._transport = cast("asyncio.Transport", transport)
        self._expect_head()
        self._turns.open.add(self)
        if len(self._turns.open) > self._turns.most:
            self._protocol = asyncio.Protocol()
            self._transport.abort()
            return
        self._protocol.connection_made(cast("asyncio.Transport", _Transport(transport, self)))

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        self._rest += data
        if len(data) == len(self._rest) <= self._turns.left and self._is_ready():
            self._turns.left -= self._hand_on(PART)
        if len(self._rest) > PART and not self._is_full:
            self._is_full = True
            self._transport.pause_reading()
        self._wait()

    def eof_received(self) -> bool | None:
        """Called by the event loop. uvicorn learns it after the bytes before it."""
        if not self._rest:
            return self._protocol.eof_received()
        self._is_ended = True
        # A TLS connection always ends in both directions.
        return not self._transport.get_extra_info("sslcontext")

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop."""
        self._rest = b""
        self._timer.cancel()
        self._turns.open.discard(self)
        self._protocol.connection_lost(exc)
        # The last request refers to this connection, and uvicorn's protocol to that request.
        self._protocol = asyncio.Protocol()

    def pause_writing(self) -> None:
        """Called by the event loop."""
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """Called by the event loop."""
        self._protocol.resume_writing()

    def pause(self) -> None:
        """Hands nothing on: much of a body has not been read."""
        self._is_paused = True

    def resume(self) -> None:
        """Ends a pause. uvicorn does so after an answer, and when a request is read further."""
        self._is_paused = False
        self._wait()

    def begin(self, method: str, headers: Headers) -> None:
        """Hands on the body of a request, and then nothing until `release`.

        The application calls this as soon as it gets the request.
        """
        self._timer.cancel()
        self._body = Framing(method, headers)
        self._is_answered = False
        self._head_bytes = self._head_lines = self._broken = 0
        self._has_target = False

    def abort(self) -> None:
        """Ends the connection at once, without the bytes that its client has not read."""
        self._transport.abort()

    def release(self) -> None:
        """Ends what `begin` began: the request has been answered."""
        self._is_answered = True
        if not self._transport.is_closing():
            self._expect_head()
        self._wait()

    def _expect_head(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._head_seconds, self._transport.close)

    def take_turn(self, most: int) -> int:
        """Hands on a part of at most `most` bytes, if the connection is still ready.

        Returns its size.
        """
        self._is_waiting = False
        if not self._is_ready():
            return 0
        size = self._hand_on(most)
        if self._transport.is_closing():
            self._rest = b""
            return size
        if self._is_full and len(self._rest) <= PART:
            self._is_full = False
            self._transport.resume_reading()
        if self._is_ended and not self._rest and not self._protocol.eof_received():
            self._transport.close()
        self._wait()
        return size

    def _hand_on(self, most: int) -> int:
        """Hands on a part, and returns its size."""
        if self._body is not None and self._body.is_ended:
            self._body = None
        is_head = True
        if self._body is None or self._body.is_unclear:
            size = min(_part_size(self._rest, most), len(self._rest))
            self._head_bytes += size
            self._head_lines += self._rest.count(b"\n", 0, size)
            self._count_broken(size)
            if self._broken > MOST_BROKEN:
                self._rest = b""
                self._refuse(_MALFORMED)
                return size
        else:
            is_head = False
            size = self._body.take(self._rest[:most])
        part, self._rest = self._rest[:size], self._rest[size:]
        if self._body is not None and self._body.trailers:
            part = _with_renamed(part, self._body.trailers)
        self._protocol.data_received(part)
        if is_head and part.endswith(b"\n"):
            # Perhaps the end of a head. The event loop may read again before the application runs,
            # which uvicorn has scheduled and which begins the body.
            self._is_starting = True
            asyncio.get_running_loop().call_soon(self._application_started)
        if (
            self._head_bytes > LONGEST_HEAD
            or self._head_lines > MOST_LINES
            or (self._body is not None and self._body.is_too_long)
        ):
            # A head, or the lines of a body, are too long.
            self._refuse(_TOO_LONG)
        return size

    def _application_started(self) -> None:
        self._is_starting = False
        self._wait()

    def _count_broken(self, size: int) -> None:
        """Counts the broken percent signs of the first line of a head, before it is parsed."""
        if self._has_target or self._rest[0] in _LINE_END:
            return
        end = self._rest.find(b"\n", 0, size)
        self._has_target = end >= 0
        line_end = end if self._has_target else size
        if self._rest.count(b"%", 0, line_end):
            self._broken += len(_BROKEN.findall(self._rest, 0, line_end))

    def _refuse(self, answer: bytes) -> None:
        """Closes the connection. Only a head gets an answer."""
        if self._body is None:
            self._transport.write(answer)
        self._transport.close()

    def _is_ready(self) -> bool:
        return (
            bool(self._rest)
            and not self._is_paused
            and not self._is_starting
            and (self._body is None or not self._body.is_ended or self._is_answered)
            # A closed connection gets no more answers.
            and not self._transport.is_closing()
        )

    def _wait(self) -> None:
        if not self._is_waiting and self._is_ready():
            self._is_waiting = True
            self._turns.add(self)


class _Transport:
    """The transport of uvicorn's protocol, which pauses a `ClientConnection`."""

    def __init__(self, transport: asyncio.BaseTransport, connection: ClientConnection) -> None:
        self._transport = transport
        self.pause_reading = connection.pause
        self.resume_reading = connection.resume
        # Each request uses these.
        self.write = cast("asyncio.Transport", transport).write
        self.is_closing = transport.is_closing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


def _with_renamed(part: bytes, trailers: list[int]) -> bytes:
    """Returns a part in which the trailer fields that begin at these places have other names.

    A field such as `Connection` has no effect in a trailer (RFC 9110, 6.5.1). The parser would
    read nothing more after it.
    """
    starts = [0, *trailers, len(part)]
    return _TRAILER.join(part[start:end] for start, end in pairwise(starts))


def _part_size(data: bytes, most: int) -> int:
    """Returns the size of the first part of some bytes; it may exceed their number.

    The part ends with the first blank line. Line ends at its beginning may complete a blank line
    that began in the part before it.
    """
    if data[0] in _LINE_END:
        return data.find(b"\n", 0, most) + 1 or most
    end = data.find(_BLANK_LINE, 0, most)
    return most if end < 0 else end + len(_BLANK_LINE)


# -- the framing of a request ----------------------------------------------------------------------


class Framing:
    """Follows the bytes of a request's body until its end, by its length or chunks.

    RFC 9112, section 6: https://www.rfc-editor.org/rfc/rfc9112#section-6

    uvicorn's parser decides what a body is. Where it might read on, the body does not end here.
    """

    def __init__(self, method: str, headers: Headers) -> None:
        # The parser reads no body of these, whatever length they name.
        is_without = method == "CONNECT" or bool(header(headers, b"upgrade"))
        self._is_chunked = not is_without and bool(header(headers, b"transfer-encoding"))
        length = header(headers, b"content-length")
        self._left = 0 if is_without or self._is_chunked else int(length or b"0")
        self._line = b""
        self._is_trailer = False
        self.trailers: list[int] = []
        """Where the lines of a trailer begin in the bytes that were passed last."""
        self.is_ended = not self._left and not self._is_chunked
        self.is_unclear = False
        """Whether a line is not the size of a chunk. The parser most likely refuses it."""
        self._line_bytes = self._trailer_lines = 0
        self.is_too_long = False
        """Whether the lines of the body exceed `LONGEST_HEAD`, or `MOST_LINES` in a trailer."""

    def take(self, data: bytes) -> int:
        """Returns how many of the next bytes belong to the body, and passes them."""
        position = 0
        self.trailers = []
        while position < len(data) and not (self.is_ended or self.is_unclear or self.is_too_long):
            if self._left:
                size = min(self._left, len(data) - position)
                self._left -= size
                position += size
                self.is_ended = not self._left and not self._is_chunked
            elif size := self._take_chunks(data, position):
                position += size
            else:
                position = self._take_line(data, position)
        return position

    def _take_chunks(self, data: bytes, start: int) -> int:
        """Passes chunks whose first lines are here as a whole. Returns the number of bytes.

        Tiny chunks take a quarter of the time that `_take_line` takes.
        """
        if self._line or self._is_trailer:
            return 0
        position = start
        while line := _SIZE_LINE.match(data, position):
            size = int(line[1], 16)
            if not size:
                break
            position = line.end() + size + len(_LINE_END)
            if position > len(data):
                self._left = position - len(data)
                return len(data) - start
        return position - start

    def _take_line(self, data: bytes, start: int) -> int:
        """Reads a line outside of chunks, or a part of it. Returns its end."""
        end = data.find(b"\n", start) + 1 or len(data)
        if self._is_trailer and not self._line and data[start] not in _LINE_END:
            self.trailers.append(start)
            self._trailer_lines += 1
        self._line = (self._line + data[start : min(end, start + _LONGEST)])[:_LONGEST]
        self._line_bytes += end - start
        self.is_too_long = self._line_bytes > LONGEST_HEAD or self._trailer_lines > MOST_LINES
        if data[end - 1 : end] != b"\n":
            return end
        line, self._line = self._line, b""
        if self._is_trailer:
            self.is_ended = line == _LINE_END
        elif match := _SIZE.match(line):
            size = int(match[1], 16)
            self._left = size + len(_LINE_END) if size else 0
            self._is_trailer = not size
            self._line_bytes = 0
        else:
            self.is_unclear = True
        return end
