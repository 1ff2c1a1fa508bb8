"""Access to files through the API: callers, their tables, credentials and signatures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest
import requests
from msgspec import structs
from pyiceberg.catalog import load_catalog

from nessie_cli.iceberg.warehouses.warehouse import Warehouses
from nessie_cli.model import CommitMeta, ContentKey, IcebergTable, Put, ReferenceType
from tests.gc.s3 import Store
from tests.iceberg.lake import ROWS
from tests.server.iceberg_rest.lake import IcebergClient, Lake, error_of, lake, staged_updates
from tests.server.iceberg_rest.s3_accounts import signatures_verified, user_of, warehouse
from tests.server.iceberg_rest.test_delegation import last_policy
from tests.server.iceberg_rest.test_rights import FORBIDDEN, READ, WRITE, Ruled, ruled

VENDED, SIGNING = "vended-credentials", "remote-signing"
KEY_ID = "s3.access-key-id"


def delegating(store: Store, tmp_path: Path, **more: Any) -> Warehouses:
    place = f"s3://lake/{tmp_path.name}"
    client = {"s3.endpoint": store.url, "client.region": "us-east-1", "s3.region": "us-east-1"}
    return Warehouses(
        [
            warehouse(
                store,
                VENDED,
                SIGNING,
                location=place,
                client_config=client,
                delete_files=True,
                **more,
            )
        ]
    )


@pytest.fixture
def served(store: Store, tmp_path: Path) -> Iterator[Lake]:
    """A server without rules."""
    with lake(tmp_path, delegating(store, tmp_path)) as found:
        found.main.namespace("db")
        found.main.create("db", "t")
        yield found


@pytest.fixture
def server(store: Store, tmp_path: Path) -> Iterator[Ruled]:
    yield from ruled(tmp_path, delegating(store, tmp_path, storage=user_of(store)))


def vended(client: IcebergClient, name: str = "t", **headers: str) -> Any:
    return client.load("db", name, x_iceberg_access_delegation=VENDED, **headers)


def test_credentials_are_only_vended_on_request(served: Lake) -> None:
    body = served.main.load("db", "t").body
    assert KEY_ID not in body["config"]
    assert "storage-credentials" not in body
    assert body["config"]["client.region"] == "us-east-1"
    assert "hidden" not in str(served.client.get("/iceberg/v1/config").body)


def test_every_answer_that_loads_a_table_has_credentials(served: Lake) -> None:
    asking = {"x_iceberg_access_delegation": VENDED}
    main = served.main
    body = {"name": "u", "schema": main.load("db", "t").body["metadata"]["schemas"][0]}
    tables = "/namespaces/db/tables"
    for answer in (
        vended(main),
        main.set_properties("db", "t", **asking),
        main.post(tables, {**body, "stage-create": True}, **asking),
        main.post(tables, body, **asking),
    ):
        found = answer.body
        (credential,) = found["storage-credentials"]
        assert credential["prefix"] == f"{found['metadata']['location']}/"
        assert found["config"][KEY_ID] == credential["config"][KEY_ID]
        endpoint = found["config"]["client.refresh-credentials-endpoint"]
        assert endpoint.startswith("v1/main/namespaces/db/tables/")
        if found.get("metadata-location"):
            again = served.client.get(f"/iceberg/{endpoint}").body["storage-credentials"]
            assert again == [credential]


def test_pyiceberg_works_with_only_vended_credentials(served: Lake) -> None:
    catalog = load_catalog("rest", type="rest", uri=f"{served.url}/iceberg")
    table = catalog.create_table("db.orders", ROWS.schema)
    assert "s3.session-token" in table.io.properties
    table.append(ROWS)
    assert catalog.load_table("db.orders").scan().to_arrow() == ROWS


def test_tags_and_commits_are_read_only(served: Lake) -> None:
    head = served.repository.reference("main").hash
    served.repository.create_reference(ReferenceType.TAG, "v1.0", head)
    for prefix in ("v1.0", head, f"main@{head}".replace("@", "%40")):
        assert vended(served.main.on(prefix)).status == 200
        assert "s3:PutObject" not in str(last_policy())
    vended(served.main.on("main"), "t", if_none_match='"other"')
    assert served.main.set_properties("db", "t").status == 200


def test_tables_of_a_branch_that_changes_only_by_merges_are_read_only(served: Lake) -> None:
    served.repository.put_setting("protect.main", "merge-only")
    assert vended(served.main).status == 200
    assert "s3:PutObject" not in str(last_policy())
    served.repository.create_reference(
        ReferenceType.BRANCH, "dev", served.repository.reference("main").hash
    )
    assert vended(served.main.on("dev")).status == 200
    assert "s3:PutObject" in str(last_policy())


def test_a_location_committed_through_rest_v2_gets_no_credentials(served: Lake) -> None:
    """Another table's metadata file in a content that was committed through the other API."""
    sibling = served.main.load("db", "t").body
    content = IcebergTable(
        metadata_location=sibling["metadata-location"],
        snapshot_id=-1, schema_id=0, spec_id=0, sort_order_id=0,
    )  # fmt: skip
    head = served.repository.reference("main").hash
    put = Put(ContentKey(("db", "evil")), content)
    served.repository.commit("main", [put], CommitMeta("evil"), expected_hash=head)
    for mode in (VENDED, SIGNING):
        found = served.main.load("db", "evil", x_iceberg_access_delegation=mode).body
        assert "storage-credentials" not in found
        assert not {KEY_ID, "signer.endpoint"} & found["config"].keys()
    answer = served.main.get("/namespaces/db/tables/evil/credentials")
    assert answer.body == {"storage-credentials": []}


def test_metadata_outside_of_its_location_gets_no_credentials(served: Lake, store: Store) -> None:
    """A file in the folder of another table names the location of this table."""
    main, repository = served.main, served.repository
    own = repository.content("main", ContentKey(("db", "t")))
    other = main.create("db", "u").body["metadata-location"]
    forged = other.replace("00000-", "00009-")
    assert isinstance(own, IcebergTable)
    document = main.load("db", "t").body["metadata"]
    store.put(forged.removeprefix("s3://"), json.dumps(document).encode())
    put = Put(ContentKey(("db", "t")), structs.replace(own, metadata_location=forged))
    repository.commit("main", [put], CommitMeta("forged"))
    for mode in (VENDED, SIGNING):
        answer = main.load("db", "t", x_iceberg_access_delegation=mode)
        assert answer.status == 200
        assert "storage-credentials" not in answer.body
        assert not {KEY_ID, "signer.endpoint"} & answer.body["config"].keys()
    answer = main.get("/namespaces/db/tables/t/credentials")
    assert answer.body == {"storage-credentials": []}
    assert error_of(main.set_properties("db", "t")) == FORBIDDEN


def test_a_renamed_table_keeps_its_credentials(served: Lake) -> None:
    main = served.main
    before = main.load("db", "t").body["metadata"]
    rename = {
        "source": {"namespace": ["db"], "name": "t"},
        "destination": {"namespace": ["db"], "name": "u"},
    }
    assert main.post("/tables/rename", rename).status == 204
    assert KEY_ID in vended(main, "u").body["config"]
    # A client that creates the old name again requests the old location.
    updates = [
        {"action": "assign-uuid", "uuid": before["table-uuid"]},
        {"action": "add-schema", "schema": before["schemas"][0]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": before["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": before["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": before["location"]},
    ]
    assert error_of(main.commit("db", "t", [{"type": "assert-create"}], updates)) == FORBIDDEN


def test_a_conditional_load_renews_credentials_in_time(served: Lake) -> None:
    first = vended(served.main)
    tag = first.headers["etag"]
    assert vended(served.main, if_none_match=tag).status == 304
    digest = tag.strip('"').partition(".")[0]
    assert vended(served.main, if_none_match=f'"{digest}.1"').status == 200
    assert vended(served.main, if_none_match="*").status == 200
    assert served.main.load("db", "t", if_none_match=tag).status == 200
    assert served.main.load("db", "t", if_none_match="*").status == 304


# -- rights ----------------------------------------------------------------------------------------


def test_a_reader_gets_read_only_credentials(server: Ruled) -> None:
    server.rule(f"'reader' in roles && {READ}", f"'writer' in roles && ({READ} || {WRITE})")
    reader, writer = server.on(server.as_("ada", "reader")), server.on(server.as_("bo", "writer"))
    assert KEY_ID in vended(writer).body["config"]
    assert "s3:PutObject" in str(last_policy())
    assert KEY_ID in vended(reader).body["config"]
    assert "s3:PutObject" not in str(last_policy())
    server.rule("false")
    assert error_of(vended(reader)) == FORBIDDEN
    assert error_of(reader.get("/namespaces/db/tables/t/credentials")) == FORBIDDEN


def test_the_right_to_create_tables_gives_no_access_to_other_tables(server: Ruled) -> None:
    creates = "op in ['COMMIT_CHANGE_AGAINST_REFERENCE', 'CREATE_ENTITY']"
    server.rule(f"'creator' in roles && ({READ} || {creates})")
    creator = server.on(server.as_("cy", "creator"))
    assert KEY_ID in vended(creator).body["config"]
    assert "s3:PutObject" not in str(last_policy())
    schema = creator.load("db", "t").body["metadata"]["schemas"][0]
    staged = creator.post(
        "/namespaces/db/tables",
        {"name": "new", "schema": schema, "stage-create": True},
        x_iceberg_access_delegation=VENDED,
    )
    assert KEY_ID in staged.body["config"]
    assert "s3:PutObject" in str(last_policy())


def sign(client: IcebergClient, endpoint: str, uri: str, method: str = "GET", **more: Any) -> Any:
    body = {"region": "us-east-1", "uri": uri, "method": method, "headers": {}, **more}
    return client.client.send("POST", f"/iceberg/{endpoint}", body)


def test_signing_stops_when_the_caller_loses_its_rights(server: Ruled, store: Store) -> None:
    server.rule(f"'writer' in roles && ({READ} || {WRITE})")
    client = server.on(server.as_("bo", "writer"))
    found = client.load("db", "t", x_iceberg_access_delegation=SIGNING).body
    config = found["config"]
    assert config["signer.uri"] == f"{server.url}/iceberg"
    assert KEY_ID not in config
    endpoint = config["signer.endpoint"]
    uri = f"{store.url}/{found['metadata']['location'].removeprefix('s3://')}/data/a"
    with signatures_verified():
        for method, data in (("PUT", b"rows"), ("GET", b"")):
            answer = sign(client, endpoint, uri, method)
            assert answer.status == 200, answer.raw
            kept = "private" if method == "GET" else "no-cache"
            assert answer.headers["cache-control"] == kept
            headers = {name: values[0] for name, values in answer.body["headers"].items()}
            sent = requests.request(
                method, answer.body["uri"], headers=headers, data=data, timeout=60
            )
            assert sent.status_code == 200, sent.text
        assert sent.content == b"rows"
    other = server.on(server.as_("carla", "writer"))
    elsewhere = endpoint.replace("/tables/t/", "/tables/u/")
    for answer in (
        sign(client, endpoint, uri.replace("/data/a", "2/data/a")),
        sign(client, endpoint, f"{uri}?acl"),
        sign(other, endpoint, uri),
        sign(client, elsewhere, uri),
        sign(client, endpoint.replace("v1/main/", "v1/dev/"), uri),
        sign(client, endpoint.partition("?")[0], uri),
    ):
        assert answer.status in (403, 404)
    assert sign(client, endpoint, uri, headers=[]).status == 400
    server.rule(f"'writer' in roles && {READ}")
    assert sign(client, endpoint, uri).status == 200
    assert error_of(sign(client, endpoint, uri, "PUT")) == FORBIDDEN
    server.rule("false")
    assert error_of(sign(client, endpoint, uri)) == FORBIDDEN


RENAME = {
    "source": {"namespace": ["db"], "name": "t"},
    "destination": {"namespace": ["db"], "name": "moved"},
}


def may_sign(client: IcebergClient, endpoint: str, store: Store, location: str) -> list[int]:
    """Returns the status of the answers to requests that read, write and delete a file."""
    uri = f"{store.url}/{location.removeprefix('s3://')}/data/a"
    return [sign(client, endpoint, uri, method).status for method in ("GET", "PUT", "DELETE")]


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("gone", ["rename", "drop"])
def test_a_grant_is_not_valid_for_a_table_that_has_left_its_key(
    server: Ruled, store: Store, gone: str, again: bool
) -> None:
    """Its caller might have no rights to the new key, and other branches need its files."""
    server.rule(f"'writer' in roles && ({READ} || {WRITE}) && !path.startsWith('db.moved')")
    client = server.on(server.as_("bo", "writer"))
    asking = {"x_iceberg_access_delegation": SIGNING}
    body = client.load("db", "t", **asking).body
    given = (body["config"]["signer.endpoint"], store, body["metadata"]["location"])
    assert may_sign(client, *given) == [200, 200, 200]
    assert server.admin.set_properties("db", "t").status == 200
    assert may_sign(client, *given) == [200, 200, 200]
    if gone == "rename":
        assert server.admin.post("/tables/rename", RENAME).status == 204
        assert error_of(client.load("db", "moved")) == FORBIDDEN
    else:
        assert server.admin.send("DELETE", "/namespaces/db/tables/t").status == 204
    if again:
        assert server.admin.create("db", "t").status == 200
    assert may_sign(client, *given) == [403, 403, 403]


@pytest.mark.parametrize("before", [False, True])
def test_a_grant_for_a_staged_table_is_valid_until_the_table_leaves_its_key(
    server: Ruled, store: Store, before: bool
) -> None:
    """Also under a key that had a table before."""
    server.rule(f"'writer' in roles && ({READ} || {WRITE}) && !path.startsWith('db.moved')")
    client = server.on(server.as_("bo", "writer"))
    schema = client.load("db", "t").body["metadata"]["schemas"][0]
    name = "t" if before else "new"
    if before:
        server.admin.send("DELETE", "/namespaces/db/tables/t")
    body = {"name": name, "schema": schema, "stage-create": True}
    asking = {"x_iceberg_access_delegation": SIGNING}
    answers = [client.post("/namespaces/db/tables", body, **asking).body for _ in range(2)]
    (given, other) = (
        (found["config"]["signer.endpoint"], store, found["metadata"]["location"])
        for found in answers
    )
    assert may_sign(client, *given) == may_sign(client, *other) == [200, 200, 200]
    created = client.commit(
        "db", name, [{"type": "assert-create"}], staged_updates(answers[0]["metadata"])
    )
    assert created.status == 200
    assert created.body["metadata"]["location"] == given[2]
    assert may_sign(client, *given) == [200, 200, 200]
    assert may_sign(client, *other) == [403, 403, 403]
    rename = {**RENAME, "source": {"namespace": ["db"], "name": name}}
    assert server.admin.post("/tables/rename", rename).status == 204
    assert may_sign(client, *given) == may_sign(client, *other) == [403, 403, 403]


@pytest.mark.parametrize("mode", [VENDED, SIGNING])
@pytest.mark.parametrize("again", [False, True])
def test_a_repeated_request_gives_no_access_to_a_table_that_has_left_its_key(
    server: Ruled, mode: str, again: bool
) -> None:
    server.rule(f"'writer' in roles && ({READ} || {WRITE}) && !path.startsWith('db.moved')")
    client = server.on(server.as_("bo", "writer"))
    schema = client.load("db", "t").body["metadata"]["schemas"][0]
    server.admin.send("DELETE", "/namespaces/db/tables/t")
    keys = [str(uuid4()) for _ in range(2)]

    def create() -> Any:
        body = {"name": "t", "schema": schema}
        asking = {"x_iceberg_access_delegation": mode, "idempotency_key": keys[0]}
        return client.post("/namespaces/db/tables", body, **asking)

    def change() -> Any:
        asking = {"x_iceberg_access_delegation": mode, "idempotency_key": keys[1]}
        return client.set_properties("db", "t", **asking)

    def with_access(answer: Any) -> bool:
        assert answer.status == 200
        return bool({KEY_ID, "signer.endpoint"} & answer.body["config"].keys())

    requests_ = (create, change)
    assert [with_access(request()) for request in requests_] == [True, True]
    assert [with_access(request()) for request in requests_] == [True, True]
    assert server.admin.post("/tables/rename", RENAME).status == 204
    if again:
        assert server.admin.create("db", "t").status == 200
    assert [with_access(request()) for request in requests_] == [False, False]


def test_a_grant_for_a_chosen_location_needs_the_right_to_choose_it(
    server: Ruled, store: Store
) -> None:
    rule = f"'writer' in roles && ({READ} || {WRITE})"
    chosen = f"{server.admin.load('db', 't').body['metadata']['location'].rpartition('/')[0]}/own"
    assert server.admin.create("db", "chosen", location=chosen).status == 200
    client = server.on(server.as_("bo", "writer"))
    server.rule(rule, "'writer' in roles && op == 'CHOOSE_LOCATION'")
    found = client.load("db", "chosen", x_iceberg_access_delegation=SIGNING).body
    given = (found["config"]["signer.endpoint"], store, chosen)
    assert may_sign(client, *given) == [200, 200, 200]
    server.rule(rule)
    assert may_sign(client, *given) == [403, 403, 403]


def test_only_the_signing_endpoint_of_a_table_signs(server: Ruled) -> None:
    assert sign(server.admin, "v1/aws/s3/sign", "http://x/").status == 404
    endpoints = server.admin.client.get("/iceberg/v1/config").body["endpoints"]
    assert "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/sign" in endpoints


@pytest.mark.parametrize(
    ("headers", "uri"),
    [
        (
            {"x-forwarded-proto": "https", "x-forwarded-host": "lake.example"},
            "https://lake.example",
        ),
        ({"x-forwarded-proto": "https", "x-forwarded-prefix": "/n/"}, "https://{host}/n"),
        ({"x-forwarded-proto": "gopher"}, None),
        ({"x-forwarded-host": "lake.example"}, None),
        ({"x-forwarded-proto": "https", "x-forwarded-host": "a b\\c"}, None),
    ],
)
def test_the_signer_uri_follows_the_headers_of_the_proxy(
    served: Lake, headers: dict[str, str], uri: str | None
) -> None:
    asked = {"x-iceberg-access-delegation": SIGNING, **headers}
    path = "/iceberg/v1/main/namespaces/db/tables/t"
    config = served.client.send("GET", path, headers=asked).body["config"]
    assert "signer.endpoint" in config
    host = urlsplit(served.url).netloc
    expected = f"{uri.replace('{host}', host)}/iceberg" if uri else None
    assert config.get("signer.uri") == config.get("s3.signer.uri") == expected
    assert parse_qs(urlsplit(config["signer.endpoint"]).query)["grant"]


def test_local_files_are_not_delegated(tmp_path: Path) -> None:
    with lake(tmp_path / "warehouse") as found:
        found.main.namespace("db")
        found.main.create("db", "t")
        for mode in (VENDED, SIGNING, f"{SIGNING},{VENDED}"):
            body = found.main.load("db", "t", x_iceberg_access_delegation=mode).body
            assert body["config"] == {}
            assert "storage-credentials" not in body
        answer = found.main.get("/namespaces/db/tables/t/credentials")
        assert answer.body == {"storage-credentials": []}
