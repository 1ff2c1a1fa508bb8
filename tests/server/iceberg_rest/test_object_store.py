"""Tables in an object store: how many requests to it a request to the catalog costs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nessie_cli.iceberg.warehouses.warehouse import Warehouse, Warehouses
from tests.gc.s3 import Store, s3
from tests.server.iceberg_rest.lake import Lake, error_of, lake


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with s3() as found:
        yield found


@pytest.fixture
def served(store: Store, tmp_path: Path) -> Iterator[Lake]:
    place = f"s3://lake/{tmp_path.name}"
    warehouse = Warehouse(name="w", location=place, allowed=(place,), storage=store.properties)
    with lake(tmp_path, Warehouses([warehouse])) as found:
        found.main.namespace("db")
        yield found


def test_a_commit_is_one_request_and_a_load_none(store: Store, served: Lake) -> None:
    served.main.create("db", "t")
    store.requests.clear()
    assert served.main.append("db", "t", 1, on=None).status == 200
    assert [method for method, _ in store.requests] == ["PUT"]
    store.requests.clear()
    loaded = served.main.load("db", "t")
    assert loaded.body["metadata"]["current-snapshot-id"] == 1
    assert store.requests == []


def test_a_file_that_is_gone_cannot_be_registered(store: Store, served: Lake) -> None:
    location = served.main.create("db", "t").body["metadata-location"]
    store.files.delete_file(location.removeprefix("s3://"))
    body = {"name": "again", "metadata-location": location}
    assert error_of(served.main.post("/namespaces/db/register", body))[0] == 404
