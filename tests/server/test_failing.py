"""A store that is unavailable, busy or damaged, and internal errors: answers and log
entries."""

import os
from pathlib import Path

import apsw
import pytest

from nessie_cli import connect, create
from nessie_cli.model import CommitMeta, ContentKey, IcebergTable, Put
from nessie_cli.repository.local import LocalRepository
from nessie_cli.repository.snapshot import Context
from nessie_cli.server.pipeline.exchange import AccessLog
from nessie_cli.server.pipeline.pipeline import Parts
from nessie_cli.server.running import application
from nessie_cli.store.sqlite.store import open_sqlite
from tests.server.client import EMPTY, Client, put
from tests.server.serving import serving
from tests.server.waiting import until


@pytest.fixture
def path(tmp_path):
    found = str(tmp_path / "catalog.sqlite")
    create(found).close()
    return found


@pytest.fixture
def served(path):
    """A server whose store waits only briefly for other writers, its connection, and its log."""
    lines = []
    log = AccessLog(lines.append)
    clock = iter(range(10**15, 10**16)).__next__
    store = open_sqlite(path, patience=0.3)
    with (
        LocalRepository(store, Context("", clock, os.urandom)) as repository,
        serving(app=application(repository, Parts(log=log))) as url,
    ):
        client = Client(url)
        yield client, lines
        client.close()


def test_a_busy_store_is_reported_as_503(served, path):
    client, _ = served
    blocker = apsw.Connection(path)
    blocker.execute("BEGIN IMMEDIATE")
    answer = client.commit("main", EMPTY, put("a"))
    assert (answer.status, answer.body["errorCode"]) == (503, "SERVICE_UNAVAILABLE")
    assert int(answer.headers["retry-after"]) > 0
    assert path not in answer.raw.decode()
    blocker.execute("ROLLBACK")
    assert client.commit("main", EMPTY, put("a")).status == 200


def test_a_busy_store_delays_neither_reads_nor_health_checks(served, path):
    client, _ = served
    blocker = apsw.Connection(path)
    blocker.execute("BEGIN IMMEDIATE")
    assert client.get("/api/v2/trees/main/entries").status == 200
    assert client.get("/q/health/ready").status == 200
    blocker.execute("ROLLBACK")


def test_a_missing_store_is_reported_without_its_path_until_it_is_back(served, path, tmp_path):
    client, lines = served
    files = [
        file.rename(tmp_path / f"away-{file.name}") for file in tmp_path.glob("catalog.sqlite*")
    ]
    for answer in (
        client.get("/api/v2/trees/main/entries"),
        client.commit("main", EMPTY, put("a")),
    ):
        assert (answer.status, answer.body["errorCode"]) == (503, "SERVICE_UNAVAILABLE")
        assert int(answer.headers["retry-after"]) > 0
        assert "sqlite" not in answer.raw.decode()
    assert all(b"no such file" in line for line in lines)
    for file in files:
        file.rename(tmp_path / file.name.removeprefix("away-"))
    assert client.get("/api/v2/trees/main/entries").status == 200
    assert client.commit("main", EMPTY, put("a")).status == 200


def test_details_of_a_damaged_object_are_only_logged(served, path):
    client, _ = served
    # The server has its own commits in memory.
    with connect(path) as other:
        table = IcebergTable(metadata_location="file:/a", snapshot_id=1)
        head = other.commit(
            "main", [Put(ContentKey(("a",)), table)], CommitMeta("a")
        ).reference.hash
    with apsw.Connection(path) as connection:
        objects = next(
            name
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE '%object%'"
            )
        )
        connection.execute(f"DELETE FROM {objects}")
    answer = client.get(f"/api/v2/trees/main@{head}/contents/a")
    assert (answer.status, answer.body["errorCode"], answer.body["serverStackTrace"]) in (
        (500, "UNKNOWN", None),
        (404, "REFERENCE_NOT_FOUND", None),
    )
    assert "sqlite" not in answer.raw.decode().lower()


def test_the_server_survives_an_internal_error_and_logs_it(path):
    lines = []
    log = AccessLog(lines.append)
    with create(path) as repository:
        app = application(repository, Parts(log=log))
        with serving(app=app) as url:
            client = Client(url)
            # A repository of the wrong type causes a programming error.
            app.catalog = app.catalog._replace(repository=object())
            answer = client.get("/api/v2/trees/main/entries")
            assert (answer.status, answer.body["errorCode"], answer.body["serverStackTrace"]) == (
                500,
                "UNKNOWN",
                None,
            )
            assert "object" not in answer.body["message"]
            app.catalog = app.catalog._replace(repository=repository)
            assert client.get("/api/v2/trees/main/entries").status == 200
    logged = b"".join(lines).decode()
    assert answer.headers["x-request-id"] in logged
    assert "AttributeError" in logged


def _delete(path):
    Path(path).unlink()


def _move(path):
    Path(path).rename(path + ".old")


def _replace(path):
    """Copies a backup over the store, as a restore does."""
    create(path + ".copy").close()
    Path(path + ".copy").replace(path)


@pytest.mark.parametrize(
    ("change", "logged"),
    [
        (_delete, b"no such file; it was moved or deleted while it was open"),
        (_move, b"no such file; it was moved or deleted while it was open"),
        (
            _replace,
            b"another file took its place while it was open; restart the programs that use it",
        ),
    ],
)
def test_a_replaced_store_is_noticed_before_anything_is_lost(served, path, change, logged):
    client, lines = served
    assert client.commit("main", EMPTY, put("a")).status == 200
    head = client.get("/api/v2/trees/main").body["reference"]["hash"]
    change(path)
    for answer in (
        client.commit("main", head, put("b")),
        client.get("/api/v2/trees/main"),
        client.get("/api/v2/trees/main/entries"),
    ):
        assert (answer.status, answer.body["errorCode"]) == (503, "SERVICE_UNAVAILABLE")
    ready = client.get("/q/health/ready")
    assert (ready.status, ready.body["status"]) == (503, "DOWN")
    until(lambda: any(logged in line for line in lines))
