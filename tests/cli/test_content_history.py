"""`nessie content history` and `nessie blame`."""

import apsw
import pytest

from nessie_cli.model import Delete, IcebergView, Namespace, Put

from .conftest import key, table


def hashes(ran) -> list[str]:
    """The hashes of commits with an empty line after the changes of each."""
    return [block.partition(" ")[0] for block in ran.out.split("\n\n") if block]


def moments(nessie, name: str) -> list[tuple[str, str]]:
    """The change of each commit, and the key."""
    return nessie("content", "history", name).changed


def test_every_commit_that_changed_the_content_newest_first(nessie, catalog) -> None:
    created = catalog.repository.last_change("main", key("db.orders")).hash
    second = catalog.update("main", "db.orders", 2)
    catalog.update("main", "db.items", 5)
    third = catalog.update("main", "db.orders", 3)

    ran = nessie("content", "history", "db.orders")

    assert hashes(ran) == [hash_[:12] for hash_ in (third, second, created)]
    assert ran.changed == [
        ("updated", "db.orders"),
        ("updated", "db.orders"),
        ("created", "db.orders"),
    ]
    assert ran.lines[0].startswith(f'{third[:12]} "update db.orders" Eva, ')
    assert [label for _, label in ran.fields][:2] == ["metadata-location", "snapshot-id"]


def test_renames_are_followed_by_the_content_id(nessie, catalog) -> None:
    catalog.rename("main", "db.orders", "db.sales")
    catalog.update("main", "db.sales", 7)
    catalog.create("main", "db.orders", 99)
    catalog.rename("main", "db.sales", "db.revenue")

    assert moments(nessie, "db.revenue") == [
        ("renamed", "db.sales -> db.revenue"),
        ("updated", "db.sales"),
        ("renamed", "db.orders -> db.sales"),
        ("created", "db.orders"),
    ]
    # Another content has the old key now; the history includes the earlier content.
    assert moments(nessie, "db.orders") == [
        ("created", "db.orders"),
        ("renamed", "db.orders -> db.sales"),
        ("created", "db.orders"),
    ]


def test_a_content_is_followed_to_the_key_that_another_one_had(nessie, catalog) -> None:
    orders, items = (
        catalog.repository.content("main", key(name)) for name in ("db.orders", "db.items")
    )
    catalog.commit(
        "main", "items take over", Delete(key("db.items")), Put(key("db.orders"), items, orders)
    )
    assert moments(nessie, "db.orders") == [
        ("renamed", "db.items -> db.orders"),
        ("created", "db.items"),
    ]


def test_the_history_of_a_deleted_key_starts_at_its_deletion(nessie, catalog) -> None:
    catalog.drop("main", "db.orders")
    assert moments(nessie, "db.orders") == [
        ("deleted", "db.orders"),
        ("created", "db.orders"),
    ]
    catalog.create("main", "db.orders", 5)
    assert moments(nessie, "db.orders") == [
        ("created", "db.orders"),
        ("deleted", "db.orders"),
        ("created", "db.orders"),
    ]
    catalog.rename("main", "db.items", "db.things")
    assert moments(nessie, "db.items") == [
        ("renamed", "db.items -> db.things"),
        ("created", "db.items"),
    ]


def test_a_replacement_shows_type_and_id(nessie, catalog) -> None:
    view = IcebergView(metadata_location="s3://v", version_id=1, schema_id=0)
    catalog.commit("main", "a view now", Delete(key("db.orders")), Put(key("db.orders"), view))
    ran = nessie("content", "history", "db.orders")
    assert ran.changed == [("updated", "db.orders"), ("created", "db.orders")]
    assert [label for _, label in ran.fields][:2] == ["type", "id"]


def test_history_starts_at_the_given_revision_and_ends_after_n(nessie, catalog) -> None:
    catalog.update("main", "db.orders", 2)
    catalog.update("main", "db.orders", 3)
    assert len(hashes(nessie("content", "history", "db.orders", "main~1"))) == 2
    assert len(hashes(nessie("content", "history", "db.orders", "-n", "1"))) == 1
    assert nessie("content", "history", "db.orders", "-n", "0").out == ""


def test_the_document_holds_commits_and_both_states(nessie, catalog) -> None:
    catalog.rename("main", "db.orders", "db.sales")
    first, second = nessie("content", "history", "db.sales", "--json").json["history"]
    assert first["commitMeta"]["message"] == "rename db.orders"
    assert (first["change"], first["key"], first["renamedFrom"]) == (
        "RENAMED",
        {"elements": ["db", "sales"]},
        {"elements": ["db", "orders"]},
    )
    assert first["from"] == first["to"]
    assert (second["change"], second["from"], second["to"]["snapshotId"], second["fields"]) == (
        "CREATED",
        None,
        1,
        ["iceberg-table"],
    )
    assert len(nessie("content", "history", "db.sales", "--jsonl").lines) == 2


def test_a_field_whose_name_has_a_comma_is_one_field(nessie, catalog) -> None:
    first = Namespace(elements=("ns",), properties={"a,b": "1"})
    catalog.commit("main", "create", Put(key("ns"), first))
    present = catalog.repository.content("main", key("ns"))
    second = Namespace(elements=("ns",), properties={"a,b": "2"}, id=present.id)
    catalog.commit("main", "update", Put(key("ns"), second, present))

    updated, _ = nessie("content", "history", "ns", "--json").json["history"]

    assert updated["fields"] == ["properties.a,b"]


@pytest.mark.parametrize(("limit", "more"), [(0, True), (2, True), (3, False), (4, False)])
def test_a_limit_says_whether_there_is_more(nessie, catalog, limit, more) -> None:
    catalog.update("main", "db.orders", 2)
    catalog.update("main", "db.orders", 3)
    found = nessie("content", "history", "db.orders", "-n", str(limit), "--json").json
    assert (len(found["history"]), found["hasMore"]) == (min(limit, 3), more)


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_limit_does_not_read_the_commits_far_beyond_it(nessie, catalog, form) -> None:
    commits = [catalog.update("main", "db.orders", snapshot) for snapshot in range(2, 9)]
    with apsw.Connection(catalog.url) as connection:
        connection.execute("DELETE FROM objects WHERE id = ?", [bytes.fromhex(commits[1])])
    assert nessie("content", "history", "db.orders", "-n", "2", *form).code == 0
    assert nessie("content", "history", "db.orders", *form).code == 4


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["db.nope"], 4, "never had a content"),
        (["db.order"], 4, "Did you mean 'db.orders'?"),
        (["db.orders", "nowhere"], 4, "nowhere"),
        (["db..orders"], 2, "empty"),
        (["db.orders", ""], 2, "an argument is empty"),
        (["db.orders", "-n", "x"], 2, "'x'"),
    ],
)
def test_wrong_input_is_one_line_and_a_document(nessie, catalog, argv, code, said) -> None:
    ran = nessie("content", "history", *argv)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert "error" in nessie("content", "history", *argv, "--json").json


# -- blame ---------------------------------------------------------------------------------------
def test_blame_names_the_last_commit_of_each_key(nessie, catalog) -> None:
    tables = catalog.repository.last_change("main", key("db.items")).hash
    update = catalog.update("main", "db.orders", 2, author="Ada <ada@example.org>")
    ran = nessie("blame")
    assert [(row[0], row[1]) for row in ran.rows] == [
        ("db", catalog.repository.resolve("v1~1").hash[:12]),
        ("db.items", tables[:12]),
        ("db.orders", update[:12]),
    ]
    assert ran.rows[2][3:] == ["Ada", "update db.orders"]


def test_blame_of_many_keys_walks_and_agrees_with_looking_up_each(nessie, catalog) -> None:
    for number in range(40):
        catalog.commit("main", f"make {number}", Put(key(f"db.t{number:02}"), table("t", number)))
    for number in range(0, 40, 7):
        catalog.update("main", f"db.t{number:02}", 100 + number)
    for row in nessie("blame").rows:
        assert row[1] == catalog.repository.last_change("main", key(row[0])).hash[:12]


def test_blame_starts_at_the_given_revision(nessie, catalog) -> None:
    catalog.update("main", "db.orders", 2)
    assert [row[0] for row in nessie("blame", "db.orders").rows] == ["db.orders"]
    assert nessie("blame", "db.orders", "--at", "v1").rows[0][4] == "tables"
    ran = nessie("blame", "db.order")
    assert (ran.code, ran.out) == (4, "")
    assert (
        ran.err
        == "nessie: there is no content at or below key 'db.order' in 'main'\nDid you mean 'db.orders'?\n"
    )
    found = nessie("blame", "db.orders", "--json").json["blame"]
    assert [(entry["name"]["elements"], entry["lastChange"]["message"]) for entry in found] == [
        (["db", "orders"], "update db.orders")
    ]


def test_blame_follows_a_merge_to_the_commit_that_brought_the_change(nessie, catalog) -> None:
    catalog.branch("dev")
    catalog.update("dev", "db.orders", 2)
    catalog.update("main", "db.items", 2)
    merged = catalog.repository.merge("main", "dev").resultant_hash
    assert nessie("blame", "db.orders").rows[0][1] == merged[:12]


def test_blame_takes_one_prefix(nessie, catalog) -> None:
    assert nessie("blame", "a", "b").code == 2
    assert nessie("blame", "--at", "nowhere").code == 4
