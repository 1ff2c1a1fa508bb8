import gzip
import json
import socket
import zlib
from urllib.parse import urlsplit

import pytest

from nessie_cli import connect
from nessie_cli.errors import InvalidInput
from nessie_cli.server.auth.gate import Catalog
from nessie_cli.server.http.failures import HttpFault
from nessie_cli.server.http.messages import (
    MOST_MEMBERS,
    Limits,
    accepts_json,
    decompress,
    takes_gzip,
)
from nessie_cli.server.http.streams import LogEntryCache
from nessie_cli.server.pipeline.call import Call
from nessie_cli.server.pipeline.pipeline import Parts
from nessie_cli.server.running import application
from nessie_cli.wire.decode import decode_operations
from nessie_cli.wire.large_json import MOST_VALUES
from tests.server.client import EMPTY, Client, put
from tests.server.serving import serving

CONTENTS = b"POST /api/v2/trees/main/contents HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
KEYS = {"requestedKeys": [{"elements": ["a"]}]}


@pytest.mark.parametrize(
    ("accept", "taken"),
    [
        ("", True),
        ("*/*", True),
        ("application/json", True),
        ("application/*;q=0.2, text/html", True),
        ("APPLICATION/JSON; charset=utf-8", True),
        ("text/html", False),
        ("application/json;q=0", True),
        ("*/*; q=0.0, text/html", True),
        ("text/html;q=1", False),
        ("nonsense", False),
        ("application/jsonx", False),
    ],
)
def test_json_is_sent_only_if_the_client_accepts_it(accept, taken):
    assert accepts_json([(b"accept", accept.encode())]) is taken


@pytest.mark.parametrize(
    ("value", "taken"),
    [
        ("gzip", True),
        ("gzip;q=0", False),
        ("br, gzip;q=0.5", True),
        ("identity", False),
        ("", False),
    ],
)
def test_answers_are_compressed_if_the_client_accepts_gzip(value, taken):
    assert takes_gzip([(b"accept-encoding", value.encode())]) is taken


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_a_compressed_body_is_decompressed(client, pack):
    coding = "gzip" if pack is gzip.compress else "deflate"
    answer = client.send(
        "POST",
        "/api/v2/trees/main/contents",
        raw=pack(json.dumps(KEYS).encode()),
        headers={"content-encoding": coding},
    )
    assert answer.status == 200


@pytest.mark.parametrize(
    ("raw", "coding", "status"),
    [
        (b"nonsense", "gzip", 400),
        (gzip.compress(b"{}", mtime=0)[:-3], "gzip", 400),
        (b"{}", "br", 415),
        (b"{}", "identity", 400),
    ],
)
def test_a_body_that_cannot_be_decompressed_is_refused(client, raw, coding, status):
    answer = client.send(
        "POST", "/api/v2/trees/main/contents", raw=raw, headers={"content-encoding": coding}
    )
    assert answer.status == status
    assert answer.body["status"] == status


def test_a_decompression_bomb_is_refused_early():
    bomb = gzip.compress(bytes(50_000_000))
    with pytest.raises(HttpFault) as refused:
        decompress(bomb, [(b"content-encoding", b"gzip")], Limits(decompressed=1_000_000))
    assert refused.value.status == 413
    nested = gzip.compress(gzip.compress(bytes(50_000_000)))
    with pytest.raises(HttpFault):
        decompress(nested, [(b"content-encoding", b"gzip, gzip")], Limits(decompressed=1_000_000))


def test_a_compressed_body_may_consist_of_several_members():
    text = bytes(range(256)) * 20_000
    for packed in (
        gzip.compress(text, 1),
        gzip.compress(text[:3_000_000], 0) + gzip.compress(text[3_000_000:]),
        gzip.compress(gzip.compress(text)),
    ):
        codings = b"gzip, gzip" if len(packed) < 30_000 else b"gzip"
        assert decompress(packed, [(b"content-encoding", codings)], Limits()) == text
    with pytest.raises(HttpFault, match="ends too early"):
        decompress(gzip.compress(text)[:-1], [(b"content-encoding", b"gzip")], Limits())
    empty = gzip.compress(b"")
    packed = empty * (MOST_MEMBERS - 1) + gzip.compress(text)
    assert decompress(packed, [(b"content-encoding", b"gzip")], Limits()) == text
    for too_many in (empty + packed, empty * 3_000_000):
        with pytest.raises(HttpFault, match="gzip members") as refused:
            decompress(too_many, [(b"content-encoding", b"gzip")], Limits())
        assert refused.value.status == 413
    with pytest.raises(HttpFault, match="3 nested codings") as refused:
        decompress(gzip.compress(b"{}"), [(b"content-encoding", b"gzip, gzip, gzip")], Limits())
    assert refused.value.status == 415


def test_a_decompression_bomb_does_not_delay_writes():
    parts = Parts(Limits(decompressed=100_000, writes=0))
    with connect("memory:") as repository, serving(app=application(repository, parts)) as url:
        client = Client(url)
        path, headers = f"/api/v2/trees/main@{EMPTY}/history/commit", {"content-encoding": "gzip"}
        assert (
            client.send("POST", path, raw=gzip.compress(b" " * 200_000), headers=headers).status
            == 413
        )
        assert (
            client.send("POST", path, raw=gzip.compress(b" " * 50_000), headers=headers).status
            == 503
        )
        client.close()


def test_a_body_with_too_many_values_is_refused_before_parsing():
    with connect("memory:") as repository:
        call = Call(Catalog(repository, "main", LogEntryCache()), {}, "", [])
        call.take(b"[" + b"0," * MOST_VALUES + b"0]")
    assert call.body == b"", "the text is let go of"
    with pytest.raises(HttpFault, match="4,000,000 values") as refused:
        call.json()
    assert refused.value.status == 413


def test_a_fault_of_a_consumed_body_is_raised_each_time():
    """A plan runs again if the write before it was stale."""
    operations = b'{"type":"DELETE","key":{"elements":["a"]}},{"type":"NONE"}'
    with connect("memory:") as repository:
        call = Call(Catalog(repository, "main", LogEntryCache()), {}, "", [])
        call.take(b'{"commitMeta":{"message":"m"},"operations":[%b]}' % operations)
        for _ in range(2):
            with pytest.raises(InvalidInput, match=r"operations\[1\].type: .* is not an operation"):
                call.decoded(decode_operations)


def test_a_body_that_is_too_large_is_refused_with_and_without_length():
    with (
        connect("memory:") as repository,
        serving(app=application(repository, Parts(Limits(body=1000)))) as url,
    ):
        client = Client(url)
        answer = client.send("POST", "/api/v2/trees/main/contents", raw=b"x" * 2000)
        assert (answer.status, answer.body["errorCode"]) == (413, "BAD_REQUEST")
        chunked = (
            CONTENTS
            + b"transfer-encoding: chunked\r\n\r\n"
            + (b"200\r\n" + b"x" * 512 + b"\r\n") * 4
        )
        assert b" 413 " in _speak(url, chunked)


def _speak(url: str, raw: bytes) -> bytes:
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=120) as connection:
        connection.sendall(raw)
        return connection.recv(10_000)


def test_a_body_that_never_arrives_times_out():
    with (
        connect("memory:") as repository,
        serving(app=application(repository, Parts(Limits(seconds=0.2)))) as url,
    ):
        answer = _speak(url, CONTENTS + b"content-length: 10\r\n\r\n{")
        assert b" 408 " in answer


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/xml", "text/json", "application/x-www-form-urlencoded"]
)
def test_a_body_of_another_content_type_is_refused(client, kind):
    answer = client.send(
        "POST", "/api/v2/trees/main/contents", KEYS, headers={"content-type": kind}
    )
    assert (answer.status, answer.body["errorCode"], answer.body["reason"]) == (
        415,
        "UNSUPPORTED_MEDIA_TYPE",
        "Unsupported Media Type",
    )


def test_a_large_answer_is_compressed(client):
    client.commit("main", EMPTY, *(put(f"table-{number}") for number in range(100)))
    answer = client.get("/api/v2/trees/main/entries", **{"accept-encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    assert len(json.loads(gzip.decompress(answer.raw))["entries"]) == 100
    assert len(answer.raw) < len(client.get("/api/v2/trees/main/entries").raw) / 2


def test_head_has_the_headers_of_get_and_no_body(client):
    answer = client.send("HEAD", "/api/v2/config")
    assert (answer.status, answer.raw) == (200, b"")
    assert (
        answer.headers["content-length"] == client.get("/api/v2/config").headers["content-length"]
    )


def test_options_and_wrong_methods_list_the_allowed_methods(client):
    assert (
        client.send("OPTIONS", "/api/v2/trees/main").headers["allow"]
        == "DELETE, GET, HEAD, OPTIONS, PUT"
    )
    answer = client.send("PATCH", "/api/v2/trees/main")
    assert (answer.status, answer.headers["allow"]) == (405, "DELETE, GET, HEAD, OPTIONS, PUT")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_json_may_have_any_unicode_encoding(client, encoding):
    answer = client.send(
        "POST", "/api/v2/trees/main/contents", raw=json.dumps(KEYS).encode(encoding)
    )
    assert answer.status == 200


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"[" * 100_000,
        b'{"requestedKeys":[{"elements":["\xff"]}]}',
        b'{"a":1} {}',
        b'"\\ud800"',
        b"NaN",
        b"\x00",
    ],
)
def test_invalid_json_is_refused(client, raw):
    answer = client.send("POST", "/api/v2/trees/main/contents", raw=raw)
    assert (answer.status, answer.body["errorCode"]) == (400, "BAD_REQUEST")
