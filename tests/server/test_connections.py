"""What clients send before they have their answers: many requests, tiny chunks, odd parts.

A connection parses little in each turn, and parses a request after it has answered the one before.
"""

import gc
import json
import re
import socket
import threading
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httptools
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nessie_cli import create
from nessie_cli.server.http.connections import MOST_BROKEN, ClientConnection, _part_size
from tests.server.certificates import Authority
from tests.server.client import EMPTY, Client, put
from tests.server.processes import started
from tests.server.serving import serving
from tests.server.test_tls import trusting
from tests.server.waiting import until

PATIENCE = 120
CONTENTS = "/api/v2/trees/main/contents"
KEYS = json.dumps({"requestedKeys": [{"elements": ["a"]}]}).encode()
JSON = b"content-type: application/json\r\n"
CHUNKED = JSON + b"transfer-encoding: chunked\r\n"


def request(number, method="GET", path="/api/v2/config", headers=b"", body=b""):
    """Returns a request whose answer repeats the number."""
    head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\nx-request-id: {number}\r\n"
    return head.encode() + headers + b"\r\n" + body


def chunks(body, size=1):
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


LENGTH = JSON + b"content-length: %d\r\n" % len(KEYS)
REQUESTS = {
    "reads": request,
    "bodies": lambda number: request(number, "POST", CONTENTS, LENGTH, KEYS),
    "chunks": lambda number: request(number, "POST", CONTENTS, CHUNKED, chunks(KEYS)),
    "filters": lambda number: request(number, path="/api/v2/trees?filter=true"),
    "mixed": lambda number: REQUESTS["bodies" if number % 2 else "reads"](number),
    "refused": lambda number: request(number, path="/none"),
    "without a body": lambda number: request(number, "DELETE", "/api/v2/trees/none"),
}


@contextmanager
def connected(url):
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), PATIENCE) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield connection


def read_answers(connection, count):
    """Returns the statuses and the numbers of the requests of all answers, in order."""
    with connection.makefile("rb") as file:
        return [read_answer(file) for _ in range(count)]


def read_answer(file):
    status = int(file.readline().split()[1])
    lines = iter(file.readline, b"\r\n")
    headers = dict(line.lower().strip().split(b": ", 1) for line in lines)
    file.read(int(headers.get(b"content-length", 0)))
    return status, int(headers[b"x-request-id"])


@pytest.fixture(scope="module")
def server_url():
    with serving() as url:
        yield url


def requests_in_memory():
    gc.collect()
    return [each for each in gc.get_objects() if type(each).__name__ == "RequestResponseCycle"]


def connections_in_memory():
    """Returns the number of connections; uvicorn leaves garbage if requests waited at the end."""
    gc.collect()
    return sum(type(each) is ClientConnection for each in gc.get_objects())


@pytest.mark.parametrize("kind", REQUESTS)
def test_no_request_waits_in_memory_and_all_are_answered_in_order(kind):
    count = 400
    # Other tests of the process may have left some.
    before = len(requests_in_memory())
    with serving() as url, connected(url) as connection:
        data = b"".join(map(REQUESTS[kind], range(count)))
        sender = threading.Thread(target=connection.sendall, args=[data])
        sender.start()
        most, numbers = 0, []
        with connection.makefile("rb") as file:
            for number in range(count):
                if number % 20 == 0:
                    most = max(most, len(requests_in_memory()) - before)
                numbers.append(read_answer(file)[1])
        sender.join()
    assert numbers == list(range(count))
    # The one that is answered, and the last one that has been answered.
    assert most <= 2


def test_requests_whose_answers_nobody_reads_do_not_pile_up():
    before = len(requests_in_memory())
    with serving() as url, ExitStack() as stack:
        for _ in range(10):
            connection = stack.enter_context(connected(url))
            connection.setblocking(False)
            sent = 1
            while sent:
                try:
                    sent = connection.send(request(1) * 1_000)
                except BlockingIOError:
                    sent = 0
        client = Client(url)
        assert client.get("/api/v2/config").status == 200
        assert len(requests_in_memory()) - before <= 2 * 11
        client.close()


def test_many_requests_take_little_memory(tmp_path):
    def most_memory(process):
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) >> 10 for line in lines if line.startswith("VmHWM"))

    path = str(tmp_path / "catalog.sqlite")
    create(path).close()
    with started("--store", path) as (process, url), ExitStack() as stack:
        client = Client(url)
        client.get("/api/v2/config")
        before = most_memory(process)
        data = request(1) * 15_000
        for _ in range(10):
            connection = stack.enter_context(connected(url))
            connection.setblocking(False)
            with suppress(BlockingIOError):
                connection.send(data)
        for _ in range(50):
            assert client.get("/api/v2/config").status == 200
        assert most_memory(process) - before < 60
        client.close()


ENDS = {
    "blank line": b"GET /a HTTP/1.1\r\nx: y\r\n\r\n",
    "no headers": b"GET /a HTTP/1.1\r\n\r\n",
    "HTTP/0.9": b"GET /a\r\n\r\n",
    "HTTP/0.9 and LF": b"GET /a\n\r\n",
    "lines before it": b"\r\n\n\r\nGET /a HTTP/1.1\r\n\r\n",
    "chunks": b"POST /a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
    "trailers": b"POST /a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\na: b\r\n\r\n",
    "blank lines as a body": b"POST /a HTTP/1.1\r\ncontent-length: 8\r\n\r\n\r\n\r\n\r\n\r\n",
    "only LF": b"GET /a HTTP/1.1\nx: y\n\n",
    "LF and CR LF": b"GET /a HTTP/1.1\r\nx: y\n\r\n",
    "CR LF and LF": b"GET /a HTTP/1.1\r\nx: y\r\n\n",
    "a folded line": b"GET /a HTTP/1.1\r\nx: y\r\n \r\n\r\n",
    "to another protocol": b"GET /a HTTP/1.1\r\nconnection: upgrade\r\nupgrade: b\r\n\r\n",
}


class Heads:
    """Counts the heads that httptools completes."""

    def __init__(self):
        self.count = 0

    def on_headers_complete(self):
        self.count += 1


def heads_in_parts(reads, most):
    """Returns how many heads each part completes, if each read is cut into parts."""
    heads, counts = Heads(), []
    parser = httptools.HttpRequestParser(heads)
    parser.set_dangerous_leniencies(lenient_data_after_close=True)
    for read in reads:
        rest = read
        while rest:
            size, before = _part_size(rest, most), heads.count
            try:
                parser.feed_data(rest[:size])
            except httptools.HttpParserUpgrade:
                pass
            except httptools.HttpParserError:
                return counts
            rest = rest[size:]
            counts.append(heads.count - before)
    return counts


@pytest.mark.parametrize("end", ENDS)
def test_a_part_completes_one_head_at_most_wherever_reads_are_split(end):
    data = ENDS[end] * 3
    for split in range(len(data)):
        for most in (1, 5, 10_000):
            assert max(heads_in_parts([data[:split], data[split:]], most), default=0) <= 1


@given(
    st.lists(
        st.lists(st.sampled_from([*ENDS.values(), b"\r", b"\n", b"\r\n", b"a: b", b"GET /"])),
        max_size=8,
    ),
    st.integers(1, 100),
)
def test_a_part_completes_one_head_at_most(reads, most):
    reads = [b"".join(read) for read in reads]
    assert max(heads_in_parts([read for read in reads if read], most), default=0) <= 1


STREAM = b"".join(REQUESTS[kind](number) for number, kind in enumerate(["bodies", "chunks"])) + (
    request(2)
)


def test_requests_may_be_split_at_every_place():
    with serving() as url:
        client = Client(url)
        for split in range(1, len(STREAM), 7):
            with connected(url) as connection:
                connection.sendall(STREAM[:split])
                # The answer to another client shows that the first part has been read.
                client.get("/api/v2/config")
                connection.sendall(STREAM[split:])
                assert read_answers(connection, 3) == [(200, 0), (200, 1), (200, 2)]
        client.close()


def test_requests_may_arrive_byte_by_byte():
    with serving() as url, connected(url) as connection:
        for byte in STREAM:
            connection.sendall(bytes([byte]))
        assert read_answers(connection, 3) == [(200, 0), (200, 1), (200, 2)]


def test_a_body_of_tiny_chunks_arrives_whole():
    operations = [put(f"t{number}") for number in range(300)]
    body = json.dumps({"commitMeta": {"message": "m"}, "operations": operations}).encode()
    path = f"/api/v2/trees/main@{EMPTY}/history/commit"
    with serving() as url, connected(url) as connection:
        connection.sendall(request(1, "POST", path, CHUNKED, chunks(body)) + request(2))
        assert read_answers(connection, 2) == [(200, 1), (200, 2)]
        client = Client(url)
        assert len(client.get("/api/v2/trees/main/entries").body["entries"]) == 300
        client.close()


def test_a_body_of_blank_lines_arrives_whole():
    body = b"\r\n\r\n" * 5_000 + KEYS
    head = JSON + b"content-length: %d\r\n" % len(body)
    with serving() as url, connected(url) as connection:
        connection.sendall(request(1, "POST", CONTENTS, head, body) + request(2))
        assert read_answers(connection, 2) == [(200, 1), (200, 2)]


def test_a_large_body_behind_another_request_arrives_whole():
    body = KEYS[:-1] + b" " * 1_000_000 + KEYS[-1:]
    head = JSON + b"content-length: %d\r\n" % len(body)
    with serving() as url, connected(url) as connection:
        large = request(2, "POST", CONTENTS, head, body)
        connection.sendall(request(1) + large + request(3))
        assert read_answers(connection, 3) == [(200, 1), (200, 2), (200, 3)]


def test_a_client_that_expects_it_is_told_to_continue():
    with serving() as url, connected(url) as connection:
        connection.sendall(request(1, "POST", CONTENTS, LENGTH + b"expect: 100-continue\r\n"))
        assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(KEYS + request(2))
        assert read_answers(connection, 2) == [(200, 1), (200, 2)]


def read_all(connection):
    """Returns the statuses of all answers until the server closes the connection."""
    with connection.makefile("rb") as file:
        return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+)", file.read())]


def commit_request(number, client, headers, body_of):
    """Returns a request that puts a table of this number at the present HEAD."""
    head = client.get("/api/v2/trees/main").body["reference"]["hash"]
    body = json.dumps({"commitMeta": {"message": "m"}, "operations": [put(f"t{number}")]}).encode()
    path = f"/api/v2/trees/main@{head}/history/commit"
    return request(number, "POST", path, headers(body), body_of(body))


JUNK = [b"JUNK\r\n\r\n", b"\0", b"GET", b"GET / HTTP/9.9\r\n\r\n", b"\r\nx y z\r\n"]
BODIES = {
    "length": (lambda body: JSON + b"content-length: %d\r\n" % len(body), lambda body: body),
    "chunks": (lambda _: CHUNKED, lambda body: chunks(body, 7)),
    "trailers": (lambda _: CHUNKED, lambda body: chunks(body)[:-2] + b"a: b\r\nc: d\r\n\r\n"),
}


@pytest.mark.parametrize("kind", BODIES)
def test_a_write_is_answered_before_what_follows_it_is_refused(kind):
    with serving() as url:
        client = Client(url)
        for number, junk in enumerate(JUNK * 4):
            data = commit_request(number, client, *BODIES[kind])
            with connected(url) as connection:
                connection.sendall(data + junk)
                if junk == b"GET":
                    connection.sendall(b"\0")
                assert read_all(connection) == [200, 400]
            assert len(client.get("/api/v2/trees/main/entries").body["entries"]) == number + 1
        client.close()


@pytest.mark.parametrize("kind", REQUESTS)
def test_requests_are_answered_before_what_follows_them_is_refused(kind):
    with serving() as url:
        for count in (1, 2, 30):
            with connected(url) as connection:
                data = b"".join(map(REQUESTS[kind], range(count)))
                connection.sendall(data + b"JUNK\r\n\r\n" + request(count))
                statuses = read_all(connection)
            assert len(statuses) == count + 1
            assert statuses[-1] == 400
            assert set(statuses[:-1]) <= {200, 404}


@pytest.mark.parametrize("body", [b"x\r\n", b"1\r\nab", b"0\r\n\0", b"5\r\n{}\r\n\0\r\n\r\n"])
def test_a_body_that_is_no_http_is_refused_while_its_request_waits_for_it(body):
    with serving() as url, connected(url) as connection:
        connection.sendall(request(1) + request(2, "POST", CONTENTS, CHUNKED, body) + request(3))
        assert read_all(connection) == [200, 400]


def test_what_follows_the_last_request_of_a_connection_is_not_run():
    with serving() as url:
        client = Client(url)
        last = request(1, headers=b"connection: close\r\n")
        for _ in range(20):
            with connected(url) as connection:
                connection.sendall(last + commit_request(2, client, *BODIES["length"]))
                assert read_all(connection) == [200]
        assert client.get("/api/v2/trees/main/entries").body["entries"] == []
        client.close()


PIPELINES = st.lists(st.sampled_from(sorted(REQUESTS)), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(PIPELINES, st.randoms(use_true_random=False), st.sampled_from([1, 3, 40, 400]))
def test_the_answers_do_not_depend_on_how_requests_are_cut(server_url, kinds, chance, most):
    data = b"".join(REQUESTS[kind](number) for number, kind in enumerate(kinds))
    expected = [({"refused": 404, "without a body": 404}.get(kind, 200)) for kind in kinds]
    with connected(server_url) as whole:
        whole.sendall(data + b"\0")
        assert read_all(whole) == [*expected, 400]
    with connected(server_url) as cut:
        while data:
            size = chance.randint(1, most)
            cut.sendall(data[:size])
            data = data[size:]
        assert read_answers(cut, len(kinds)) == list(zip(expected, range(len(kinds)), strict=True))


def test_requests_behind_one_that_is_no_http_are_not_parsed():
    with serving() as url, connected(url) as connection:
        connection.sendall(b"\0\r\n\r\n" * 3 + request(1))
        data = b"".join(iter(lambda: connection.recv(65536), b""))
        assert data.count(b"HTTP/1.1 ") == 1
        assert data.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    "start", [STREAM[:20], STREAM[:-40], STREAM[:-1] * 2, request(1) * 5_000, b"\r"]
)
def test_connections_that_end_in_the_middle_leave_nothing_behind(start):
    with serving() as url:
        client = Client(url)
        for _ in range(5):
            with connected(url) as connection:
                connection.sendall(start)
        until(lambda: b"nessie_http_requests_running 1.0" in client.get("/q/metrics").raw)
        until(lambda: connections_in_memory() <= 1)
        client.close()


def test_requests_over_tls_wait_too(tmp_path):
    authority = Authority(tmp_path)
    files = authority.server()
    path = str(tmp_path / "catalog.sqlite")
    create(path).close()
    options = ("--tls-cert", str(files.certificate), "--tls-key", str(files.key))
    with started("--store", path, *options) as (_, url), connected(url) as plain:
        context = trusting(authority)
        with closing(context.wrap_socket(plain, server_hostname="localhost")) as connection:
            count = 400
            data = b"".join(REQUESTS["mixed"](number) for number in range(count))
            sender = threading.Thread(target=connection.sendall, args=[data])
            sender.start()
            answers = read_answers(connection, count)
            sender.join()
    assert answers == [(200, number) for number in range(count)]


ENDLESS = {
    "a header": (request(0)[:-2] + b"a: ", b"b" * 1_000),
    "headers": (request(0)[:-2], b"a:\r\n" * 250),
    "trailers": (request(0, "POST", CONTENTS, CHUNKED, b"1\r\n{\r\n0\r\n"), b"a:\r\n" * 250),
    "a trailer": (request(0, "POST", CONTENTS, CHUNKED, b"1\r\n{\r\n0\r\na: "), b"b" * 1_000),
    "an extension": (request(0, "POST", CONTENTS, CHUNKED, b"1;a="), b"b" * 1_000),
}
MORE_THAN_SOCKETS_BUFFER = 16 << 20


@pytest.mark.parametrize("kind", ENDLESS)
def test_lines_without_end_end_the_connection(server_url, kind):
    begin, more = ENDLESS[kind]
    with connected(server_url) as connection:
        connection.sendall(begin)
        sent = 0
        with suppress(OSError):
            while sent < MORE_THAN_SOCKETS_BUFFER:
                sent += connection.send(more)
    assert sent < MORE_THAN_SOCKETS_BUFFER


@pytest.mark.parametrize("before", [b"", b"\r\n", request(1)])
@pytest.mark.parametrize("path", ["/%s", "/api/v2/trees?filter=%s", "/ui/%s?a"])
def test_a_target_of_broken_escapes_is_refused_before_it_is_decoded(server_url, before, path):
    """Decoding 60,000 of them takes 25 ms, before the caller is known."""
    with connected(server_url) as connection, connection.makefile("rb") as file:
        connection.sendall(before + request(2, path=path % ("%" * 60_000)))
        if before.strip():
            assert read_answer(file) == (200, 1)
        assert file.readline().split()[1] == b"400"
        assert b"close" in file.read()
    with connected(server_url) as connection:
        connection.sendall(
            before + request(2, path=path % ("%" * (MOST_BROKEN - 9) + "%25" * 10_000))
        )
        assert read_answers(connection, 1)[0][0] in (200, 303, 400, 404)


def test_an_answered_request_may_send_the_rest_of_a_long_body(server_url):
    body = b"x" * (1 << 20)
    head = b"POST /absent HTTP/1.1\r\nhost: localhost\r\nx-request-id: 7\r\n"
    with connected(server_url) as connection:
        connection.sendall(head + b"content-length: %d\r\n\r\n" % len(body))
        with connection.makefile("rb") as file:
            connection.sendall(body + request(8))
            assert [read_answer(file)[1] for _ in range(2)] == [7, 8]


FIELDS = [
    b"connection: close",
    b"Connection: upgrade",
    b"upgrade: websocket",
    b"transfer-encoding: chunked",
    b"content-length: 5",
    b"expect: 100-continue",
    b"authorization: Bearer a",
    b"x-request-id: 9",
]


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_field_of_a_trailer_has_no_effect(server_url, field, at_once):
    body = chunks(KEYS)[:-2] + b"a: b\r\n" + field + b"\r\n\r\n"
    data = b"".join(request(number, "POST", CONTENTS, CHUNKED, body) for number in range(3))
    with connected(server_url) as connection:
        for part in [data] if at_once else [data[at : at + 1] for at in range(len(data))]:
            connection.sendall(part)
        assert [number for _, number in read_answers(connection, 3)] == [0, 1, 2]


def test_bytes_that_follow_a_head_at_once_are_bytes_of_its_body(server_url):
    """The event loop may read them before the application has got the request."""
    body = chunks(KEYS)[:-2] + b"content-length: 5\r\n\r\n"
    data = request(0, "POST", CONTENTS, CHUNKED, body)
    for _ in range(40):
        with connected(server_url) as connection:
            for at in range(len(data)):
                connection.sendall(data[at : at + 1])
            assert [number for _, number in read_answers(connection, 1)] == [0]


def test_a_malformed_trailer_is_refused(server_url):
    body = chunks(KEYS)[:-2] + b"a b: c\r\n d\r\n\r\n"
    with connected(server_url) as connection:
        connection.sendall(request(0, "POST", CONTENTS, CHUNKED, body))
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
