from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gc.s3 import Store, s3
from tests.server.iceberg_rest.lake import IcebergClient, Lake, lake


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Lake]:
    """A server with a warehouse, and the namespace `db` on main."""
    with lake(tmp_path / "warehouse") as found:
        assert found.main.namespace("db").status == 200
        yield found


@pytest.fixture
def main(served: Lake) -> IcebergClient:
    """A client of the branch main."""
    return served.main


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    """A server for S3 with a bucket."""
    with s3() as started:
        yield started
