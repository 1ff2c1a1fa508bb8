"""Addresses of the catalog: references and warehouses in paths and prefixes, announcements."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest

from nessie_cli.iceberg.warehouses.configuration import from_options
from nessie_cli.model import ReferenceType
from nessie_cli.server.pipeline.exchange import AccessLog
from tests.server.client import Client
from tests.server.iceberg_rest.lake import IcebergClient, Lake, error_of, lake
from tests.server.serving import serving


def test_the_configuration_announces_the_prefix_of_the_default_branch(served: Lake) -> None:
    found = served.client.get("/iceberg/v1/config").body
    assert found["defaults"]["prefix"] == "main"
    assert found["overrides"] == {}
    assert found["idempotency-key-lifetime"] == "PT30M"
    assert "POST /v1/{prefix}/transactions/commit" in found["endpoints"]
    assert not any("plan" in one or "unregister" in one for one in found["endpoints"])


@pytest.mark.parametrize("ref", ["main", "feature/x", "v1"])
def test_each_branch_has_its_own_configuration_and_paths(served: Lake, ref: str) -> None:
    if ref != "main":
        served.branch(ref)
    front = quote(ref, safe="")
    found = served.client.get(f"/iceberg/{front}/v1/config").body
    prefix = found["defaults"]["prefix"]
    assert prefix == front
    with_front = IcebergClient(served.client, prefix, f"/{front}")
    assert with_front.namespace("only", ref).status == 200
    assert with_front.get(f"/namespaces/only%1F{front}").status == 200
    assert served.main.on(prefix).get("/namespaces/only").status == 200
    if ref != "main":
        assert served.main.get("/namespaces/only").status == 404


@pytest.mark.parametrize(
    "prefix", ["feature%2Fx", "feature%252Fx", "feature/x", "feature%2Fx%7Cwarehouse"]
)
def test_a_prefix_may_be_encoded_several_times(served: Lake, prefix: str) -> None:
    served.branch("feature/x").namespace("only", "x")
    client = served.main.on(prefix)
    assert client.get("/namespaces?parent=only").body["namespaces"] == [["only", "x"]]
    assert client.create("only%1Fx", "t").status == 200
    assert client.load("only%1Fx", "t").status == 200


def test_a_path_and_a_prefix_that_name_different_references_are_refused(served: Lake) -> None:
    served.branch("dev")
    answer = IcebergClient(served.client, "dev", "/main").get("/namespaces")
    assert error_of(answer) == (400, "BadRequestException")
    assert "'main'" in answer.body["error"]["message"]
    assert "'dev'" in answer.body["error"]["message"]


def test_an_unknown_reference_and_an_unknown_warehouse_are_not_found(served: Lake) -> None:
    assert error_of(served.client.get("/iceberg/nowhere/v1/config")) == (404, "NotFoundException")
    answer = served.client.get("/iceberg/v1/config?warehouse=nowhere")
    assert error_of(answer) == (404, "NotFoundException")
    assert "Warehouses: warehouse" in answer.body["error"]["message"]
    assert served.main.on("main%7Cnowhere").get("/namespaces").status == 200
    assert error_of(served.main.on("main%7Cnowhere").create("db", "t"))[0] == 404


def test_a_requested_warehouse_is_in_the_prefix(tmp_path: Path) -> None:
    warehouses = from_options([f"one={tmp_path / 'one'}", f"two={tmp_path / 'two'}"])
    with lake(tmp_path, warehouses) as found:
        config = found.client.get("/iceberg/v1/config?warehouse=two").body
        prefix = config["defaults"]["prefix"]
        assert prefix == "main%7Ctwo"
        client = found.main.on(prefix)
        client.namespace("db")
        made = client.create("db", "t").body["metadata-location"]
        assert made.startswith(f"file://{tmp_path}/two/db/t_")
        refused = found.main.load("db", "t")
        assert error_of(refused) == (403, "ForbiddenException")


@pytest.mark.parametrize("ref", ["dev", "feature/x", "a/b-1.0_c", "v1"])
def test_the_parameter_warehouse_may_name_the_reference(served: Lake, ref: str) -> None:
    served.branch(ref)
    head = served.repository.reference("main").hash
    for named in (ref, f"{ref}@{head}", f"@{head}", head):
        for warehouse in ("", "warehouse"):
            query = quote(f"{named}|{warehouse}", safe="")
            found = served.client.get(f"/iceberg/v1/config?warehouse={query}").body
            expected = f"{'@' if named == head else ''}{named}{'|' if warehouse else ''}{warehouse}"
            assert found["defaults"]["prefix"] == quote(expected, safe="")
            client = served.main.on(found["defaults"]["prefix"])
            assert client.get("/namespaces/db").status == 200
            writable = "POST /v1/{prefix}/namespaces" in found["endpoints"]
            assert writable == (named == ref)


def test_the_default_branch_is_meant_if_the_parameter_names_none(served: Lake) -> None:
    for warehouse in ("|", "|warehouse", "warehouse", ""):
        query = quote(warehouse, safe="")
        found = served.client.get(f"/iceberg/v1/config?warehouse={query}").body
        expected = "main%7Cwarehouse" if "warehouse" in warehouse else "main"
        assert found["defaults"]["prefix"] == expected


def test_wrong_references_in_the_parameter_warehouse(served: Lake) -> None:
    served.branch("dev")

    def asked(warehouse: str, front: str = "") -> tuple[int, str]:
        path = f"/iceberg{front}/v1/config?warehouse={quote(warehouse, safe='')}"
        return error_of(served.client.get(path))

    assert asked("nowhere|") == (404, "NotFoundException")
    assert asked("nowhere|warehouse") == (404, "NotFoundException")
    assert asked("dev|nowhere") == (404, "NotFoundException")
    assert asked(f"@{'0' * 64}|") == (404, "NotFoundException")
    for bad in ("a b|", "a..b|", "~|", "dev/|", "é|", "\t|"):
        assert asked(bad) == (400, "BadRequestException")
    assert asked("dev|", "/main") == (400, "BadRequestException")
    same = served.client.get("/iceberg/dev/v1/config?warehouse=dev%7C").body
    assert same["defaults"]["prefix"] == "dev"


def test_tags_and_commits_are_read_only(served: Lake) -> None:
    served.main.create("db", "t")
    head = served.repository.reference("main").hash
    served.repository.create_reference(ReferenceType.TAG, "v2", head)
    for prefix in ("v2", f"main%40{head}", head):
        config = served.client.get(f"/iceberg/{prefix}/v1/config").body
        methods = {one.partition(" ")[0] for one in config["endpoints"]}
        assert methods == {"GET", "HEAD", "POST"}
        posts = [one for one in config["endpoints"] if one.startswith("POST")]
        assert posts == ["POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics"]
        client = served.main.on(config["defaults"]["prefix"])
        assert client.load("db", "t").status == 200
        files = served.files()
        for answer in (
            client.namespace("new"),
            client.create("db", "u"),
            client.create("db", "u", **{"stage-create": True}),
            client.set_properties("db", "t"),
            client.send("DELETE", "/namespaces/db/tables/t"),
        ):
            assert error_of(answer) == (403, "ForbiddenException")
        assert served.files() == files


def test_a_plus_is_a_space_and_names_may_have_any_character(main: IcebergClient) -> None:
    main.namespace("a b", "c/d", "é+.")
    namespace = "a+b%1Fc%2Fd%1F%C3%A9%2B."
    assert main.get(f"/namespaces/{namespace}").body["namespace"] == ["a b", "c/d", "é+."]
    assert main.create(namespace, "x y/z+").status == 200
    assert main.load(namespace, "x+y%2Fz%2B").status == 200
    listed = main.get(f"/namespaces/{namespace}/tables").body["identifiers"]
    assert listed == [{"namespace": ["a b", "c/d", "é+."], "name": "x y/z+"}]


def test_root_level_tables_cannot_be_addressed(main: IcebergClient) -> None:
    answer = main.get("/namespaces//tables")
    assert error_of(answer) == (400, "BadRequestException")
    assert "root" in answer.body["error"]["message"]
    rename = {
        "source": {"namespace": [], "name": "t"},
        "destination": {"namespace": ["db"], "name": "t"},
    }
    answer = main.post("/tables/rename", rename)
    assert error_of(answer) == (400, "BadRequestException")
    assert "root" in answer.body["error"]["message"]


def test_unknown_paths_and_methods(main: IcebergClient, served: Lake) -> None:
    assert error_of(main.get("/nothing")) == (404, "NotFoundException")
    answer = main.send("DELETE", "/namespaces")
    assert error_of(answer) == (405, "UnsupportedOperationException")
    assert answer.headers["allow"] == "GET, POST"
    assert served.client.get("/iceberg").status == 404


def test_the_error_without_a_warehouse_names_the_option() -> None:
    with serving() as url:
        client = Client(url)
        answer = client.get("/iceberg/v1/config")
        assert error_of(answer) == (404, "NotFoundException")
        assert "--warehouse" in answer.body["error"]["message"]
        client.close()


def test_requests_from_foreign_pages_are_refused(served: Lake) -> None:
    answer = served.client.send("GET", "/iceberg/v1/config", headers={"host": "evil.example"})
    assert error_of(answer) == (403, "ForbiddenException")
    answer = served.main.post("/namespaces", {"namespace": ["x"]}, origin="https://evil.example")
    assert error_of(answer) == (403, "ForbiddenException")
    sent = served.client.send(
        "POST",
        "/iceberg/v1/main/namespaces",
        raw=b'{"namespace":["x"]}',
        headers={"content-type": "text/plain"},
    )
    assert error_of(sent)[0] == 415


def test_the_log_contains_path_patterns_and_no_grants(tmp_path: Path) -> None:
    lines: list[bytes] = []
    with lake(tmp_path, log=AccessLog(lines.append)) as served:
        served.main.namespace("db")
        served.main.get("/namespaces?parent=db")
        served.main.post("/namespaces/db/tables/t/sign?grant=a-secret", {})
    entries = [json.loads(line) for line in b"".join(lines).splitlines()]
    assert [entry["route"] for entry in entries] == [
        "/iceberg/v1/{prefix}/namespaces",
        "/iceberg/v1/{prefix}/namespaces",
        "/iceberg/v1/{prefix}/namespaces/{namespace}/tables/{table}/sign",
    ]
    assert entries[1]["query"] == "parent=db"
    assert b"a-secret" not in b"".join(lines)
