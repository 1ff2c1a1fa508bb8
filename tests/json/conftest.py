"""A process that all golden command lines are forked from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.json.golden import Runner
from tests.transcripts.conftest import Server


@pytest.fixture(scope="session")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    server = Server()
    yield Runner(tmp_path_factory.mktemp("golden"), server)
    server.close()
