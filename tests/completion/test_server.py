"""Completion with a server as the store: a real `nessie serve`, one that has stopped, and
one that never answers."""

from __future__ import annotations

import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from nessie_cli.cli.completion.candidates import PATIENCE
from tests.completion.conftest import fill
from tests.server.processes import started
from tests.store.raw import raw

LONG = 120.0
"""Seconds: a busy machine must not look like a stopped server."""


@pytest.fixture(scope="module")
def address(catalog):
    with started("--store", str(catalog / ".nessie" / "store.sqlite")) as (_, url):
        yield f"{url}/api/v2"


@pytest.fixture
def complete(forker, tmp_path):
    """Completes a line in its own process."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    def call(*line):
        outcome = forker.run(["__complete", "--", *line], tmp_path, environment)
        assert (outcome.code, outcome.err) == (0, "")
        return outcome.out.splitlines()

    return call


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("switch", "feature/o"), "feature/old\tbranch"),
        (("tag", "-d", ""), "v1.0\ttag"),
        (("content", "show", "db.sales.i"), "db.sales.items\ticeberg-table"),
        (("log", "main..v"), "main..v1.0\ttag"),
    ],
)
def test_completion_uses_the_server_of_the_line(address, complete, words, wanted):
    deadline = time.monotonic() + LONG
    found = []
    # A busy machine may need longer than completion waits.
    while not found and time.monotonic() < deadline:
        found = complete("--store", address, *words)
    assert found == [wanted]


def test_a_stopped_server_has_no_candidates(complete):
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}/api/v2"
    assert complete("--store", url, "switch", "") == []


def test_completion_does_not_wait_for_a_silent_server(complete):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begun = time.monotonic()
        assert (
            complete("--store", f"http://127.0.0.1:{silent.getsockname()[1]}/api/v2", "switch", "")
            == []
        )
        assert time.monotonic() - begun < PATIENCE + 10


def test_an_untrusted_workspace_cannot_name_a_server(complete, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0)
        (tmp_path / ".nessie").mkdir()
        (tmp_path / ".nessie/config.toml").write_text(
            f'store = "http://127.0.0.1:{listening.getsockname()[1]}/api/v2"\n'
        )
        assert complete("switch", "") == []
        with pytest.raises(BlockingIOError):
            listening.accept()


def test_a_local_store_has_no_time_limit(complete, tmp_path):
    path = tmp_path / "store.sqlite"
    fill(path)
    with raw(path) as busy, ThreadPoolExecutor() as pool:
        busy.execute("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE").fetchall()
        busy.execute("CREATE TABLE notes (text TEXT); COMMIT").fetchall()
        keys = pool.submit(complete, "--store", str(path), "content", "show", "lat")
        # Longer than the limit of a server.
        time.sleep(2 * PATIENCE)
        assert not keys.done()
        busy.close()
        assert keys.result(LONG) == ["later\ticeberg-table"]
