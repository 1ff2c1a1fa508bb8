"""The repository contract through REST: the remote repository against `nessie serve`, a real
process for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nessie_cli.errors import MergeConflict
from nessie_cli.model import MergeBehavior
from nessie_cli.repository.base import Repository
from nessie_cli.repository.opening import connect, create
from tests.repository.contract import RepositoryContract
from tests.repository.contract_division import Divides
from tests.repository.contract_searching import Searches
from tests.repository.servers import Servers
from tests.repository.vocabulary import Catalog, number_of


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    running = Servers()
    yield running
    running.close()


class Served(RepositoryContract):
    """The contract over a server; its store is checked directly."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> str:
        url = f"sqlite:///{tmp_path}/store.sqlite"
        create(url).close()
        return url

    @pytest.fixture(autouse=True)
    def check_store(self, store: str) -> Iterator[None]:
        yield
        with connect(store) as local:
            assert list(local.check()) == []


class TestRemote(Served, Divides, Searches):
    """Our own client and our own server."""

    @pytest.fixture
    def repository(self, servers: Servers, store: str) -> Iterator[Repository]:
        with servers.serving(store) as address, connect(address) as opened:
            yield opened

    def test_a_side_is_not_shown_as_the_base(self, catalog: Catalog) -> None:
        """With two merge bases, each has the state of one side."""
        catalog.write("main", {"t": 1})
        catalog.branch("dev")
        catalog.write("main", {"t": 2})
        catalog.write("dev", {"t": 3})
        heads = [catalog.head("main"), catalog.head("dev")]
        catalog.merge_contents(f"@{heads[1]}", "main", default_behavior=MergeBehavior.DROP)
        catalog.merge_contents(f"@{heads[0]}", "dev", default_behavior=MergeBehavior.DROP)
        for source, into in (("main", "dev"), ("dev", "main")):
            with pytest.raises(MergeConflict) as refused:
                catalog.merge_contents(source, into, dry_run=True)
            (conflict,) = refused.value.conflicts
            assert conflict.expected is None
            assert {number_of(conflict.actual), number_of(conflict.proposed)} == {2, 3}
