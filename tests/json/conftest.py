"""Golden command lines run in folders of their own."""

from __future__ import annotations

import pytest

from tests.command.process import Forker
from tests.json.golden import Runner


@pytest.fixture(scope="session")
def runner(tmp_path_factory: pytest.TempPathFactory, forker: Forker) -> Runner:
    return Runner(tmp_path_factory.mktemp("golden"), forker)
