from pathlib import Path

import pytest

from tests.cli.importing.sql_lake import SqlLake
from tests.command.in_process import InProcess


@pytest.fixture
def theirs(tmp_path: Path) -> SqlLake:
    """A lake with two namespaces and three tables."""
    lake = SqlLake(tmp_path / "theirs")
    lake.create("sales.orders", "sales.items", "hr.people")
    return lake


@pytest.fixture
def ours(nessie: InProcess) -> InProcess:
    """The command in a new workspace."""
    assert nessie("init").code == 0
    return nessie
