"""The repository contract on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nessie_cli.repository.base import Repository
from nessie_cli.repository.opening import create
from tests.repository.contract import RepositoryContract
from tests.repository.contract_commit_all import Groups
from tests.repository.contract_division import Divides
from tests.repository.contract_searching import Searches
from tests.store.postgres_server import new_url


class TestLocalPostgres(RepositoryContract, Groups, Divides, Searches):
    @pytest.fixture
    def repository(self) -> Iterator[Repository]:
        with new_url() as url, create(url) as repository:
            yield repository
