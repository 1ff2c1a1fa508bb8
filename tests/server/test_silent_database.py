"""Reads while PostgreSQL does not answer: all that wait get the error of the first."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nessie_cli import create
from nessie_cli.server.auth.tokens import add_token
from tests.server.client import EMPTY, Client, put
from tests.server.processes import started
from tests.server.web.browser import Browser
from tests.store.postgres_server import new_url, shared_server
from tests.store.test_postgres_faults import Proxy

PATIENCE = 120
READERS = 8
PATHS = ["/api/v2/trees/main", "/api/v2/trees/main/entries", "/api/v2/trees"]
GAP = 0.2
"""Seconds between two reads, so that the first ones wait for the database before the others."""
LONGEST = 34.0
"""Seconds: the store waits for 30, a new connection included. No read waits longer."""


@pytest.mark.slow
def test_reads_that_wait_for_a_silent_database_fail_together() -> None:
    server = shared_server()
    proxy = Proxy(server.port)
    with new_url() as url:
        create(url).close()
        behind = url.replace(f":{server.port}/", f":{proxy.port}/")
        with started("--store", behind) as (_, address):
            client = Client(address, PATIENCE)
            assert client.commit("main", EMPTY, put("a")).status == 200
            proxy.swallow = True
            with ThreadPoolExecutor(READERS) as pool:
                reads = []
                for number in range(READERS):
                    reads.append(pool.submit(_read, address, PATHS[number % len(PATHS)]))
                    time.sleep(GAP)
            answers = [one.result() for one in reads]
            assert {status for status, _ in answers} == {503}
            assert max(seconds for _, seconds in answers) < LONGEST
            proxy.swallow = False
            assert client.get("/api/v2/trees/main").status == 200
            client.close()
    proxy.close()


def test_the_login_page_does_not_wait_for_a_silent_database(tmp_path: Path) -> None:
    server, tokens = shared_server(), tmp_path / "tokens"
    proxy = Proxy(server.port)
    token = add_token(tokens, "ann", (), None, datetime.now(UTC))[0]
    with new_url() as url:
        create(url).close()
        behind = url.replace(f":{server.port}/", f":{proxy.port}/")
        with started("--store", behind, "--tokens", str(tokens)) as (_, address):
            browser = Browser(Client(address, PATIENCE))
            browser.post("/ui/login", token=token)
            session = dict(browser.cookies)
            assert session
            proxy.swallow = True
            begun = time.monotonic()
            assert browser.get("/ui/login").status == 200
            assert time.monotonic() - begun < 5
            assert browser.cookies == session
            browser.client.close()
    proxy.close()


def _read(address: str, path: str) -> tuple[int, float]:
    """Returns the status of a read, and how many seconds it took."""
    client, begun = Client(address, PATIENCE), time.monotonic()
    try:
        return client.get(path).status, time.monotonic() - begun
    finally:
        client.close()
