"""Failed commits of PyIceberg's catalog.

No change is committed twice, and no file is removed that a commit may need.
"""

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


class Proxy:
    """A proxy between a catalog and its server, which answers commits with `loss`.

    `plain` removes the headers of our extensions to REST v2.
    """

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
        """Answers the next commit with `loss`."""

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
        """The request arrives, then the server does not answer any request."""
        self.forward(request)
        self.is_dead = True
        return CUT


@contextmanager
def through(lake: Lake, *, plain: bool) -> Iterator[tuple[Proxy, NessieCatalog]]:
    proxy = Proxy(lake.uri.removesuffix("/api/v2"), plain=plain)
    with (
        listening(proxy) as url,
        NessieCatalog("far", **{**lake.options(), "uri": f"{url}/api/v2"}) as catalog,
    ):
        assert isinstance(catalog, NessieCatalog)
        yield proxy, catalog


@pytest.mark.parametrize("plain", [False, True], ids=["ours", "theirs"])
def test_a_lost_answer_is_looked_up(remote: Lake, *, plain: bool) -> None:
    remote.catalog().create_table("orders", ROWS.schema)
    with through(remote, plain=plain) as (proxy, catalog):
        table = catalog.load_table("orders")
        proxy.once(proxy.behind)
        table.append(ROWS)
        table.append(ROWS)
    assert remote.messages() == [
        "append to orders: 3 rows",
        "append to orders: 3 rows",
        "create table orders",
    ]
    assert len(sorted_rows(remote.catalog().load_table("orders"))) == 6
    assert remote.metadata_files() == remote.committed_files()


def test_an_unknown_outcome_of_a_successful_commit(remote: Lake) -> None:
    remote.catalog().create_table("orders", ROWS.schema)
    with through(remote, plain=True) as (proxy, catalog):
        table = catalog.load_table("orders")
        proxy.once(proxy.behind_and_dead)
        with pytest.raises(CommitStateUnknownException):
            table.append(ROWS)
    assert sorted_rows(remote.catalog().load_table("orders")) == ROWS.to_pylist()
    assert remote.metadata_files() == remote.committed_files()


def test_an_unknown_outcome_of_a_failed_commit(remote: Lake) -> None:
    remote.catalog().create_table("orders", ROWS.schema)
    with through(remote, plain=True) as (proxy, catalog):
        table = catalog.load_table("orders")
        proxy.once(proxy.before)
        with pytest.raises(CommitStateUnknownException):
            table.append(ROWS)
        # The request may still arrive, so its file is kept. The table does not reference it.
        assert len(remote.metadata_files() - remote.committed_files()) == 1
        assert sorted_rows(table.refresh()) == []
        table.append(ROWS)
    assert sorted_rows(remote.catalog().load_table("orders")) == ROWS.to_pylist()


def test_a_commit_during_overload_leaves_no_files(remote: Lake) -> None:
    remote.catalog().create_table("orders", ROWS.schema)
    body = b'{"status": 503, "reason": "Service Unavailable", "message": "later", "errorCode": "SERVICE_UNAVAILABLE"}'
    with through(remote, plain=False) as (proxy, catalog):
        proxy.loss = lambda _: Answer(503, body)
        with pytest.raises(ServiceUnavailableError, match="answered 503"):
            catalog.load_table("orders").transaction().set_properties(
                {"a": "1"}
            ).commit_transaction()
        with pytest.raises(ServiceUnavailableError, match="answered 503"):
            catalog.create_table("other", ROWS.schema)
    assert remote.metadata_files() == remote.committed_files()


def test_a_server_that_does_not_answer(remote: Lake) -> None:
    remote.catalog().create_table("orders", ROWS.schema)
    with through(remote, plain=False) as (proxy, catalog):
        proxy.is_dead = True
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


def test_a_warehouse_that_is_not_writable(embedded: Lake) -> None:
    embedded.warehouse.write_text("a file, no folder")
    catalog = embedded.catalog()
    with pytest.raises(OSError, match="warehouse"):
        catalog.create_table("orders", ROWS.schema)
    assert embedded.log() == []


def test_missing_permissions_and_a_missing_token(tmp_path: Path) -> None:
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


def test_a_missing_store(tmp_path: Path) -> None:
    with pytest.raises(StoreNotFound, match=r"nowhere\.sqlite"):
        NessieCatalog("lake", uri=str(tmp_path / "nowhere.sqlite"))
    assert not list(tmp_path.iterdir())
