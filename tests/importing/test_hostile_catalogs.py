"""The source of an import, and the target of an export, choose no code to run."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from nessie_cli.exporting.target import Target
from nessie_cli.iceberg.files import Files
from nessie_cli.importing.opening import open_source

RAN: list[str] = []
CODE = f"{__name__}.ran"
PROPERTIES = {"py-io-impl": CODE}
AUTH = {"type": "custom", "impl": CODE, "custom": {"args": ["touch", "/tmp/x"]}}
METADATA: dict[str, Any] = {
    "format-version": 2, "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
    "location": "s3://lake/t", "last-sequence-number": 0, "last-updated-ms": 1,
    "last-column-id": 0, "current-schema-id": 0, "default-spec-id": 0, "last-partition-id": 999,
    "schemas": [{"type": "struct", "schema-id": 0, "fields": []}], "default-sort-order-id": 0,
    "partition-specs": [{"spec-id": 0, "fields": []}],
    "sort-orders": [{"order-id": 0, "fields": []}],
}  # fmt: skip


def ran(*_: Any, **__: Any) -> None:
    """Stands for any function that is installed, such as `subprocess.Popen`."""
    RAN.append("")


@pytest.fixture(autouse=True)
def nothing_has_run() -> None:
    RAN.clear()


@contextmanager
def rest_catalog(config: Any, properties: Any, table_config: Any) -> Iterator[str]:
    """Yields the URI of a REST catalog with the table `db.t`."""
    answers = {
        "/v1/config": {"defaults": {}, "overrides": {}} | config,
        "/v1/namespaces": {"namespaces": [["db"]]},
        "/v1/namespaces/db": {"namespace": ["db"], "properties": {}},
        "/v1/namespaces/db/tables": {"identifiers": [{"namespace": ["db"], "name": "t"}]},
        "/v1/namespaces/db/views": {"identifiers": []},
        "/v1/namespaces/db/tables/t": {
            "metadata-location": "s3://lake/t/metadata/1.metadata.json",
            "metadata": {**METADATA, "properties": properties},
            "config": table_config,
        },
    }

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            body = {"namespaces": []} if "parent" in query else answers[path]
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("config", "properties", "table_config"),
    [
        ({"defaults": PROPERTIES}, {}, {}),
        ({"overrides": PROPERTIES}, {}, {}),
        ({"overrides": {"s3.retry-strategy-impl": CODE}}, {}, {}),
        ({"defaults": {"auth": AUTH}}, {}, {}),
        ({}, PROPERTIES, {}),
        ({}, {}, PROPERTIES),
    ],
)
def test_a_rest_catalog_chooses_no_code(config: Any, properties: Any, table_config: Any) -> None:
    config.setdefault("overrides", {}).update(
        {"s3.endpoint": "http://127.0.0.1:1", "s3.region": "eu"}
    )
    with rest_catalog(config, properties, table_config) as uri:
        source = open_source(uri)
        listing = source.listing([])
        location = listing.contents[0].metadata_location
        assert not listing.problems
        # What reads the files of the import.
        Files(source.properties)._asked_remotely(location, "s3", lambda io: io.new_input(location))
        source.close()
    assert not RAN
    # Other settings of the server apply.
    assert source.properties["s3.endpoint"] == "http://127.0.0.1:1"


def test_the_target_of_an_export_chooses_no_code() -> None:
    with rest_catalog({"overrides": {"auth": AUTH, **PROPERTIES}}, {}, PROPERTIES) as uri:
        target = Target("lake", {"uri": uri})
        assert target.kind == "rest"
        assert target._catalog.load_table(("db", "t")).name() == ("db", "t")
        target.close()
    assert not RAN


def test_a_rest_catalog_chooses_no_place_for_the_secret_of_its_client() -> None:
    name, own = "oauth2-server-uri", "https://issuer.example/token"
    for kind in ("defaults", "overrides"):
        with rest_catalog({kind: {name: "http://evil.example"}}, {}, {}) as uri:
            for properties in ({}, {name: own}):
                source = open_source(uri, properties=properties)
                assert source.properties.get(name) == properties.get(name)
                source.close()


def test_the_user_chooses_code() -> None:
    with rest_catalog({}, {}, {}) as uri:
        source = open_source(uri, properties=PROPERTIES)
        assert source.properties["py-io-impl"] == CODE
        source.close()


def test_a_table_of_a_sql_catalog_chooses_no_code(tmp_path: Path) -> None:
    database, lake = f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/lake"
    with load_catalog("prod", type="sql", uri=database, warehouse=lake) as catalog:
        catalog.create_namespace("db")
        schema = pa.schema([("id", pa.int64())])
        made = catalog.create_table("db.t", schema, properties={"py-io": CODE})
        file = Path(made.metadata_location.removeprefix("file://"))
        file.write_text(file.read_text().replace("py-io", "py-io-impl"))
    source = open_source(database)
    listing = source.listing([])
    source.close()
    assert not RAN
    assert [content.name for content in listing.contents] == [("db", "t")]
