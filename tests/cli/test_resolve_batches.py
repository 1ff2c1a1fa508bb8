"""`nessie resolve` about a batch: a decision is for a content, with its key and its value."""

import json
import shlex

import pytest

from nessie_cli.model import Namespace, Put

from .conftest import key, table
from .test_resolve import full_namespace, staged


def content(catalog, name):
    return catalog.repository.contents("main", [key(name)]).get(key(name))


def values(catalog) -> dict[str, int | None]:
    """The snapshot of each table, by key."""
    entries = catalog.repository.entries("main", content=True)
    return {str(e.key): e.content.snapshot_id for e in entries if hasattr(e.content, "snapshot_id")}


def put(nessie, name: str, snapshot: int, *options: str):
    return nessie("content", "put", name, "--snapshot-id", str(snapshot), *options)


@pytest.fixture
def renamed(nessie, catalog):
    """`db.orders` is staged with a new key and a new value, and changed on the branch meanwhile."""
    nessie("content", "rename", "db.orders", "db.sales")
    put(nessie, "db.sales", 9)
    catalog.update("main", "db.orders", 5)
    return catalog


def test_a_decision_keeps_the_staged_key_and_the_staged_value(nessie, renamed) -> None:
    before = content(renamed, "db.orders")
    assert nessie("resolve", "--proposed", "db.orders").code == 0
    assert nessie("commit", "-m", "both").code == 0
    after = content(renamed, "db.sales")
    assert (after.id, after.snapshot_id) == (before.id, 9)
    assert values(renamed) == {"db.sales": 9, "db.items": 1}


def test_a_renamed_and_changed_content_has_no_line_that_drops_a_part_of_it(nessie, renamed) -> None:
    details = nessie("commit", "-m", "m", "--json").error["errorDetails"]
    (conflict,) = details["conflicts"]
    assert conflict["resolutions"] == [
        f"nessie resolve --proposed db.orders --expected-hash {details['hash'][:12]}",
        "nessie reset db.orders",
    ]
    assert "db.orders was changed on main and renamed and changed in the batch" in (
        nessie("commit", "-m", "m").err
    )


def test_an_edited_value_of_a_renamed_content_has_the_staged_key(nessie, renamed, tmp_path) -> None:
    document = json.loads(nessie("content", "show", "db.orders", "--raw").out)
    (tmp_path / "mine.json").write_text(json.dumps(document | {"snapshotId": 77}))
    assert nessie("resolve", "--resolve", "db.orders=mine.json", "-m", "edited").code == 0
    assert values(renamed) == {"db.sales": 77, "db.items": 1}


def test_a_pure_rename_takes_the_new_value_of_the_branch(nessie, catalog) -> None:
    nessie("content", "rename", "db.orders", "db.sales")
    catalog.update("main", "db.orders", 5)
    assert nessie("resolve", "--proposed", "db.orders", "-m", "renamed").code == 0
    assert values(catalog) == {"db.sales": 5, "db.items": 1}


@pytest.fixture
def swapped(nessie, catalog):
    for pair in (("db.orders", "t"), ("db.items", "db.orders"), ("t", "db.items")):
        nessie("content", "rename", *pair)
    catalog.update("main", "db.orders", 5)
    return catalog


def test_a_staged_swap_survives_a_change_of_one_of_its_tables(nessie, swapped) -> None:
    assert nessie("resolve", "--proposed", "db.orders", "-m", "swap").code == 0
    assert values(swapped) == {"db.items": 5, "db.orders": 1}


def test_dropping_one_rename_of_a_swap_says_that_the_other_is_dropped(nessie, swapped) -> None:
    ran = nessie("resolve", "--current", "db.orders")
    assert (ran.code, staged(nessie)) == (0, [])
    assert "the staged rename of db.items to db.orders is dropped" in ran.err


def test_decisions_that_contradict_each_other_change_nothing(nessie, swapped) -> None:
    swapped.update("main", "db.items", 6)
    before = staged(nessie)
    ran = nessie("resolve", "--proposed", "db.orders", "--current", "db.items")
    assert (ran.code, staged(nessie)) == (2, before)
    assert "the decisions contradict each other" in ran.err


def test_a_staged_cycle_survives(nessie, catalog) -> None:
    catalog.create("main", "db.more", 3)
    for pair in (("orders", "t"), ("items", "orders"), ("more", "items"), ("t", "more")):
        nessie("content", "rename", *(f"db.{name}" for name in pair))
    catalog.update("main", "db.items", 5)
    assert nessie("resolve", "--proposed", "db.items", "-m", "cycle").code == 0
    assert values(catalog) == {"db.more": 1, "db.orders": 5, "db.items": 3}


def test_the_rest_of_a_chain_stays_staged(nessie, catalog) -> None:
    nessie("content", "rename", "db.items", "db.more")
    nessie("content", "rename", "db.orders", "db.items")
    catalog.update("main", "db.orders", 5)
    assert nessie("resolve", "--current", "db.orders", "-m", "one of two").code == 0
    assert values(catalog) == {"db.orders": 5, "db.more": 1}


# -- contents that the branch renamed --------------------------------------------------------------


def test_a_change_follows_a_content_that_was_renamed_on_the_branch(nessie, catalog) -> None:
    put(nessie, "db.orders", 9)
    catalog.rename("main", "db.orders", "db.sales")
    catalog.create("main", "db.orders", 30)
    ran = nessie("commit", "-m", "mine")
    assert "db.orders was renamed on main and changed in the batch" in ran.err
    assert "renamed            db.orders to db.sales on main" in ran.err
    assert "(db.orders is db.sales now)" in ran.err
    assert nessie("resolve", "--proposed", "db.orders", "-m", "mine").code == 0
    assert values(catalog) == {"db.sales": 9, "db.orders": 30, "db.items": 1}


def test_without_a_workspace_the_line_has_the_new_key(nessie, catalog, tmp_path) -> None:
    head = catalog.head("main")
    catalog.rename("main", "db.orders", "db.sales")
    where = ("--store", str(tmp_path / ".nessie" / "store.sqlite"), "-C", "/")
    line = ("content", "put", "db.orders", "--snapshot-id", "9", "--expected-hash", head)
    ran = nessie(*where, *line, "-m", "mine", "--json")
    (conflict,) = ran.error["errorDetails"]["conflicts"]
    (resolution,) = conflict["resolutions"]
    assert "content put db.sales --type iceberg-table" in resolution
    assert nessie(*shlex.split(resolution)[1:]).code == 0
    assert values(catalog) == {"db.sales": 9, "db.items": 1}


def test_a_key_to_which_another_content_was_renamed_says_so(nessie, catalog) -> None:
    words = ("--type", "iceberg-table", "--metadata-location", "s3://mine")
    nessie("content", "put", "db.new", *words)
    catalog.rename("main", "db.orders", "db.new")
    ran = nessie("commit", "-m", "mine")
    assert "db.new was renamed from db.orders on main and created in the batch" in ran.err
    assert "(deletes the present db.new, renamed from db.orders)" in ran.err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("delete", "db.orders"), "was renamed to 'db.sales' on main, and the batch deletes it"),
        (("rename", "db.orders", "db.more"), "was deleted on main, and the batch renames it"),
        (("unmodified", "db.orders"), "was deleted on main, and the batch requires it"),
    ],
)
def test_a_change_that_cannot_be_kept_is_refused(nessie, catalog, words, why) -> None:
    nessie("content", *words)
    if "renamed" in why:
        catalog.rename("main", "db.orders", "db.sales")
    else:
        catalog.drop("main", "db.orders")
    before, head = staged(nessie), catalog.head("main")
    ran = nessie("resolve", "--proposed", "db.orders", "-m", "mine")
    assert (ran.code, ran.out) == (2, "")
    assert f"the staged change cannot be kept: 'db.orders' {why}" in ran.err
    assert "Hint: `nessie reset db.orders`" in ran.err
    assert (staged(nessie), catalog.head("main")) == (before, head)


def test_a_batch_from_another_branch_finds_a_content_that_never_had_its_key_there(
    nessie, catalog
) -> None:
    catalog.branch("feature")
    catalog.create("feature", "db.draft", 1)
    nessie("switch", "feature")
    put(nessie, "db.draft", 9)
    catalog.rename("feature", "db.draft", "db.final")
    catalog.repository.merge("main", "feature")
    nessie("switch", "main")
    assert (
        "db.draft was renamed on main and changed in the batch" in nessie("commit", "-m", "m").err
    )
    assert nessie("resolve", "--proposed", "db.draft", "-m", "mine").code == 0
    assert values(catalog) == {"db.final": 9, "db.orders": 1, "db.items": 1}


# -- namespaces ------------------------------------------------------------------------------------


@pytest.fixture
def namespace(nessie, catalog):
    """The namespace `n` with a table is staged as `m`, and the branch gets another table in `n`."""
    catalog.commit("main", "n", Put(key("n"), Namespace(elements=("n",))))
    catalog.create("main", "n.a", 1)
    nessie("content", "rename", "n", "m")
    nessie("content", "rename", "n.a", "m.a")
    catalog.create("main", "n.new", 7)
    return catalog


def test_a_renamed_namespace_deletes_no_content_that_was_added_to_it(nessie, namespace) -> None:
    before, head = staged(nessie), namespace.head("main")
    ran = nessie("resolve", "--proposed", "n", "-m", "rename")
    assert (ran.code, ran.out) == (2, "")
    assert "would delete contents that it does not name: namespace 'n' is not empty: n.new" in (
        ran.err
    )
    expected = f"--expected-hash {head[:12]}"
    assert (
        f"`nessie content rename n.new m.new {expected}`, or"
        f" `nessie content delete n.new {expected}`" in ran.err
    )
    assert (staged(nessie), namespace.head("main")) == (before, head)


def test_the_added_content_can_be_moved_along(nessie, namespace) -> None:
    (conflict,) = nessie("commit", "-m", "m", "--json").error["errorDetails"]["conflicts"]
    line = next(line for line in conflict["resolutions"] if "rename" in line)
    assert nessie(*shlex.split(line)[1:]).code == 0
    assert nessie("commit", "-m", "m").code == 0
    assert {name for name in values(namespace) if name[0] in "mn"} == {"m.a", "m.new"}


def test_a_deleted_namespace_names_the_contents_that_must_be_deleted_too(nessie, catalog) -> None:
    full_namespace(nessie, catalog)
    ran = nessie("resolve", "--proposed", "db")
    assert (ran.code, staged(nessie)) == (2, ["db"])
    assert "namespace 'db' is not empty: db.items, db.orders" in ran.err
    expected = f"--expected-hash {catalog.head('main')[:12]}"
    assert f"`nessie content delete db.items db.orders {expected}`" in ran.err


def test_on_a_terminal_the_contents_are_named_before_they_are_deleted(
    answering, nessie, catalog
) -> None:
    full_namespace(nessie, catalog)
    code, seen = answering("p\n", "resolve", "-m", "all of it")
    assert code == 0, seen
    assert seen.index("is not empty: db.items, db.orders") < seen.index("[p]roposed")
    for name in ("db", "db.items", "db.orders"):
        assert f"deleted {name}  " in seen
    assert values(catalog) == {}


def test_every_content_is_named_before_it_is_deleted(answering, nessie, namespace) -> None:
    names = ["n.new", *(f"n.t{number}" for number in range(5))]
    for name in names[1:]:
        namespace.create("main", name, 1)
    code, seen = answering("p\n", "resolve", "-m", "rename n")
    assert code == 0, seen
    asked = seen.index("[c]urrent, [p]roposed")
    assert [name for name in names if f" {name}\r\n" not in seen[:asked]] == []
    assert {name for name in values(namespace) if name[0] in "mn"} == {"m.a"}


def test_an_answer_that_replaces_another_content_says_so(answering, nessie, catalog) -> None:
    nessie("content", "rename", "db.orders", "db.new")
    catalog.create("main", "db.new", 30)
    code, seen = answering("p\n", "resolve", "-m", "mine")
    assert code == 0, seen
    effect = "[p]roposed keep the staged change; deletes the present db.new\r\n"
    assert effect in seen[: seen.index("[c]urrent, [p]roposed")]
    assert values(catalog) == {"db.new": 1, "db.items": 1}


def test_an_answer_about_a_restored_table_that_came_back_keeps_its_id(
    answering, nessie, catalog
) -> None:
    before = content(catalog, "db.orders")
    dropped = catalog.drop("main", "db.orders")
    nessie("restore", "db.orders", "--at", "v1")
    nessie("revert", dropped)
    catalog.rename("main", "db.orders", "db.q")
    catalog.create("main", "db.orders", 60)
    code, seen = answering("p\n", "resolve", "-m", "mine")
    assert code == 0, seen
    effect = "deletes the present db.orders; the restored db.orders is db.q now"
    assert effect in " ".join(seen[: seen.index("[c]urrent, [p]roposed")].split())
    assert content(catalog, "db.orders") == before
    assert "db.q" not in values(catalog)


def test_a_restored_table_that_was_registered_again_can_only_be_dropped(
    answering, nessie, catalog
) -> None:
    before = content(catalog, "db.orders")
    catalog.drop("main", "db.orders")
    nessie("restore", "db.orders", "--at", "v1")
    head = catalog.commit("main", "register", Put(key("db.again"), before.with_id(None)))
    code, seen = answering("p\nc\n", "resolve", "-m", "mine")
    assert code == 0, seen
    assert "[p]roposed not possible: db.again has the same metadata file" in seen
    assert seen.count("[c]urrent, [p]roposed") == 2, "the question is repeated"
    assert (staged(nessie), catalog.head("main")) == ([], head)


def test_an_answer_that_changes_one_content_promises_no_deletion(
    answering, nessie, renamed
) -> None:
    shown = answering("?\np\n", "resolve", "-m", "both")
    shown.expect(0, without=("deletes",))


def test_too_many_contents_are_not_deleted_by_one_answer(answering, nessie, namespace) -> None:
    before = staged(nessie)
    for number in range(20):
        namespace.create("main", f"n.t{number:02}", 1)
    code, seen = answering("p\ns\n", "resolve", "-m", "rename n")
    assert code == 3, seen
    assert "[p]roposed not possible: n has too many contents to delete them all" in seen
    assert seen.count("[c]urrent, [p]roposed") == 2, "the question is repeated"
    assert staged(nessie) == before
    assert {"n.new", "n.t00", "n.t19"} <= values(namespace).keys()


def test_a_commit_of_a_decision_names_each_deletion(nessie, catalog) -> None:
    nessie("content", "rename", "db.orders", "db.new")
    catalog.create("main", "db.new", 30)
    ran = nessie("resolve", "--proposed", "db.new", "-m", "mine")
    assert (ran.code, ran.err) == (0, "deleted db.new  iceberg-table\n")
    assert values(catalog) == {"db.new": 1, "db.items": 1}


def test_a_namespace_of_a_decision_has_its_key_as_elements(nessie, catalog, tmp_path) -> None:
    nessie("content", "put", "db", "--property", "k=1")
    before = content(catalog, "db")
    changed = Namespace(id=before.id, elements=("db",), properties={"k": "2"})
    catalog.commit("main", "k", Put(key("db"), changed, before))
    for elements, code in ((["other"], 2), (["db"], 0)):
        document = {"type": "NAMESPACE", "elements": elements, "properties": {"k": "3"}}
        (tmp_path / "n.json").write_text(json.dumps(document))
        ran = nessie("resolve", "--resolve", "db=n.json", "-m", "both")
        assert ran.code == code, ran.err
        assert ("the elements of the namespace to store are not its key" in ran.err) == (code == 2)
    assert (content(catalog, "db").elements, content(catalog, "db").properties) == (
        ("db",),
        {"k": "3"},
    )


@pytest.fixture
def renamed_into_a_namespace(nessie, catalog):
    """A table is staged with a new key and value; its namespace is gone, and it was changed."""
    catalog.commit("main", "m", Put(key("m"), Namespace(elements=("m",))))
    nessie("content", "rename", "db.orders", "m.b")
    put(nessie, "m.b", 9)
    catalog.update("main", "db.orders", 5)
    catalog.drop("main", "m")
    return catalog


def test_all_conflicts_of_one_content_are_reported_at_once(
    nessie, renamed_into_a_namespace
) -> None:
    conflicts = nessie("commit", "-m", "m", "--json").error["errorDetails"]["conflicts"]
    assert [c["conflictType"] for c in conflicts] == ["VALUE_DIFFERS", "NAMESPACE_ABSENT"]
    options = ("--proposed", "db.orders", "--proposed", "m")
    assert nessie("resolve", *options, "-m", "both").code == 0
    assert values(renamed_into_a_namespace) == {"m.b": 9, "db.items": 1}


def test_the_printed_lines_resolve_one_conflict_after_the_other(
    nessie, renamed_into_a_namespace
) -> None:
    for _ in range(2):
        refused = nessie("commit", "-m", "m", "--json")
        assert refused.code == 3
        conflict = refused.error["errorDetails"]["conflicts"][-1]
        assert nessie(*shlex.split(conflict["resolutions"][0])[1:]).code == 0
    assert nessie("commit", "-m", "m").code == 0
    assert values(renamed_into_a_namespace) == {"m.b": 9, "db.items": 1}


def test_a_dropped_change_needs_no_decision_about_its_namespace(
    nessie, renamed_into_a_namespace
) -> None:
    put(nessie, "db.items", 3)
    ran = nessie("resolve", "--current", "db.orders", "-m", "items")
    assert (ran.code, values(renamed_into_a_namespace)) == (0, {"db.orders": 5, "db.items": 3})


def test_a_change_of_a_deleted_table_needs_its_namespace(answering, nessie, catalog) -> None:
    put(nessie, "db.orders", 9)
    catalog.drop("main", "db.orders")
    catalog.drop("main", "db.items")
    catalog.drop("main", "db")
    conflicts = nessie("commit", "-m", "m", "--json").error["errorDetails"]["conflicts"]
    assert [c["conflictType"] for c in conflicts] == ["KEY_DOES_NOT_EXIST", "NAMESPACE_ABSENT"]
    code, seen = answering("p\np\n", "resolve", "-m", "both")
    assert (code, values(catalog)) == (0, {"db.orders": 9}), seen


@pytest.mark.parametrize("owner", [None, "db.new", "db.orders"])
def test_a_value_does_not_decide_which_content_has_a_key(nessie, catalog, tmp_path, owner) -> None:
    nessie("content", "rename", "db.orders", "db.new")
    catalog.create("main", "db.new", 30)
    before = {name: content(catalog, name).id for name in ("db.orders", "db.new")}
    document = {"type": "ICEBERG_TABLE", "metadataLocation": "s3://q", "snapshotId": 77}
    document |= {"schemaId": 0, "specId": 0, "sortOrderId": 0}
    document |= {"id": before[owner]} if owner else {}
    (tmp_path / "v.json").write_text(json.dumps(document))
    ran = nessie("resolve", "--resolve", "db.new=v.json", "-m", "r")
    if owner == "db.orders":
        assert (ran.code, ran.err) == (0, "deleted db.new  iceberg-table\n")
        assert values(catalog) == {"db.new": 77, "db.items": 1}
        assert content(catalog, "db.new").id == before["db.orders"]
        return
    assert ran.code == 2
    assert "a value does not decide which of them has the key" in ran.err
    assert values(catalog) == {"db.orders": 1, "db.items": 1, "db.new": 30}
    for words in (["resolve", "--proposed", "db.new"], ["content", "put", "db.new"]):
        assert f"`nessie {' '.join(words)}" in ran.err
    assert nessie("resolve", "--proposed", "db.new").code == 0
    assert put(nessie, "db.new", 77).code == 0
    assert nessie("commit", "-m", "m").code == 0
    assert values(catalog) == {"db.new": 77, "db.items": 1}


# -- restore ---------------------------------------------------------------------------------------


def test_a_committed_restoration_names_each_deletion(nessie, catalog) -> None:
    catalog.create("main", "db.new", 5)
    ran = nessie("restore", "db", "-r", "--at", "v1", "-m", "back")
    assert (ran.code, ran.err) == (0, "deleted db.new  iceberg-table\n")


def test_many_deletions_are_counted(nessie, catalog) -> None:
    news = [Put(key(f"db.new{number:02}"), table("new", number)) for number in range(25)]
    catalog.commit("main", "many", *news)
    lines = nessie("restore", "db", "-r", "--at", "v1", "-m", "back").err.splitlines()
    assert lines[:2] == ["deleted db.new00  iceberg-table", "deleted db.new01  iceberg-table"]
    assert lines[20:] == ["and 5 more contents"]


def test_a_replaced_content_is_named_once(nessie, catalog) -> None:
    catalog.drop("main", "db.orders")
    catalog.create("main", "db.orders", 30)
    ran = nessie("restore", "db.orders", "--at", "v1", "-m", "back")
    assert (ran.code, ran.err.count("db.orders")) == (0, 1), ran.err


def test_keeping_that_a_namespace_is_absent_names_what_is_dropped(nessie, catalog) -> None:
    catalog.commit("main", "m", Put(key("m"), Namespace(elements=("m",))))
    for name in ("m.a", "c"):
        nessie("content", "put", name, "--type", "iceberg-table", "--metadata-location", "s3://m")
    catalog.drop("main", "m")
    ran = nessie("resolve", "--current", "m", "-m", "create m.a and c")
    assert ran.code == 0
    assert "the staged creation of m.a is dropped" in ran.err
    assert catalog.snapshot("main", "m.a") is None


@pytest.mark.parametrize("staging", ["put", "restore", "revert", "rename and put"])
def test_a_table_that_another_writer_deleted_comes_back_under_its_id(
    nessie, catalog, staging
) -> None:
    """Otherwise reverting the deletion would add it a second time."""
    before = content(catalog, "db.orders")
    update = catalog.update("main", "db.orders", 5)
    at, snapshot = "db.orders", 1
    match staging:
        case "put":
            put(nessie, "db.orders", 9)
            snapshot = 9
        case "restore":
            nessie("restore", "db.orders", "--at", "v1").expect(0)
        case "revert":
            nessie("revert", "-n", update).expect(0)
        case "rename and put":
            nessie("content", "rename", "db.orders", "db.sales")
            put(nessie, "db.sales", 9)
            at, snapshot = "db.sales", 9
    dropped = catalog.drop("main", "db.orders")
    (conflict,) = nessie("commit", "-m", "m", "--json").error["errorDetails"]["conflicts"]
    line, reset = conflict["resolutions"]
    assert "--proposed" in line
    assert "reset" in reset
    assert nessie(*shlex.split(line)[1:]).code == 0
    assert nessie("commit", "-m", "mine").code == 0
    after = content(catalog, at)
    assert (after.id, after.snapshot_id) == (before.id, snapshot)
    nessie("revert", dropped).expect(3)
    entries = catalog.repository.entries("main", content=True)
    assert [entry.content_id for entry in entries].count(before.id) == 1


def test_edited_values_of_a_deleted_table_keep_its_id(nessie, catalog, tmp_path) -> None:
    before = content(catalog, "db.orders")
    put(nessie, "db.orders", 9)
    catalog.drop("main", "db.orders")
    (tmp_path / "mine.json").write_text(
        json.dumps({**before.attributes(), "type": "ICEBERG_TABLE", "snapshotId": 77})
    )
    nessie("resolve", "--resolve", "db.orders=mine.json", "-m", "edited").expect(0)
    after = content(catalog, "db.orders")
    assert (after.id, after.snapshot_id) == (before.id, 77)


@pytest.fixture
def below_a_table(nessie, catalog):
    """A table is staged below the key of another staged table, not of a namespace."""
    for name in ("n", "n.a"):
        words = ("--type", "iceberg-table", "--metadata-location", f"s3://{name}")
        assert nessie("content", "put", name, *words).code == 0
    return catalog


def test_a_table_that_is_staged_where_a_namespace_is_missing_can_be_moved(
    nessie, below_a_table
) -> None:
    nessie("content", "rename", "db.items", "n_1")
    for line in ("nessie content rename n n_2", "nessie content put n --type namespace"):
        refused = nessie("commit", "-m", "m", "--json")
        (conflict,) = refused.error["errorDetails"]["conflicts"]
        assert conflict["conflictType"] == "NAMESPACE_ABSENT"
        assert conflict["resolutions"][0] == line
        assert nessie(*shlex.split(line)[1:]).code == 0
    assert nessie("commit", "-m", "m").code == 0
    names = values(below_a_table).keys()
    assert names == {"db.orders", "n_1", "n_2", "n.a"}


def test_a_namespace_is_not_created_over_a_staged_table(answering, nessie, below_a_table) -> None:
    before = staged(nessie)
    code, seen = answering("p\ns\n", "resolve", "-m", "both")
    assert code == 3, seen
    assert "[p]roposed not possible: n is staged as iceberg-table" in seen
    assert staged(nessie) == before
