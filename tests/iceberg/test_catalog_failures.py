"""Commits of PyIceberg's catalog that go wrong: nothing is done twice, nothing that may be
committed is removed, the error says what is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyiceberg.exceptions import (
    CommitStateUnknownException,
    ForbiddenError,
    ServiceUnavailableError,
)

from nessie_cli.errors import StoreNotFound
from nessie_cli.iceberg.catalog import NessieCatalog
from tests.iceberg.lake import ROWS, Lake, lake_at, sorted_rows
from tests.remote.listening import CUT, Answer, Request, forward, listening
from tests.server.guarding import guarded

Loss = Callable[[Request], Answer]


@pytest.fixture
def remote(served: str, tmp_path: Path) -> Iterator[Lake]:
    """A lake over a server."""
    with lake_at(served, tmp_path) as found:
        yield found


class Line:
    """What stands between a catalog and its server: hands everything on, but commits as `loss`
    says. `plain` hides what only our server does."""

    def __init__(self, server: str, *, plain: bool) -> None:
        self._server = server
        self._without = ("nessie-cli",) if plain else ()
        self.loss: Loss | None = None
        self.commits = 0
        self.is_dead = False

    def __call__(self, request: Request) -> Answer:
        if self.is_dead:
            return CUT
        if request.path.endswith("/history/commit"):
            self.commits += 1
            if self.loss is not None:
                return self.loss(request)
        return self.forward(request)

    def forward(self, request: Request) -> Answer:
        return forward(self._server, request, self._without)

    def once(self, loss: Loss) -> None:
        """Spoil the next commit."""

        def first(request: Request) -> Answer:
            self.loss = None
            return loss(request)

        self.loss = first

    def before(self, _: Request) -> Answer:
        """The request does not arrive."""
        return CUT

    def behind(self, request: Request) -> Answer:
        """The request arrives, the answer is lost."""
        self.forward(request)
        return CUT

    def behind_and_dead(self, request: Request) -> Answer:
        """The request arrives, and that is the last that is heard."""
        self.forward(request)
        self.is_dead = True
        return CUT


@contextmanager
def through(lake: Lake, *, plain: bool) -> Iterator[tuple[Line, NessieCatalog]]:
    line = Line(lake.uri.removesuffix("/api/v2"), plain=plain)
    with (
        listening(line) as url,
        NessieCatalog("far", **{**lake.options(), "uri": f"{url}/api/v2"}) as catalog,
    ):
        assert isinstance(catalog, NessieCatalog)
        yield line, catalog


@pytest.mark.parametrize("plain", [False, True], ids=["ours", "theirs"])
def test_an_answer_that_was_lost_is_looked_up(remote: Lake, *, plain: bool) -> None:
    remote.catalog().create_table("orders", ROWS.schema)
    with through(remote, plain=plain) as (line, catalog):
        table = catalog.load_table("orders")
        line.once(line.behind)
        table.append(ROWS)
        table.append(ROWS)
    assert remote.messages() == [
        "append to orders: 3 rows",
        "append to orders: 3 rows",
        "create table orders",
    ]
    assert len(sorted_rows(remote.catalog().load_table("orders"))) == 6
    assert remote.metadata_files() == remote.committed_files()


def test_nobody_knows_what_became_of_a_commit_that_happened(remote: Lake) -> None:
    remote.catalog().create_table("orders", ROWS.schema)
    with through(remote, plain=True) as (line, catalog):
        table = catalog.load_table("orders")
        line.once(line.behind_and_dead)
        with pytest.raises(CommitStateUnknownException):
            table.append(ROWS)
    assert sorted_rows(remote.catalog().load_table("orders")) == ROWS.to_pylist()
    assert remote.metadata_files() == remote.committed_files()


def test_nobody_knows_what_became_of_a_commit_that_did_not_happen(remote: Lake) -> None:
    remote.catalog().create_table("orders", ROWS.schema)
    with through(remote, plain=True) as (line, catalog):
        table = catalog.load_table("orders")
        line.once(line.before)
        with pytest.raises(CommitStateUnknownException):
            table.append(ROWS)
        # It may still arrive, so its file stays; nothing in the table points at it.
        assert len(remote.metadata_files() - remote.committed_files()) == 1
        assert sorted_rows(table.refresh()) == []
        table.append(ROWS)
    assert sorted_rows(remote.catalog().load_table("orders")) == ROWS.to_pylist()


def test_a_commit_that_the_server_cannot_take_now_leaves_nothing(remote: Lake) -> None:
    remote.catalog().create_table("orders", ROWS.schema)
    body = b'{"status": 503, "reason": "Service Unavailable", "message": "later", "errorCode": "SERVICE_UNAVAILABLE"}'
    with through(remote, plain=False) as (line, catalog):
        line.loss = lambda _: Answer(503, body)
        with pytest.raises(ServiceUnavailableError, match="answered 503"):
            catalog.load_table("orders").transaction().set_properties(
                {"a": "1"}
            ).commit_transaction()
        with pytest.raises(ServiceUnavailableError, match="answered 503"):
            catalog.create_table("other", ROWS.schema)
    assert remote.metadata_files() == remote.committed_files()


def test_a_server_that_is_gone(remote: Lake) -> None:
    remote.catalog().create_table("orders", ROWS.schema)
    with through(remote, plain=False) as (line, catalog):
        line.is_dead = True
        with pytest.raises(ServiceUnavailableError):
            catalog.load_table("orders")
        with pytest.raises(ServiceUnavailableError):
            catalog.list_namespaces()


def test_a_protected_branch(embedded: Lake) -> None:
    catalog = embedded.catalog()
    table = catalog.create_table("orders", ROWS.schema)
    embedded.repository.put_setting(f"protect.{embedded.branch}", "merge-only")
    with pytest.raises(ForbiddenError, match="protected"):
        table.transaction().set_properties({"a": "1"}).commit_transaction()
    assert embedded.metadata_files() == embedded.committed_files()


def test_a_store_that_is_damaged(tmp_path: Path) -> None:
    file = tmp_path / "catalog.sqlite"
    file.write_bytes(b"no database any more" * 1000)
    with pytest.raises(ServiceUnavailableError, match=r"catalog\.sqlite"):
        NessieCatalog("lake", uri=str(file))


def test_a_warehouse_where_nothing_can_be_written(embedded: Lake) -> None:
    embedded.warehouse.write_text("a file, no folder")
    catalog = embedded.catalog()
    with pytest.raises(OSError, match="warehouse"):
        catalog.create_table("orders", ROWS.schema)
    assert embedded.log() == []


def test_missing_rights_and_a_missing_token(tmp_path: Path) -> None:
    with guarded(
        tmp_path, "op == 'VIEW_REFERENCE' || op == 'READ_ENTRIES' || op == 'READ_OBJECT_CONTENT'"
    ) as server:
        token = server.as_("writer", "admin").token
        reader = server.as_("reader").token
        assert token
        assert reader
        file = tmp_path / "token"
        file.touch(0o600)
        file.write_text(reader)
        uri = f"{server.url}/api/v2"
        options = {"uri": uri, "warehouse": str(tmp_path / "warehouse")}
        with NessieCatalog("lake", **options, **{"access.token-file": str(file)}) as catalog:
            assert catalog.list_namespaces() == []
            with pytest.raises(ForbiddenError):
                catalog.create_namespace("a")
        with pytest.raises(ForbiddenError):
            NessieCatalog("lake", **options)
        file.write_text(token)
        with NessieCatalog("lake", **options, **{"access.token-file": str(file)}) as catalog:
            catalog.create_namespace("a")
            assert token not in f"{catalog!r} {catalog} {catalog.properties}"


def test_a_store_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreNotFound, match=r"nowhere\.sqlite"):
        NessieCatalog("lake", uri=str(tmp_path / "nowhere.sqlite"))
    assert not list(tmp_path.iterdir())
