"""Large answers share one limit of memory, also if their clients do not read them."""

import asyncio
import http.client
import random
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from urllib.parse import urlsplit

import apsw
import pytest

from nessie_cli import connect, create
from nessie_cli.model import UDF, CommitMeta, ContentKey, IcebergTable, Put
from nessie_cli.server.http.failures import Unavailable
from nessie_cli.server.http.messages import SMALL, Limits
from nessie_cli.server.pipeline.exchange import AccessLog
from nessie_cli.server.pipeline.pipeline import Parts
from nessie_cli.server.running import application
from nessie_cli.server.runtime.answer_memory import AnswerMemory
from tests.server.client import EMPTY, Client, put
from tests.server.processes import started
from tests.server.serving import serving
from tests.server.test_memory import resident
from tests.server.waiting import until

PATIENCE = 120
SOON = 10.0
"""Seconds in which a small answer is sent, on a busy machine. Large ones wait for 30."""
SIZE = 6_000_000
"""The bytes of an answer: more than the buffers of a connection hold."""
MOST = 20_000_000
"""A limit for three of these answers."""
CLIENTS = 10
ANSWERS = {
    "a content": "/api/v2/trees/main/contents/large",
    "entries": "/api/v2/trees/main/entries?content=true",
    "a diff": f"/api/v2/trees/@{EMPTY}/diff/main",
    "a log": "/api/v2/trees/main/history?fetch=ALL",
    "a whole diff": f"/api/v1/diffs/*{EMPTY}...main",
}


def fill(repository, size=SIZE):
    text = random.Random(1).randbytes(size // 2).hex()
    repository.commit(
        "main",
        [
            Put(ContentKey(("large",)), UDF(dialect="spark", sql_text=text)),
            Put(ContentKey(("small",)), IcebergTable(metadata_location="s3://lake/t")),
        ],
        CommitMeta("m"),
    )


@pytest.fixture(scope="module")
def repository():
    with connect("memory:") as filled:
        fill(filled)
        yield filled


@contextmanager
def served(repository, **limits):
    """Yields the application and the URL of a server with these limits."""
    app = application(repository, Parts(Limits(**{"answers": MOST} | limits)))
    with serving(app=app) as url:
        yield app, url


@contextmanager
def asked(url, path, number=0):
    """Sends a request, and yields its connection, whose buffer for the answer is small."""
    parts = urlsplit(url)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        connection.settimeout(PATIENCE)
        connection.connect((parts.hostname, parts.port))
        # Equal requests at the same time would share an answer.
        path = f"{path}{'&' if '?' in path else '?'}number={number}"
        connection.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        yield connection


@contextmanager
def posted(url, number):
    """Requests the large content in the body of a POST, and yields the connection."""
    parts = urlsplit(url)
    body = b'{"requestedKeys": [{"elements": ["large"]}]}'
    head = (
        f"POST /api/v2/trees/main/contents?number={number} HTTP/1.1\r\nhost: localhost\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        connection.settimeout(PATIENCE)
        connection.connect((parts.hostname, parts.port))
        connection.sendall(head.encode() + body)
        yield connection


@contextmanager
def all_asked(url, path, count):
    """Sends requests, and yields their connections."""
    with ExitStack() as closing:
        yield [closing.enter_context(asked(url, path, number)) for number in range(count)]


def status(connection):
    """Returns the status of an answer."""
    return int(connection.recv(12)[9:12])


def read(connection):
    """Returns the status and the body of an answer. Raises `IncompleteRead`."""
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    return answer.status, answer.read()


def check_soon(url):
    """Asserts that small answers do not wait for large ones."""
    client = Client(url)
    for path in ("/q/health/live", "/q/health/ready", "/api/v2/trees/main"):
        begun = time.monotonic()
        assert client.get(path).status == 200
        assert time.monotonic() - begun < SOON
    client.close()


@pytest.mark.parametrize("path", ANSWERS.values(), ids=ANSWERS)
def test_answers_that_nobody_reads_share_a_limit(repository, path):
    with served(repository, answer_seconds=1.5) as (app, url):
        most = 0
        with all_asked(url, path, CLIENTS) as connections:
            end = time.monotonic() + 3
            while time.monotonic() < end:
                most = max(most, app.answers.held)
                check_soon(url)
            statuses = [status(connection) for connection in connections]
        assert 0 < statuses.count(200) < CLIENTS
        assert statuses.count(200) + statuses.count(503) == CLIENTS
        assert SIZE < most <= MOST
        until(lambda: not app.answers.held)
        client = Client(url)
        answer = client.get(path)
        assert (answer.status, len(answer.raw) > SIZE) == (200, True)
        until(lambda: not app.answers.held)
        client.close()


def test_contents_count_with_their_values(repository):
    """Each takes three times its size: its text, the content, and the stored value."""
    with served(repository) as (app, url), ExitStack() as closing:
        connections = [closing.enter_context(posted(url, number)) for number in range(CLIENTS)]
        statuses = [status(connection) for connection in connections]
        assert app.answers.held >= 3 * SIZE * statuses.count(200)
        assert 0 < statuses.count(200) <= 2 * MOST // (3 * SIZE)
        assert statuses.count(200) + statuses.count(503) == CLIENTS


def test_a_refused_answer_names_the_time_of_another_try(repository):
    with (
        served(repository, answers=SIZE, answer_seconds=0.1) as (app, url),
        asked(url, ANSWERS["a content"]),
    ):
        client = Client(url)
        until(lambda: app.answers.held)
        refused = client.get(ANSWERS["entries"])
        refused.expect(503, "Too many large answers are being sent")
        assert refused.headers["retry-after"] == "2"
        assert client.send("HEAD", ANSWERS["entries"]).status == 200
        client.close()


@pytest.mark.parametrize("path", ANSWERS.values(), ids=ANSWERS)
def test_waiting_answers_are_sent_when_others_have_been_read(repository, path):
    with served(repository, answers=SIZE) as (app, url), ThreadPoolExecutor(6) as threads:
        separator = "&" if "?" in path else "?"
        clients = [Client(url) for _ in range(6)]
        answers = list(
            threads.map(
                lambda number: clients[number].get(f"{path}{separator}number={number}"), range(6)
            )
        )
        assert {answer.status for answer in answers} == {200}
        assert all(answer.body == answers[0].body for answer in answers)
        until(lambda: not app.answers.held)


@pytest.mark.parametrize("path", ANSWERS.values(), ids=ANSWERS)
def test_the_connection_of_a_client_that_does_not_read_is_closed(repository, path):
    with (
        served(repository, answers=SIZE, seconds=1.0) as (app, url),
        asked(url, path) as connection,
    ):
        until(lambda: app.answers.held)
        waiting = Client(url)
        assert waiting.get(path).status == 200
        until(lambda: not app.answers.held)
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
            read(connection)
        waiting.close()


@pytest.mark.parametrize("path", ANSWERS.values(), ids=ANSWERS)
def test_a_client_that_disconnects_midway_returns_its_share(repository, path):
    with served(repository, answers=SIZE) as (app, url):
        for number in range(3):
            with asked(url, path, number) as connection:
                assert len(connection.recv(1 << 16))
                until(lambda: app.answers.held)
            until(lambda: not app.answers.held)
        check_soon(url)


def test_a_client_that_disconnects_while_its_answer_waits_gets_no_share(repository):
    lines = []
    app = application(repository, Parts(Limits(answers=SIZE), AccessLog(lines.append)))
    with serving(app=app) as url:
        with asked(url, ANSWERS["a content"]):
            until(lambda: app.answers.held)
            with all_asked(url, ANSWERS["entries"], 3):
                until(lambda: app.answers.waiting == 3)
        until(lambda: b"".join(lines).count(b"{ref}/entries") == 3)
        assert b"".join(lines).count(b'"status":499') == 3
        until(lambda: not app.answers.held)


def test_an_answer_that_fails_midway_returns_its_share(tmp_path):
    path = str(tmp_path / "catalog.sqlite")
    with create(path) as writer:
        fill(writer)
        for number in range(200):
            table = IcebergTable(metadata_location=f"s3://lake/{number}")
            writer.commit("main", [Put(ContentKey((f"m{number}",)), table)], CommitMeta("m"))
        damaged = [entry.value_hash for entry in writer.entries("main")][-1]
    with apsw.Connection(path) as connection:
        connection.execute("DELETE FROM objects WHERE id = ?", [bytes.fromhex(damaged)])
    with connect(path) as repository, served(repository) as (app, url):
        for _ in range(3):
            with (
                asked(url, ANSWERS["a whole diff"]) as connection,
                pytest.raises(http.client.IncompleteRead),
            ):
                read(connection)
            until(lambda: not app.answers.held)
        check_soon(url)


@pytest.fixture
def own():
    """Yields a repository that a test may change."""
    with connect("memory:") as filled:
        fill(filled)
        yield filled


def test_the_answer_to_a_write_does_not_wait(own):
    """It exceeds the limit: the commit has been made."""
    with served(own, answers=SIZE) as (app, url), asked(url, ANSWERS["a content"]):
        client = Client(url)
        until(lambda: app.answers.held)
        held = app.answers.held
        answer = client.commit("main", client.head(), *(put(f"t{n:05}") for n in range(5_000)))
        assert (answer.status, len(answer.body["addedContents"])) == (200, 5_000)
        until(lambda: app.answers.held == held)
        client.close()


def test_a_write_without_memory_for_its_answer_says_that_it_was_carried_out(own):
    with served(own, answers=SIZE) as (app, url), asked(url, ANSWERS["a content"]):
        client = Client(url)
        until(lambda: app.answers.held)
        held, before = app.answers.held, client.head()
        answer = client.commit("main", before, *(put(f"t{n:05}") for n in range(20_000)))
        answer.expect(500, "The request was carried out")
        assert client.head() != before
        assert app.answers.held == held
        client.close()


def test_clients_that_do_not_read_large_answers_take_little_memory(tmp_path):
    """Without a limit, they take 950 MB."""
    store = str(tmp_path / "catalog.sqlite")
    with create(store) as repository:
        fill(repository, 32_000_000)
    with started("--store", store) as (process, url):
        before = resident(process.pid, "VmHWM")
        with all_asked(url, ANSWERS["a content"], 30):
            end = time.monotonic() + 15
            while time.monotonic() < end:
                check_soon(url)
                time.sleep(0.1)
        grown = resident(process.pid, "VmHWM") - before
        check_soon(url)
    assert grown < 600 << 20


# -- the limit -------------------------------------------------------------------------------------


def test_small_answers_take_no_share():
    share = AnswerMemory(SMALL, 0).share()
    share.take(10 * SMALL)
    assert AnswerMemory(0, 0).share().take(SMALL)


def test_an_answer_larger_than_the_limit_waits_for_all_others():
    async def run():
        memory = AnswerMemory(10 * SMALL, 10)
        small, large = memory.share(), memory.share()
        assert small.take(2 * SMALL)
        assert not large.take(50 * SMALL)
        waiting = asyncio.create_task(large.wait(50 * SMALL))
        await asyncio.sleep(0)
        # Later answers do not overtake it.
        assert not memory.share().take(2 * SMALL)
        small.release()
        await waiting
        assert memory.held == 50 * SMALL
        large.release()
        assert memory.held == 0
        assert memory.share().take(2 * SMALL)

    asyncio.run(run())


def test_a_wait_ends_and_leaves_nothing_behind():
    async def run():
        memory = AnswerMemory(10 * SMALL, 0.05)
        first = memory.share()
        assert first.take(8 * SMALL)
        waits = [asyncio.create_task(memory.share().wait(4 * SMALL)) for _ in range(5)]
        waits[2].cancel()
        for wait in waits:
            with suppress(asyncio.CancelledError), pytest.raises(Unavailable):
                await wait
        assert memory.held == 8 * SMALL
        assert memory.share().take(2 * SMALL)

    asyncio.run(run())


def test_what_cannot_wait_may_take_twice_the_limit():
    memory = AnswerMemory(10 * SMALL, 0)
    first, second = memory.share(), memory.share()
    assert first.take(8 * SMALL)
    second.resize(12 * SMALL)
    with pytest.raises(Unavailable):
        second.resize(13 * SMALL)
    assert memory.held == 20 * SMALL
    second.release()
    assert memory.held == 8 * SMALL
    first.resize(SMALL)
    assert memory.held == 0


def test_an_answer_may_shrink_beside_any_other():
    memory = AnswerMemory(10 * SMALL, 0)
    large, small = memory.share(), memory.share()
    assert large.take(17 * SMALL)
    small.resize(3 * SMALL)
    large.resize(16 * SMALL)
    assert memory.held == 19 * SMALL
