"""The repository contract through REST: the remote repository against `nessie serve`, a real
process for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nessie_cli.repository.base import Repository
from nessie_cli.repository.opening import connect, create
from tests.repository.contract import RepositoryContract
from tests.repository.contract_division import Divides
from tests.repository.servers import Servers


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


class TestRemote(Served, Divides):
    """Our own client and our own server."""

    @pytest.fixture
    def repository(self, servers: Servers, store: str) -> Iterator[Repository]:
        with servers.serving(store) as address, connect(address) as opened:
            yield opened
