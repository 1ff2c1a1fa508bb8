"""A new lake for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.iceberg.lake import Lake, lake_at, new_store


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with lake_at(new_store(tmp_path), tmp_path) as found:
        yield found
