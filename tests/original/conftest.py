"""One original server for all tests of this folder.

After a failure, the end of its log is shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nessie_cli import NO_ANCESTOR, connect
from tests.original.server import Original, original, tail
from tests.repository.vocabulary import Catalog

SOON_WARM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Options for a run of two minutes, which does not benefit from long compilations."""
LOG = pytest.StashKey[Path]()


@pytest.fixture(scope="session")
def server(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[Original]:
    folder = tmp_path_factory.mktemp("original")
    pytestconfig.stash[LOG] = folder / "original.log"
    with original(folder, options=SOON_WARM) as running:
        yield running


@pytest.fixture
def source(server: Original) -> Iterator[Catalog]:
    """The catalog of the server, without anything on it."""
    with connect(f"{server.url}/api/v2") as repository:
        for reference in list(repository.references()):
            if reference.name != "main":
                repository.delete_reference(reference.name, expected_hash=reference.hash)
        repository.assign_reference(
            "main", NO_ANCESTOR, expected_hash=repository.reference("main").hash
        )
        yield Catalog(repository)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if LOG in config.stash and (
        terminalreporter.stats.get("failed") or terminalreporter.stats.get("error")
    ):
        terminalreporter.section("the end of the original server's log")
        terminalreporter.write(tail(config.stash[LOG]))
