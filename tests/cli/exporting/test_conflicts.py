"""`nessie export` of tables that were changed, dropped or replaced in the other catalog."""

from __future__ import annotations

from pathlib import Path

from nessie_cli.model import (
    CommitMeta,
    ContentKey,
    IcebergTable,
    Put,
)
from tests.cli.exporting.place import TAG, Place, create_view, rest_only
from tests.iceberg.lake import ROWS


def test_a_table_that_changed_there_stops_the_export(place: Place) -> None:
    place.create("db.orders", "db.items")
    place.export()
    tag = place.repository.reference(TAG)
    place.there.load_table("db.orders").append(ROWS)
    changed = place.location("db.orders")
    place.append("db.orders", "db.items")
    ran = place.export(code=3)
    assert "changed in other" in ran.out.replace("\n", " ")
    assert "nothing was exported because of 1 problem" in ran.err
    assert place.location("db.orders") == changed
    assert place.rows("db.items") == 3
    assert place.repository.reference(TAG) == tag
    assert place.references() == {TAG}
    forced = place.export("--force", "--json").json["contents"]
    (orders,) = (one for one in forced if one["name"]["elements"] == ["db", "orders"])
    assert (orders["action"], orders["previousLocation"]) == ("update", changed)
    assert orders["reason"] == "changed in other"
    assert (place.rows("db.orders"), place.rows("db.items")) == (6, 6)


def test_a_change_there_alone_is_a_conflict_too(place: Place) -> None:
    place.create("db.orders")
    place.export()
    place.there.load_table("db.orders").append(ROWS)
    assert place.actions(code=3) == {"db.orders": "conflict"}


def test_another_table_of_the_same_name_stops_the_export(place: Place) -> None:
    place.there.create_namespace("db")
    place.there.create_table("db.orders", ROWS.schema, f"{place.warehouse}/other/orders")
    place.create("db.items", "db.orders")
    assert place.actions(code=3) == {"db.items": "register", "db.orders": "conflict"}
    assert (place.rows("db.items"), place.rows("db.orders")) == (None, 0)
    assert place.references() == set()
    place.export("--force")
    assert place.rows("db.orders") == 3


def test_a_table_that_was_dropped_there_is_a_conflict(place: Place) -> None:
    place.create("db.orders")
    place.export()
    place.there.drop_table("db.orders")
    assert place.actions(code=3) == {"db.orders": "conflict"}
    place.export("--force")
    assert place.rows("db.orders") == 3


def test_a_pruned_table_that_changed_there_is_a_conflict(place: Place) -> None:
    place.create("db.orders")
    place.export()
    place.here.drop_table("db.orders")
    place.there.load_table("db.orders").append(ROWS)
    assert place.actions("--prune", code=3) == {"db.orders": "conflict"}
    assert place.rows("db.orders") == 6


def test_all_problems_are_listed_before_anything_is_written(place: Place) -> None:
    place.create("db.good", "db.lost", "db.torn")
    for name, text in (("lost", None), ("torn", "{")):
        content = place.repository.content("main", ContentKey(("db", name)))
        assert isinstance(content, IcebergTable)
        path = Path(content.metadata_location.removeprefix("file://"))
        path.unlink() if text is None else path.write_text(text)
    top = place.repository.content("main", ContentKey(("db", "good")))
    assert isinstance(top, IcebergTable)
    place.repository.commit(
        "main",
        [
            Put(
                ContentKey(("top",)),
                IcebergTable(metadata_location=top.metadata_location, snapshot_id=top.snapshot_id),
            )
        ],
        CommitMeta("a table without a namespace"),
    )
    ran = place.export("--json", code=2)
    actions = {one["name"]["elements"][-1]: one for one in ran.json["contents"]}
    assert {name: one["action"] for name, one in actions.items()} == {
        "good": "register",
        "lost": "invalid",
        "torn": "invalid",
        "top": "invalid",
    }
    assert "--prefix" in actions["top"]["reason"]
    assert ran.json["wasApplied"] is False
    assert place.rows("db.good") is None
    assert place.references() == set()


def test_a_pruned_table_that_was_renamed_there_keeps_its_files(place: Place) -> None:
    place.create("db.orders", "db.items")
    place.export()
    place.there.rename_table("db.orders", "db.theirs")
    place.here.drop_table("db.orders")
    assert place.actions("--prune") == {"db.orders": "kept"}
    assert ContentKey(("db", "orders")) in {entry.key for entry in place.repository.entries(TAG)}
    assert "dropped or renamed in other" in place.export("--prune").out.replace("\n", " ")
    assert place.actions("--prune", "--force") == {}
    assert ContentKey(("db", "orders")) not in {
        entry.key for entry in place.repository.entries(TAG)
    }
    assert place.rows("db.theirs") == 3


def test_a_forced_drop_names_the_metadata_file_that_the_table_had_there(place: Place) -> None:
    place.create("db.orders")
    place.export()
    place.here.drop_table("db.orders")
    place.there.load_table("db.orders").append(ROWS)
    changed = place.location("db.orders")
    refused = place.export("--prune", code=3)
    assert "Hint: with --force" in refused.err
    forced = place.export("--prune", "--force")
    assert changed in "".join(forced.out.split())
    assert place.rows("db.orders") is None


@rest_only
def test_force_is_no_advice_against_a_view(place: Place) -> None:
    place.create("db.orders")
    create_view(place)
    place.export("main", "db.v")
    place.here.drop_view("db.v")
    place.here.rename_table("db.orders", "db.v")
    for options in ((), ("--force",)):
        ran = place.export(*options, code=3)
        assert "other has a view of this name" in ran.out.replace("\n", " ")
        assert "--force" not in ran.err
