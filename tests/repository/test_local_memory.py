"""The repository contract on the store in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nessie_cli.repository.base import Repository
from nessie_cli.repository.opening import create
from tests.repository.contract import RepositoryContract
from tests.repository.contract_commit_all import Groups
from tests.repository.contract_division import Divides


class TestLocalMemory(RepositoryContract, Groups, Divides):
    @pytest.fixture
    def repository(self) -> Iterator[Repository]:
        with create("memory:") as repository:
            yield repository
