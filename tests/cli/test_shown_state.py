"""A decision is about the state that was shown with it: what came later is not decided."""

from __future__ import annotations

import json
import shlex

import pytest

from nessie_cli.model import Delete, IcebergTable, Namespace, Put

from .conftest import key, table


def printed(ran, number: int = 0) -> list[str]:
    """Returns the words of a line that a conflict prints."""
    (conflict,) = ran.error["errorDetails"]["conflicts"]
    return shlex.split(conflict["resolutions"][number])[1:]


def resolutions(ran) -> list[str]:
    (conflict,) = ran.error["errorDetails"]["conflicts"]
    return conflict["resolutions"]


def test_a_merge_does_not_delete_a_table_that_was_created_later(nessie, catalog) -> None:
    catalog.branch("x")
    catalog.rename("x", "db.orders", "db.sales")
    catalog.update("x", "db.sales", 8)
    catalog.update("main", "db.orders", 7)
    line = printed(nessie("merge", "x", "--json"))
    catalog.create("main", "db.sales", 50)
    ran = nessie(*line)
    assert ran.code == 5
    assert "'main' has changed db.sales since" in ran.err
    assert catalog.snapshot("main", "db.sales") == 50


@pytest.mark.parametrize("words", [["merge", "feature"], ["transplant", "main..feature"]])
@pytest.mark.parametrize("number", [0, 1])
def test_both_sides_of_a_decision_are_about_the_shown_state(nessie, catalog, words, number) -> None:
    catalog.branch("feature")
    catalog.update("feature", "db.orders", 2)
    catalog.update("main", "db.orders", 3)
    line = printed(nessie(*words, "--json"), number)
    catalog.create("main", "db.later")
    assert nessie(*line, "--dry-run").code == 0
    catalog.update("main", "db.orders", 99)
    head = catalog.head("main")
    ran = nessie(*line)
    assert ran.code == 5
    assert ran.err.startswith(f"nessie: 'main' has changed db.orders since {line[-1]}\n")
    assert f"`nessie {line[0]} {line[1]}` " in ran.err
    assert catalog.head("main") == head


@pytest.mark.parametrize("words", [["merge", "x"], ["transplant", "main..x"]])
@pytest.mark.parametrize("number", [0, 1])
def test_a_renamed_table_that_was_deleted_since_is_not_decided(
    nessie, catalog, words, number
) -> None:
    """Its key at that time is none of its keys at the base, on the source and now."""
    catalog.branch("x")
    catalog.rename("x", "db.orders", "db.sales")
    catalog.rename("main", "db.orders", "db.old")
    line = printed(nessie(*words, "--json"), number)
    catalog.drop("main", "db.old")
    head = catalog.head("main")
    content_id = catalog.repository.content("x", key("db.sales")).id
    ran = nessie(*(content_id if word == "db.old" else word for word in line))
    assert (ran.code, catalog.head("main")) == (5, head)
    assert "'main' has changed db.old since" in ran.err


def test_a_decision_for_ours_does_not_leave_out_another_table(nessie, catalog) -> None:
    """The key that the decision names is that of another table when it is given."""
    catalog.branch("x")
    catalog.update("x", "db.orders", 2)
    catalog.update("x", "db.items", 20)
    catalog.update("main", "db.orders", 3)
    line = printed(nessie("merge", "x", "--json"), 1)
    catalog.update("main", "db.orders", 2)
    catalog.rename("main", "db.orders", "db.aside")
    catalog.rename("main", "db.items", "db.orders")
    catalog.update("main", "db.orders", 30)
    assert "--ours" in line
    assert nessie(*line).code == 5
    assert nessie("merge", "x").code == 3


def test_a_decision_about_a_merge_is_about_the_shown_state_of_the_source(nessie, catalog) -> None:
    catalog.branch("db.orders")
    catalog.update("db.orders", "db.orders", 2)
    catalog.update("main", "db.orders", 3)
    shown = catalog.head("db.orders")
    line = printed(nessie("merge", "db.orders", "--into", "main", "-m", "db.orders", "--json"))
    at = f"db.orders@{shown[:12]}"
    assert line[:7] == ["merge", at, "--into", "main", "-m", "db.orders", "--theirs"]
    assert line[7:9] == ["db.orders", "--expected-hash"]
    catalog.rename("db.orders", "db.orders", "db.sales")
    catalog.create("db.orders", "db.orders", 60)
    assert nessie(*line).code == 0
    assert catalog.snapshot("main", "db.orders") == 2
    assert nessie("merge", "db.orders").code == 0
    assert catalog.snapshot("main", "db.sales") == 2
    assert catalog.snapshot("main", "db.orders") == 60


def test_the_message_of_a_merge_of_a_shown_state_names_the_branch(nessie, catalog) -> None:
    catalog.branch("merge")
    catalog.update("merge", "db.orders", 2)
    catalog.update("main", "db.orders", 3)
    assert nessie(*printed(nessie("merge", "merge", "--json"))).code == 0
    assert catalog.repository.commit_at("main").meta.message == "Merge branch 'merge' into main"


@pytest.mark.parametrize("words", [["feature"], ["main..feature"], ["feature~1", "feature"]])
def test_a_decision_about_a_transplant_is_about_the_shown_commits(nessie, catalog, words) -> None:
    catalog.branch("feature")
    if len(words) == 2:
        catalog.create("feature", "db.other", 5)
    catalog.update("feature", "db.orders", 2)
    catalog.update("main", "db.orders", 3)
    line = printed(nessie("transplant", *words, "--json"))
    catalog.drop("feature", "db.orders")
    catalog.create("main", "db.later", 5)
    assert nessie(*line).code == 0
    assert catalog.snapshot("main", "db.orders") == 2


@pytest.mark.parametrize("later", [["update", "db.third", 5], ["create", "db.orders", 60]])
def test_a_revert_is_that_of_the_shown_commit_and_state(nessie, catalog, later) -> None:
    catalog.rename("main", "db.orders", "db.sales")
    catalog.rename("main", "db.sales", "db.third")
    line = printed(nessie("revert", "main~1", "--json"))
    verb, *arguments = later
    getattr(catalog, verb)("main", *arguments)
    before = catalog.head("main")
    ran = nessie(*line)
    assert ran.code == 5
    assert f"'main' has changed {arguments[0]} since {line[-1]}" in ran.err
    assert "`nessie revert main~1`" not in ran.err
    assert catalog.head("main") == before


def test_a_revert_is_that_of_the_shown_commit_if_the_branch_has_moved(nessie, catalog) -> None:
    shown = catalog.update("main", "db.orders", 2)
    catalog.update("main", "db.orders", 3)
    line = printed(nessie("revert", "main~1", "--json"))
    assert shown[:12] in line
    catalog.update("main", "db.items", 5)
    assert nessie(*line).code == 0
    assert catalog.snapshot("main", "db.orders") == 1
    assert catalog.snapshot("main", "db.items") == 5


def test_a_conflict_of_the_shown_state_itself_is_not_called_a_change(nessie, catalog) -> None:
    assert nessie("content", "put", "n", "--type", "namespace", "-m", "n").code == 0
    catalog.rename("main", "db.orders", "n.a")
    renamed = catalog.rename("main", "n.a", "b")
    assert nessie("content", "delete", "n", "-m", "n").code == 0
    catalog.rename("main", "b", "n")
    line = printed(nessie("revert", renamed, "--json"))
    assert "--theirs" in line
    ran = nessie(*line)
    ran.expect(3, "amespace", without=("has changed",))


@pytest.mark.parametrize("words", [["merge", "x"], ["transplant", "main..x"]])
def test_a_claim_that_is_lost_for_ours_is_that_of_the_shown_content(nessie, catalog, words) -> None:
    catalog.branch("x")
    catalog.rename("x", "db.orders", "db.m")
    catalog.create("main", "db.m", 5)
    line = printed(nessie(*words, "--json"), 1)
    assert "--ours" in line
    catalog.rename("main", "db.m", "db.keep")
    assert nessie(*line).code == 5
    assert nessie(*words).code == 0
    assert catalog.snapshot("main", "db.m") == 1


@pytest.mark.parametrize(("back", "code"), [("db.orders", 0), ("db.kept", 2)])
def test_a_revert_sees_a_table_that_came_back_meanwhile(nessie, catalog, back, code) -> None:
    before = catalog.repository.content("main", key("db.orders"))
    dropped = catalog.commit(
        "main",
        "drop and update",
        Delete(key("db.orders")),
        Put(
            key("db.items"),
            table("i", 3, catalog.repository.content("main", key("db.items")).id),
        ),
    )
    catalog.update("main", "db.items", 4)
    line = printed(nessie("revert", dropped, "--json"))
    catalog.commit("main", "back", Put(key(back), before.with_id(None)))
    ran = nessie(*line)
    assert ran.code == code, ran
    names = [str(entry.key) for entry in catalog.repository.entries("main")]
    assert names == sorted({"db", "db.items", back})


def test_a_given_expected_hash_is_not_printed_as_a_name(nessie, catalog) -> None:
    catalog.branch("x")
    catalog.rename("x", "db.orders", "db.m")
    catalog.create("main", "db.m", 5)
    line = printed(nessie("merge", "x", "--expected-hash", "main", "--json"))
    assert line[-2:] == ["--expected-hash", catalog.head("main")[:12]]
    catalog.rename("main", "db.m", "db.keep")
    catalog.create("main", "db.m", 60)
    assert nessie(*line).code == 5
    assert catalog.snapshot("main", "db.m") == 60


def test_a_conflict_of_a_key_that_changed_since_the_expected_hash_is_that_change(
    nessie, catalog
) -> None:
    catalog.branch("x")
    catalog.update("x", "db.orders", 2)
    expected = catalog.update("main", "db.orders", 3)
    catalog.update("main", "db.orders", 4)
    for words in (["merge", "x"], ["transplant", "x"]):
        ran = nessie(*words, "--expected-hash", expected[:12])
        ran.expect(5, "has changed db.orders since")


def test_a_printed_line_has_no_dashes_alone(nessie, catalog) -> None:
    catalog.branch("x")
    catalog.update("x", "db.orders", 2)
    catalog.update("main", "db.orders", 3)
    assert nessie(*printed(nessie("--json", "merge", "--", "x"))).code == 0


def test_a_value_and_a_side_decide_about_one_content(nessie, catalog, tmp_path) -> None:
    catalog.branch("x")
    catalog.rename("x", "db.orders", "db.e")
    catalog.update("x", "db.e", 21)
    catalog.update("main", "db.orders", 12)
    catalog.create("main", "db.e", 60)
    content = IcebergTable(metadata_location="s3://lake/77", snapshot_id=77)
    (tmp_path / "v.json").write_text(json.dumps({"type": "ICEBERG_TABLE", **content.attributes()}))
    words = ["merge", "x", "--resolve", f"db.orders={tmp_path / 'v.json'}"]
    conflict = nessie(*words, "--json")
    for number, state in ((0, {"db.e": 77}), (1, {"db.orders": 77, "db.e": 60})):
        copy = f"copy{number}"
        catalog.branch(copy)
        line = printed(conflict, number)
        assert nessie(*line, "--into", copy).code == 0, line
        for name, snapshot in state.items():
            assert catalog.snapshot(copy, name) == snapshot


@pytest.mark.parametrize("case", ["replace", "delete"])
def test_a_staged_change_of_a_namespace_deletes_only_what_was_shown(nessie, catalog, case) -> None:
    catalog.commit("main", "n", Put(key("n"), Namespace(elements=("n",))))
    if case == "replace":
        nessie("content", "put", "n.t", "--type", "iceberg-table", "--metadata-location", "s3://t")
        catalog.drop("main", "n")
        name = "n"
    else:
        nessie("content", "delete", "n")
        name = "n.t2"
    catalog.create("main", name, 50)
    refused = nessie("commit", "-m", "m", "--json")
    lines = [line for line in resolutions(refused) if case in line]
    assert lines
    catalog.rename("main", name, "keep")
    catalog.create("main", name, 60)
    for line in lines:
        nessie(*shlex.split(line)[1:])
    assert nessie("commit", "-m", "m").code != 0
    assert catalog.snapshot("main", name) == 60


def test_a_staged_change_that_is_kept_deletes_only_what_was_shown(nessie, catalog) -> None:
    assert nessie("content", "rename", "db.orders", "db.new").code == 0
    catalog.create("main", "db.new", 50)
    line = printed(nessie("commit", "-m", "m", "--json"))
    assert "--proposed" in line
    catalog.rename("main", "db.new", "db.aside")
    catalog.create("main", "db.new", 60)
    staged = nessie("status", "--json").json["batch"]
    ran = nessie(*line)
    assert ran.code == 5
    assert "'main' has changed db.new since" in ran.err
    assert "`nessie commit`" in ran.err
    assert nessie("status", "--json").json["batch"] == staged
    again = printed(nessie("commit", "-m", "m", "--json"))
    assert nessie(*again, "-m", "kept").code == 0
    assert catalog.snapshot("main", "db.new") == 1


PUT = "content put db.orders --snapshot-id 9 --metadata-location s3://9"
RENAME = "content rename db.orders db.new"


@pytest.mark.parametrize("later", ["delete", "rename", "update"])
@pytest.mark.parametrize("staged", [[PUT], [PUT, RENAME], [RENAME]])
def test_a_staged_change_that_is_kept_is_that_of_the_shown_key(
    nessie, catalog, staged, later
) -> None:
    """The key that the table had on the branch is none of its staged keys."""
    for words in staged:
        assert nessie(*words.split()).code == 0
    catalog.rename("main", "db.orders", "db.there")
    line = printed(nessie("commit", "-m", "m", "--json"))
    assert "--proposed" in line
    match later:
        case "delete":
            catalog.drop("main", "db.there")
        case "rename":
            catalog.rename("main", "db.there", "db.elsewhere")
        case "update":
            catalog.update("main", "db.there", 5)
    before, head = nessie("status", "--json").json["batch"], catalog.head("main")
    ran = nessie(*line, "-m", "kept")
    assert (nessie("status", "--json").json["batch"], catalog.head("main")) == (before, head)
    if later == "delete" and staged == [RENAME]:
        assert (ran.code, "was deleted on main" in ran.err) == (2, True)
    else:
        assert (ran.code, "'main' has changed db." in ran.err) == (5, True)


def test_a_staged_change_that_is_kept_is_not_about_other_contents(nessie, catalog) -> None:
    assert nessie(*PUT.split()).code == 0
    catalog.rename("main", "db.orders", "db.there")
    line = printed(nessie("commit", "-m", "m", "--json"))
    catalog.rename("main", "db.items", "db.orders")
    catalog.create("main", "db.other", 5)
    assert nessie(*line, "-m", "kept").code == 0
    assert catalog.snapshot("main", "db.there") == 9
    assert catalog.snapshot("main", "db.orders") == 1


def test_a_staged_change_that_is_dropped_needs_no_shown_state(nessie, catalog) -> None:
    assert nessie(*PUT.split()).code == 0
    shown = catalog.rename("main", "db.orders", "db.there")
    catalog.drop("main", "db.there")
    assert nessie("resolve", "--current", "db.orders", "--expected-hash", shown).code == 0
    assert nessie("status", "--json").json["batch"]["operations"] == []
