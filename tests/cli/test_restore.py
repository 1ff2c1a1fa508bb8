"""`nessie restore` and `nessie revert`."""

import shlex

import pytest

from nessie_cli.model import (
    UDF,
    Delete,
    IcebergView,
    Namespace,
    Put,
    ReferenceType,
    RestoredFrom,
)

from .conftest import key, table

TABLES = ("db.orders", "db.items")
VIEW = IcebergView(metadata_location="s3://v", version_id=1, schema_id=0)


def state(catalog, branch: str = "main") -> dict[str, tuple[str, object]]:
    """Key -> content type and snapshot; what ids there are is another question."""
    entries = catalog.repository.entries(branch, content=True)
    return {
        str(entry.key): (entry.type, getattr(entry.content, "snapshot_id", None))
        for entry in entries
    }


def staged(nessie) -> list[tuple[str, str]]:
    operations = nessie("status", "--json").json["batch"]["operations"]
    return [(operation["type"], ".".join(operation["key"]["elements"])) for operation in operations]


# -- restore -------------------------------------------------------------------------------------
def test_restore_stages_an_update_to_the_old_content(nessie, catalog) -> None:
    before = catalog.repository.content("main", key("db.orders"))
    catalog.update("main", "db.orders", 2)
    assert (
        nessie("restore", "db.orders", "--source", "main~1").out
        == "update     db.orders  iceberg-table\n"
    )
    assert staged(nessie) == [("PUT", "db.orders")]
    assert nessie("commit", "-m", "back").code == 0
    assert catalog.repository.content("main", key("db.orders")) == before


def test_with_a_message_restore_commits_even_without_a_workspace(nessie, catalog, tmp_path) -> None:
    catalog.update("main", "db.orders", 2)
    (tmp_path / "elsewhere").mkdir()
    ran = nessie(
        "-C",
        str(tmp_path.parent),
        "--store",
        catalog.url,
        "restore",
        "db.orders",
        "-s",
        "v1",
        "-m",
        "back",
    )
    assert ran.code == 0
    assert catalog.snapshot("main", "db.orders") == 1


def test_restore_deletes_a_key_that_did_not_exist(nessie, catalog) -> None:
    catalog.create("main", "db.new")
    nessie("restore", "db.new", "-s", "v1", "-m", "away")
    assert catalog.snapshot("main", "db.new") is None


def test_a_deleted_content_is_restored_with_its_id(nessie, catalog) -> None:
    before = catalog.repository.content("main", key("db.orders"))
    catalog.drop("main", "db.orders")
    nessie("restore", "db.orders", "-s", "v1", "-m", "back")
    after = catalog.repository.content("main", key("db.orders"))
    assert after == before


@pytest.mark.parametrize("is_staged", [False, True])
def test_a_replaced_content_is_restored_with_its_id(nessie, catalog, is_staged) -> None:
    before = catalog.repository.content("main", key("db.orders"))
    catalog.commit("main", "replace", Delete(key("db.orders")), Put(key("db.orders"), VIEW))
    if is_staged:
        nessie("content", "replace", "db.orders", "--type", "namespace")
    assert nessie("restore", "db.orders", "-s", "v1").code == 0
    assert nessie("commit", "-m", "back").code == 0
    assert catalog.repository.content("main", key("db.orders")) == before


def test_a_content_that_is_restored_already_is_not_replaced_again(nessie, catalog) -> None:
    catalog.drop("main", "db.orders")
    nessie("restore", "db.orders", "-s", "v1", "-m", "back")
    before = catalog.repository.content("main", key("db.orders"))
    ran = nessie("restore", "db.orders", "-s", "v1")
    assert (ran.code, staged(nessie)) == (0, [])
    assert catalog.repository.content("main", key("db.orders")) == before


@pytest.mark.parametrize("is_staged", [False, True])
def test_a_table_that_came_back_and_was_renamed_gets_its_key_back(
    nessie, catalog, is_staged
) -> None:
    before = catalog.repository.content("main", key("db.orders"))
    catalog.drop("main", "db.orders")
    nessie("restore", "db.orders", "-s", "v1", *([] if is_staged else ["-m", "back"]))
    assert nessie("content", "rename", "db.orders", "db.kept").code == 0
    if not is_staged:
        nessie("commit", "-m", "rename")
    assert nessie("restore", "db.orders", "-s", "v1").code == 0
    assert nessie("commit", "-m", "back").code == 0
    assert catalog.repository.content("main", key("db.orders")) == before
    assert catalog.snapshot("main", "db.kept") is None


@pytest.mark.parametrize("is_changed", [False, True])
@pytest.mark.parametrize("option", ["-n", "-m"])
def test_a_deletion_that_was_reverted_is_not_reverted_to_a_second_table(
    nessie, catalog, option, is_changed
) -> None:
    dropped = catalog.drop("main", "db.orders")
    nessie("revert", dropped)
    if is_changed:
        catalog.update("main", "db.orders", 7)
    back = catalog.repository.content("main", key("db.orders"))
    renamed = catalog.rename("main", "db.orders", "db.kept")
    ran = nessie("revert", dropped, *(["-n"] if option == "-n" else ["-m", "again"]), "--json")
    (conflict,) = ran.json["error"]["errorDetails"]["conflicts"]
    assert (ran.code, conflict["ours"]["id"], conflict["theirs"]["id"]) == (3, back.id, back.id)
    assert catalog.head("main") == renamed
    assert nessie("revert", dropped, "--theirs", "db.kept").code == 0
    after = catalog.repository.content("main", key("db.orders"))
    assert after.id == back.id
    assert catalog.snapshot("main", "db.kept") is None


def test_a_staged_table_that_came_back_is_not_staged_a_second_time(nessie, catalog) -> None:
    dropped = catalog.drop("main", "db.orders")
    assert nessie("revert", dropped, "-n").code == 0
    assert nessie("content", "rename", "db.orders", "db.kept").code == 0
    ran = nessie("revert", dropped, "-n")
    assert (ran.code, staged(nessie)) == (2, [("PUT", "db.kept")]), ran
    assert "db.orders (as db.kept): already staged" in ran.err


@pytest.mark.parametrize("decision", ["resolve --proposed", "reset"])
@pytest.mark.parametrize("is_stashed", [False, True])
@pytest.mark.parametrize("other", ["revert", "restore"])
def test_a_staged_table_that_another_writer_brought_back_is_a_conflict(
    nessie, catalog, other, is_stashed, decision
) -> None:
    before = catalog.repository.content("main", key("db.orders"))
    dropped = catalog.drop("main", "db.orders")
    assert nessie("restore", "db.orders", "-s", "v1").code == 0
    if is_stashed:
        nessie("stash")
    if other == "revert":
        nessie("revert", dropped)
    else:
        place = RestoredFrom(catalog.head("v1"), key("db.orders"))
        catalog.commit("main", "back", Put(key("db.orders"), before, restored_from=place))
    head = catalog.rename("main", "db.orders", "db.kept")
    if is_stashed:
        assert nessie("stash", "pop").code == 0
    ran = nessie("commit", "-m", "back")
    assert (ran.code, catalog.head("main")) == (3, head), ran
    assert "db.orders would be a second key of the content db.kept" in ran.err
    lines = [line for line in ran.err.splitlines() if f"nessie {decision}" in line]
    assert nessie(*shlex.split(lines[0].partition("nessie ")[2])).code == 0, ran.err
    if decision != "reset":
        assert nessie("commit", "-m", "back").code == 0
    place = "db.orders" if decision != "reset" else "db.kept"
    assert catalog.repository.content("main", key(place)) == before
    assert len(state(catalog)) == 3


@pytest.mark.parametrize("is_changed", [False, True])
def test_a_restored_table_that_was_written_since_it_came_back_gets_the_staged_value(
    nessie, catalog, is_changed
) -> None:
    """The line says what it overwrites."""
    dropped = catalog.drop("main", "db.orders")
    assert nessie("restore", "db.orders", "-s", "v1").code == 0
    location = ("--metadata-location", "s3://later/5.json", "--snapshot-id", "5")
    if is_changed:
        assert nessie("content", "put", "db.orders", *location).code == 0
    nessie("revert", dropped)
    catalog.rename("main", "db.orders", "db.kept")
    catalog.update("main", "db.kept", 7)
    ran = nessie("commit", "-m", "back", "--json")
    (conflict,) = ran.json["error"]["errorDetails"]["conflicts"]
    line = next(line for line in conflict["resolutions"] if "--proposed" in line)
    assert "overwrites the value of db.kept" in nessie("commit", "-m", "back").err
    assert nessie(*shlex.split(line)[1:]).code == 0
    assert nessie("commit", "-m", "back").code == 0
    assert catalog.snapshot("main", "db.orders") == (5 if is_changed else 1)
    assert "db.kept" not in state(catalog)


def test_a_restored_table_that_came_back_at_its_key_is_put_there(nessie, catalog) -> None:
    before = catalog.repository.content("main", key("db.orders"))
    dropped = catalog.drop("main", "db.orders")
    assert nessie("restore", "db.orders", "-s", "v1").code == 0
    nessie("revert", dropped)
    catalog.update("main", "db.orders", 7)
    ran = nessie("commit", "-m", "back", "--json")
    (conflict,) = ran.json["error"]["errorDetails"]["conflicts"]
    line = conflict["resolutions"][0]
    assert line.startswith("nessie content put db.orders ")
    assert nessie(*shlex.split(line)[1:]).code == 0
    assert nessie("commit", "-m", "back").code == 0
    assert catalog.repository.content("main", key("db.orders")) == before


def test_staged_operations_keep_what_they_restore(nessie, catalog) -> None:
    """A restored table can be changed, renamed and put on an occupied key before the commit."""
    before = catalog.repository.content("main", key("db.orders"))
    catalog.drop("main", "db.orders")
    assert nessie("restore", "db.orders", "-s", "v1").code == 0
    location = ("--metadata-location", "s3://later/5.json", "--snapshot-id", "5")
    assert nessie("content", "put", "db.orders", *location).code == 0
    nessie("content", "delete", "db.items")
    assert nessie("content", "rename", "db.orders", "db.items").code == 0
    (operation,) = nessie("status", "--json").json["batch"]["operations"]
    assert operation["restoredFrom"]["key"] == {"elements": ["db", "orders"]}
    assert nessie("commit", "-m", "back").code == 0
    after = catalog.repository.content("main", key("db.items"))
    assert (after.id, after.snapshot_id) == (before.id, 5)
    assert "db.orders" not in state(catalog)


def test_a_revert_knows_the_table_that_the_batch_brings_back(nessie, catalog) -> None:
    dropped = catalog.drop("main", "db.orders")
    assert nessie("revert", dropped, "-n").code == 0
    assert nessie("content", "rename", "db.orders", "db.kept").code == 0
    assert nessie("revert", dropped).code == 0
    head = catalog.head("main")
    ran = nessie("commit", "-m", "again")
    assert (ran.code, catalog.head("main")) == (3, head), ran
    assert "db.kept would be a second key of the content db.orders" in ran.err


def test_a_function_is_never_taken_for_another_one_with_its_text(nessie, catalog) -> None:
    udf = UDF(dialect="spark", sql_text="x + 1")
    catalog.commit("main", "f", Put(key("f"), udf))
    nessie("tag", "with-f")
    dropped = catalog.drop("main", "f")
    catalog.commit("main", "g", Put(key("g"), udf))
    g = catalog.repository.content("main", key("g"))
    assert nessie("restore", "f", "--at", "with-f", "-m", "back").code == 0
    assert catalog.repository.content("main", key("g")) == g
    catalog.drop("main", "f")
    assert nessie("revert", dropped).code == 0
    assert catalog.repository.content("main", key("g")) == g
    assert catalog.repository.content("main", key("f")).sql_text == "x + 1"


@pytest.mark.parametrize("is_staged", [False, True])
@pytest.mark.parametrize("verb", ["restore", "restore glob", "revert", "revert range"])
def test_a_table_does_not_come_back_beside_another_entry_with_its_metadata_file(
    nessie, catalog, verb, is_staged
) -> None:
    """It does once the other entry has been deleted."""
    before = catalog.repository.content("main", key("db.orders"))
    dropped = catalog.drop("main", "db.orders")
    catalog.commit("main", "register", Put(key("db.other"), before.with_id(None)))
    words = {
        "restore": ["restore", "db.orders", "--at", "v1"],
        "restore glob": ["restore", "db.ord*", "--at", "v1"],
        "revert": ["revert", dropped],
        "revert range": ["revert", f"v1..{dropped}"],
    }[verb]
    if not is_staged:
        words += ["-m", "back"]
    elif "revert" in verb:
        words += ["-n"]
    ran = nessie(*words)
    ran.expect(2, "db.other has the same metadata file", "after db.other has been deleted")
    assert staged(nessie) == []
    assert nessie("content", "delete", "db.other", "-m", "make room").code == 0
    assert nessie(*words).code == 0
    if is_staged:
        assert nessie("commit", "-m", "back").code == 0
    assert catalog.repository.content("main", key("db.orders")) == before


@pytest.mark.parametrize("verb", ["restore", "revert", "stash"])
def test_a_staged_restoration_is_compared_with_tables_registered_since(
    nessie, catalog, verb
) -> None:
    before = catalog.repository.content("main", key("db.orders"))
    dropped = catalog.drop("main", "db.orders")
    words = ["revert", dropped, "-n"] if verb == "revert" else ["restore", "db.orders", "-s", "v1"]
    assert nessie(*words).code == 0
    if verb == "stash":
        assert nessie("stash").code == 0
    head = catalog.commit("main", "register", Put(key("db.other"), before.with_id(None)))
    if verb == "stash":
        assert nessie("stash", "pop").code == 0
    for command in (
        ["commit", "-m", "back"],
        ["commit", "-m", "back", "--dry-run"],
        ["resolve", "--proposed", "db.orders", "-m", "back"],
    ):
        ran = nessie(*command)
        ran.expect(3, "db.orders has the metadata file of db.other", "nessie reset db.orders")
        assert "--proposed" not in ran.err
        assert (catalog.head("main"), staged(nessie)) == (head, [("PUT", "db.orders")])
    (conflict,) = nessie("status", "--json").json["conflicts"]
    assert conflict["sameFileKey"]["elements"] == ["db", "other"]
    assert conflict["changedBy"]["hash"] == head
    assert nessie("content", "delete", "db.other").code == 0
    assert nessie("commit", "-m", "back").code == 0
    assert catalog.repository.content("main", key("db.orders")) == before


@pytest.mark.parametrize("change", ["other file", "deleted", "staged"])
def test_a_staged_restoration_is_committed_if_no_other_table_has_its_file(
    nessie, catalog, change
) -> None:
    """The batch can delete the other entry, and create one that was asked for."""
    before = catalog.repository.content("main", key("db.orders"))
    catalog.drop("main", "db.orders")
    assert nessie("restore", "db.orders", "-s", "v1").code == 0
    other = table(7, 7) if change == "other file" else before.with_id(None)
    catalog.commit("main", "register", Put(key("db.other"), other))
    if change != "other file":
        assert nessie("content", "delete", "db.other").code == 0
    if change == "staged":
        file = before.metadata_location
        options = ("--type", "iceberg-table", "--metadata-location", file, "--snapshot-id", "1")
        assert nessie("content", "put", "db.third", *options).code == 0
    assert nessie("commit", "-m", "back").code == 0
    assert catalog.repository.content("main", key("db.orders")) == before


@pytest.mark.parametrize("in_the_batch", [False, True])
def test_a_content_at_the_key_of_a_renamed_one_is_never_deleted_silently(
    nessie, catalog, in_the_batch
) -> None:
    before = catalog.repository.content("main", key("db.orders"))
    commit = () if in_the_batch else ("-m", "x")
    nessie("content", "rename", "db.orders", "db.moved", *commit)
    nessie("content", "put", "db.orders", "--type", "namespace", *commit)
    operations = staged(nessie)
    ran = nessie("restore", "db.orders", "-s", "v1")
    assert (ran.code, ran.out, staged(nessie)) == (2, "", operations)
    command = shlex.split(ran.err.partition("`")[2].partition("`")[0])
    assert command == ["nessie", "content", "rename", "db.orders", "db.orders_1"]
    assert nessie(*command[1:]).code == 0
    assert nessie("restore", "db.orders", "-s", "v1").code == 0
    assert nessie("commit", "-m", "back").code == 0
    assert catalog.repository.content("main", key("db.orders")) == before
    assert state(catalog)["db.orders_1"] == ("NAMESPACE", None)
    assert "db.moved" not in state(catalog)


def test_a_rename_is_undone_by_restoring_its_old_or_its_new_key(nessie, catalog) -> None:
    before = catalog.repository.content("main", key("db.orders"))
    for name in ("db.orders", "db.moved"):
        nessie("content", "rename", "db.orders", "db.moved", "-m", "x")
        catalog.update("main", "db.moved", 9)
        ran = nessie("restore", name, "-s", "v1")
        assert ran.out == "rename     db.moved  db.orders\n"
        assert nessie("commit", "-m", "back").code == 0
        assert catalog.repository.content("main", key("db.orders")) == before
        assert "db.moved" not in state(catalog)


def test_swapped_keys_are_restored_together_and_refused_alone(nessie, catalog) -> None:
    before = {name: catalog.repository.content("main", key(name)) for name in TABLES}
    orders, items = before.values()
    catalog.commit(
        "main", "swap", Put(key("db.orders"), items, orders), Put(key("db.items"), orders, items)
    )
    ran = nessie("restore", "db.orders", "-s", "v1")
    ran.expect(2, "key 'db.orders' has another content now")
    assert nessie("restore", *TABLES, "-s", "v1", "-m", "back").code == 0
    assert {name: catalog.repository.content("main", key(name)) for name in TABLES} == before


def test_a_content_that_a_revert_deletes_at_the_key_of_a_renamed_one_is_listed(
    nessie, catalog
) -> None:
    catalog.rename("main", "db.orders", "db.moved")
    catalog.create("main", "db.orders", 5)
    ran = nessie("revert", "HEAD~1", "--theirs", "db.orders", "--dry-run")
    assert ran.lines[:2] == [
        "rename     db.moved  db.orders",
        "delete     db.orders  iceberg-table",
    ]


def test_a_replaced_content_is_named_when_it_is_deleted(nessie, catalog) -> None:
    nessie("content", "replace", "db.orders", "--type", "namespace", "-m", "x")
    ran = nessie("restore", "db.orders", "-s", "v1")
    assert "db.orders: the present namespace is deleted" in ran.err


@pytest.mark.parametrize("words", [["db.*"], ["db", "-r"], ["NEW", "db.orders"]])
@pytest.mark.parametrize("new", ["db.a", "db.z"])
@pytest.mark.parametrize("is_occupied", [False, True])
def test_a_rename_is_undone_if_the_new_key_is_restored_too(
    nessie, catalog, words, new, is_occupied
) -> None:
    before = nessie("content", "show", "db.orders", "--json").json["content"]
    assert nessie("content", "rename", "db.orders", new, "-m", "rename").code == 0
    if is_occupied:
        assert nessie("content", "put", "db.orders", "--type", "namespace", "-m", "x").code == 0
    words = [new if word == "NEW" else word for word in words]
    assert nessie("restore", *words, "--at", "v1").code == 0
    assert nessie("commit", "-m", "back").code == 0
    assert nessie("content", "show", "db.orders", "--json").json["content"] == before
    assert nessie("content", "show", new).code == 4
    assert nessie("diff", "v1", "main", "--name-status").lines == []


def test_restoring_the_current_content_unstages_a_replacement(nessie, catalog) -> None:
    nessie("content", "replace", "db.orders", "--type", "namespace")
    nessie("restore", "db.orders", "-s", "HEAD")
    assert staged(nessie) == []


def test_restoring_the_current_content_unstages_the_operation(nessie, catalog) -> None:
    nessie("content", "delete", "db.orders")
    ran = nessie("restore", "db.orders", "-s", "HEAD")
    ran.expect(0, "db.orders is the same on the branch as at HEAD")
    assert staged(nessie) == []


def test_recursive_restores_everything_below_a_key_with_namespaces(nessie, catalog) -> None:
    before = state(catalog)
    catalog.commit(
        "main", "drop all", Delete(key("db.orders")), Delete(key("db.items")), Delete(key("db"))
    )
    catalog.commit("main", "other", Put(key("dbx"), Namespace(elements=("dbx",))))
    assert nessie("restore", "db", "--recursive", "-s", "v1", "-m", "back").code == 0
    assert state(catalog) == before | {"dbx": ("NAMESPACE", None)}


@pytest.mark.parametrize("glob", ["d?", "*b", "db*"])
def test_recursive_restores_everything_below_the_keys_that_a_glob_matches(
    nessie, catalog, glob
) -> None:
    before = state(catalog)
    catalog.update("main", "db.orders", 2)
    assert nessie("restore", glob, "--recursive", "-s", "v1", "-m", "back").code == 0
    assert state(catalog) == before


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["db.orders"], 2, "--source"),
        (["-s", "v1"], 2, "KEY"),
        (["db.nope", "-s", "v1"], 4, "neither on the branch nor at v1"),
        (["db.order", "-s", "v1"], 4, "Did you mean 'db.orders'?"),
        (["nope", "-r", "-s", "v1"], 4, "neither on the branch nor at the revision"),
        (["db.orders", "-s", "v9"], 4, "v9"),
        (["db..x", "-s", "v1"], 2, "empty"),
    ],
)
def test_wrong_input_of_restore_is_one_line_and_stages_nothing(
    nessie, catalog, argv, code, said
) -> None:
    ran = nessie("restore", *argv)
    ran.expect(code, said, out="")
    assert "error" in nessie("restore", *argv, "--json").json
    assert staged(nessie) == []


# -- revert --------------------------------------------------------------------------------------
def drop_and_more(catalog) -> str:
    items = catalog.repository.content("main", key("db.items"))
    return catalog.commit(
        "main",
        "a lot",
        Delete(key("db.orders")),
        Put(key("db.items"), table("i", 2, items.id)),
        Put(key("db.new"), table("n", 3)),
    )


def rename_and_change(catalog) -> str:
    orders = catalog.repository.content("main", key("db.orders"))
    return catalog.commit(
        "main", "move", Delete(key("db.orders")), Put(key("db.sales"), table("s", 9, orders.id))
    )


def replacement(catalog) -> str:
    return catalog.commit("main", "replace", Delete(key("db.orders")), Put(key("db.orders"), VIEW))


@pytest.mark.parametrize("change", [drop_and_more, rename_and_change, replacement])
def test_a_commit_is_reverted_although_later_ones_changed_other_keys(
    nessie, catalog, change
) -> None:
    catalog.create("main", "db.other", 4)
    before = state(catalog)
    hash_ = change(catalog)
    catalog.update("main", "db.other", 5)

    ran = nessie("revert", hash_[:12], "--json")

    assert ran.code == 0
    assert state(catalog) == before | {"db.other": ("ICEBERG_TABLE", 5)}
    assert ran.json["targetBranch"]["hash"] == catalog.head("main")


def test_a_reverted_replacement_has_its_id_back_and_is_clean(nessie, catalog) -> None:
    before = catalog.repository.content("main", key("db.orders"))
    replacement(catalog)
    assert nessie("revert", "HEAD").code == 0
    assert catalog.repository.content("main", key("db.orders")) == before
    assert nessie("fsck").code == 0


def test_the_revert_of_a_replacement_never_doubles_a_renamed_content(nessie, catalog) -> None:
    nessie("content", "rename", "db.orders", "db.moved")
    nessie("content", "put", "db.orders", "--type", "namespace")
    assert nessie("commit", "-m", "set aside and replace").code == 0
    nessie("content", "rename", "db.moved", "db.kept", "-m", "again")
    ran = nessie("revert", "HEAD~1", "--theirs", "db.orders", "--theirs", "db.moved")
    ids = [entry.content_id for entry in catalog.repository.entries("main")]
    assert len(ids) == len(set(ids)), ran.err
    assert nessie("fsck").code == 0


def test_the_message_names_the_commit_unless_one_is_given(nessie, catalog) -> None:
    hash_ = catalog.update("main", "db.orders", 2)
    nessie("revert", "main")
    assert (
        catalog.repository.commit_at("main").meta.message
        == f'Revert "update db.orders"\n\nThis reverts commit {hash_}.'
    )
    nessie("revert", "HEAD", "-m", "and again")
    assert catalog.repository.commit_at("main").meta.message == "and again"
    assert catalog.snapshot("main", "db.orders") == 2


def test_a_reverted_rename_keeps_the_id(nessie, catalog) -> None:
    before = catalog.repository.content("main", key("db.orders"))
    catalog.rename("main", "db.orders", "db.sales")
    nessie("revert", "HEAD")
    assert catalog.repository.content("main", key("db.orders")) == before


def test_a_merge_is_reverted_as_a_whole(nessie, catalog) -> None:
    catalog.branch("dev")
    catalog.update("dev", "db.orders", 2)
    catalog.create("dev", "db.new", 3)
    before = state(catalog)
    catalog.repository.merge("main", "dev")
    assert nessie("revert", "HEAD").code == 0
    assert state(catalog) == before


def test_a_revert_keeps_the_staged_batch(nessie, catalog) -> None:
    catalog.update("main", "db.orders", 2)
    nessie("content", "delete", "db.items")
    assert nessie("revert", "HEAD").code == 0
    assert staged(nessie) == [("DELETE", "db.items")]
    assert catalog.snapshot("main", "db.items") == 1


def test_no_commit_only_stages(nessie, catalog) -> None:
    catalog.update("main", "db.orders", 2)
    nessie("content", "delete", "db.items")
    assert nessie("revert", "HEAD", "--no-commit").out == "update     db.orders  iceberg-table\n"
    assert staged(nessie) == [("DELETE", "db.items"), ("PUT", "db.orders")]
    ran = nessie("revert", "HEAD", "-n")
    ran.expect(2, "db.orders: already staged")
    nessie("commit", "-m", "both")
    assert catalog.snapshot("main", "db.orders") == 1


def test_a_dry_run_writes_nothing(nessie, catalog) -> None:
    head = catalog.update("main", "db.orders", 2)
    assert (
        nessie("revert", "HEAD", "--dry-run").out == "update     db.orders  iceberg-table\n"
        "would commit 1 key to main; nothing was written\n"
    )
    assert catalog.head("main") == head


def test_a_later_change_is_a_conflict_with_all_details(nessie, catalog) -> None:
    hash_ = catalog.update("main", "db.orders", 2)
    later = catalog.update("main", "db.orders", 3)
    ran = nessie("revert", hash_, "--json")
    assert ran.code == 3
    (conflict,) = ran.json["error"]["errorDetails"]["conflicts"]
    assert [conflict[side]["snapshotId"] for side in ("expected", "actual", "proposed")] == [
        2,
        3,
        1,
    ]
    assert conflict["changedBy"]["hash"] == later
    assert conflict["resolutions"] == [
        f"nessie revert {hash_[:12]} --theirs db.orders --expected-hash {later[:12]}",
        f"nessie revert {hash_[:12]} --ours db.orders --expected-hash {later[:12]}",
    ]
    assert catalog.head("main") == later


def test_ours_keeps_a_later_change_and_theirs_reverts_it(nessie, catalog) -> None:
    hash_ = drop_and_more(catalog)
    catalog.create("main", "db.orders", 50)
    catalog.update("main", "db.items", 60)
    catalog.drop("main", "db.new")
    assert len(nessie("revert", hash_, "--json").json["error"]["errorDetails"]["conflicts"]) == 2
    ran = nessie(
        "revert", hash_, "--theirs", "db.orders", "--ours", "db.items", "--theirs", "db.new"
    )
    assert (ran.code, ran.err) == (0, "")
    assert state(catalog) == {
        "db": ("NAMESPACE", None),
        "db.orders": ("ICEBERG_TABLE", 1),
        "db.items": ("ICEBERG_TABLE", 60),
    }


@pytest.mark.parametrize("later", ["drop", "change", "other"])
@pytest.mark.parametrize("named", ["db.orders", "db.sales"])
def test_theirs_reverts_a_rename_despite_later_changes(nessie, catalog, later, named) -> None:
    hash_ = rename_and_change(catalog)
    if later == "drop":
        catalog.drop("main", "db.sales")
    elif later == "change":
        catalog.update("main", "db.sales", 70)
    else:
        catalog.create("main", "db.orders", 80)
    assert nessie("revert", hash_).code == 3
    ran = nessie("revert", hash_, "--theirs", named)
    assert (ran.code, ran.err) == (0, "")
    assert (catalog.snapshot("main", "db.orders"), catalog.snapshot("main", "db.sales")) == (
        1,
        None,
    )


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        ([], 2, "REV|RANGE"),
        (["nowhere"], 4, "nowhere"),
        ([""], 2, "an argument is empty"),
        (["main", "-m", " "], 2, "message is empty"),
        (["main", "--ours", "db.else"], 2, "--ours db.else: the commit did not change this key"),
        (["main", "--theirs", "db..x"], 2, "empty"),
        (["empty"], 4, "there is no commit"),
        (["main", "--ref", "v1"], 2, "tag"),
    ],
)
def test_wrong_input_of_revert_is_one_line_and_writes_nothing(
    nessie, catalog, argv, code, said
) -> None:
    catalog.repository.create_reference(
        ReferenceType.BRANCH,
        "empty",
        "2e1cfa82b035c26cbbbdae632cea070514eb8b773f616aaeaf668e2f0be8f10d",
    )
    head = catalog.head("main")
    ran = nessie("revert", *argv)
    ran.expect(code, said, out="")
    assert "error" in nessie("revert", *argv, "--json").json
    assert catalog.head("main") == head
