"""The repository contract on SQLite, with a new file for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nessie_cli.repository.base import Repository
from nessie_cli.repository.opening import create
from tests.repository.contract import RepositoryContract
from tests.repository.contract_commit_all import Groups
from tests.repository.contract_division import Divides
from tests.repository.contract_searching import Searches


class TestLocalSqlite(RepositoryContract, Groups, Divides, Searches):
    @pytest.fixture
    def repository(self, tmp_path: Path) -> Iterator[Repository]:
        with create(f"sqlite:///{tmp_path}/store.sqlite") as repository:
            yield repository
