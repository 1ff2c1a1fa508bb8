"""Locations outside of the warehouse, given by clients: nothing is read or written there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from nessie_cli.iceberg.warehouses.configuration import from_options
from nessie_cli.iceberg.warehouses.warehouse import Warehouses
from nessie_cli.model import CommitMeta, ContentKey, IcebergTable, Namespace, Put
from tests.server.client import Answer
from tests.server.iceberg_rest.lake import IcebergClient, Lake, error_of, lake

FORBIDDEN = (403, "ForbiddenException")
SECRET = "root:x:0:0"
OUTSIDE = (
    "file:///etc/passwd",
    "/etc/passwd",
    "file:{lake}/../secret.metadata.json",
    "file:{lake}/%2e%2e/secret.metadata.json",
    "file:{lake}/link.metadata.json",
    "file:{lake}/up/secret.metadata.json",
    "http://169.254.169.254/latest/meta-data/",
    "https://example.com/a.metadata.json",
    "s3://bucket/a.metadata.json",
)


@pytest.fixture
def traps(served: Lake) -> Path:
    """A secret file beside the warehouse, and links to it from inside."""
    secret = served.folder.parent / "secret.metadata.json"
    secret.write_text(json.dumps({"format-version": 2, "s3cret": SECRET}))
    served.folder.mkdir()
    (served.folder / "link.metadata.json").symlink_to(secret)
    (served.folder / "up").symlink_to(served.folder.parent)
    return secret


def snapshot(served: Lake) -> tuple[dict[str, bytes], str]:
    """Returns all files and folders around the warehouse, and the HEAD of main."""
    paths = served.folder.parent.rglob("*")
    files = {str(p): p.read_bytes() if p.is_file() else b"" for p in paths}
    return files, served.repository.reference("main").hash


def check_refused(answer: Answer) -> None:
    assert error_of(answer) == FORBIDDEN
    assert SECRET not in answer.raw.decode()
    assert "s3cret" not in answer.raw.decode()


@pytest.mark.parametrize("location", OUTSIDE)
def test_no_request_reads_or_writes_outside_of_the_warehouse(
    served: Lake, main: IcebergClient, traps: Path, location: str
) -> None:
    location = location.replace("{lake}", str(served.folder))
    main.create("db", "t")
    main.view("db", "v")
    before = snapshot(served)
    register: Any = {"name": "r", "metadata-location": location}
    paths = tuple(
        f"write.{one}.path" for one in ("metadata", "data", "object-storage", "folder-storage")
    )
    for answer in (
        main.post("/namespaces/db/register", register),
        main.post("/namespaces/db/register", {**register, "name": "t", "overwrite": True}),
        main.post("/namespaces/db/register-view", register),
        main.create("db", "u", location=location),
        main.create("db", "u", location=location, **{"stage-create": True}),
        main.view("db", "w", location=location),
        main.namespace("n", location=location),
        main.post("/namespaces/db/properties", {"updates": {"location": location}}),
        main.commit("db", "t", [], [{"action": "set-location", "location": location}]),
        *(main.create("db", "u", properties={name: location}) for name in paths),
        *(main.set_properties("db", "t", properties={name: location}) for name in paths),
        main.post(
            "/namespaces/db/views/v",
            {"requirements": [], "updates": [{"action": "set-location", "location": location}]},
        ),
    ):
        check_refused(answer)
    assert snapshot(served) == before


@pytest.mark.parametrize("location", OUTSIDE)
def test_a_location_committed_through_rest_v2_is_not_read(
    served: Lake, main: IcebergClient, traps: Path, location: str
) -> None:
    content = IcebergTable(metadata_location=location.replace("{lake}", str(served.folder)))
    put = Put(ContentKey(("db", "evil")), content)
    head = served.repository.reference("main").hash
    served.repository.commit("main", [put], CommitMeta("evil"), expected_hash=head)
    before = snapshot(served)
    for answer in (
        main.load("db", "evil"),
        main.load("db", "evil", "?snapshots=refs"),
        main.get("/namespaces/db/tables/evil/credentials"),
        main.set_properties("db", "evil"),
    ):
        check_refused(answer)
    assert snapshot(served) == before


@pytest.mark.parametrize("location", OUTSIDE)
def test_a_staged_table_in_a_namespace_located_outside_makes_no_folder(
    served: Lake, main: IcebergClient, traps: Path, location: str
) -> None:
    properties = {"location": location.replace("{lake}", str(served.folder))}
    put = Put(ContentKey(("out",)), Namespace(elements=("out",), properties=properties))
    served.repository.commit("main", [put], CommitMeta("a namespace outside"))
    before = snapshot(served)
    check_refused(main.create("out", "u", **{"stage-create": True}))
    assert snapshot(served) == before


def test_a_location_inside_of_a_registered_file_is_checked(
    served: Lake, main: IcebergClient
) -> None:
    made = main.create("db", "t").body
    sibling = main.create("db", "s").body["metadata"]["location"]
    bad: Any = ["file:/etc", "http://169.254.169.254/", sibling]
    for number, location in enumerate(bad):
        file = served.folder / f"{number}.metadata.json"
        file.write_text(json.dumps({**made["metadata"], "location": location}))
        register = {"name": "r", "metadata-location": f"file://{file}"}
        check_refused(main.post("/namespaces/db/register", register))
    file.write_text(
        json.dumps({**made["metadata"], "properties": {"write.metadata.path": "file:/etc"}})
    )
    check_refused(main.post("/namespaces/db/register", register))


def test_a_table_is_not_created_at_a_siblings_location(served: Lake, main: IcebergClient) -> None:
    sibling = main.create("db", "s").body["metadata"]
    location = sibling["location"]
    before = snapshot(served)
    requirement = {"type": "assert-create"}
    schema = sibling["schemas"][0]
    for answer in (
        main.create("db", "u", location=location),
        main.create("db", "u", location=f"{location}/data"),
        main.create("db", "u", properties={"write.data.path": f"{location}/data"}),
        main.namespace("n", location=location),
        # The client chooses the UUID in the metadata.
        main.commit(
            "db",
            "u",
            [requirement],
            [
                {"action": "assign-uuid", "uuid": sibling["table-uuid"]},
                {"action": "upgrade-format-version", "format-version": 2},
                {"action": "add-schema", "schema": schema},
                {"action": "set-current-schema", "schema-id": -1},
                {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
                {"action": "set-default-spec", "spec-id": -1},
                {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
                {"action": "set-default-sort-order", "sort-order-id": -1},
                {"action": "set-location", "location": location},
            ],
        ),
    ):
        check_refused(answer)
    assert snapshot(served) == before


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 400),
        (SECRET.encode(), 400),
        (b"[" * 100_000, 400),
        (b'{"format-version": 2, "a": ' + b"[" * 300 + b"]" * 300 + b"}", 400),
        (b'{"format-version": 2, "s3cret": "root:x:0:0"}', 400),
    ],
)
def test_an_error_about_an_invalid_metadata_file_does_not_quote_it(
    served: Lake, main: IcebergClient, content: bytes, status: int
) -> None:
    served.folder.mkdir()
    file = served.folder / "x.metadata.json"
    file.write_bytes(content)
    register = {"name": "r", "metadata-location": f"file://{file}"}
    answer = main.post("/namespaces/db/register", register)
    assert error_of(answer)[0] == status
    assert str(file) in answer.body["error"]["message"]
    assert SECRET not in answer.raw.decode()


def test_properties_with_classes_and_endpoints_have_no_effect_on_the_server(
    served: Lake, main: IcebergClient
) -> None:
    poison = {
        "io-impl": "org.example.Evil",
        "s3.endpoint": "http://169.254.169.254",
    }
    assert main.namespace("poisoned", **poison).status == 200
    assert main.create("poisoned", "t", properties=poison).status == 200
    assert main.set_properties("poisoned", "t", properties=poison).status == 200
    loaded = main.load("poisoned", "t")
    assert loaded.body["metadata"]["properties"]["io-impl"] == "org.example.Evil"
    assert not set(poison) & set(loaded.body["config"])


def test_locations_beside_the_warehouse_can_be_allowed(tmp_path: Path) -> None:
    warehouses = from_options([str(tmp_path / "warehouse")], [str(tmp_path / "old")])
    with lake(tmp_path, warehouses) as served:
        served.main.namespace("db")
        made = served.main.create("db", "t", location=f"file://{tmp_path}/old/t")
        assert made.status == 200
        assert served.main.load("db", "t").status == 200


def test_views_and_transactions_need_the_right_to_choose_a_location(
    tmp_path: Path,
) -> None:
    [found] = from_options([str(tmp_path / "warehouse")]).all
    guarded = Warehouses([structs.replace(found, choose_locations=False)])
    with lake(tmp_path, guarded) as served:
        main = served.main
        main.namespace("db")
        assert main.create("db", "t").status == 200
        assert main.view("db", "v").status == 200
        before = snapshot(served)
        own = f"file://{tmp_path}/warehouse/own"
        updates = [{"action": "set-location", "location": own}]
        change = {
            "identifier": {"namespace": ["db"], "name": "t"},
            "requirements": [],
            "updates": updates,
        }
        for answer in (
            main.view("db", "w", location=own),
            main.post("/transactions/commit", {"table-changes": [change]}),
            main.post("/namespaces/db/views/v", {"requirements": [], "updates": updates}),
        ):
            check_refused(answer)
        assert snapshot(served) == before
