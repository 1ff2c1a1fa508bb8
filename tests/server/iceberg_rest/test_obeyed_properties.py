"""Properties of tables that PyIceberg would obey: code to run, a place for its token."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from pyiceberg.catalog.rest import RestCatalog

from nessie_cli.model import CommitMeta, ContentKey, IcebergTable, Put
from nessie_cli.server.iceberg.obeyed_properties import _STEP, REFUSED, may_be_in
from tests.server.iceberg_rest.lake import IcebergClient, Lake, error_of, staged_updates

OBEYED = (
    *REFUSED,
    "uri",
    "s3.endpoint",
    "s3.proxy-uri",
    "s3.secret-access-key",
    "client.region",
    "gcs.service.host",
    "adls.account-host",
    "hf.endpoint",
    "hdfs.host",
)


@pytest.fixture
def table(main: IcebergClient) -> Path:
    """The metadata file of a table `db.t`."""
    main.namespace("db")
    return Path(main.create("db", "t").body["metadata-location"].removeprefix("file://"))


def with_properties(table: Path, properties: dict[str, str]) -> str:
    """Returns the location of metadata like that of a table. The first name is escaped."""
    document: dict[str, Any] = json.loads(table.read_bytes())
    document["properties"] |= properties
    first = next(iter(properties))
    text = json.dumps(document).replace(first, f"\\u{ord(first[0]):04x}{first[1:]}")
    file = table.with_name("x.metadata.json")
    file.write_text(text)
    return f"file://{file}"


@pytest.mark.parametrize("name", REFUSED)
def test_no_table_gets_such_a_property(
    main: IcebergClient, served: Lake, table: Path, name: str
) -> None:
    poison = {name: "builtins.exec", "mine": "x"}
    updates = [{"action": "set-properties", "updates": poison}]
    change = {"identifier": {"namespace": ["db"], "name": "t"}, "updates": updates}
    creation = [{"type": "assert-create"}]
    staged = main.create("db", "n", **{"stage-create": True}).body["metadata"]
    location = with_properties(table, poison)
    before = served.repository.reference("main").hash
    for answer in (
        main.create("db", "n", properties=poison),
        main.create("db", "n", properties=poison, **{"stage-create": True}),
        main.commit("db", "n", creation, [*staged_updates(staged), *updates]),
        main.set_properties("db", "t", properties=poison),
        main.post("/transactions/commit", {"table-changes": [change]}),
        main.post("/namespaces/db/register", {"name": "r", "metadata-location": location}),
    ):
        status, _ = error_of(answer)
        assert (status, name in answer.body["error"]["message"]) == (400, True), answer.body
    assert served.repository.reference("main").hash == before


def test_tables_of_flinks_connector_are_created_and_answered_without_the_uri(
    main: IcebergClient, table: Path
) -> None:
    """The connector makes all options of its table properties, also those of its catalog."""
    left_out = {"uri": "http://elsewhere", "s3.endpoint": "http://elsewhere"}
    options = {"connector": "iceberg", "catalog-type": "rest", **left_out}
    created = main.create("db", "flink", properties=options)
    location = created.body["metadata-location"]
    registration = {"name": "r", "metadata-location": location}
    for answer in (
        created,
        main.load("db", "flink"),
        main.set_properties("db", "flink"),
        main.post("/namespaces/db/register", registration),
    ):
        assert answer.status == 200, answer.body
        properties = answer.body["metadata"]["properties"]
        assert properties.items() >= {"connector": "iceberg", "catalog-type": "rest"}.items()
        assert not left_out.keys() & properties.keys()


def test_a_table_that_has_them_is_loaded_without(
    main: IcebergClient, served: Lake, table: Path
) -> None:
    poison = dict.fromkeys(OBEYED, "builtins.exec")
    location = with_properties(table, {**poison, "mine": "x"})
    key = ContentKey(("db", "t"))
    there = served.repository.contents("main", [key])[key]
    assert isinstance(there, IcebergTable)
    content = structs.replace(there, metadata_location=location)
    served.repository.commit("main", [Put(key, content)], CommitMeta("from elsewhere"))
    for query in ("", "?snapshots=refs"):
        properties = main.load("db", "t", query).body["metadata"]["properties"]
        assert (properties["mine"], set(OBEYED) & properties.keys()) == ("x", set())
    changed = main.set_properties("db", "t")
    assert changed.status == 200
    assert not set(OBEYED) & changed.body["metadata"]["properties"].keys()
    # Its metadata stays as it is for other catalogs.
    written = json.loads(
        Path(changed.body["metadata-location"].removeprefix("file://")).read_text()
    )
    assert written["properties"].items() >= {**poison, "a": "b"}.items()
    removal = [{"action": "remove-properties", "removals": list(OBEYED)}]
    assert main.commit("db", "t", [], removal).status == 200


def test_a_property_between_two_parts_of_a_text_is_seen() -> None:
    for place in (0, _STEP - 5, _STEP, 2 * _STEP - 1):
        for name in (
            b"py-io-impl",
            b'"s3.endpoint"',
            b'"uri"',
            b'"uri" \n:',
            b'"uri"' + b" " * _STEP + b":",
        ):
            assert may_be_in(b" " * place + name + b" " * _STEP)
    assert not may_be_in(b'"write.location-provider.impl": "s3://x"' * 100_000)
    assert not may_be_in(b'{"id": 1, "name": "uri", "type": "string"}' * 100_000)


def test_pyiceberg_signs_requests_where_its_user_says(served: Lake, table: Path) -> None:
    """Without `s3.signer.uri`, its signer sends the token to `uri`."""
    poison = {
        "uri": "http://elsewhere",
        "gcs.service.host": "http://elsewhere",
        "s3.signer.endpoint": "../x",
        "s3.signer": "S3V4RestSigner",
    }
    location = with_properties(table, poison)
    content = IcebergTable(metadata_location=location, snapshot_id=-1)
    put = Put(ContentKey(("db", "other")), content)
    served.repository.commit("main", [put], CommitMeta("from elsewhere"))
    uri = f"{served.url}/iceberg"
    properties = RestCatalog("rest", uri=uri).load_table("db.other").io.properties
    assert (properties["uri"], poison.keys() & properties.keys()) == (uri, {"uri"})
