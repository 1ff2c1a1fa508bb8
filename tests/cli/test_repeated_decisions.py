"""Lines that repeat decisions, and reports of other conflicts, say what the decisions do."""

from __future__ import annotations

import shlex

import pytest

from nessie_cli.model import Delete, Namespace, Put

from .conftest import Catalog, key, table

DELETION = "deletes the present b on main"


def namespace_and_new_table(catalog: Catalog) -> None:
    """Theirs of `b` deletes another `b` of main, and `n` is a namespace with contents on main."""
    catalog.create("main", "b")
    catalog.branch("x")
    catalog.drop("main", "b")
    catalog.create("main", "b", 20)
    catalog.commit("main", "n", Put(key("n"), Namespace(elements=("n",))))
    catalog.create("main", "n.a")
    catalog.commit(
        "x",
        "all",
        Put(key("b"), table("b-2", 2, catalog.repository.content("x", key("b")).id)),
        Put(key("n"), table("n", 5)),
    )


VERBS = [["merge", "x"], ["transplant", "x"]]
DECISIONS = [["--theirs", "*"], ["--theirs", "b"], ["--behavior", "force"]]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("words", DECISIONS)
def test_the_report_of_another_conflict_names_what_a_repeated_decision_deletes(
    nessie, catalog, verb, words
) -> None:
    namespace_and_new_table(catalog)
    refused = nessie(*verb, *words)
    assert refused.code == 3, refused
    assert f"decisions so far\n  {DELETION}\n" in refused.err
    (conflict,) = nessie(*verb, *words, "--json").error["errorDetails"]["conflicts"]
    (line,), (effect,) = conflict["resolutions"], conflict["effects"]
    assert effect == f"leaves out the n of theirs; {DELETION}"
    assert f"({effect})" in refused.err
    ran = nessie(*shlex.split(line)[1:])
    assert ran.code == 0, ran
    assert "b: the iceberg-table snapshot 20 of main is deleted" in ran.err


@pytest.mark.parametrize("words", [["--theirs", "*"], ["--behavior", "force"]])
def test_a_repeated_decision_names_a_deletion_below_a_namespace_that_stays(
    nessie, catalog, words
) -> None:
    catalog.commit("main", "n", Put(key("n"), Namespace(elements=("n",))))
    catalog.create("main", "n.a")
    catalog.branch("x")
    catalog.update("main", "n.a", 2)
    catalog.create("main", "n.b")
    catalog.commit("x", "drop", Delete(key("n.a")), Delete(key("n")))
    refused = nessie("merge", "x", *words, "--json")
    (conflict,) = refused.error["errorDetails"]["conflicts"]
    assert conflict["effects"] == ["deletes the present n.a on main"]
    assert conflict["base"]["type"] == conflict["ours"]["type"] == "NAMESPACE"
    assert conflict["theirs"] is None


def test_a_decision_without_an_effect_on_others_is_not_named(nessie, catalog) -> None:
    catalog.branch("x")
    for name in ("db.orders", "db.items"):
        catalog.update("main", name, 2)
        catalog.update("x", name, 3)
    refused = nessie("merge", "x", "--theirs", "db.items")
    assert refused.code == 3
    assert "decisions so far" not in refused.err


def test_what_theirs_deletes_without_a_conflict_is_not_the_effect_of_a_decision(
    nessie, catalog
) -> None:
    namespace_and_new_table(catalog)
    catalog.drop("x", "db.items")
    refused = nessie("merge", "x", "--behavior", "force")
    assert refused.code == 3
    assert f"decisions so far\n  {DELETION}\n" in refused.err


def test_many_contents_that_a_default_leaves_out_are_counted(nessie, catalog) -> None:
    catalog.create("main", "n")
    catalog.branch("x")
    catalog.commit("x", "many", *(Put(key(f"t{i:02}"), table(f"t{i}", i)) for i in range(15)))
    catalog.commit("x", "ns", Put(key("m"), Namespace(elements=("m",))))
    catalog.commit("x", "t", Put(key("m.t"), table("t", 1)))
    refused = nessie("merge", "x", "--behavior", "drop", "--theirs", "m.t")
    assert refused.code == 3, refused
    assert "leaves out the t08 of theirs; leaves out 6 more contents of theirs" in " ".join(
        refused.err.split()
    )


@pytest.mark.parametrize("words", [["--theirs", "*"], ["--theirs", "b"]])
def test_a_revert_names_what_a_repeated_decision_deletes(nessie, catalog, words) -> None:
    catalog.create("main", "b")
    catalog.commit("main", "n", Put(key("n"), table("n", 5)))
    reverted = catalog.commit("main", "both", Delete(key("b")), Delete(key("n")))
    catalog.create("main", "b", 20)
    catalog.commit("main", "n", Put(key("n"), Namespace(elements=("n",))))
    catalog.create("main", "n.a")
    refused = nessie("revert", reverted, *words)
    assert refused.code == 3, refused
    assert f"decisions so far\n  {DELETION}\n" in refused.err
    assert f"; {DELETION})" in refused.err


def test_states_of_a_namespace_in_conflict_are_those_of_the_three_sides(nessie, catalog) -> None:
    namespace_and_new_table(catalog)
    refused = nessie("merge", "x", "--behavior", "force", "--json")
    (conflict,) = refused.error["errorDetails"]["conflicts"]
    assert conflict["conflictType"] == "NAMESPACE_NOT_EMPTY"
    assert conflict["base"] is None
    assert conflict["ours"]["type"] == "NAMESPACE"
    assert (conflict["theirs"]["type"], conflict["theirs"]["snapshotId"]) == ("ICEBERG_TABLE", 5)


def test_a_question_is_asked_after_the_effect_of_the_options(nessie, catalog, answering) -> None:
    namespace_and_new_table(catalog)
    shown = answering("o\n", "resolve", "merge", "x", "--theirs", "b")
    assert shown.code == 0, shown
    assert f"decisions so far\n  {DELETION}\n" in "\n".join(shown.lines)
