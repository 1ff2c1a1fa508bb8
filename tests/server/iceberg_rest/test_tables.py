from __future__ import annotations

import gzip
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from nessie_cli.model import (
    CommitMeta,
    ContentKey,
    IcebergTable,
    MergeBehavior,
    Put,
    ReferenceType,
)
from nessie_cli.repository.changes import MergeOptions
from tests.server.client import Answer, Client
from tests.server.iceberg_rest.lake import SCHEMA, IcebergClient, Lake, appending, error_of

T = ContentKey(("db", "t"))


def content(served: Lake, key: ContentKey = T, at: str = "main") -> IcebergTable:
    found = served.repository.contents(at, [key])[key]
    assert isinstance(found, IcebergTable)
    return found


def on_disk(location: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(location.removeprefix("file://")).read_text())
    return found


# -- create, load, drop --


def test_a_new_table_has_its_own_location_and_file(main: IcebergClient, served: Lake) -> None:
    answer = main.create("db", "t", properties={"owner": "ada"})
    made = answer.body
    metadata = made["metadata"]
    assert metadata["location"] == f"file://{served.folder}/db/t_{metadata['table-uuid']}"
    assert metadata["properties"]["gc.enabled"] == "false"
    assert metadata["properties"]["owner"] == "ada"
    assert made["metadata-location"].startswith(f"{metadata['location']}/metadata/00000-")
    assert on_disk(made["metadata-location"]) == metadata
    assert main.load("db", "t").body == made
    assert content(served).metadata_location == made["metadata-location"]
    assert main.get("/namespaces/db/tables").body["identifiers"] == [
        {"namespace": ["db"], "name": "t"}
    ]
    assert main.send("HEAD", "/namespaces/db/tables/t").status == 204
    log = next(served.repository.log("main"))
    assert log.meta.message == "create table db.t"


def test_a_client_may_allow_engines_to_delete_files(main: IcebergClient) -> None:
    made = main.create("db", "t", properties={"gc.enabled": "true"})
    assert made.body["metadata"]["properties"]["gc.enabled"] == "true"


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_format_versions(main: IcebergClient, version: str) -> None:
    made = main.create("db", "t", properties={"format-version": version})
    assert made.body["metadata"]["format-version"] == int(version)
    assert main.load("db", "t").body["metadata"] == made.body["metadata"]


def test_format_version_4_is_refused(main: IcebergClient, served: Lake) -> None:
    answer = main.create("db", "t", properties={"format-version": "4"})
    assert error_of(answer) == (400, "BadRequestException")
    main.create("db", "t")
    files = served.files()
    updates = [{"action": "upgrade-format-version", "format-version": 4}]
    assert error_of(main.commit("db", "t", [], updates)) == (400, "BadRequestException")
    assert served.files() == files


def test_a_dropped_and_recreated_table_has_a_new_identity(
    main: IcebergClient, served: Lake
) -> None:
    first = main.create("db", "t").body["metadata"]
    first_id = content(served).id
    files = served.files()
    assert main.send("DELETE", "/namespaces/db/tables/t?purgeRequested=true").status == 204
    assert error_of(main.load("db", "t")) == (404, "NoSuchTableException")
    assert error_of(main.send("DELETE", "/namespaces/db/tables/t")) == (404, "NoSuchTableException")
    assert served.files() == files
    second = main.create("db", "t").body["metadata"]
    assert second["location"] != first["location"]
    assert second["table-uuid"] != first["table-uuid"]
    assert content(served).id != first_id


def test_the_same_name_on_another_branch_has_another_location(
    main: IcebergClient, served: Lake
) -> None:
    dev = served.branch("dev")
    here, there = (client.create("db", "t").body["metadata"] for client in (main, dev))
    assert here["location"] != there["location"]
    assert here["table-uuid"] != there["table-uuid"]


def test_a_staged_create_stores_nothing(main: IcebergClient, served: Lake) -> None:
    head = served.repository.reference("main").hash
    answer = main.create("db", "t", **{"stage-create": True})
    assert answer.status == 200
    assert "metadata-location" not in answer.body
    metadata = answer.body["metadata"]
    assert served.files() == set()
    # DuckDB does not create the folders of a table.
    assert (Path(metadata["location"].removeprefix("file://")) / "metadata").is_dir()
    assert served.repository.reference("main").hash == head
    updates = [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "add-schema", "schema": metadata["schemas"][0], "last-column-id": 2},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": metadata["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": metadata["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": metadata["location"]},
        {"action": "set-properties", "updates": metadata["properties"]},
    ]
    create = [{"type": "assert-create"}]
    made = main.commit("db", "t", create, updates + appending(1, None))
    assert made.status == 200, made.body
    assert made.body["metadata"]["location"] == metadata["location"]
    assert made.body["metadata"]["table-uuid"] == metadata["table-uuid"]
    assert made.body["metadata"]["properties"]["gc.enabled"] == "false"
    assert next(served.repository.log("main")).meta.message == "create table db.t: 3 rows"
    again = main.commit("db", "t", create, updates)
    assert error_of(again) == (409, "CommitFailedException")


def test_a_commit_that_creates_a_table_gets_defaults(main: IcebergClient) -> None:
    updates = [
        {"action": "add-schema", "schema": {**SCHEMA, "schema-id": 0}},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
    ]
    made = main.commit("db", "t", [{"type": "assert-create"}], updates)
    assert made.status == 200, made.body
    metadata = made.body["metadata"]
    assert metadata["location"].endswith(f"/db/t_{metadata['table-uuid']}")
    assert metadata["properties"]["gc.enabled"] == "false"


def test_a_table_is_loaded_with_the_snapshots_of_its_refs(main: IcebergClient) -> None:
    main.create("db", "t")
    main.append("db", "t", 1, None, 1)
    main.append("db", "t", 2, 1, 2)
    everything, refs = (main.load("db", "t", f"?snapshots={mode}") for mode in ("all", "refs"))
    assert [one["snapshot-id"] for one in everything.body["metadata"]["snapshots"]] == [1, 2]
    assert [one["snapshot-id"] for one in refs.body["metadata"]["snapshots"]] == [2]
    assert everything.headers["etag"] != refs.headers["etag"]
    assert error_of(main.load("db", "t", "?snapshots=some"))[0] == 400


# -- commit --


def test_every_commit_writes_a_new_file_and_keeps_the_content_id(
    main: IcebergClient, served: Lake
) -> None:
    first = main.create("db", "t").body["metadata-location"]
    before = content(served)
    made = main.append("db", "t", 7, None)
    assert made.status == 200, made.body
    second = made.body["metadata-location"]
    assert "/metadata/00001-" in second
    assert on_disk(second) == made.body["metadata"]
    assert made.body["metadata"]["metadata-log"][-1]["metadata-file"] == first
    after = content(served)
    assert (after.id, after.snapshot_id) == (before.id, 7)
    assert next(served.repository.log("main")).meta.message == "append to db.t: 3 rows"
    assert len(served.files()) == 2


def test_a_commit_without_changes_writes_nothing(main: IcebergClient, served: Lake) -> None:
    main.create("db", "t")
    head, files = served.repository.reference("main").hash, served.files()
    answer = main.commit("db", "t", [], [])
    assert answer.body["metadata"] == main.load("db", "t").body["metadata"]
    assert served.repository.reference("main").hash == head
    assert served.files() == files


def refusals() -> list[Any]:
    uuid = {"type": "assert-table-uuid", "uuid": "00000000-0000-0000-0000-000000000000"}
    ref = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 5}
    stale = appending(2, 1, sequence=1)
    conflict, wrong = (409, "CommitFailedException"), (400, "BadRequestException")
    return [
        pytest.param([uuid], [], conflict, id="another table"),
        pytest.param([ref], [], conflict, id="another snapshot"),
        pytest.param([{"type": "assert-create"}], [], conflict, id="exists"),
        pytest.param([], stale, conflict, id="stale sequence number"),
        pytest.param([], appending(1, None, 2), wrong, id="snapshot id taken"),
        pytest.param([{"type": "no"}], [], wrong, id="unknown requirement"),
        pytest.param([], [{"action": "no"}], wrong, id="unknown update"),
        pytest.param([], [{}], wrong, id="update without action"),
        pytest.param([], "x", wrong, id="updates are no list"),
    ]


@pytest.mark.parametrize(("requirements", "updates", "expected"), refusals())
def test_refused_commits_change_nothing_and_leave_no_file(
    main: IcebergClient, served: Lake, requirements: Any, updates: Any, expected: tuple[int, str]
) -> None:
    main.create("db", "t")
    main.append("db", "t", 1, None)
    head, files = served.repository.reference("main").hash, served.files()
    assert error_of(main.commit("db", "t", requirements, updates)) == expected
    assert served.repository.reference("main").hash == head
    assert served.files() == files


def test_a_stale_first_row_id_is_a_conflict(main: IcebergClient) -> None:
    main.create("db", "t", properties={"format-version": "3"})
    updates = appending(1, None)
    updates[0]["snapshot"] |= {"first-row-id": 0, "added-rows": 3}
    assert main.commit("db", "t", [], updates).body["metadata"]["next-row-id"] == 3
    updates = appending(2, 1, 2)
    updates[0]["snapshot"] |= {"first-row-id": 0, "added-rows": 3}
    assert error_of(main.commit("db", "t", [], updates)) == (409, "CommitFailedException")


def test_a_failed_requirement_names_the_commit_that_changed_the_table(
    main: IcebergClient, served: Lake
) -> None:
    main.create("db", "t")
    main.append("db", "t", 1, None)
    answer = main.append("db", "t", 2, None)
    message = answer.body["error"]["message"]
    head = served.repository.reference("main").hash
    assert head[:8] in message
    assert "append to db.t: 3 rows" in message


def test_a_missing_table_is_not_found(main: IcebergClient) -> None:
    main.view("db", "v")
    for name in ("t", "v"):
        for answer in (
            main.load("db", name),
            main.set_properties("db", name),
            main.send("DELETE", f"/namespaces/db/tables/{name}"),
            main.get(f"/namespaces/db/tables/{name}/credentials"),
            main.post(f"/namespaces/db/tables/{name}/metrics", {"report-type": "scan-report"}),
        ):
            assert error_of(answer) == (404, "NoSuchTableException")
        assert main.send("HEAD", f"/namespaces/db/tables/{name}").status == 404


def test_files_of_committed_states_are_never_deleted(main: IcebergClient, served: Lake) -> None:
    main.create("db", "t")
    main.set_properties(
        "db",
        "t",
        properties={
            "write.metadata.delete-after-commit.enabled": "true",
            "write.metadata.previous-versions-max": "1",
        },
    )
    for number in range(1, 5):
        assert main.append("db", "t", number, number - 1 or None, number).status == 200
    main.commit("db", "t", [], [{"action": "remove-snapshots", "snapshot-ids": [1, 2]}])
    assert len(served.files()) == 7


def test_two_branches_commit_on_the_same_base(main: IcebergClient, served: Lake) -> None:
    main.create("db", "t")
    main.append("db", "t", 1, None)
    dev = served.branch("dev")
    one, other = main.append("db", "t", 2, 1, 2), dev.append("db", "t", 3, 1, 2)
    assert (one.status, other.status) == (200, 200)
    assert one.body["metadata-location"] != other.body["metadata-location"]
    assert content(served).id == content(served, at="dev").id
    assert main.load("db", "t").body["metadata"]["current-snapshot-id"] == 2
    assert dev.load("db", "t").body["metadata"]["current-snapshot-id"] == 3


def test_the_content_decides_which_snapshot_of_its_file_is_current(
    main: IcebergClient, served: Lake
) -> None:
    main.create("db", "t")
    main.append("db", "t", 1, None)
    main.append("db", "t", 2, 1, 2)
    now = content(served)
    older = IcebergTable(id=now.id, metadata_location=now.metadata_location, snapshot_id=1)
    served.repository.commit("main", [Put(T, older, now)], CommitMeta("back"))
    metadata = main.load("db", "t").body["metadata"]
    assert metadata["current-snapshot-id"] == 1
    assert metadata["refs"]["main"]["snapshot-id"] == 1


# -- register, rename --


def test_registering_a_table(main: IcebergClient, served: Lake) -> None:
    location = main.create("db", "t").body["metadata-location"]
    main.send("DELETE", "/namespaces/db/tables/t")
    body = {"name": "u", "metadata-location": location}
    made = main.post("/namespaces/db/register", body)
    assert made.body["metadata-location"] == location
    assert main.load("db", "u").body["metadata"] == made.body["metadata"]
    again = main.post("/namespaces/db/register", body)
    assert error_of(again) == (409, "AlreadyExistsException")


def test_registering_over_a_table(main: IcebergClient, served: Lake) -> None:
    older = main.create("db", "t").body["metadata-location"]
    main.append("db", "t", 1, None)
    other = main.create("db", "other").body["metadata-location"]
    same_id = content(served).id
    body = {"name": "t", "metadata-location": older, "overwrite": True}
    assert main.post("/namespaces/db/register", body).body["metadata-location"] == older
    assert content(served).id == same_id
    body["metadata-location"] = other
    assert main.post("/namespaces/db/register", body).body["metadata-location"] == other
    assert content(served).id not in (same_id, None)
    main.view("db", "v")
    over_a_view = main.post("/namespaces/db/register", {**body, "name": "v"})
    assert error_of(over_a_view) == (409, "AlreadyExistsException")


def test_one_file_registered_on_two_branches_is_two_contents(
    main: IcebergClient, served: Lake
) -> None:
    location = main.create("db", "source").body["metadata-location"]
    dev = served.branch("dev")
    body = {"name": "t", "metadata-location": location}
    for client in (main, dev):
        assert client.post("/namespaces/db/register", body).status == 200
    assert content(served).id != content(served, at="dev").id
    with pytest.raises(Exception, match=r"(?i)conflict"):
        served.repository.merge("dev", "main")
    options = MergeOptions(default_behavior=MergeBehavior.DROP)
    served.repository.merge("dev", "main", options)
    assert content(served).metadata_location == location


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"no json", "not an Iceberg metadata file"),
        (b"[1]", "not an Iceberg metadata file"),
        (b"{}", "not an Iceberg metadata file"),
        (b'{"format-version": 2}', "not an Iceberg metadata file"),
        (b"", "not an Iceberg metadata file"),
    ],
)
def test_registering_an_invalid_metadata_file_is_refused(
    main: IcebergClient, served: Lake, text: bytes, problem: str
) -> None:
    served.folder.mkdir(exist_ok=True)
    file = served.folder / "x.metadata.json"
    file.write_bytes(text)
    answer = main.post(
        "/namespaces/db/register", {"name": "t", "metadata-location": f"file://{file}"}
    )
    assert error_of(answer) == (400, "BadRequestException")
    assert problem in answer.body["error"]["message"]
    assert main.load("db", "t").status == 404


@pytest.mark.parametrize("parts", [1, 2])
def test_compressed_metadata_is_read(main: IcebergClient, served: Lake, parts: int) -> None:
    made = main.create("db", "t").body
    file = served.folder / "x.gz.metadata.json"
    text = b"\xef\xbb\xbf" + json.dumps(made["metadata"]).encode()
    size = len(text) // parts + 1
    file.write_bytes(b"".join(gzip.compress(text[n : n + size]) for n in range(0, len(text), size)))
    body = {"name": "u", "metadata-location": f"file://{file}"}
    assert main.post("/namespaces/db/register", body).body["metadata"] == made["metadata"]
    assert main.load("db", "u").body["metadata"] == made["metadata"]


def test_a_missing_metadata_file_is_reported(main: IcebergClient, served: Lake) -> None:
    location = main.create("db", "t").body["metadata-location"]
    for _ in range(2):
        assert main.load("db", "t").status == 200
    Path(location.removeprefix("file://")).unlink()
    head = served.repository.reference("main").hash
    register = {"name": "u", "metadata-location": location}
    for answer in (
        main.load("db", "t"),
        main.set_properties("db", "t"),
        main.post("/namespaces/db/register", register),
    ):
        assert error_of(answer) == (404, "NotFoundException")
        assert location in answer.body["error"]["message"]
    assert served.repository.reference("main").hash == head


def test_a_changed_metadata_file_is_read_again(main: IcebergClient) -> None:
    file = Path(main.create("db", "t").body["metadata-location"].removeprefix("file://"))
    metadata = json.loads(file.read_text())
    for number in range(3):
        file.write_text(json.dumps(metadata | {"properties": {"number": str(number)}}))
        for _ in range(3):
            answer = main.load("db", "t")
            assert answer.body["metadata"]["properties"] == {"number": str(number)}


def test_concurrent_loads_get_their_own_tables(served: Lake) -> None:
    names = [f"t{number}" for number in range(8)]
    for name in names:
        served.main.create("db", name)

    def load(name: str) -> set[str]:
        client = IcebergClient(Client(served.url))
        locations = {client.load("db", name).body["metadata-location"] for _ in range(50)}
        client.client.close()
        return locations

    with ThreadPoolExecutor(len(names)) as threads:
        loaded = list(threads.map(load, names))
    assert all(
        len(found) == 1 and f"/{name}_" in found.pop()
        for name, found in zip(names, loaded, strict=True)
    )


def rename(client: IcebergClient, old: str, new: str, kind: str = "tables") -> Answer:
    def identifier(text: str) -> dict[str, Any]:
        *namespace, name = text.split(".")
        return {"namespace": namespace, "name": name}

    body = {"source": identifier(old), "destination": identifier(new)}
    return client.post(f"/{kind}/rename", body)


def test_a_renamed_table_keeps_its_content_id(main: IcebergClient, served: Lake) -> None:
    main.create("db", "t")
    before = content(served)
    main.namespace("other")
    assert rename(main, "db.t", "other.u").status == 204
    assert content(served, ContentKey(("other", "u"))) == before
    assert main.load("db", "t").status == 404
    assert main.load("other", "u").status == 200


def test_invalid_renames_are_refused(main: IcebergClient) -> None:
    main.create("db", "t")
    main.view("db", "v")
    assert error_of(rename(main, "db.none", "db.u")) == (404, "NoSuchTableException")
    assert error_of(rename(main, "db.t", "none.u")) == (404, "NoSuchNamespaceException")
    assert error_of(rename(main, "db.t", "db.v")) == (409, "AlreadyExistsException")
    assert rename(main, "db.t", "db.t").status == 204


def test_reports_are_counted(main: IcebergClient, served: Lake) -> None:
    main.create("db", "t")
    report = {"report-type": "scan-report", "table-name": "db.t"}
    answer = main.post("/namespaces/db/tables/t/metrics", report)
    assert (answer.status, answer.raw) == (204, b"")
    assert error_of(main.post("/namespaces/db/tables/t/metrics", {}))[0] == 400
    metrics = served.client.get("/q/metrics").raw.decode()
    route = "/iceberg/v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics"
    line = f'nessie_http_requests_total{{method="POST",route="{route}",status="204"}} 1.0'
    assert line in metrics


def test_a_tag_shows_the_table_as_it_was(main: IcebergClient, served: Lake) -> None:
    main.create("db", "t")
    main.append("db", "t", 1, None)
    served.repository.create_reference(
        ReferenceType.TAG, "before", served.repository.reference("main").hash
    )
    main.append("db", "t", 2, 1, 2)
    tagged = main.on("before").load("db", "t").body["metadata"]
    assert tagged["current-snapshot-id"] == 1
