"""One server for the tests of a module; each test has branches of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engines.served import Served, serving


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("lake")) as running:
        yield running
