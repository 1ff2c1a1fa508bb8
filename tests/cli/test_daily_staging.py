"""Daily staging: copies by `show --raw`, stores without a workspace, hints."""

import json
from pathlib import Path

import pytest

from nessie_cli.model import Namespace, Put

from .conftest import key


def raw(nessie, tmp_path, name: str) -> str:
    path = tmp_path / "content.json"
    path.write_text(nessie("content", "show", name, "--raw").out)
    return str(path)


def test_a_raw_content_staged_again_changes_nothing(nessie, catalog, tmp_path) -> None:
    file = raw(nessie, tmp_path, "db.orders")
    ran = nessie("content", "put", "db.orders", "--content", file)
    assert (ran.code, ran.out) == (0, "nothing to stage for db.orders\n")
    ran = nessie("content", "put", "db.orders", "--content", file, "-m", "again")
    ran.expect(2, "nothing to commit: the operation has no effect for db.orders")


def test_a_raw_content_under_a_new_key_is_a_copy_with_a_new_id(nessie, catalog, tmp_path) -> None:
    file = raw(nessie, tmp_path, "db.orders")
    ran = nessie("content", "put", "db.copy", "--content", file, "-m", "copy")
    ran.expect(0, "key 'db.copy' is new")
    original, copy = (
        json.loads(nessie("content", "show", name, "--raw").out)
        for name in ("db.orders", "db.copy")
    )
    assert original.pop("id") != copy.pop("id")
    assert original == copy


def test_the_copy_of_a_namespace_has_the_elements_of_its_key(nessie, catalog, tmp_path) -> None:
    assert (
        nessie("content", "put", "db2", "--content", raw(nessie, tmp_path, "db"), "-m", "copy").code
        == 0
    )
    assert catalog.repository.content("main", key("db2")).elements == ("db2",)


def test_a_raw_content_over_another_one_names_both_ids(nessie, catalog, tmp_path) -> None:
    ran = nessie("content", "put", "db.items", "--content", raw(nessie, tmp_path, "db.orders"))
    ran.expect(2, "--content: id ", "`nessie content replace`")


def test_without_a_workspace_identical_content_makes_no_commit(nessie, catalog) -> None:
    catalog.commit("main", "n", Put(key("n"), Namespace(elements=("n",))))
    before = catalog.head("main")
    ran = nessie(
        "-C",
        "/",
        "--store",
        catalog.url,
        "content",
        "put",
        "n",
        "--type",
        "namespace",
        "-m",
        "again",
    )
    ran.expect(2, "nothing to commit")
    assert catalog.head("main") == before


@pytest.mark.parametrize("words", [["--ref", "dev"], ["--store", ".nessie/store.sqlite"]])
def test_the_hint_after_staging_repeats_the_store_and_reference_options(
    nessie, catalog, words
) -> None:
    catalog.branch("dev")
    ran = nessie(*words, "content", "delete", "db.orders")
    assert f"`nessie {' '.join(words)} commit -m MSG` commits" in ran.err
    assert nessie(*words, "commit", "-m", "x").code == 0


def test_a_deletion_that_failed_to_commit_can_be_repeated(nessie, catalog) -> None:
    delete = ("content", "delete", "db", "-m", "drop")
    assert [nessie(*delete).code for _ in range(2)] == [3, 3]
    assert nessie("content", "delete", "db.orders", "db.items").code == 0
    assert nessie("commit", "-m", "drop all").code == 0


def test_status_shows_a_batch_that_a_protected_branch_does_not_accept(nessie, catalog) -> None:
    nessie("content", "delete", "db.orders")
    catalog.repository.put_setting("protect.main", "merge-only")
    ran = nessie("status", "--short")
    assert (ran.code, ran.lines) == (0, ["D  db.orders"])
    assert "branch 'main' is protected" in ran.err
    assert nessie("status", "--json").json["conflicts"] == []
    assert nessie("commit", "-m", "x").code == 6


def test_a_change_of_a_renamed_content_is_shown_with_its_rename(nessie, catalog) -> None:
    assert nessie("content", "rename", "db.orders", "db.moved").code == 0
    assert nessie("content", "put", "db.moved", "--snapshot-id", "2").lines == [
        "rename     db.orders  db.moved"
    ]


def test_a_rename_stays_visible_if_its_old_key_gets_a_new_content(nessie, catalog) -> None:
    nessie("content", "rename", "db.orders", "db.moved")
    assert nessie("content", "put", "db.orders", "--type", "udf").lines == [
        "rename     db.orders  db.moved",
        "create     db.orders  udf",
    ]
    assert nessie("status", "-s").lines == ["R  db.orders -> db.moved", "A  db.orders"]


def test_an_empty_file_name_is_not_ignored(nessie, catalog) -> None:
    ran = nessie("content", "put", "db.orders", "--content", "", "--snapshot-id", "2")
    ran.expect(2, "--content gives the whole content")


def test_a_content_that_the_batch_creates_gets_no_id(nessie, catalog) -> None:
    put = ("--type", "namespace")
    assert nessie("content", "put", "new", *put).code == 0
    ran = nessie("content", "put", "new", "--id", "11111111-1111-1111-1111-111111111111")
    ran.expect(2, "key 'new' is new")
    ran = nessie("content", "replace", "db.orders", "--snapshot-id", "2")
    ran.expect(2, "set --type with all fields")


def test_a_replacement_ignores_the_id_of_a_file(nessie, catalog, tmp_path) -> None:
    items = nessie("content", "show", "db.items", "--json").json["content"]
    before = nessie("content", "show", "db.orders", "--json").json["content"]
    file = raw(nessie, tmp_path, "db.items")
    assert nessie("content", "replace", "db.orders", "--content", file, "-m", "copy").code == 0
    after = nessie("content", "show", "db.orders", "--json").json["content"]
    assert after.pop("id") not in (items.pop("id"), before["id"])
    assert after == items


@pytest.mark.parametrize("name", ["db.orders", "db"])
def test_a_replacement_without_options_changes_only_the_id(nessie, catalog, name) -> None:
    nessie("config", "set", "namespace-validation", "false", "--repository")
    before = nessie("content", "show", name, "--json").json["content"]
    assert nessie("content", "replace", name, "-m", "new id").code == 0
    after = nessie("content", "show", name, "--json").json["content"]
    assert after.pop("id") != before.pop("id")
    assert after == before


def test_a_replacement_without_options_keeps_a_staged_change(nessie, catalog) -> None:
    nessie("content", "put", "db.orders", "--snapshot-id", "7")
    assert nessie("content", "replace", "db.orders").code == 0
    assert nessie("status", "-s").lines == ["M  db.orders"]
    assert nessie("commit", "-m", "both").code == 0
    assert nessie("content", "show", "db.orders", "--json").json["content"]["snapshotId"] == 7


def test_a_replacement_of_a_moved_and_of_a_missing_key(nessie, catalog) -> None:
    before = nessie("content", "show", "db.orders", "--json").json["content"]
    nessie("content", "rename", "db.orders", "db.moved")
    assert nessie("content", "replace", "db.orders").code == 4
    assert nessie("content", "replace", "db.moved").code == 0
    assert nessie("commit", "-m", "moved and replaced").code == 0
    after = nessie("content", "show", "db.moved", "--json").json["content"]
    assert after.pop("id") != before.pop("id")
    assert after == before
    assert nessie("content", "show", "db.orders").code == 4


@pytest.mark.parametrize(
    "words",
    [
        ["content", "list"],
        ["content", "delete", "db.orders"],
        ["commit", "-m", "x"],
        ["log"],
        ["status"],
    ],
)
def test_every_command_suggests_a_way_out_if_the_current_branch_was_deleted(
    nessie, catalog, words
) -> None:
    catalog.branch("dev")
    nessie("switch", "dev")
    nessie("content", "delete", "db.items")
    catalog.repository.delete_reference("dev", expected_hash=catalog.head("dev"))
    ran = nessie(*words)
    assert (ran.code, ran.err.count("`nessie switch REF`"), ran.err.count("`nessie undo dev`")) == (
        4,
        1,
        1,
    )


def test_a_commit_without_effect_keeps_the_batch(nessie, catalog) -> None:
    assert nessie("content", "put", "db.new", "--type", "namespace").code == 0
    before = nessie("status", "--json").json["batch"]
    ran = nessie("content", "delete", "db.new", "-m", "never mind")
    ran.expect(2, "nothing to commit")
    assert nessie("status", "--json").json["batch"] == before


def test_a_switch_to_a_tag_promises_no_conflicts(nessie, catalog) -> None:
    assert nessie("content", "put", "db.new", "--type", "namespace").code == 0
    ran = nessie("switch", "v1")
    assert (ran.code, ran.out.splitlines()[1]) == (0, "1 staged operation moved to v1")
    assert "`nessie status` shows" in nessie("switch", "main").out


def test_reset_all_removes_the_whole_batch(nessie, catalog) -> None:
    nessie("content", "delete", "db.orders")
    nessie("content", "delete", "db.items")
    refused = nessie("reset", "--all", "db.items")
    refused.expect(2, "--all removes the whole batch")
    assert nessie("reset", "--all").out == "unstaged 2 operations, 0 still staged\n"
    assert nessie("status", "--json").json["batch"]["operations"] == []


def commit_without_answer(nessie, message: str) -> None:
    """Commits the batch, and leaves it staged as a process that ends too early does."""
    file = Path(".nessie/batch.json")
    batch = json.loads(file.read_text()) | {"requestId": "00112233445566778899aabbccddeeff"}
    file.write_text(json.dumps(batch))
    assert nessie("commit", "-m", message).code == 0
    file.write_text(json.dumps(batch))


def test_a_commit_without_answer_is_done_if_the_branch_contains_it(nessie, catalog) -> None:
    nessie("content", "delete", "db.orders")
    commit_without_answer(nessie, "first")
    done = catalog.head("main")
    catalog.create("main", "db.later", 5)
    assert f"as {done[:12]} on main" in nessie("status").err
    assert nessie("commit", "-m", "again").code == 1
    assert catalog.repository.commit_at("main").parent == done


@pytest.mark.parametrize("looked", [False, True])
def test_a_commit_without_answer_that_was_undone_is_not_done(nessie, catalog, looked) -> None:
    nessie("content", "delete", "db.orders")
    before = catalog.head("main")
    commit_without_answer(nessie, "first")
    done = catalog.head("main")
    assert nessie("undo").code == 0
    if looked:
        ran = nessie("status")
        assert "db.orders" in ran.out
        assert f"committed the batch as {done[:12]}, which 'main' no longer contains" in ran.err
    ran = nessie("commit", "-m", "again")
    assert (ran.code, catalog.repository.commit_at("main").parent) == (0, before)
    assert key("db.orders") not in [entry.key for entry in catalog.repository.entries("main")]
    assert nessie("status", "--json").json["batch"]["operations"] == []


def test_a_commit_without_answer_whose_branch_was_deleted_keeps_the_batch(nessie, catalog) -> None:
    catalog.branch("dev")
    nessie("switch", "dev")
    nessie("content", "delete", "db.orders")
    commit_without_answer(nessie, "first")
    catalog.repository.delete_reference("dev", expected_hash=catalog.head("dev"))
    assert nessie("commit", "-m", "again").code == 4
    assert len(json.loads(Path(".nessie/batch.json").read_text())["operations"]) == 1
    catalog.branch("dev")
    assert nessie("commit", "-m", "again").code == 0
