"""Permissions of callers: rules decide per branch and key, as in the Nessie REST API."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from uuid import uuid4

import pytest
from msgspec import structs

from nessie_cli.iceberg.warehouses.configuration import from_options
from nessie_cli.iceberg.warehouses.metadata_files import MetadataFiles
from nessie_cli.iceberg.warehouses.warehouse import Warehouses
from nessie_cli.server.auth.gate import Security, open_gate
from tests.server.guarding import Guarded, write_rules
from tests.server.iceberg_rest.lake import IcebergClient, Lake, error_of, lake, staged_updates

READ = "op in ['VIEW_REFERENCE', 'READ_ENTRIES', 'READ_CONTENT_KEY', 'READ_ENTITY_VALUE', 'LIST_COMMIT_LOG']"
WRITE = (
    "op in ['COMMIT_CHANGE_AGAINST_REFERENCE', 'CREATE_ENTITY', 'UPDATE_ENTITY', 'DELETE_ENTITY']"
)


class Ruled(Guarded):
    """A server with rules and a warehouse."""

    def __init__(self, served: Lake, folder: Path) -> None:
        super().__init__(served.url, folder, served.repository)
        self.served = served
        self.admin = self.on(self.as_("root", "admin"))

    def on(self, client: object, prefix: str = "main") -> IcebergClient:
        return IcebergClient(client, prefix)  # type: ignore[arg-type]


def ruled(tmp_path: Path, warehouses: Warehouses | None = None) -> Iterator[Ruled]:
    (tmp_path / "tokens").touch(0o600)
    write_rules(tmp_path, [])
    security = Security(tokens=tmp_path / "tokens", rules=tmp_path / "rules")
    gate = open_gate(security)
    with lake(tmp_path / "warehouse", warehouses, gate=gate) as served:
        found = Ruled(served, tmp_path)
        found.admin.namespace("db")
        found.admin.create("db", "t")
        try:
            yield found
        finally:
            found.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Ruled]:
    yield from ruled(tmp_path)


FORBIDDEN = (403, "ForbiddenException")


def test_reading_and_writing_require_rights(server: Ruled) -> None:
    ada = server.on(server.as_("ada"))
    files = sorted(server.served.folder.rglob("*"))
    etag = server.admin.load("db", "t").headers["etag"]
    for answer in (
        ada.get("/namespaces"),
        ada.get("/namespaces/db"),
        ada.get("/namespaces/db/tables"),
        ada.load("db", "t"),
        ada.load("db", "t", if_none_match=etag),
        ada.load("db", "none"),
        ada.namespace("n"),
        ada.create("db", "u"),
        ada.create("db", "u", **{"stage-create": True}),
        ada.set_properties("db", "t"),
        ada.set_properties("db", "t", idempotency_key=str(uuid4())),
        ada.send("DELETE", "/namespaces/db/tables/t"),
        ada.view("db", "v"),
        ada.post("/namespaces/db/tables/t/metrics", {"report-type": "scan-report"}),
    ):
        assert error_of(answer) == FORBIDDEN
    assert sorted(server.served.folder.rglob("*")) == files


def test_the_parameter_warehouse_does_not_reveal_hidden_references(server: Ruled) -> None:
    server.served.branch("hidden")
    server.served.branch("open")
    server.rule(f"'reader' in roles && {READ} && ref == 'open'")
    ada = server.as_("ada", "reader")
    shown = ada.get("/iceberg/v1/config?warehouse=open%7C")
    assert shown.body["defaults"]["prefix"] == "open"
    hidden, missing = (
        ada.get(f"/iceberg/v1/config?warehouse={name}%7Cwarehouse") for name in ("hidden", "none")
    )
    assert error_of(hidden) == error_of(missing)
    assert (
        hidden.body["error"]["message"].replace("hidden", "none")
        == (missing.body["error"]["message"])
    )


def test_a_refused_write_leaves_no_file(server: Ruled) -> None:
    server.rule(f"'reader' in roles && {READ}")
    ada = server.on(server.as_("ada", "reader"))
    assert ada.get("/namespaces").body["namespaces"] == [["db"]]
    loaded = ada.load("db", "t")
    assert loaded.status == 200
    assert ada.load("db", "t", if_none_match=loaded.headers["etag"]).status == 304
    files = server.served.files()
    assert error_of(ada.create("db", "u")) == FORBIDDEN
    assert error_of(ada.set_properties("db", "t")) == FORBIDDEN
    assert server.served.files() == files


@pytest.mark.parametrize("right", ["UPDATE_ENTITY", "CREATE_ENTITY"])
def test_no_file_is_written_before_the_right_to_do_so_is_checked(
    server: Ruled, monkeypatch: pytest.MonkeyPatch, right: str
) -> None:
    """Updating does not include creating, nor the other way round."""
    server.admin.view("db", "v")
    server.rule(f"{READ} || op in ['COMMIT_CHANGE_AGAINST_REFERENCE', '{right}']")
    ada = server.on(server.as_("ada"))
    files, written = sorted(server.served.folder.rglob("*")), list[str]()
    monkeypatch.setattr(MetadataFiles, "write", lambda _, location, __: written.append(location))
    if right == "UPDATE_ENTITY":
        unread = {"metadata-location": f"file://{server.served.folder}/none.metadata.json"}
        answers = [
            ada.create("db", "u"),
            ada.create("db", "u", **{"stage-create": True}),
            ada.view("db", "w"),
            ada.post("/namespaces/db/register", {"name": "u", **unread}),
            ada.post("/namespaces/db/register-view", {"name": "w", **unread}),
        ]
    else:
        change = {"action": "set-properties", "updates": {"a": "b"}}
        asked = {"requirements": [], "updates": [change]}
        table = {"identifier": {"namespace": ["db"], "name": "t"}, **asked}
        answers = [
            ada.set_properties("db", "t"),
            ada.post("/namespaces/db/views/v", asked),
            ada.post("/transactions/commit", {"table-changes": [table]}),
        ]
    assert [error_of(answer) for answer in answers] == [FORBIDDEN] * len(answers)
    assert not written
    assert sorted(server.served.folder.rglob("*")) == files


def test_rights_can_be_limited_to_a_branch_and_a_namespace(server: Ruled) -> None:
    server.served.branch("dev")
    server.rule(
        f"'team' in roles && {READ}",
        f"'team' in roles && {WRITE} && ref == 'dev' && path.startsWith('db.team_')",
        "'team' in roles && op == 'COMMIT_CHANGE_AGAINST_REFERENCE' && ref == 'dev'",
    )
    client = server.as_("bo", "team")
    dev, main = server.on(client, "dev"), server.on(client)
    assert dev.create("db", "team_a").status == 200
    assert dev.set_properties("db", "team_a").status == 200
    files = server.served.files()
    assert error_of(dev.create("db", "other")) == FORBIDDEN
    assert error_of(dev.set_properties("db", "t")) == FORBIDDEN
    assert error_of(main.create("db", "team_a")) == FORBIDDEN
    assert server.served.files() == files


def test_hidden_keys_are_left_out_of_listings(server: Ruled) -> None:
    server.admin.create("db", "secret")
    server.rule(
        "'reader' in roles && op in ['VIEW_REFERENCE', 'READ_ENTRIES']",
        "'reader' in roles && op in ['READ_CONTENT_KEY', 'READ_ENTITY_VALUE'] && !path.contains('secret')",
    )
    ada = server.on(server.as_("ada", "reader"))
    names = [one["name"] for one in ada.get("/namespaces/db/tables").body["identifiers"]]
    assert names == ["t"]
    assert error_of(ada.load("db", "secret")) == FORBIDDEN
    assert error_of(ada.load("db", "secret_too")) == FORBIDDEN


def test_commits_have_the_name_of_the_caller(server: Ruled) -> None:
    server.rule("'writer' in roles")
    server.on(server.as_("carla", "writer")).set_properties("db", "t")
    assert next(server.repository.log("main")).meta.committer == "carla"


def test_an_idempotency_key_belongs_to_its_caller(server: Ruled) -> None:
    server.rule("'writer' in roles")
    one, other = (server.on(server.as_(name, "writer")) for name in ("carla", "dan"))
    key = str(uuid4())
    assert one.set_properties("db", "t", idempotency_key=key).status == 200
    assert error_of(other.set_properties("db", "t", idempotency_key=key))[0] == 400


def test_rights_are_checked_before_a_request_is_replayed(server: Ruled) -> None:
    server.rule("'writer' in roles")
    client = server.on(server.as_("carla", "writer"))
    done, refused = str(uuid4()), str(uuid4())
    assert client.set_properties("db", "t", idempotency_key=done).status == 200
    assert client.set_properties("db", "none", idempotency_key=refused).status == 404
    server.rule(f"'writer' in roles && {READ}")
    assert error_of(client.set_properties("db", "t", idempotency_key=done)) == FORBIDDEN
    assert error_of(client.set_properties("db", "none", idempotency_key=refused)) == FORBIDDEN
    server.rule(
        f"'writer' in roles && {READ}",
        "'writer' in roles && op == 'COMMIT_CHANGE_AGAINST_REFERENCE'",
    )
    assert error_of(client.set_properties("db", "t", idempotency_key=done)) == FORBIDDEN


def test_choosing_a_location_requires_a_right(tmp_path: Path) -> None:
    [configured] = from_options([str(tmp_path / "warehouse")]).all
    guarded = structs.replace(configured, choose_locations=False)
    for server in ruled(tmp_path, Warehouses([guarded])):
        server.rule(
            f"'writer' in roles && ({READ} || {WRITE})",
            "'owner' in roles && op == 'CHOOSE_LOCATION' && path.startsWith('db.mine')",
        )
        writer = server.on(server.as_("carla", "writer"))
        owner = server.on(server.as_("olga", "writer", "owner"))
        own = f"file://{tmp_path}/warehouse/own"
        location = server.admin.load("db", "t").body["metadata-location"]
        files = server.served.files()
        assert writer.create("db", "u").status == 200
        updates = [{"action": "set-location", "location": own}]
        register = {"name": "w", "metadata-location": location}
        for answer in (
            writer.create("db", "mine", location=own),
            writer.commit("db", "t", [], updates),
            writer.post("/namespaces/db/register", register),
            owner.create("db", "other", location=own),
        ):
            assert error_of(answer) == FORBIDDEN
        assert len(server.served.files() - files) == 1
        # The answer reveals neither the existence of a file nor its text.
        texts = set()
        for path, version in product(("register", "register-view"), (location, f"{own}/none.json")):
            for more in ({}, {"overwrite": True}):
                body = {"name": "w", "metadata-location": version, **more}
                answer = writer.post(f"/namespaces/db/{path}", body)
                assert error_of(answer) == FORBIDDEN
                texts.add(answer.body["error"]["message"].replace(version, ""))
        assert len(texts) == 1
        assert owner.create("db", "mine", location=own).status == 200
        register["name"] = "mine_too"
        assert owner.post("/namespaces/db/register", register).status == 200


def test_a_staged_location_is_valid_for_one_table_and_branch(tmp_path: Path) -> None:
    [configured] = from_options([str(tmp_path / "warehouse")]).all
    guarded = structs.replace(configured, choose_locations=False)
    with lake(tmp_path, Warehouses([guarded])) as served:
        main = served.main
        main.namespace("db")
        dev = served.branch("dev")
        metadata = main.create("db", "t", **{"stage-create": True}).body["metadata"]
        updates = staged_updates(metadata)
        create = [{"type": "assert-create"}]
        assert error_of(dev.commit("db", "t", create, updates)) == FORBIDDEN
        assert error_of(main.commit("db", "u", create, updates)) == FORBIDDEN
        assert served.files() == set()
        made = main.commit("db", "t", create, updates)
        assert made.status == 200
        assert made.body["metadata"]["location"] == metadata["location"]
        main.send("DELETE", "/namespaces/db/tables/t")
        assert error_of(main.commit("db", "t", create, updates)) == FORBIDDEN


@pytest.mark.parametrize("guarded", [True, False])
@pytest.mark.parametrize("then", ["renamed", "dropped"])
def test_a_staged_uuid_creates_one_table(tmp_path: Path, guarded: bool, then: str) -> None:
    """Also if its metadata files are where the server does not look for them."""
    [configured] = from_options([str(tmp_path / "warehouse")]).all
    warehouse = structs.replace(configured, choose_locations=not guarded)
    with lake(tmp_path, Warehouses([warehouse])) as served:
        main = served.main
        main.namespace("db")
        main.namespace("finance")
        metadata = main.create("db", "t", **{"stage-create": True}).body["metadata"]
        elsewhere = {"write.metadata.path": f"{metadata['location']}/elsewhere"}
        updates = staged_updates(metadata)
        updates.append({"action": "set-properties", "updates": elsewhere})
        create = [{"type": "assert-create"}]
        made = main.commit("db", "t", create, updates)
        assert made.body["metadata"]["table-uuid"] == metadata["table-uuid"]
        if then == "renamed":
            names = {"source": ("db", "t"), "destination": ("finance", "t")}
            body = {k: {"namespace": [n], "name": t} for k, (n, t) in names.items()}
            assert main.post("/tables/rename", body).status == 204
        else:
            served.branch("release")
            assert main.send("DELETE", "/namespaces/db/tables/t").status == 204
        again = main.commit("db", "t", create, updates)
        assert error_of(again) == FORBIDDEN
        assert main.load("db", "t").status == 404
        assert list(served.repository.check()) == []
