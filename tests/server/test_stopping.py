"""A server that is stopped while clients are reading: begun requests are answered, and the
log has no traceback."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPException
from itertools import cycle
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from nessie_cli import CommitMeta, create
from nessie_cli.model import ReferenceType
from nessie_cli.repository.base import Repository
from nessie_cli.server.web_server import GRACE
from tests.repository.vocabulary import put, table
from tests.server.client import EMPTY, Answer, Client
from tests.server.client import put as put_json
from tests.server.hostile import NAMESPACES
from tests.server.processes import PATIENCE, started
from tests.server.serving import serving
from tests.store.postgres_server import new_url, shared_server
from tests.store.test_postgres_faults import Proxy
from tests.store.test_postgres_silent import stopped

READERS = 6
COMMIT = {"commitMeta": {"message": "m"}, "operations": [put_json("b")]}
ROUNDS = 2
READS = (
    "/api/v2/trees",
    "/api/v2/trees/main",
    "/api/v2/trees/main/entries?content=true",
    "/api/v2/trees/main/history?fetch=ALL",
    "/api/v2/trees/main/diff/dev",
    "/api/v2/trees/main/contents/t7",
)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield str(tmp_path / "store.sqlite")
    else:
        with new_url() as found:
            yield found


def fill(repository: Repository) -> None:
    for first in range(0, 400, 50):
        operations = [put(f"t{number}", table(number)) for number in range(first, first + 50)]
        repository.commit("main", operations, CommitMeta(str(first)))
    repository.create_reference(ReferenceType.BRANCH, "dev", repository.resolve("main~4").hash)


class Reader(threading.Thread):
    """Reads until the server has stopped, and counts the answers. A writer also commits."""

    def __init__(self, url: str, *, writes: bool = False) -> None:
        super().__init__(daemon=True)
        self.answers = 0
        self.odd: list[Answer] = []
        self._url = url
        self._writes = writes

    def run(self) -> None:
        client = Client(self._url, PATIENCE)
        try:
            for path in cycle(READS):
                self._note(client.get(path))
                if self._writes:
                    self._note(client.commit("dev", EMPTY, put_json(token_hex(8))))
        except (OSError, HTTPException):
            # The server has closed the connection, or accepts no new ones.
            client.close()

    def _note(self, answer: Answer) -> None:
        self.answers += 1
        # A request that arrives while the server stops may be refused with a retry, but never fails
        # with a server error.
        if answer.status not in (200, 503):
            self.odd.append(answer)


def await_answers(readers: list[Reader]) -> None:
    while not all(reader.answers for reader in readers):
        time.sleep(0.005)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_stopping_while_clients_are_reading(url: str, workers: int, how: signal.Signals) -> None:
    with create(url) as repository:
        fill(repository)
    for number in range(ROUNDS):
        with started("--store", url, "--workers", str(workers)) as (process, address):
            readers = [Reader(address, writes=n == 0) for n in range(READERS)]
            for reader in readers:
                reader.start()
            await_answers(readers)
            time.sleep(0.03 * number)
            process.send_signal(how)
            assert process.wait(PATIENCE) == 0
            assert process.stderr is not None
            log = process.stderr.read()
            for reader in readers:
                reader.join(PATIENCE)
                assert not reader.is_alive()
        assert "Traceback" not in log
        assert "apsw" not in log
        assert "Error" not in log, log
        assert [answer for reader in readers for answer in reader.odd] == []
    with create(url) as repository:
        assert list(repository.check()) == []


def test_closing_the_repository_of_a_busy_server(
    url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each request is answered or refused with a retry; none fails with an error of the database
    library."""
    for number in range(2 * ROUNDS):
        with create(url) as repository:
            if number == 0:
                fill(repository)
            with serving(repository) as address:
                readers = [Reader(address, writes=n == 0) for n in range(READERS)]
                for reader in readers:
                    reader.start()
                await_answers(readers)
                time.sleep(0.01 * number)
                repository.close()
                last = Client(address)
                answer = last.get("/api/v2/trees/main")
                last.close()
                assert (answer.status, answer.body["errorCode"]) == (503, "SERVICE_UNAVAILABLE")
            for reader in readers:
                reader.join(PATIENCE)
                assert not reader.is_alive()
            assert [answer for reader in readers for answer in reader.odd] == []
    log = "".join(capfd.readouterr())
    assert "Traceback" not in log
    assert "apsw" not in log


def test_a_silent_database_does_not_keep_the_server_alive() -> None:
    """A commit waits for a stopped process of PostgreSQL when the server receives SIGTERM."""
    with new_url() as url:
        create(url).close()
        with started("--store", url + "&application_name=silent") as (process, address):
            client = Client(address, PATIENCE)
            assert client.commit("main", EMPTY, put_json("a")).status == 200
            with stopped(shared_server(), "silent"):
                writer = threading.Thread(target=_commit_and_hang_up, args=(address,), daemon=True)
                writer.start()
                time.sleep(0.5)
                process.send_signal(signal.SIGTERM)
                begin = time.monotonic()
                assert process.wait(60) == 0
                assert time.monotonic() - begin < GRACE + 20
            writer.join(PATIENCE)
            assert process.stderr is not None
            assert "Traceback" not in process.stderr.read()


def _commit_and_hang_up(address: str) -> None:
    with suppress(OSError, HTTPException):
        Client(address, PATIENCE).commit("main", EMPTY, put_json("b"))


@pytest.mark.slow
def test_requests_that_have_not_ended_get_an_error_of_their_api() -> None:
    """They wait for PostgreSQL when the server receives SIGTERM."""
    requests = {
        "write": ("POST", f"/api/v2/trees/main@{EMPTY}/history/commit", COMMIT),
        "read": ("GET", "/api/v2/trees/main/entries", None),
        "namespace": ("POST", NAMESPACES, {"namespace": ["n"], "properties": {}}),
    }
    server = shared_server()
    proxy = Proxy(server.port)
    with new_url() as url, TemporaryDirectory() as folder:
        create(url).close()
        behind = url.replace(f":{server.port}/", f":{proxy.port}/")
        options = ("--store", behind, "--warehouse", folder)
        with started(*options) as (process, address), ThreadPoolExecutor(8) as pool:
            client = Client(address, PATIENCE)
            assert client.commit("main", EMPTY, put_json("a")).status == 200
            proxy.swallow = True
            pending = {}
            for what, request in requests.items():
                pending[what] = pool.submit(_ask, address, *request)
                # The write is first, and so waits on the open connection. Others wait for new ones.
                time.sleep(0.3)
            process.send_signal(signal.SIGTERM)
            begin = time.monotonic()
            assert process.wait(60) == 0
            assert time.monotonic() - begin < GRACE + 20
            answers = {what: answer.result(PATIENCE) for what, answer in pending.items()}
            assert process.stderr is not None
            assert "Traceback" not in process.stderr.read()
    proxy.close()
    assert (answers["write"].status, answers["read"].status) == (500, 503)
    for what in ("write", "read"):
        assert set(answers[what].body) >= {"status", "message", "errorCode"}
    assert "read the reference" in answers["write"].body["message"]
    # Its thread may have got the error of the store before.
    types = {"CommitStateUnknownException", "TooManyRequestsException"}
    assert answers["namespace"].body["error"]["type"] in types


def _ask(address: str, *request: Any) -> Answer:
    client = Client(address, PATIENCE)
    try:
        return client.send(*request)
    finally:
        client.close()
