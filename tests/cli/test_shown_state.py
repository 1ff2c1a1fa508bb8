"""A decision is about the state that was shown with it: what came later is not decided."""

from __future__ import annotations

import shlex

import pytest


def printed(ran, number: int = 0) -> list[str]:
    """Returns the words of a line that a conflict prints."""
    (conflict,) = ran.error["errorDetails"]["conflicts"]
    return shlex.split(conflict["resolutions"][number])[1:]


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
    assert (ran.code, "has changed" in ran.err, "amespace" in ran.err) == (3, False, True), ran


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
