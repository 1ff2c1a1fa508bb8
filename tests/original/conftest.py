"""One original server for all tests of this folder. Its log is shown when it cannot be started, and kept beside the tests' other files."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.original.server import Original, original

SOON_WARM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""A run of two minutes has no use for what the machine compiles for hours."""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Original]:
    with original(tmp_path_factory.mktemp("original"), options=SOON_WARM) as running:
        yield running
