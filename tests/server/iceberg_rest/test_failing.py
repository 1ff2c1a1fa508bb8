"""A store that is busy, or loses the answer of a commit: how errors guide the client's
retry."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import apsw
import pytest

from nessie_cli import create
from nessie_cli.errors import OutcomeUnknown
from nessie_cli.iceberg.warehouses.configuration import from_options
from nessie_cli.repository.local import LocalRepository
from nessie_cli.repository.snapshot import Context
from nessie_cli.server.pipeline.exchange import AccessLog
from nessie_cli.server.pipeline.pipeline import Parts
from nessie_cli.server.running import application
from nessie_cli.store.sqlite.store import SQLiteStore, open_sqlite
from tests.server.client import Client
from tests.server.iceberg_rest.lake import IcebergClient, error_of
from tests.server.serving import serving


class Fragile:
    """A server over a store whose commits can fail."""

    def __init__(self, url: str, store: SQLiteStore, folder: Path) -> None:
        self.client = IcebergClient(Client(url))
        self.store = store
        self.folder = folder

    def files(self) -> set[Path]:
        return {path for path in (self.folder / "lake").rglob("*") if path.is_file()}

    def disturb(self, monkeypatch: pytest.MonkeyPatch, commit: Callable[..., Any]) -> None:
        monkeypatch.setattr(self.store, "commit", commit)


@pytest.fixture
def fragile(tmp_path: Path) -> Iterator[Fragile]:
    path = str(tmp_path / "catalog.sqlite")
    create(path).close()
    store = open_sqlite(path, patience=0.3)
    clock = iter(range(10**15, 10**16)).__next__
    parts = Parts(warehouses=from_options([str(tmp_path / "lake")]), log=AccessLog(lambda _: None))
    with (
        LocalRepository(store, Context("", clock, os.urandom)) as repository,
        serving(app=application(repository, parts)) as url,
    ):
        found = Fragile(url, store, tmp_path)
        found.client.namespace("db")
        found.client.create("db", "t")
        yield found
        found.client.client.close()


def test_a_busy_store_writes_nothing(fragile: Fragile) -> None:
    files = fragile.files()
    blocker = apsw.Connection(str(fragile.folder / "catalog.sqlite"))
    blocker.execute("BEGIN IMMEDIATE")
    answer = fragile.client.set_properties("db", "t")
    assert error_of(answer) == (429, "TooManyRequestsException")
    assert answer.headers["retry-after"]
    assert fragile.files() == files
    assert fragile.client.load("db", "t").status == 200
    blocker.execute("ROLLBACK")
    assert fragile.client.set_properties("db", "t").status == 200


def test_a_lost_answer_is_found_by_the_request_id(
    fragile: Fragile, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = fragile.store.commit

    def losing(*arguments: Any, **named: Any) -> Any:
        commit(*arguments, **named)
        raise OutcomeUnknown("the connection was lost", "")

    fragile.disturb(monkeypatch, losing)
    answer = fragile.client.set_properties("db", "t", properties={"k": "v"})
    assert answer.status == 200
    assert answer.body["metadata"]["properties"]["k"] == "v"
    assert fragile.client.load("db", "t").body == answer.body


def test_a_commit_with_unknown_outcome_keeps_its_file(
    fragile: Fragile, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, files, key = fragile.store.commit, fragile.files(), str(uuid4())

    def unknown(*_: Any, **__: Any) -> Any:
        raise OutcomeUnknown("the connection was lost", "")

    fragile.disturb(monkeypatch, unknown)
    answer = fragile.client.set_properties("db", "t", idempotency_key=key)
    assert error_of(answer) == (500, "CommitStateUnknownException")
    assert len(fragile.files() - files) == 1
    fragile.disturb(monkeypatch, commit)
    again = fragile.client.set_properties("db", "t", idempotency_key=key)
    assert again.status == 200


def test_an_internal_error_is_reported_without_details(
    fragile: Fragile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a detail")

    fragile.disturb(monkeypatch, broken)
    files = fragile.files()
    answer = fragile.client.set_properties("db", "t")
    assert error_of(answer) == (500, "InternalServerError")
    assert "a detail" not in answer.raw.decode()
    # It is unknown whether the commit needs the file.
    assert len(fragile.files() - files) == 1
