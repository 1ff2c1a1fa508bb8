from __future__ import annotations

import time
from pathlib import Path

from nessie_cli.iceberg.warehouses.configuration import from_options
from nessie_cli.model import CommitMeta, ContentKey, IcebergTable, Namespace, Put
from tests.server.iceberg_rest.lake import IcebergClient, Lake, error_of, lake, segment

SOON = 20.0
"""Seconds of processor time. Comparing each name with each other one takes longer."""


def test_namespaces_of_several_levels(main: IcebergClient, served: Lake) -> None:
    made = main.namespace("a", "b", "c", owner="ada")
    location = f"file://{served.folder}/a/b/c"
    properties = {"owner": "ada", "location": location}
    assert made.body == {"namespace": ["a", "b", "c"], "properties": properties}
    assert main.get("/namespaces").body == {"namespaces": [["a"], ["db"]], "next-page-token": None}
    listed = main.get(f"/namespaces?parent={segment('a', 'b')}").body["namespaces"]
    assert listed == [["a", "b", "c"]]
    assert main.get("/namespaces?parent=").body["namespaces"] == [["a"], ["db"]]
    loaded = main.get(f"/namespaces/{segment('a', 'b', 'c')}").body
    assert loaded == made.body


def test_head_of_an_existing_namespace_has_no_body(main: IcebergClient) -> None:
    answer = main.send("HEAD", "/namespaces/db")
    assert (answer.status, answer.raw) == (204, b"")
    answer = main.send("HEAD", "/namespaces/none")
    assert (answer.status, answer.raw) == (404, b"")


def test_missing_namespaces(main: IcebergClient) -> None:
    for answer in (
        main.get("/namespaces/none"),
        main.get("/namespaces?parent=none"),
        main.get("/namespaces/none/tables"),
        main.get("/namespaces/none/views"),
        main.send("DELETE", "/namespaces/none"),
        main.post("/namespaces/none/properties", {"updates": {"a": "b"}}),
        main.create("none", "t"),
        main.view("none", "v"),
    ):
        assert error_of(answer) == (404, "NoSuchNamespaceException")


def test_names_are_unique_across_types(main: IcebergClient, served: Lake) -> None:
    main.create("db", "t")
    main.view("db", "v")
    main.namespace("db", "n")
    content = IcebergTable(metadata_location="file:/t")
    served.repository.commit(
        "main", [Put(ContentKey(("db", "v2")), content)], CommitMeta("by REST v2")
    )
    for name in ("t", "v", "n", "v2"):
        assert error_of(main.namespace("db", name)) == (409, "AlreadyExistsException")
        assert error_of(main.create("db", name)) == (409, "AlreadyExistsException")
        assert error_of(main.view("db", name)) == (409, "AlreadyExistsException")
    assert error_of(main.namespace("db")) == (409, "AlreadyExistsException")
    assert error_of(main.namespace("db", "t", "below")) == (404, "NoSuchNamespaceException")


def test_many_properties_are_removed_in_little_time(main: IcebergClient) -> None:
    many = 60_000
    main.namespace("big", **{f"p{number}": "" for number in range(many)})
    removals = [f"p{number}" for number in range(many // 2, many + many // 2)]
    begun = time.process_time()
    answer = main.post("/namespaces/big/properties", {"removals": removals, "updates": {}})
    assert time.process_time() - begun < SOON
    assert (len(answer.body["removed"]), len(answer.body["missing"])) == (many // 2, many // 2)
    assert len(main.get("/namespaces/big").body["properties"]) == many // 2 + 1


def test_the_number_of_changed_properties_is_limited(main: IcebergClient) -> None:
    main.namespace("few")
    removals = ["p"] * 100_001
    answer = main.post("/namespaces/few/properties", {"removals": removals, "updates": {}})
    assert error_of(answer) == (400, "BadRequestException")
    assert "has more than 100,000 properties" in answer.body["error"]["message"]


def test_properties_are_set_and_removed(main: IcebergClient) -> None:
    main.namespace("p", a="1", b="2")
    answer = main.post(
        "/namespaces/p/properties", {"removals": ["a", "gone"], "updates": {"c": "3"}}
    )
    assert answer.body == {"updated": ["c"], "removed": ["a"], "missing": ["gone"]}
    shown = main.get("/namespaces/p").body["properties"]
    assert shown.items() >= {"b": "2", "c": "3"}.items()
    assert "a" not in shown
    both = main.post("/namespaces/p/properties", {"removals": ["b"], "updates": {"b": "3"}})
    assert error_of(both) == (422, "UnprocessableEntityException")


def test_only_empty_namespaces_can_be_dropped(main: IcebergClient) -> None:
    main.namespace("full", "inner")
    assert error_of(main.send("DELETE", "/namespaces/full")) == (409, "NamespaceNotEmptyException")
    assert main.send("DELETE", f"/namespaces/{segment('full', 'inner')}").status == 204
    assert main.send("DELETE", "/namespaces/full").status == 204
    assert main.get("/namespaces/full").status == 404


def test_pages_are_sent_on_request_and_show_one_commit(main: IcebergClient) -> None:
    for number in range(7):
        main.namespace("many", f"n{number}")
    everything = main.get("/namespaces?parent=many&pageSize=2").body
    assert len(everything["namespaces"]) == 7
    assert everything["next-page-token"] is None
    found, token = [], ""
    while token is not None:
        page = main.get(f"/namespaces?parent=many&pageSize=3&pageToken={token}").body
        found += page["namespaces"]
        token = page["next-page-token"]
        main.namespace("many", f"later{len(found)}")
    assert found == [["many", f"n{number}"] for number in range(7)]
    one = main.get("/namespaces?parent=many&pageToken=").body
    assert len(one["namespaces"]) == 10
    for query in ("pageToken=wrong", "pageToken=&pageSize=0", "pageToken=&pageSize=x"):
        assert error_of(main.get(f"/namespaces?parent=many&{query}"))[0] == 400


def test_a_listing_skips_many_deeper_keys(main: IcebergClient, served: Lake) -> None:
    main.namespace("top", "deep")
    main.namespace("top", "next")
    puts = [
        Put(ContentKey(("top", "deep", f"t{number:03}")), IcebergTable(metadata_location="file:/t"))
        for number in range(300)
    ]
    served.repository.commit("main", puts, CommitMeta("many"))
    assert main.get("/namespaces?parent=top").body["namespaces"] == [
        ["top", "deep"],
        ["top", "next"],
    ]
    assert ["top"] in main.get("/namespaces").body["namespaces"]
    assert len(main.get(f"/namespaces/{segment('top', 'deep')}/tables").body["identifiers"]) == 300


def test_every_namespace_has_the_location_of_its_tables(main: IcebergClient, served: Lake) -> None:
    main.namespace("located", location=f"file://{served.folder}/elsewhere")
    main.namespace("located", "inner")
    main.namespace("a b/..", "é?")
    for levels in (("db",), ("located",), ("located", "inner"), ("a b/..",), ("a b/..", "é?")):
        path = segment(*levels)
        shown = main.get(f"/namespaces/{path}").body["properties"]["location"]
        made = main.create(path, "t").body["metadata"]["location"]
        assert made.startswith(f"{shown}/t_"), levels
        chosen = main.create(path, "mine", location=f"{shown}/mine-1").body["metadata"]["location"]
        assert chosen == f"{shown}/mine-1"


def test_the_location_of_a_namespace_without_one_is_not_stored(
    main: IcebergClient, served: Lake
) -> None:
    derived = main.get("/namespaces/db").body["properties"]["location"]

    def stored() -> dict[str, str]:
        content = served.repository.content("main", ContentKey(("db",)))
        assert isinstance(content, Namespace)
        return dict(content.properties)

    def changed(**body: object) -> object:
        return main.post("/namespaces/db/properties", body).body

    assert stored() == {}
    removed = {"updated": [], "removed": [], "missing": ["location"]}
    assert changed(removals=["location"]) == removed
    assert main.get("/namespaces/db").body["properties"] == {"location": derived}
    other = f"file://{served.folder}/other"
    changed(updates={"location": other})
    assert stored() == {"location": other}
    assert main.get("/namespaces/db").body["properties"] == {"location": other}
    assert changed(removals=["location"]) == {**removed, "removed": ["location"], "missing": []}
    assert stored() == {}
    assert main.get("/namespaces/db").body["properties"] == {"location": derived}


def test_the_location_of_a_namespace_is_that_of_the_warehouse_in_the_prefix(tmp_path: Path) -> None:
    warehouses = from_options([f"one={tmp_path / 'one'}", f"two={tmp_path / 'two'}"])
    with lake(tmp_path, warehouses) as served:
        served.main.namespace("db")
        for prefix, folder in (("main", "one"), ("main%7Cone", "one"), ("main%7Ctwo", "two")):
            shown = served.main.on(prefix).get("/namespaces/db").body["properties"]
            assert shown == {"location": f"file://{tmp_path}/{folder}/db"}
        assert error_of(served.main.on("main%7Cnone").get("/namespaces/db"))[0] == 404


def test_the_location_of_a_namespace_is_checked_and_used(main: IcebergClient, served: Lake) -> None:
    refused = main.namespace("bad", location="file:/etc")
    assert error_of(refused) == (403, "ForbiddenException")
    inside = f"file://{served.folder}/somewhere"
    main.namespace("good", location=inside)
    assert main.create("good", "t").body["metadata"]["location"].startswith(f"{inside}/t_")
    changed = main.post("/namespaces/good/properties", {"updates": {"location": "s3://other/x"}})
    assert error_of(changed) == (403, "ForbiddenException")
