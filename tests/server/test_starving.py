"""One caller cannot starve the others: short reads do not wait for filters, filters have a
time limit, and requests of disconnected clients are dropped."""

import asyncio
import gzip
import json
import re
import select
import socket
import threading
import time
from contextlib import ExitStack, contextmanager
from functools import partial
from urllib.parse import quote, urlsplit

import pytest

from nessie_cli import CommitMeta, connect
from nessie_cli.model import ContentKey, IcebergTable, Namespace, Put, ReferenceType
from nessie_cli.server.http.failures import Unavailable
from nessie_cli.server.http.messages import LARGE, Limits
from nessie_cli.server.pipeline.exchange import AccessLog
from nessie_cli.server.pipeline.pipeline import Parts
from nessie_cli.server.running import application
from nessie_cli.server.runtime.memory import Bodies
from tests.repository.plans import plan
from tests.server.client import EMPTY, Client
from tests.server.serving import serving

PATIENCE = 120
SOON = 10.0
"""Seconds in which a short read is answered, on a busy machine.

The long reads take some minutes.
"""
COMMITS = 3000
REFERENCES = 200
"""As many as a filter reads in several steps, also on a fast machine."""
NUMBERS = f"[{','.join(map(str, range(90)))}]"
SLOW = f"{NUMBERS}.all(a, {NUMBERS}.all(b, a + b >= 0))"
"""A condition that is true after 8,100 iterations."""


@pytest.fixture(scope="module")
def repository():
    with connect("memory:") as found:
        table = IcebergTable(metadata_location="s3://lake/t")
        found.commit(
            "main",
            [Put(ContentKey((f"n{n}",)), Namespace(elements=(f"n{n}",))) for n in range(7)],
            CommitMeta("namespaces"),
        )
        plans = [
            plan(
                lambda call, n=n: call.repository.commit(
                    "main", [Put(ContentKey((f"n{n % 7}", f"t{n:04}")), table)], CommitMeta(f"m{n}")
                )
            )
            for n in range(COMMITS)
        ]
        assert not [one for one in found.commit_all(plans) if isinstance(one, Exception)]
        for number in range(REFERENCES):
            found.create_reference(ReferenceType.BRANCH, f"b{number}", found.reference("main").hash)
        yield found


@contextmanager
def served(repository, **limits):
    with serving(app=application(repository, Parts(Limits(**limits)))) as url:
        yield url


def history(filter_):
    return f"/api/v2/trees/main/history?filter={quote(filter_)}"


def slow(number=0):
    """Returns a filter that nothing passes; it takes 3 to 30 seconds over the history."""
    return history(f"commit.message == 'no {number}' || !{SLOW}")


def send(url, path):
    parts = urlsplit(url)
    connection = socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE)
    connection.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
    return connection


def status_and_head(connection):
    """Returns the status of an answer and its lines up to the body, in lower case."""
    with connection.makefile("rb") as lines:
        head = b"".join(iter(lambda: lines.readline().lower(), b"\r\n"))
    return int(head.split()[1]), head


def soon(client, path):
    begun = time.monotonic()
    assert client.get(path).status == 200
    assert time.monotonic() - begun < SOON


@pytest.mark.parametrize("leave", [True, False])
def test_long_filters_delay_neither_short_reads_nor_health_checks(repository, leave):
    with served(repository, filter_seconds=1000) as url:
        client = Client(url)
        connections = [send(url, slow(number)) for number in range(12)]
        if leave:
            time.sleep(0.1)
            for connection in connections:
                connection.close()
        for _ in range(5):
            for path in (
                "/q/health/ready",
                "/api/v2/trees/main",
                "/api/v2/trees",
                "/api/v2/trees/main/contents/n0.t0000",
                "/api/v2/trees/main/history",
            ):
                soon(client, path)
            assert client.get("/q/health/ready").body["status"] == "UP"
        if leave:
            # Together, they would take minutes.
            begun = time.monotonic()
            assert (
                client.get(history("commit.message == 'm2999'") + "&max-records=1").body["hasMore"]
                is False
            )
            assert time.monotonic() - begun < 3 * SOON
        for connection in connections:
            connection.close()
        client.close()


def test_the_number_of_waiting_filters_is_limited(repository):
    with served(repository, filter_seconds=0.5, long_reads=2) as url:
        connections = [send(url, slow(number)) for number in range(12)]
        client = Client(url)
        soon(client, "/api/v2/trees/main")
        heads = [status_and_head(connection) for connection in connections]
        refused = [head for status, head in heads if status == 503]
        assert refused
        assert all(re.search(rb"retry-after: [1-9]", head) for head in refused)
        assert {status for status, _ in heads} == {200, 503}
        for connection in connections:
            connection.close()
        client.close()


def test_the_number_of_waiting_short_reads_is_limited(repository):
    with served(repository, reads=1, connections=100) as url:
        clients = [Client(url) for _ in range(50)]
        statuses = set()

        def ask(client, number):
            for round_ in range(5):
                answer = client.get(
                    f"/api/v2/trees/main/entries?max-records={1000 + 20 * number + round_}&content=true"
                )
                assert answer.status == 200 or (
                    answer.body["errorCode"],
                    answer.headers["retry-after"],
                ) == ("SERVICE_UNAVAILABLE", "2")
                statuses.add(answer.status)

        threads = [
            threading.Thread(target=ask, args=(client, number))
            for number, client in enumerate(clients)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        for client in clients:
            client.close()
    assert statuses == {200, 503}


NOT_B, OF_KEY, OF_ENTRY, MESSAGE = (
    quote(f"{condition} && {SLOW}")
    for condition in (
        "ref.name != 'b3'",
        "key.encodedKey.endsWith('00')",
        "entry.key.endsWith('00')",
        "commit.message.endsWith('00')",
    )
)
FILTERED = {
    f"v2/trees?filter={NOT_B}": "references",
    f"v1/trees?filter={NOT_B}": "references",
    f"v2/trees/main/entries?filter={OF_ENTRY}": "entries",
    f"v2/trees/@{EMPTY}/diff/main?filter={OF_KEY}": "diffs",
    f"v2/trees/main/history?filter={MESSAGE}": "logEntries",
    f"v1/trees/tree/main/log?filter={MESSAGE}": "logEntries",
    f"v1/trees/tree/main/entries?filter={OF_ENTRY}": "entries",
    f"v1/trees/tree/main/entries?namespaceDepth=1&filter={OF_ENTRY}": "entries",
}


def test_the_scan_of_recent_changes_has_a_time_limit(repository):
    path = "/api/v2/trees/main/recent-changes?scan-commits=1000"
    for seconds, status in ((1000, 200), (0.0, 400)):
        with served(repository, filter_seconds=seconds) as url:
            client = Client(url)
            answer = client.get(path)
            client.close()
        assert answer.status == status
    assert "the scan ended after 0 seconds, with 1 of 1,000 commits" in answer.body["message"]


@pytest.mark.parametrize("path", FILTERED)
def test_a_filter_has_a_time_limit_per_page_and_loses_nothing(repository, path):
    name, most, token = (
        FILTERED[path],
        *(("maxRecords", "pageToken") if path.startswith("v1") else ("max-records", "page-token")),
    )
    with served(repository, filter_seconds=1000) as url:
        client = Client(url)
        whole = client.get(f"/api/{path}").body
        client.close()
    assert whole["hasMore"] is False
    assert whole[name]
    with served(repository, filter_seconds=0.0) as url:
        client = Client(url)
        for more in ("", f"&{most}=2"):
            found, pages, after = [], 0, ""
            while True:
                page = client.get(f"/api/{path}{more}{after}").body
                pages += 1
                found += [one for one in page[name] if one not in found]
                if not page["hasMore"]:
                    break
                after = f"&{token}={page['token']}"
            assert found == whole[name]
            assert pages > 1
        client.close()


def test_a_listing_stops_when_its_client_disconnects():
    with connect("memory:") as repository:
        table = IcebergTable(metadata_location="s3://lake/" + "x" * 1000)
        repository.commit(
            "main",
            [Put(ContentKey((f"t{number:06}",)), table) for number in range(40_000)],
            CommitMeta("many"),
        )
        lines = []
        with serving(app=application(repository, Parts(log=AccessLog(lines.append)))) as url:
            connection = send(url, "/api/v2/trees/main/entries?content=true")
            assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
            connection.close()
            client = Client(url)
            end = time.monotonic() + PATIENCE
            while not lines and time.monotonic() < end:
                soon(client, "/q/health/live")
                time.sleep(0.05)
            client.close()
    record = next(
        found
        for line in b"".join(lines).splitlines()
        if (found := json.loads(line))["route"].endswith("/entries")
    )
    assert record["sent"] < 30_000_000
    assert "error" not in record


def test_a_small_compressed_body_does_not_wait_for_large_ones():
    """They are compressed to as few bytes as small ones."""
    keys = b'{"requestedKeys": [{"elements": ["a"]}]'
    texts = b",".join([b'"%b"' % (b"a" * 60)] * 500_000)
    large = gzip.compress(b'%b, "ignored": [%b]}' % (keys, texts), 6)
    head = b"POST /api/v2/trees/main/contents HTTP/1.1\r\nhost: localhost\r\n"
    head += (
        b"content-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n"
    )
    with serving() as url, ExitStack() as stack:
        address = urlsplit(url)
        hostile = [
            stack.enter_context(socket.create_connection((address.hostname, address.port)))
            for _ in range(10)
        ]
        for connection in hostile:
            connection.sendall(head % len(large) + large)
        client = Client(url)
        packed = {"content-encoding": "gzip", "content-type": "application/json"}
        path = "/api/v2/trees/main/contents"
        answer = client.send("POST", path, raw=gzip.compress(keys + b"}"), headers=packed)
        assert answer.status == 200
        client.close()
        # It came last, and most of the others still wait.
        answered, _, _ = select.select(hostile, [], [], 0)
        assert len(answered) < len(hostile) - 1


def test_a_large_body_waits_for_a_limited_time():
    async def waiting():
        bodies = Bodies(most_waiting=1000, longest_queued=0.01)
        begun, ended = asyncio.Event(), asyncio.Event()

        async def slow(is_large):
            begun.set()
            await ended.wait()
            return is_large

        freed = []
        free = partial(freed.append, True)
        first = asyncio.create_task(bodies.answer(10, lambda: LARGE, slow, free))
        await begun.wait()
        with pytest.raises(Unavailable):
            await bodies.answer(10, lambda: LARGE, slow, free)
        ended.set()
        assert await first
        assert await bodies.answer(10, lambda: LARGE, slow, free)
        assert not await bodies.answer(10, lambda: LARGE - 1, slow, free)
        assert len(freed) == 2
        bodies.close()

    asyncio.run(waiting())
