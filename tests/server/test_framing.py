"""The end of a request's body, against that of the parser which uvicorn uses."""

from __future__ import annotations

from itertools import accumulate

import httptools
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nessie_cli.server.http.connections import Framing

CHUNKED = [(b"transfer-encoding", b"chunked")]
CHUNKS = [b"1\r\nx\r\n", b"3;a=b\r\n\r\n\n\r\n", b'A;x="y"\r\n0123456789\r\n', b"0002\r\nab\r\n"]
ENDS = [b"0\r\n\r\n", b"000;a\r\nb: c\r\n\r\n", b"0\r\nlong: " + b"x" * 100 + b"\r\nd:\r\n\r\n"]
ODD = [b"\r\n", b"\n", b"\r", b"x", b"2\n", b"-1\r\n", b"0x1\r\n", b"f" * 17, b" 0\r\n", b"0", b";"]


class Parser:
    """Whether httptools has read a request, or refused it."""

    def __init__(self, head: bytes) -> None:
        self.is_complete = self.is_refused = False
        self._parser = httptools.HttpRequestParser(self)
        self._parser.feed_data(head)

    def on_message_complete(self) -> None:
        self.is_complete = True

    def feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.is_refused = True


def chunked_parser() -> Parser:
    return Parser(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n")


bodies = st.builds(
    lambda parts, end: b"".join([*parts, end]),
    st.lists(st.sampled_from(CHUNKS)),
    st.sampled_from(ENDS),
)


@given(bodies, st.lists(st.integers(1, 20)))
def test_chunks_end_where_the_parser_ends_them_wherever_they_are_cut(
    body: bytes, sizes: list[int]
) -> None:
    framing = Framing("POST", CHUNKED)
    rest = body + b"GET /"
    for size in sizes:
        part, rest = rest[:size], rest[size:]
        taken = framing.take(part)
        if taken < len(part):
            rest = part[taken:] + rest
            break
    while taken := framing.take(rest):
        rest = rest[taken:]
    assert framing.is_ended
    assert rest == b"GET /"
    parser = chunked_parser()
    parser.feed(body[:-1])
    assert not parser.is_complete
    parser.feed(body[-1:])
    assert parser.is_complete


@settings(max_examples=1000)
@given(st.lists(st.sampled_from([*CHUNKS, *ENDS, *ODD])))
@example([b"0\r\n", b"\n"])
@example([b"0\r\na: b", b"\n\r\n"])
@example([b"1\r\nx\r\n", b"0\n\r\n"])
def test_chunks_do_not_end_before_the_parser_ends_them(parts: list[bytes]) -> None:
    """Otherwise the connection would wait for an answer, and the application for the body."""
    framing, parser = Framing("POST", CHUNKED), chunked_parser()
    for byte in b"".join(parts):
        framing.take(bytes([byte]))
        parser.feed(bytes([byte]))
        if parser.is_refused or parser.is_complete:
            break
        assert not framing.is_ended


@pytest.mark.parametrize("length", [0, 1, 7])
def test_a_body_has_the_length_of_its_header(length: int) -> None:
    framing = Framing("POST", [(b"content-length", b"%d" % length)])
    assert framing.is_ended == (not length)
    assert sum(map(framing.take, [b"\r\n\r\n", b"a", b"\r\n\r\nGET /"])) == length
    assert framing.is_ended


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_request_without_a_length_has_no_body(method: str) -> None:
    assert Framing(method, [(b"host", b"a")]).is_ended


@pytest.mark.parametrize(
    ("method", "header"), [("CONNECT", (b"host", b"a")), ("POST", (b"upgrade", b"b"))]
)
def test_the_body_of_a_request_for_another_protocol_is_not_read(
    method: str, header: tuple[bytes, bytes]
) -> None:
    assert Framing(method, [header, (b"content-length", b"5")]).is_ended


def test_a_line_without_end_takes_little_memory_and_time() -> None:
    framing = Framing("POST", CHUNKED)
    assert framing.take(b"1;" + b"x" * 100_000) == 100_002
    assert all(framing.take(b"x") == 1 for _ in range(1_000))
    assert list(accumulate(map(framing.take, [b"\r\n", b"a\r\n", b"0\r\n\r\n"])))[-1] == 10
    assert framing.is_ended
