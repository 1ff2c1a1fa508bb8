"""Keys of an issuer are fetched within a limited time and size, whatever its server sends."""

from __future__ import annotations

import base64
import json
import socket
import threading
import time
from pathlib import Path

import pytest

from nessie_cli import create
from nessie_cli.errors import InvalidInput
from nessie_cli.server.auth.bounded_fetch import MOST_BYTES, MOST_THREADS, BoundedFetch
from nessie_cli.server.auth.identity import KeysUnavailable
from nessie_cli.server.auth.jwt_keys import TIMEOUT, KeyUrl
from tests.server.client import Client
from tests.server.processes import started
from tests.server.slow_servers import HEAD, SLOW, answering


@pytest.mark.parametrize("what", SLOW)
def test_a_slow_answer_takes_no_longer_than_the_limit(what: str) -> None:
    with answering(SLOW[what]) as url:
        fetch, begun = BoundedFetch(0.5), time.monotonic()
        with pytest.raises(TimeoutError):
            fetch.json(url)
        assert time.monotonic() - begun < 5


def test_few_threads_wait_for_slow_answers() -> None:
    earlier = set(threading.enumerate())
    with answering(SLOW["headers"]) as url:
        fetch = BoundedFetch(0.2)
        for _ in range(MOST_THREADS + 2):
            with pytest.raises(TimeoutError) as refused:
                fetch.json(url)
        assert "earlier requests have no answer yet" in str(refused.value)
        new = set(threading.enumerate()) - earlier
        fetching = [thread for thread in new if thread.name == "fetch"]
        assert len(fetching) == MOST_THREADS
        assert all(thread.daemon for thread in fetching)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b'"' + b"x" * MOST_BYTES + b'"', "more than 1 MiB"),
        (b"[" * 500_000, "not JSON"),
        (b"{", "not JSON"),
        (b"", "not JSON"),
    ],
)
def test_an_unusable_answer_is_an_error(body: bytes, why: str) -> None:
    with (
        answering(lambda connection: connection.sendall(HEAD + body)) as url,
        pytest.raises(InvalidInput, match=why),
    ):
        BoundedFetch(10).json(url)


@pytest.mark.parametrize(
    "sent", [b"", b"x", b"HTTP/1.1 999999\r\n\r\n", b"HTTP/1.1 302 x\r\nlocation: /\r\n\r\n"]
)
def test_what_is_no_answer_is_an_error(sent: bytes) -> None:
    with (
        answering(lambda connection: connection.sendall(sent)) as url,
        pytest.raises((InvalidInput, OSError)),
    ):
        BoundedFetch(10).json(url)


def test_an_endless_document_takes_little_memory_and_time() -> None:
    def send(connection: socket.socket) -> None:
        connection.sendall(HEAD + b'{"keys":[')
        while True:
            connection.sendall(b'{"kty":"x","a":[[],[],[]]},' * 1000)

    with answering(send) as url:
        reports: list[str] = []
        with pytest.raises(KeysUnavailable):
            KeyUrl("http://issuer", url, reports.append).find("k", "RS256")
        assert "more than 1 MiB" in reports[0]


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def test_a_server_with_a_slow_issuer_answers_and_ends(tmp_path: Path) -> None:
    """Forged tokens cause the fetch."""
    store = str(tmp_path / "catalog.sqlite")
    create(store).close()
    claims = {"iss": "http://issuer", "aud": "nessie", "exp": 2**31, "sub": "x"}
    with answering(SLOW["body"]) as keys:
        options = ("--jwt-issuer", "http://issuer", "--jwt-audience", "nessie", "--jwt-keys", keys)
        with started("--store", store, *options) as (process, url):
            statuses: list[int] = []

            def ask(number: int) -> None:
                token = f"{_part({'alg': 'RS256', 'kid': f'k{number}'})}.{_part(claims)}.eA"
                client = Client(url)
                answer = client.get("/api/v2/trees", authorization=f"Bearer {token}")
                statuses.append(answer.status)
                client.close()

            begun = time.monotonic()
            threads = [threading.Thread(target=ask, args=(number,)) for number in range(10)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert statuses == [503] * 10
            assert time.monotonic() - begun < 5 * TIMEOUT
            process.terminate()
            process.wait(30)
