from __future__ import annotations

from typing import Any

import pytest

from nessie_cli.model import ContentKey, IcebergView
from tests.server.iceberg_rest.lake import VIEW_VERSION, IcebergClient, Lake, error_of

V = ContentKey(("db", "v"))


def replacing(sql: str, dialect: str = "spark") -> list[dict[str, Any]]:
    version = {
        **VIEW_VERSION,
        "version-id": 2,
        "representations": [{"type": "sql", "sql": sql, "dialect": dialect}],
    }
    return [
        {"action": "add-view-version", "view-version": version},
        {"action": "set-current-view-version", "view-version-id": -1},
    ]


def replace(client: IcebergClient, updates: Any, requirements: Any = ()) -> Any:
    body = {"requirements": list(requirements), "updates": updates}
    return client.post("/namespaces/db/views/v", body)


def content(served: Lake, key: ContentKey = V) -> IcebergView:
    found = served.repository.contents("main", [key])[key]
    assert isinstance(found, IcebergView)
    return found


def test_a_view_is_created_loaded_and_dropped(main: IcebergClient, served: Lake) -> None:
    made = main.view("db", "v").body
    metadata = made["metadata"]
    assert metadata["location"] == f"file://{served.folder}/db/v_{metadata['view-uuid']}"
    assert main.get("/namespaces/db/views/v").body == made
    assert main.send("HEAD", "/namespaces/db/views/v").status == 204
    assert main.get("/namespaces/db/views").body["identifiers"] == [
        {"namespace": ["db"], "name": "v"}
    ]
    assert main.get("/namespaces/db/tables").body["identifiers"] == []
    assert content(served).sql_text == "select 1"
    assert main.send("DELETE", "/namespaces/db/views/v").status == 204
    assert error_of(main.get("/namespaces/db/views/v")) == (404, "NoSuchViewException")
    assert main.send("HEAD", "/namespaces/db/views/v").status == 404
    assert error_of(main.send("DELETE", "/namespaces/db/views/v")) == (404, "NoSuchViewException")


def test_a_view_is_replaced_with_requirements(main: IcebergClient, served: Lake) -> None:
    made = main.view("db", "v").body
    before = content(served)
    own = {"type": "assert-view-uuid", "uuid": made["metadata"]["view-uuid"]}
    answer = replace(main, replacing("select 2"), [own])
    assert answer.body["metadata"]["current-version-id"] == 2
    assert "/metadata/00001-" in answer.body["metadata-location"]
    assert content(served).id == before.id
    assert content(served).version_id == 2
    other = {"type": "assert-view-uuid", "uuid": "00000000-0000-0000-0000-000000000000"}
    files = served.files()
    refused = replace(main, replacing("select 3"), [other])
    assert error_of(refused) == (409, "CommitFailedException")
    assert error_of(replace(main, replacing("select 3", "trino")))[0] == 400
    assert error_of(replace(main, [{"action": "no"}]))[0] == 400
    assert served.files() == files


def test_a_missing_view_cannot_be_replaced(main: IcebergClient) -> None:
    assert error_of(replace(main, [])) == (404, "NoSuchViewException")


def test_a_renamed_view_keeps_its_content_id(main: IcebergClient, served: Lake) -> None:
    main.view("db", "v")
    main.create("db", "t")
    before = content(served)
    body = {
        "source": {"namespace": ["db"], "name": "v"},
        "destination": {"namespace": ["db"], "name": "t"},
    }
    assert error_of(main.post("/views/rename", body)) == (409, "AlreadyExistsException")
    body["destination"]["name"] = "w"
    assert main.post("/views/rename", body).status == 204
    assert content(served, ContentKey(("db", "w"))) == before
    assert error_of(main.post("/views/rename", body)) == (404, "NoSuchViewException")


def test_a_view_is_registered(main: IcebergClient, served: Lake) -> None:
    location = main.view("db", "v").body["metadata-location"]
    main.send("DELETE", "/namespaces/db/views/v")
    body = {"name": "w", "metadata-location": location}
    made = main.post("/namespaces/db/register-view", body)
    assert made.body["metadata-location"] == location
    again = main.post("/namespaces/db/register-view", body)
    assert error_of(again) == (409, "AlreadyExistsException")
    as_table = main.post("/namespaces/db/register", {**body, "name": "t"})
    assert error_of(as_table) == (400, "BadRequestException")
    table = main.create("db", "table").body["metadata-location"]
    as_view = main.post("/namespaces/db/register-view", {"name": "x", "metadata-location": table})
    assert error_of(as_view) == (400, "BadRequestException")


@pytest.mark.parametrize("missing", ["name", "schema", "view-version"])
def test_a_view_with_a_missing_part_is_refused(
    main: IcebergClient, served: Lake, missing: str
) -> None:
    body = {"name": "v", "schema": {"type": "struct", "fields": []}, "view-version": VIEW_VERSION}
    del body[missing]
    answer = main.post("/namespaces/db/views", body)
    assert error_of(answer) == (400, "BadRequestException")
    assert missing in answer.body["error"]["message"]
    assert served.files() == set()
