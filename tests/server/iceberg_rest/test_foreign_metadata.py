"""Metadata files of other programs: invalid ones, and tables without UUID."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from msgspec import structs

from nessie_cli.iceberg.warehouses.configuration import from_options
from nessie_cli.iceberg.warehouses.warehouse import Warehouses
from nessie_cli.model import CommitMeta, ContentKey, IcebergTable, IcebergView, Put
from tests.iceberg.mutants import bases, mutants, recorded
from tests.iceberg.test_validity import ONLY_ICEBERG_ACCEPTS
from tests.server.iceberg_rest.lake import IcebergClient, Lake, error_of, lake

SAMPLE = 61
"""Every so many of the files is tried."""


def written(served: Lake, name: str, document: dict[str, Any]) -> str:
    """Writes metadata whose table lies in the warehouse; returns the location of the file."""
    folder = served.folder / name
    (folder / "metadata").mkdir(parents=True)
    file = folder / "metadata" / "00001-x.metadata.json"
    text = json.dumps(document)
    for location in ("s3://b/t", "s3://b/v"):
        text = text.replace(f'"{location}', f'"file://{folder}')
    file.write_text(text)
    return f"file://{file}"


def test_a_file_is_registered_if_iceberg_accepts_it_and_can_then_be_changed(
    main: IcebergClient, served: Lake
) -> None:
    verdicts, registered = recorded(), 0
    for number, one in enumerate(mutants(SAMPLE)):
        verdict = verdicts[one.base, one.place, one.number]
        name, kind = f"t{number}", "views" if one.base == "view" else "tables"
        location = written(served, name, one.document)
        path = "register-view" if kind == "views" else "register"
        body = {"name": name, "metadata-location": location}
        answer = main.post(f"/namespaces/db/{path}", body)
        if answer.status != 200:
            assert verdict != "A" or one.place in ONLY_ICEBERG_ACCEPTS, (one[:3], answer.body)
            assert error_of(answer)[0] in (400, 403), (one[:3], answer.body)
            continue
        assert verdict != "R", one[:3]
        update = {"action": "set-properties", "updates": {"k": "v"}}
        changed = main.post(
            f"/namespaces/db/{kind}/{name}", {"requirements": [], "updates": [update]}
        )
        assert changed.body["metadata"]["properties"]["k"] == "v", one[:3]
        registered += 1
    assert registered > 10


def test_an_invalid_file_that_nessies_api_put_is_no_fault_of_the_server(
    main: IcebergClient, served: Lake
) -> None:
    """A Put reads no file. The requests that do so name the file and the place in it."""
    refused = 0
    for number, one in enumerate(mutants(SAMPLE)):
        name, is_view = f"t{number}", one.base == "view"
        location = written(served, name, one.document)
        content = (
            IcebergView(metadata_location=location, version_id=1, schema_id=0)
            if is_view
            else IcebergTable(metadata_location=location, snapshot_id=11, schema_id=1)
        )
        put = Put(ContentKey(("db", name)), content)
        served.repository.commit("main", [put], CommitMeta("put"))
        path = f"/namespaces/db/{'views' if is_view else 'tables'}/{name}"
        update = {"action": "set-properties", "updates": {"k": "v"}}
        drop = {"action": "remove-snapshots", "snapshot-ids": [1]}
        for answer in (
            main.get(path),
            main.get(f"{path}?snapshots=refs"),
            main.post(path, {"requirements": [], "updates": [update]}),
            main.post(path, {"requirements": [], "updates": [drop]}),
        ):
            assert answer.status < 500, (one[:3], answer.body)
            refused += answer.status == 400 and location in answer.body["error"]["message"]
    assert refused > 10


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"refs": "x"}, "refs"),
        ({"refs": {"old": 1}}, "refs.old"),
        ({"snapshots": [7]}, "snapshots[0]"),
        ({"schemas": 1.5}, "schemas"),
        ({"snapshot-log": {"a": 1}}, "snapshot-log"),
        ({"last-updated-ms": "now"}, "last-updated-ms"),
    ],
)
def test_a_load_or_change_of_an_invalid_file_names_the_place(
    main: IcebergClient, served: Lake, change: dict[str, Any], place: str
) -> None:
    base = bases()["v2"]
    location = written(served, "t", {**base, **change})
    table = IcebergTable(
        metadata_location=location, snapshot_id=7, schema_id=7, spec_id=base["default-spec-id"]
    )
    put = Put(ContentKey(("db", "t")), table)
    served.repository.commit("main", [put], CommitMeta("put"))
    answers = [main.load("db", "t", "?snapshots=refs"), main.set_properties("db", "t")]
    messages = [each.body["error"]["message"] for each in answers if each.status != 200]
    assert messages
    for message in messages:
        assert place in message, message


def test_the_reason_names_the_file_and_the_place(main: IcebergClient, served: Lake) -> None:
    document = bases()["v2"]
    del document["schemas"][1]["fields"][2]["id"]
    location = written(served, "t", document)
    answer = main.post("/namespaces/db/register", {"name": "t", "metadata-location": location})
    assert error_of(answer) == (400, "BadRequestException")
    assert answer.body["error"]["message"] == (
        f"{location}: not valid Iceberg metadata: schemas[1].fields[2].id is missing"
    )
    assert main.load("db", "t").status == 404


def test_the_reason_quotes_no_file_for_callers_who_may_not_register(tmp_path: Path) -> None:
    [configured] = from_options([str(tmp_path / "warehouse")]).all
    guarded = structs.replace(configured, choose_locations=False)
    with lake(tmp_path / "warehouse", Warehouses([guarded])) as served:
        served.main.namespace("db")
        for name, change in (("a", {"schemas": ["s3cret"]}), ("b", {"properties": ["s3cret"]})):
            document = {**bases()["v1-old"], **change}
            location = written(served, name, document)
            body = {"name": name, "metadata-location": location}
            answer = served.main.post("/namespaces/db/register", body)
            assert answer.status in (400, 403)
            assert "s3cret" not in answer.raw.decode()


@pytest.fixture
def without_uuid(main: IcebergClient, served: Lake) -> dict[str, Any]:
    """The answer to a request that registers `db.old`, a table without UUID."""
    body = {"name": "old", "metadata-location": written(served, "old", bases()["v1-old"])}
    answer: dict[str, Any] = main.post("/namespaces/db/register", body).body
    return answer


def stored(metadata_location: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(
        Path(metadata_location.removeprefix("file://")).read_text()
    )
    return document


def test_a_table_without_uuid_gets_one_with_its_first_change(
    main: IcebergClient, served: Lake, without_uuid: dict[str, Any]
) -> None:
    own = without_uuid["metadata"]["table-uuid"]
    assert str(UUID(own)) == own
    assert "table-uuid" not in stored(without_uuid["metadata-location"])
    assert main.load("db", "old").body["metadata"]["table-uuid"] == own
    other = {"type": "assert-table-uuid", "uuid": "11111111-2222-4333-8444-555555555555"}
    update = {"action": "set-properties", "updates": {"k": "v"}}
    refused = main.commit("db", "old", [other], [update])
    assert error_of(refused) == (409, "CommitFailedException")
    same = {"type": "assert-table-uuid", "uuid": own}
    changed = main.commit("db", "old", [same], [update]).body
    assert changed["metadata"]["table-uuid"] == own
    assert stored(changed["metadata-location"])["table-uuid"] == own
    assert main.set_properties("db", "old").body["metadata"]["table-uuid"] == own


def test_a_table_without_uuid_can_be_upgraded(
    main: IcebergClient, without_uuid: dict[str, Any]
) -> None:
    upgrade = {"action": "upgrade-format-version", "format-version": 2}
    made = main.commit("db", "old", [], [upgrade]).body["metadata"]
    assert made["table-uuid"] == without_uuid["metadata"]["table-uuid"]
    assert made["format-version"] == 2


def test_a_table_without_uuid_is_the_same_table_on_all_branches(
    main: IcebergClient, served: Lake, without_uuid: dict[str, Any]
) -> None:
    dev = served.branch("dev")
    own = without_uuid["metadata"]["table-uuid"]
    assert dev.set_properties("db", "old").body["metadata"]["table-uuid"] == own
    served.repository.merge("dev", "main")
    assert main.load("db", "old").body["metadata"]["table-uuid"] == own


def test_a_file_without_uuid_is_never_the_same_table(
    main: IcebergClient, served: Lake, without_uuid: dict[str, Any]
) -> None:
    location = written(served, "older", bases()["v1-old"])
    body = {"name": "old", "metadata-location": location, "overwrite": True}
    made = main.post("/namespaces/db/register", body).body["metadata"]
    assert made["table-uuid"] != without_uuid["metadata"]["table-uuid"]


def test_a_table_put_by_the_other_api_has_its_content_id_as_uuid(
    main: IcebergClient, served: Lake
) -> None:
    location = written(served, "old", bases()["v1-old"])
    content = IcebergTable(metadata_location=location, snapshot_id=11)
    key = ContentKey(("db", "here"))
    served.repository.commit("main", [Put(key, content)], CommitMeta("put"))
    own = main.load("db", "here").body["metadata"]["table-uuid"]
    assert own == served.repository.content("main", key).id
