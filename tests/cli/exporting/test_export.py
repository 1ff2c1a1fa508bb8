"""`nessie export` to a SQL catalog and to an Iceberg REST catalog, with real tables."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from nessie_cli.exporting.metadata import own_file
from nessie_cli.model import (
    CommitMeta,
    ContentKey,
    DeltaLakeTable,
    IcebergTable,
    Namespace,
    Put,
    ReferenceType,
)
from tests.cli.exporting.place import TAG, Place, create_view
from tests.iceberg.lake import ROWS


def test_a_first_export_registers_tables_and_leaves_a_tag(place: Place) -> None:
    place.create("db.orders", "db.deep.items")
    before = place.lake.metadata_files()
    assert place.actions() == {"db.orders": "register", "db.deep.items": "register"}
    assert [place.rows(name) for name in ("db.orders", "db.deep.items")] == [3, 3]
    assert place.references() == {TAG}
    tagged = {str(entry.key) for entry in place.repository.entries(TAG)}
    assert tagged == {"db", "db.deep", "db.orders", "db.deep.items"}
    assert place.lake.metadata_files() == before, "no file is copied"
    head = place.repository.reference(TAG).hash
    assert place.actions() == {}
    assert place.repository.reference(TAG).hash == head


def test_a_later_export_updates_what_is_unchanged_there(place: Place) -> None:
    place.create("db.orders", "db.items")
    place.export()
    place.append("db.orders")
    assert place.actions() == {"db.orders": "update"}
    assert (place.rows("db.orders"), place.rows("db.items")) == (6, 3)
    messages = [entry.meta.message for entry in place.repository.log(TAG)]
    assert messages == ["export main to other"] * 2


def test_a_dry_run_writes_nothing(place: Place) -> None:
    place.create("db.orders")
    assert place.actions("--dry-run") == {"db.orders": "register"}
    assert place.references() == set()
    assert not (place.folder / "other.sqlite").exists()
    place.export()
    place.append("db.orders")
    ran = place.export("--dry-run")
    assert ran.out == (
        "ACTION  NAME       WHY\nupdate  db.orders\nmain to other: 1 would be updated\n"
    )
    assert place.rows("db.orders") == 3


def test_a_renamed_table_moves(place: Place) -> None:
    place.create("db.orders", "db.items")
    place.export()
    place.here.rename_table("db.orders", "db.sales")
    assert place.actions() == {"db.sales": "register", "db.orders": "drop"}
    assert (place.rows("db.sales"), place.rows("db.orders")) == (3, None)
    content = place.repository.content("main", ContentKey(("db", "sales")))
    assert place.repository.content(TAG, ContentKey(("db", "sales"))).id == content.id
    assert place.actions() == {}


def test_two_tables_that_exchange_names_are_updated(place: Place) -> None:
    place.create("db.a", "db.b")
    place.append("db.b")
    place.export()
    contents = {name: place.repository.content("main", ContentKey(("db", name))) for name in "ab"}
    place.repository.commit(
        "main",
        [
            Put(ContentKey(("db", "a")), contents["b"], contents["a"]),
            Put(ContentKey(("db", "b")), contents["a"], contents["b"]),
        ],
        CommitMeta("exchange"),
    )
    assert place.actions() == {"db.a": "update", "db.b": "update"}
    assert (place.rows("db.a"), place.rows("db.b")) == (6, 3)


def test_a_deleted_table_is_dropped_only_with_prune(place: Place) -> None:
    place.create("db.orders", "db.items")
    place.export()
    files = sorted(place.warehouse.rglob("*"))
    place.here.drop_table("db.items")
    assert place.actions() == {"db.items": "kept"}
    assert place.rows("db.items") == 3
    tagged = {str(entry.key) for entry in place.repository.entries(TAG)}
    assert "db.items" in tagged, "the tag goes on keeping its files"
    assert place.actions("--prune") == {"db.items": "drop"}
    assert place.rows("db.items") is None
    assert sorted(place.warehouse.rglob("*")) == files
    assert "db.items" not in {str(entry.key) for entry in place.repository.entries(TAG)}
    assert place.actions("--prune") == {}


def test_a_table_that_was_created_again_replaces_the_earlier_one(place: Place) -> None:
    place.create("db.orders")
    place.export()
    place.here.drop_table("db.orders")
    place.here.create_table("db.orders", ROWS.schema, f"{place.warehouse}/again").append(
        pa.concat_tables([ROWS, ROWS, ROWS])
    )
    assert place.actions() == {"db.orders": "update"}
    assert place.rows("db.orders") == 9


def test_namespaces_come_with_their_properties(place: Place) -> None:
    place.here.create_namespace("sales", {"owner": "eva"})
    place.here.create_namespace("empty", {"x": "1"})
    place.create("sales.orders")
    exported = place.export("--json").json["namespaces"]
    assert [name["elements"] for name in exported] == [["empty"], ["sales"]]
    assert place.there.load_namespace_properties("sales")["owner"] == "eva"
    assert place.there.load_namespace_properties("empty")["x"] == "1"
    place.there.update_namespace_properties("sales", updates={"owner": "ann"})
    place.append("sales.orders")
    place.export()
    assert place.there.load_namespace_properties("sales")["owner"] == "ann"


def test_keys_globs_and_a_revision_select_tables(place: Place) -> None:
    place.create("db.a", "db.b", "x.c")
    place.repository.create_reference(
        ReferenceType.TAG, "v1", place.repository.reference("main").hash
    )
    place.append("db.a")
    assert place.actions("v1", "db.*") == {"db.a": "register", "db.b": "register"}
    assert place.rows("db.a") == 3
    assert place.actions("--", "x.c") == {"x.c": "register"}
    tagged = {str(entry.key) for entry in place.repository.entries(TAG)}
    assert {"db.a", "db.b", "x.c"} <= tagged
    place.append("db.b")
    assert place.actions("main") == {"db.a": "update", "db.b": "update"}
    place.nessie("export", "--to", "other", "main", "nothing.*").expect(4, "nothing.*")
    place.nessie("export", "--to", "other", "nowhere").expect(4, "nowhere")


def test_a_partial_export_keeps_the_files_of_the_others(place: Place) -> None:
    """The table stays registered at its former state, which the tag has to keep."""
    place.create("db.a", "db.b")
    place.export()
    former = place.location("db.a")
    place.append("db.a", "db.b")
    place.export("main", "db.b")
    content = place.repository.content(TAG, ContentKey(("db", "a")))
    assert isinstance(content, IcebergTable)
    assert content.metadata_location == former == place.location("db.a")
    place.here.drop_table("db.a")
    assert place.actions("--prune", "main", "db.b") == {}
    assert place.actions("--prune") == {"db.a": "drop"}


def test_a_prefix_goes_before_each_name(place: Place) -> None:
    place.create("db.orders")
    assert place.actions("--prefix", "lake") == {"lake.db.orders": "register"}
    assert place.rows("lake.db.orders") == 3
    place.append("db.orders")
    assert place.actions("--prefix", "lake") == {"lake.db.orders": "update"}


def put_back(place: Place) -> IcebergTable:
    """Gives the table `db.orders` its first state of two, which has no metadata file alone."""
    place.create("db.orders")
    place.append("db.orders")
    key = ContentKey(("db", "orders"))
    content = place.repository.content("main", key)
    first = place.here.load_table("db.orders").history()[0].snapshot_id
    assert isinstance(content, IcebergTable)
    values = {
        name: getattr(content, name)
        for name in ("id", "metadata_location", "schema_id", "spec_id", "sort_order_id")
    }
    earlier = IcebergTable(**values, snapshot_id=first)
    place.repository.commit("main", [Put(key, earlier, content)], CommitMeta("back"))
    return earlier


def test_a_torn_file_of_an_export_that_was_killed_is_written_again(place: Place) -> None:
    location = own_file(put_back(place)).metadata_location
    Path(location).write_text('{"format-version"')
    place.export()
    assert place.location("db.orders") == location
    assert place.rows("db.orders") == 3


def test_a_state_without_a_metadata_file_of_its_own_gets_one(place: Place) -> None:
    earlier, key = put_back(place), ContentKey(("db", "orders"))
    place.export()
    location = place.location("db.orders")
    assert Path(location).name.startswith("exported-")
    assert place.rows("db.orders") == 3
    tagged = place.repository.content(TAG, key)
    assert isinstance(tagged, IcebergTable)
    assert tagged.metadata_location == location
    assert place.actions() == {}
    assert place.repository.content("main", key) == earlier

    # `nessie gc` keeps the file, which no other branch names.
    place.append("db.orders")
    mark = ("gc", "mark", "--default-cutoff", "1", "--reference-time", "2999-01-01T00:00:00Z")
    assert place.nessie(*mark).code == 0
    for step in (["plan", "--warehouse", str(place.warehouse), "--grace", "0s"], ["approve"]):
        assert place.nessie("gc", *step).code == 0
    assert place.nessie("gc", "apply").code == 0
    assert place.rows("db.orders") == 3


def test_contents_of_other_types_are_skipped(place: Place) -> None:
    place.create("db.orders")
    delta = DeltaLakeTable(
        metadata_location_history=("s3://x/_delta_log/1.json",), checkpoint_location_history=()
    )
    place.repository.commit("main", [Put(ContentKey(("db", "d")), delta)], CommitMeta("delta"))
    ran = place.export()
    assert "skipped   db.d" in ran.out
    assert ran.lines[-1] == "main to other: 1 registered, 1 skipped"


def test_views_are_registered_where_the_catalog_can(place: Place) -> None:
    place.create("db.orders")
    create_view(place)
    actions = place.actions()
    if place.is_sql:
        assert actions == {"db.orders": "register", "db.v": "skipped"}
        return
    assert actions == {"db.orders": "register", "db.v": "register"}
    assert place.there.view_exists("db.v")
    assert place.actions() == {}
    place.here.drop_view("db.v")
    assert place.actions("--prune") == {"db.v": "kept"}
    assert place.there.view_exists("db.v")
    view = ContentKey(("db", "v"))
    assert view in {entry.key for entry in place.repository.entries(TAG)}, "its files are kept"
    assert place.actions("--prune", "--force") == {"db.v": "skipped"}
    assert view not in {entry.key for entry in place.repository.entries(TAG)}


def test_100_tables(place: Place) -> None:
    place.create("db.t")
    content = place.repository.content("main", ContentKey(("db", "t")))
    assert isinstance(content, IcebergTable)
    first = Path(content.metadata_location.removeprefix("file://"))
    document = json.loads(first.read_text())
    puts = []
    for number in range(100):
        copy = first.with_name(f"{number:05}-copy.metadata.json")
        uuid = f"{number:08}-0000-4000-8000-000000000000"
        copy.write_text(json.dumps(document | {"table-uuid": uuid}))
        table = IcebergTable(metadata_location=str(copy), snapshot_id=content.snapshot_id)
        puts.append(Put(ContentKey(("many", f"t{number:03}")), table))
    namespace = Put(ContentKey(("many",)), Namespace(elements=("many",)))
    place.repository.commit("main", [namespace, *puts], CommitMeta("many"))
    assert len(place.actions()) == 101
    assert len(place.there.list_tables("many")) == 100
    assert place.actions() == {}
