"""Without the right to choose locations, no content can name the files of another table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from nessie_cli.iceberg.locations import PATH_PROPERTIES
from nessie_cli.iceberg.warehouses.configuration import from_options
from nessie_cli.iceberg.warehouses.warehouse import RecordedLocations, Warehouses
from nessie_cli.model import CommitMeta, IcebergTable, Put, ReferenceType
from tests.repository.vocabulary import key, table
from tests.server.client import Answer, Client, namespace
from tests.server.client import delete as deletion
from tests.server.iceberg_rest.lake import SCHEMA, error_of, lake
from tests.server.iceberg_rest.test_rights import FORBIDDEN, READ, WRITE, Ruled, ruled

WRITER = f"'writer' in roles && ({READ} || {WRITE} || op == 'CREATE_REFERENCE')"
OWNER = "'owner' in roles && op == 'CHOOSE_LOCATION'"


def guarded(folder: Path) -> Warehouses:
    [configured] = from_options([str(folder)]).all
    return Warehouses([structs.replace(configured, choose_locations=False)])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Ruled]:
    """A server whose writers may not choose locations. The tables `mine` and `victim` are new."""
    for found in ruled(tmp_path, guarded(tmp_path / "warehouse")):
        found.admin.create("db", "mine")
        found.admin.create("db", "victim")
        found.rule(WRITER, OWNER)
        yield found


def content(client: Client, name: str, branch: str = "main") -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/api/v2/trees/{branch}/contents/db.{name}").body["content"]
    return found


def putting(name: str, value: dict[str, Any]) -> dict[str, Any]:
    return {"type": "PUT", "key": {"elements": ["db", name]}, "content": value}


def commit(client: Client, *operations: Any, version: int = 2, branch: str = "main") -> Answer:
    return client.commit(branch, client.head(branch), *operations, version=version)


def path_of(value: dict[str, Any]) -> Path:
    return Path(str(value["metadataLocation"]).removeprefix("file://"))


def is_refused(answer: Answer) -> bool:
    return answer.status == 403 and "'CHOOSE_LOCATION' is not allowed" in answer.body["message"]


@pytest.mark.parametrize("version", [1, 2])
def test_a_put_of_another_tables_file_needs_the_right(server: Ruled, version: int) -> None:
    writer = server.as_("carla", "writer")
    mine, victim = content(writer, "mine"), content(writer, "victim")
    at = writer.head()
    stolen = putting("mine", {**mine, "metadataLocation": victim["metadataLocation"]})
    answer = commit(writer, stolen, version=version)
    assert is_refused(answer), answer
    assert writer.head() == at
    owner = server.as_("olga", "writer", "owner")
    assert commit(owner, stolen, version=version).status == 200


def hostile(mine: Path, victim: Path, folder: Path) -> dict[str, str]:
    """Returns locations in or near the folder of `mine` that lie elsewhere, or are no metadata."""
    link = mine.parent / "link"
    link.symlink_to(victim.parent)
    (mine.parent / "notes.json").write_text(victim.read_text())
    up = f"file://{mine.parent}/../.."
    return {
        "dots": f"{up}/{victim.parent.parent.name}/metadata/{victim.name}",
        "encoded dots": f"file://{mine.parent}/%2e%2e/%2e%2e/{victim.parent.parent.name}/metadata/"
        f"{victim.name}",
        "encoded slash": f"file://{mine.parent}%2f..%2f..%2f{victim.parent.parent.name}%2fmetadata"
        f"%2f{victim.name}",
        "link": f"file://{link}/{victim.name}",
        "path without scheme": str(victim),
        "host": f"file://localhost{victim}",
        "half a name": f"file://{mine.parent.parent}x/{victim.name}",
        "no metadata file": f"file://{mine.parent}/notes.json",
        "folder": f"file://{mine.parent}",
        "folder of the table": f"file://{mine.parent.parent}/{victim.name}",
        "warehouse": f"file://{folder}/warehouse/00001-x.metadata.json",
    }


def test_no_spelling_of_a_location_leaves_the_folder_of_a_table(
    server: Ruled, tmp_path: Path
) -> None:
    writer = server.as_("carla", "writer")
    mine, victim = content(writer, "mine"), content(writer, "victim")
    for name, location in hostile(path_of(mine), path_of(victim), tmp_path).items():
        answer = commit(writer, putting("mine", {**mine, "metadataLocation": location}))
        own = name == "folder of the table"
        assert answer.status == 200 if own else is_refused(answer), (name, answer)


def test_a_put_within_the_folder_of_its_table_needs_no_right(server: Ruled) -> None:
    writer = server.as_("carla", "writer")
    mine = content(writer, "mine")
    for name in ("00001-next.metadata.json", "00001-next.gz.metadata.json"):
        (path_of(mine).parent / name).write_text(path_of(mine).read_text())
        location = f"file://{path_of(mine).parent}/{name}"
        assert commit(writer, putting("mine", {**mine, "metadataLocation": location})).status == 200
        loaded = server.on(writer).load("db", "mine")
        assert loaded.body["metadata-location"] == location
    assert server.on(writer).set_properties("db", "mine").status == 200


def test_a_rename_keeps_the_folder_of_its_content(server: Ruled) -> None:
    writer = server.as_("carla", "writer")
    mine, victim = content(writer, "mine"), content(writer, "victim")
    stolen = {**mine, "metadataLocation": victim["metadataLocation"]}
    assert is_refused(commit(writer, deletion("db", "mine"), putting("new", stolen)))
    assert commit(writer, deletion("db", "mine"), putting("new", mine)).status == 200
    assert server.on(writer).set_properties("db", "new").status == 200
    swapped = (putting("new", {**victim, "id": mine["id"]}), putting("victim", mine | victim))
    assert is_refused(commit(writer, *swapped))


def test_creating_a_table_through_nessies_api_needs_the_right(server: Ruled) -> None:
    writer, owner = server.as_("carla", "writer"), server.as_("olga", "writer", "owner")
    mine = content(writer, "mine")
    new = {name: value for name, value in mine.items() if name != "id"}
    assert is_refused(commit(writer, putting("new", new)))
    assert is_refused(commit(writer, deletion("db", "mine"), putting("mine", new)))
    assert commit(owner, putting("new", new)).status == 200
    # The server never reads what lies outside of its warehouses.
    elsewhere = {**new, "metadataLocation": "s3://elsewhere/t.metadata.json"}
    assert commit(writer, putting("elsewhere", elsewhere)).status == 200
    assert commit(writer, putting("n", namespace("db", "n"))).status == 200


@pytest.mark.parametrize("name", ["x.metadata.json", "y_{issued}", "y_{issued}/x.metadata.json"])
@pytest.mark.parametrize("version", [1, 2])
def test_a_folder_outside_of_the_warehouse_opens_no_other(
    server: Ruled, tmp_path: Path, name: str, version: int
) -> None:
    """A Put of any file outside is accepted, so what it records there means nothing."""
    writer = server.as_("carla", "writer")
    chosen = f"file://{tmp_path}/warehouse/finance/payroll"
    server.admin.create("db", "chosen", location=chosen)
    mine, issued = content(writer, "mine"), content(writer, "victim")["id"]
    new = {name: value for name, value in mine.items() if name != "id"}
    for number, folder in enumerate(("", tmp_path, f"{tmp_path}/warehouse/..")):
        outside = f"file://{folder}/{name.format(issued=issued)}"
        for own, value in (("mine", mine), (f"new{number}", new)):
            step = putting(own, {**value, "metadataLocation": outside})
            assert commit(writer, step, version=version).status == 200
            stepping = content(writer, own)
            for victim in ("victim", "chosen"):
                location = content(writer, victim)["metadataLocation"]
                stolen = putting(own, {**stepping, "metadataLocation": location})
                answer = commit(writer, stolen, version=version)
                assert is_refused(answer), (outside, own, victim, answer)


@pytest.mark.parametrize("folder", ["", "/finance", "/finance/payroll"])
def test_a_recorded_folder_opens_no_folder_below_it(
    server: Ruled, tmp_path: Path, folder: str
) -> None:
    writer, owner = server.as_("carla", "writer"), server.as_("olga", "writer", "owner")
    warehouse = f"file://{tmp_path}/warehouse"
    server.admin.create("db", "chosen", location=f"{warehouse}/finance/payroll")
    above = {
        **content(writer, "mine"),
        "metadataLocation": f"{warehouse}{folder}/x.metadata.json",
    }
    assert commit(owner, putting("mine", above)).status == 200
    for victim in ("chosen", "victim"):
        location = content(writer, victim)["metadataLocation"]
        for text in (location, location.replace("/metadata/", "/./metadata/")):
            stolen = putting("mine", {**above, "metadataLocation": text})
            assert is_refused(commit(writer, stolen)), (victim, text)
    beside = putting("mine", {**above, "metadataLocation": f"{warehouse}{folder}/y.metadata.json"})
    # What lies directly in a warehouse is of no table alone.
    answer = commit(writer, beside)
    assert answer.status == 200 if folder else is_refused(answer), answer


def test_a_warehouse_is_no_folder_of_a_table_under_its_other_names(tmp_path: Path) -> None:
    real = tmp_path / "real"
    (real / "allowed").mkdir(parents=True)
    (tmp_path / "link").symlink_to(real)
    [configured] = from_options([f"{tmp_path}/link"], [f"{tmp_path}/link/allowed"]).all
    locations = RecordedLocations([structs.replace(configured, choose_locations=False)])
    link = tmp_path / "link"
    for folder in (link, real, real / "allowed", f"{link}/allowed/.", f"{link}/t/.."):
        assert not locations.accept(at(f"{folder}/b"), at(f"{folder}/a")), folder
    for folder in (link, real):
        assert locations.accept(at(f"{folder}/t/metadata/b"), at(f"{link}/t/metadata/a")), folder


def at(name: str) -> IcebergTable:
    """Returns a table with this metadata file."""
    return structs.replace(table(1), id="1", metadata_location=f"{name}.metadata.json")


def test_views_are_checked_like_tables(server: Ruled) -> None:
    writer = server.as_("carla", "writer")
    for name in ("v", "w"):
        assert server.on(writer).view("db", name).status == 200
    v, w = content(writer, "v"), content(writer, "w")
    assert is_refused(
        commit(writer, putting("v", {**v, "metadataLocation": w["metadataLocation"]}))
    )
    assert commit(writer, putting("v", {**v, "versionId": 1})).status == 200


def merging(hash_: str) -> dict[str, Any]:
    return {"fromRefName": "dev", "fromHash": hash_, "defaultKeyMergeMode": "FORCE"}


def test_merges_and_transplants_bring_only_issued_locations(server: Ruled) -> None:
    writer, owner = server.as_("carla", "writer"), server.as_("olga", "writer", "owner")
    server.served.branch("dev")
    assert server.on(writer, "dev").create("db", "new").status == 200
    answer = writer.send(
        "POST",
        f"/api/v2/trees/main@{writer.head()}/history/merge",
        merging(writer.head("dev")),
    )
    assert answer.status == 200, answer
    assert server.on(writer).set_properties("db", "new").status == 200
    mine, victim = content(owner, "mine", "dev"), content(owner, "victim", "dev")
    stolen = {**mine, "metadataLocation": victim["metadataLocation"]}
    assert commit(owner, putting("mine", stolen), branch="dev").status == 200
    copied = {"fromRefName": "dev", "hashesToTransplant": [writer.head("dev")]}
    for verb, body in (("merge", merging(writer.head("dev"))), ("transplant", copied)):
        path = f"/api/v2/trees/main@{writer.head()}/history/{verb}"
        answer = writer.send("POST", path, body)
        assert is_refused(answer), (verb, answer)
    assert owner.send("POST", path, copied).status == 200


def test_without_rules_nobody_chooses_locations(tmp_path: Path) -> None:
    with lake(tmp_path / "warehouse", guarded(tmp_path / "warehouse")) as served:
        served.main.namespace("db")
        for name in ("mine", "victim"):
            served.main.create("db", name)
        client = served.client
        mine, victim = content(client, "mine"), content(client, "victim")
        stolen = {**mine, "metadataLocation": victim["metadataLocation"]}
        assert is_refused(commit(client, putting("mine", stolen)))
        assert commit(client, putting("mine", {**mine, "snapshotId": -1})).status == 200


def test_without_guarded_warehouses_any_location_can_be_put(tmp_path: Path) -> None:
    with lake(tmp_path / "warehouse") as served:
        served.main.namespace("db")
        served.main.create("db", "mine")
        new = {k: v for k, v in content(served.client, "mine").items() if k != "id"}
        assert commit(served.client, putting("new", new)).status == 200


def forged(server: Ruled, **changed: Any) -> IcebergTable:
    """Writes a metadata file into the folder of `mine`, and puts it without the server."""
    mine = server.repository.content("main", key("db.mine"))
    assert isinstance(mine, IcebergTable)
    path = Path(mine.metadata_location.removeprefix("file://"))
    document = json.loads(path.read_text()) | changed
    (path.parent / "00009-x.metadata.json").write_text(json.dumps(document))
    location = f"file://{path.parent}/00009-x.metadata.json"
    put = structs.replace(mine, metadata_location=location)
    server.repository.commit("main", [Put(key("db.mine"), put)], CommitMeta("forged"))
    return put


def test_metadata_outside_of_its_location_gets_no_commit(server: Ruled) -> None:
    """Also if the content was committed before the server had guarded warehouses."""
    writer = server.on(server.as_("carla", "writer"))
    victim = server.admin.load("db", "victim").body["metadata"]["location"]
    forged(server, location=victim)
    files = server.served.files()
    assert writer.load("db", "mine").status == 200
    for answer in (
        writer.set_properties("db", "mine"),
        writer.append("db", "mine", 1, None),
        writer.set_properties("db", "mine", properties={"write.metadata.path": f"{victim}/m"}),
    ):
        assert error_of(answer) == FORBIDDEN, answer
    assert server.served.files() == files
    owner = server.on(server.as_("olga", "writer", "owner"))
    assert owner.set_properties("db", "mine").status == 200


@pytest.mark.parametrize("property_", PATH_PROPERTIES)
def test_no_path_property_leaves_the_folder_of_a_table(
    server: Ruled, tmp_path: Path, property_: str
) -> None:
    """Not even through `..`, which engines resolve. The right does not open a table's folder."""
    writer = server.on(server.as_("carla", "writer"))
    owner = server.on(server.as_("olga", "writer", "owner"))
    finance = f"file://{tmp_path}/warehouse/finance"
    server.admin.create("db", "chosen", location=finance)
    assert writer.view("db", "v").status == 200
    files = server.served.files()
    victim = server.admin.load("db", "victim").body["metadata"]["location"].rpartition("/")[2]
    for kind, name in (("tables", "mine"), ("views", "v")):
        path = f"/namespaces/db/{kind}/{name}"
        own = writer.get(path).body["metadata"]["location"]
        for spelling, issued in {
            f"{own}/../{victim}/metadata": True,
            f"{own}/%2e%2e/{victim}/metadata": True,
            f"{own}/..%2f{victim}": True,
            f"{own}//x/../../{victim}": True,
            own.removeprefix("file://") + f"/../{victim}": True,
            f"{own}/x/../../../finance/metadata": False,
            f"{own}/..": False,
        }.items():
            updates = [{"action": "set-properties", "updates": {property_: spelling}}]
            body = {"requirements": [], "updates": updates}
            for client in (writer, owner) if issued else (writer,):
                assert error_of(client.post(path, body)) == FORBIDDEN, spelling
    assert server.served.files() == files
    location = writer.load("db", "mine").body["metadata"]["location"]
    inside = writer.set_properties("db", "mine", properties={property_: f"{location}/x/../y"})
    assert inside.status == 200


def test_a_location_does_not_reach_another_table_through_dots(server: Ruled) -> None:
    owner = server.on(server.as_("olga", "writer", "owner"))
    mine, victim = (
        server.admin.load("db", name).body["metadata"]["location"] for name in ("mine", "victim")
    )
    for name in (f"../{victim.rpartition('/')[2]}", f"%2e%2e/{victim.rpartition('/')[2]}/x"):
        move = [{"action": "set-location", "location": f"{mine}/{name}"}]
        assert error_of(owner.commit("db", "mine", [], move)) == FORBIDDEN
        assert error_of(owner.create("db", "new", location=f"{mine}/{name}")) == FORBIDDEN


def test_a_namespace_in_the_folder_of_a_table_gets_no_tables(server: Ruled) -> None:
    """The location of a namespace can be put through Nessie's API, unseen by the server."""
    writer = server.as_("carla", "writer")
    victim = server.admin.load("db", "victim").body["metadata"]["location"]
    value = {**namespace("inside"), "properties": {"location": f"{victim}/inside"}}
    put = {"type": "PUT", "key": {"elements": ["inside"]}, "content": value}
    assert commit(writer, put).status == 200
    files = server.served.files()
    assert error_of(server.on(writer).create("inside", "t")) == FORBIDDEN
    assert error_of(server.on(writer).create("inside", "t", **{"stage-create": True})) == FORBIDDEN
    assert error_of(server.on(writer).view("inside", "v")) == FORBIDDEN
    assert server.served.files() == files


def test_a_new_branch_needs_no_right_to_choose_locations(server: Ruled) -> None:
    head = server.repository.reference("main").hash
    server.repository.create_reference(ReferenceType.BRANCH, "dev", head)
    writer = server.as_("carla", "writer")
    mine = content(writer, "mine", "dev")
    assert commit(writer, putting("mine", mine | {"snapshotId": -1}), branch="dev").status == 200


@pytest.mark.parametrize("around", ["warehouse", "warehouse/db"])
def test_a_location_around_other_tables_opens_none_of_them(
    server: Ruled, tmp_path: Path, around: str
) -> None:
    """A client of Nessie's API writes metadata whose location contains other folders."""
    writer = server.as_("carla", "writer")
    mine, victim = content(writer, "mine"), content(writer, "victim")
    document = json.loads(path_of(mine).read_text())
    forged = path_of(mine).with_name("00001-x.metadata.json")
    forged.write_text(json.dumps({**document, "location": f"file://{tmp_path / around}"}))
    put = putting("mine", {**mine, "metadataLocation": f"file://{forged}"})
    assert commit(writer, put).status == 200
    before = server.served.files()
    for folder in (path_of(victim).parent, tmp_path / "warehouse" / "db" / "finance"):
        paths = {"write.metadata.path": f"file://{folder}"}
        answer = server.on(writer).set_properties("db", "mine", properties=paths)
        assert error_of(answer) == FORBIDDEN, answer
    assert server.served.files() == before


def test_a_path_in_a_location_around_other_tables_is_refused(server: Ruled, tmp_path: Path) -> None:
    """An owner chose a location that contains the folder of another table."""
    server.admin.create("db", "outer", location=f"file://{tmp_path}/warehouse/db")
    writer = server.as_("carla", "writer")
    folder = path_of(content(writer, "victim")).parent
    for name in PATH_PROPERTIES:
        answer = server.on(writer).set_properties(
            "db", "outer", properties={name: f"file://{folder}"}
        )
        assert error_of(answer) == FORBIDDEN, answer


def test_a_namespace_with_the_name_of_a_tables_folder_gets_no_tables(server: Ruled) -> None:
    writer = server.on(server.as_("carla", "writer"))
    location = writer.load("db", "victim").body["metadata"]["location"]
    name = location.rsplit("/", 1)[1]
    for below in ([], ["metadata"]):
        names = ["db", name, *below]
        assert writer.post("/namespaces", {"namespace": names}).status == 200
        for staged in (False, True):
            body = {"name": "inner", "schema": SCHEMA, "stage-create": staged}
            answer = writer.post(f"/namespaces/{'%1F'.join(names)}/tables", body)
            assert error_of(answer) == FORBIDDEN, answer


def test_a_namespace_that_is_called_like_the_folder_of_a_table_gives_it_nothing(
    server: Ruled,
) -> None:
    """Tables in such a namespace would lie in the folder that the server issued for `mine`."""
    writer = server.as_("carla", "writer")
    name = f"sales_{content(writer, 'mine')['id']}"
    assert server.on(writer).post("/namespaces", {"namespace": [name]}).status == 200
    answer = server.admin.post(f"/namespaces/{name}/tables", {"name": "orders", "schema": SCHEMA})
    assert error_of(answer) == FORBIDDEN, answer


@pytest.mark.parametrize("kind", ["table", "view"])
@pytest.mark.parametrize("chosen", [False, True])
def test_a_path_in_metadata_that_a_client_wrote_leads_nowhere(
    server: Ruled, tmp_path: Path, kind: str, chosen: bool
) -> None:
    """A client of Nessie's API names another folder in a file in the own one."""
    writer = server.as_("carla", "writer")
    served = server.on(writer)
    if kind == "view":
        served.view("db", "own")
    else:
        served.create("db", "own")
    mine, folder = content(writer, "own"), path_of(content(writer, "victim")).parent
    if chosen:
        folder = tmp_path / "warehouse" / "db" / "finance"
    document = json.loads(path_of(mine).read_text())
    document["properties"] = {"write.metadata.path": f"file://{folder}"}
    forged = path_of(mine).with_name("00001-x.metadata.json")
    forged.write_text(json.dumps(document))
    put = putting("own", {**mine, "metadataLocation": f"file://{forged}"})
    assert commit(writer, put).status == 200
    before = server.served.files()
    update = {"action": "set-properties", "updates": {"a": "b"}}
    body = {"requirements": [], "updates": [update]}
    assert error_of(served.post(f"/namespaces/db/{kind}s/own", body)) == FORBIDDEN
    assert server.served.files() == before


def forge(server: Ruled, name: str, folder: str = "metadata", **changed: Any) -> Path:
    """Puts a metadata file that carla wrote into the folder of her table or view, or below it."""
    writer = server.as_("carla", "writer")
    own = content(writer, name)
    document = json.loads(path_of(own).read_text())
    properties = {**document.get("properties", {}), **changed.pop("properties", {})}
    written = path_of(own).parent.parent / folder / "00009-x.metadata.json"
    written.write_text(json.dumps({**document, **changed, "properties": properties}))
    put = putting(name, {**own, "metadataLocation": f"file://{written}"})
    assert commit(writer, put).status == 200
    return written


def change(server: Ruled, name: str, roles: tuple[str, ...] = (), **properties: str) -> Answer:
    """Sets properties of a table or view as carla."""
    client = server.on(server.as_("carla", "writer", *roles))
    kind = "views" if name.startswith("view") else "tables"
    update = {"action": "set-properties", "updates": {"a": "b", **properties}}
    body = {"requirements": [], "updates": [update]}
    return client.post(f"/namespaces/db/{kind}/{name}", body)


@pytest.fixture
def own(server: Ruled, tmp_path: Path) -> Ruled:
    """Carla has a table and a view. An owner has chosen the location of `finance`."""
    writer = server.on(server.as_("carla", "writer"))
    assert writer.create("db", "table").status == writer.view("db", "view").status == 200
    location = f"file://{tmp_path}/warehouse/db/finance"
    assert server.admin.create("db", "finance", location=location).status == 200
    return server


@pytest.mark.parametrize("name", ["table", "view"])
@pytest.mark.parametrize("property_", PATH_PROPERTIES)
@pytest.mark.parametrize("around", ["", "/", "/db", "/db/", "/./db", "/db/finance/.."])
def test_no_path_in_metadata_that_a_client_wrote_is_around_its_folder(
    own: Ruled, tmp_path: Path, name: str, property_: str, around: str
) -> None:
    """The server would write there, and then take it for the folder of the table."""
    forge(own, name, properties={property_: f"file://{tmp_path}/warehouse{around}"})
    before = own.served.files()
    assert error_of(change(own, name)) == FORBIDDEN
    assert own.served.files() == before


@pytest.mark.parametrize("name", ["table", "view"])
@pytest.mark.parametrize("folder", [".", "metadata", "metadata/.."])
@pytest.mark.parametrize("around", ["", "/db", "/db/", "/./db"])
def test_no_location_in_metadata_that_a_client_wrote_is_around_its_folder(
    own: Ruled, tmp_path: Path, name: str, folder: str, around: str
) -> None:
    """Wherever in the folder of the table the file lies."""
    forge(own, name, folder, location=f"file://{tmp_path}/warehouse{around}")
    before = own.served.files()
    finance = f"file://{tmp_path}/warehouse/db/finance/metadata"
    for properties in ({}, {"write.metadata.path": finance}):
        assert error_of(change(own, name, **properties)) == FORBIDDEN
    assert own.served.files() == before


def test_a_table_in_the_folder_of_another_one_does_not_reach_it(own: Ruled, tmp_path: Path) -> None:
    """Through a namespace with a location there, which nobody is refused."""
    writer = own.as_("carla", "writer")
    finance = content(writer, "finance")
    location = f"file://{tmp_path}/warehouse/db/finance/metadata"
    inside = {"namespace": ["inside"], "properties": {"location": location}}
    assert own.on(writer).post("/namespaces", inside).status == 200
    assert own.on(writer).create("inside", "t").status == 200
    there = writer.get("/api/v2/trees/main/contents/inside.t").body["content"]
    document = json.loads(path_of(there).read_text())
    document["properties"] = {"write.metadata.path": location}
    written = path_of(there).with_name("00009-x.metadata.json")
    written.write_text(json.dumps(document))

    def put(file: str) -> Answer:
        value = {**there, "metadataLocation": file}
        key_ = {"elements": ["inside", "t"]}
        return commit(writer, {"type": "PUT", "key": key_, "content": value})

    assert put(f"file://{written}").status == 200
    assert error_of(own.on(writer).set_properties("inside", "t")) == FORBIDDEN
    assert is_refused(put(finance["metadataLocation"]))


def test_metadata_of_a_chosen_location_stays_in_its_folder(own: Ruled, tmp_path: Path) -> None:
    """Folders below a location can be those of other tables."""
    location = f"file://{tmp_path}/warehouse/db/finance"
    assert change(own, "finance").status == 200
    for path in (location, f"{location}/m", f"{location}/metadata/m"):
        refused = change(own, "finance", **{"write.metadata.path": path})
        assert error_of(refused) == FORBIDDEN
        assert f"set write.metadata.path to {location}/metadata" in refused.body["error"]["message"]
    assert change(own, "finance", **{"write.metadata.path": f"{location}/metadata"}).status == 200
    assert change(own, "finance", **{"write.data.path": f"{location}/d"}).status == 200
    owner = ("owner",)
    assert change(own, "finance", owner, **{"write.metadata.path": location}).status == 200
    # Now its metadata lies directly in the location, which carla can name, but not the one above.
    assert change(own, "finance").status == 200
    own_file = path_of(content(own.as_("carla", "writer"), "finance"))
    assert own_file.parent == tmp_path / "warehouse" / "db" / "finance"
    document = json.loads(own_file.read_text())
    del document["properties"]["write.metadata.path"]
    written = own_file.with_name("00009-x.metadata.json")
    written.write_text(json.dumps({**document, "location": f"file://{tmp_path}/warehouse/db"}))
    writer = own.as_("carla", "writer")
    value = {**content(writer, "finance"), "metadataLocation": f"file://{written}"}
    assert commit(writer, putting("finance", value)).status == 200
    for path in (f"{location}/../mine", location, f"{location}/metadata"):
        assert error_of(change(own, "finance", **{"write.metadata.path": path})) == FORBIDDEN


def test_a_change_that_names_the_folder_of_its_table_repairs_metadata(
    own: Ruled, tmp_path: Path
) -> None:
    location = own.admin.load("db", "table").body["metadata"]["location"]
    forge(own, "table", location=f"file://{tmp_path}/warehouse/db")
    assert error_of(change(own, "table")) == FORBIDDEN
    writer = own.on(own.as_("carla", "writer"))
    back = [{"action": "set-location", "location": location}]
    assert writer.commit("db", "table", [], back).status == 200
    assert change(own, "table").status == 200


def test_a_path_that_a_client_wrote_leads_no_other_caller_into_an_issued_folder(own: Ruled) -> None:
    """Callers who may choose locations commit to what the metadata says, but not there."""
    victim = path_of(content(own.as_("carla", "writer"), "victim")).parent
    forge(own, "table", properties={"write.metadata.path": f"file://{victim}"})
    before = own.served.files()
    assert error_of(change(own, "table", ("owner",))) == FORBIDDEN
    assert own.served.files() == before
