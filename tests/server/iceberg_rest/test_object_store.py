"""Tables in an object store: how many requests to it a request to the catalog costs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nessie_cli.iceberg.warehouses.warehouse import Warehouse, Warehouses
from tests.gc.s3 import Store
from tests.server.iceberg_rest.lake import Lake, error_of, lake
from tests.server.iceberg_rest.test_rights import FORBIDDEN, READ, Ruled, ruled


@pytest.fixture
def warehouses(store: Store, tmp_path: Path) -> Warehouses:
    place = f"s3://lake/{tmp_path.name}"
    warehouse = Warehouse(name="w", location=place, allowed=(place,), storage=store.properties)
    return Warehouses([warehouse])


@pytest.fixture
def served(tmp_path: Path, warehouses: Warehouses) -> Iterator[Lake]:
    with lake(tmp_path, warehouses) as found:
        found.main.namespace("db")
        yield found


@pytest.fixture
def server(tmp_path: Path, warehouses: Warehouses) -> Iterator[Ruled]:
    yield from ruled(tmp_path, warehouses)


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


def test_a_cached_table_is_only_for_those_who_may_read_it(server: Ruled) -> None:
    server.rule(f"'reader' in roles && {READ}")
    ada, bob = server.on(server.as_("ada", "reader")), server.on(server.as_("bob"))
    tag = ada.load("db", "t").headers["etag"]
    for _ in range(2):
        assert ada.load("db", "t").status == 200
        assert error_of(bob.load("db", "t")) == FORBIDDEN
        assert error_of(bob.load("db", "t", if_none_match=tag)) == FORBIDDEN
    server.rule(f"'other' in roles && {READ}")
    assert error_of(ada.load("db", "t")) == FORBIDDEN
