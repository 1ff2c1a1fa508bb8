"""Reads while PostgreSQL does not answer: all that wait get the error of the first."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from nessie_cli import create
from tests.server.client import EMPTY, Client, put
from tests.server.processes import started
from tests.store.postgres_server import new_url, shared_server
from tests.store.test_postgres_faults import Proxy

PATIENCE = 120
READERS = 8
LONGEST = 70.0
"""Seconds: the store waits for 30, a new connection for 10, and reads come in two batches."""


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
            begun = time.monotonic()
            with ThreadPoolExecutor(READERS) as pool:
                reads = [pool.submit(_read, address) for _ in range(READERS)]
            assert {one.result() for one in reads} == {503}
            assert time.monotonic() - begun < LONGEST
            proxy.swallow = False
            assert client.get("/api/v2/trees/main").status == 200
            client.close()
    proxy.close()


def _read(address: str) -> int:
    client = Client(address, PATIENCE)
    try:
        return client.get("/api/v2/trees/main").status
    finally:
        client.close()
