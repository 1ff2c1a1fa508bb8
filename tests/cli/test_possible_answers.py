"""Only answers and lines that can work are offered; contradicting answers are asked again."""

from __future__ import annotations

import shlex

import pytest
from msgspec import structs

from nessie_cli.model import Delete, Namespace, Put

from .conftest import Catalog, key, table

TABLE = ("--type", "iceberg-table", "--metadata-location", "s3://lake/x.json", "--snapshot-id", "7")


def namespace(catalog: Catalog, name: str) -> None:
    catalog.commit("main", name, Put(key(name), Namespace(elements=(name,))))


def conflicts(refused) -> list[dict]:
    return refused.error["errorDetails"]["conflicts"]


def text(seen) -> str:
    return " ".join(seen.plain.split())


# -- a staged content in the place of a namespace with contents ------------------------------------


@pytest.fixture(params=["rename", "new table"])
def in_the_place_of_a_namespace(request, nessie, catalog):
    catalog.create("main", "b")
    if request.param == "rename":
        assert nessie("content", "rename", "b", "m").code == 0
    else:
        assert nessie("content", "put", "m", *TABLE).code == 0
    namespace(catalog, "m")
    catalog.create("main", "m.b")
    return catalog


def test_no_line_puts_a_staged_content_in_the_place_of_a_namespace_with_contents(
    nessie, in_the_place_of_a_namespace
) -> None:
    for words in (("commit", "-m", "m"), ("status",)):
        report = nessie(*words)
        shown = report.err + report.out
        assert "not possible       proposed, because namespace 'm' is not empty: m.b" in shown
        assert "--proposed" not in shown
        assert "content replace" not in shown
    (conflict,) = conflicts(nessie("commit", "-m", "m", "--json"))
    (line,) = conflict["resolutions"]
    assert line == "nessie reset m"
    refused = nessie("resolve", "--proposed", "m")
    refused.expect(2, "the staged change cannot be kept: namespace 'm' is not empty: m.b")
    assert nessie(*shlex.split(line)[1:]).code == 0


def test_an_answer_that_would_remove_a_namespace_with_contents_is_not_accepted(
    answering, in_the_place_of_a_namespace
) -> None:
    seen = answering("p\nc\n", "resolve")
    assert seen.code == 0, seen
    assert "[p]roposed not possible: namespace 'm' is not empty: m.b" in text(seen)


def test_a_namespace_whose_contents_the_batch_deletes_gives_way(nessie, catalog) -> None:
    catalog.create("main", "b")
    namespace(catalog, "n")
    catalog.create("main", "n.a")
    assert nessie("content", "delete", "n.a").code == 0
    assert nessie("content", "rename", "b", "m").code == 0
    namespace(catalog, "m")
    assert nessie("resolve", "--proposed", "m", "-m", "both").code == 0
    assert catalog.snapshot("main", "m") == 1


# -- a staged change that cannot be kept -----------------------------------------------------------


def deleted_and_renamed(nessie, catalog) -> str:
    assert nessie("content", "delete", "db.items").code == 0
    catalog.rename("main", "db.items", "db.c")
    return "'db.items' was renamed to 'db.c' on main, and the batch deletes it"


def renamed_and_deleted(nessie, catalog) -> str:
    assert nessie("content", "rename", "db.items", "db.c").code == 0
    catalog.drop("main", "db.items")
    return "'db.items' was deleted on main, and the batch renames it"


def renamed_and_created_again(nessie, catalog) -> str:
    reason = renamed_and_deleted(nessie, catalog)
    catalog.create("main", "db.items", 9)
    return reason


@pytest.mark.parametrize(
    "stage", [deleted_and_renamed, renamed_and_deleted, renamed_and_created_again]
)
def test_an_answer_that_cannot_be_kept_is_not_offered_and_loses_no_other_one(
    nessie, catalog, answering, stage
) -> None:
    assert nessie("content", "put", "db.orders", "--snapshot-id", "5").code == 0
    catalog.update("main", "db.orders", 6)
    reason = stage(nessie, catalog)
    assert f"not possible       proposed, because {reason}" in " ".join(
        nessie("commit", "-m", "m").err.split("\n")
    ).replace("                     ", "")
    # The answer for db.items is refused once, whichever is asked about first.
    seen = answering("p\np\nc\n", "resolve")
    assert seen.code == 0, seen
    assert f"[p]roposed not possible: {reason}" in text(seen)
    assert seen.plain.count("1 of 2:") + seen.plain.count("2 of 2:") == 3
    shown = nessie("status", "--short").out
    assert "M  db.orders" in shown
    assert "db.items" not in shown


# -- contradictions --------------------------------------------------------------------------------


def test_a_key_is_asked_about_as_a_content_and_as_a_namespace(nessie, catalog, answering) -> None:
    catalog.create("main", "n")
    assert nessie("content", "rename", "n", "n.p.a").code == 0
    catalog.update("main", "n", 2)
    seen = answering("p\np\np\n", "resolve", "-m", "moved")
    assert seen.code == 0, seen
    assert catalog.snapshot("main", "n.p.a") == 2


def test_options_about_a_content_and_its_namespace_drop_the_rename(nessie, catalog) -> None:
    catalog.create("main", "n")
    assert nessie("content", "rename", "n", "n.p.a").code == 0
    catalog.update("main", "n", 2)
    ran = nessie("resolve", "--proposed", "n", "--current", "n.p")
    assert ran.code in (0, 2), ran
    assert "there is no content with key" not in ran.err


def test_contradicting_answers_of_a_merge_are_asked_again_without_the_others(
    nessie, catalog, answering
) -> None:
    """Theirs of `c` and ours of `k` claim one key; `db.orders` is not asked about again."""
    for name in ("a", "b"):
        catalog.create("main", name)
    catalog.branch("x")
    catalog.update("main", "db.orders", 2)
    catalog.update("x", "db.orders", 3)
    catalog.rename("main", "a", "k")
    catalog.update("main", "k", 4)
    catalog.update("x", "a", 5)
    catalog.rename("main", "b", "c")
    catalog.rename("x", "b", "k")
    seen = answering("t\no\no\no\no\n", "resolve", "merge", "x")
    assert seen.code == 0, seen
    assert catalog.snapshot("main", "db.orders") == 2
    assert text(seen).count("db.orders was changed on main and on x") == 1


# -- a staged rename that is dropped ---------------------------------------------------------------


def test_keeping_a_namespace_names_the_staged_rename_that_is_dropped(
    nessie, catalog, answering
) -> None:
    namespace(catalog, "m")
    assert nessie("content", "rename", "m", "k").code == 0
    assert nessie("content", "put", "y", *TABLE).code == 0
    catalog.create("main", "m.a")
    report = nessie("commit", "-m", "m").err
    assert "renamed            m to k in the batch" in report
    seen = answering("c\n", "resolve")
    assert seen.code == 0, seen
    assert "[c]urrent keep the namespace m, and drop its staged rename to k" in text(seen)
    assert "the staged rename of m to k is dropped" in text(seen)


@pytest.mark.parametrize("words", [["delete", "m"], ["rename", "m", "k"]])
def test_an_option_that_keeps_a_namespace_names_what_is_dropped(nessie, catalog, words) -> None:
    namespace(catalog, "m")
    assert nessie("content", *words).code == 0
    catalog.create("main", "m.a")
    ran = nessie("resolve", "--current", "m")
    assert ran.code == 0
    change = "deletion of m" if words[0] == "delete" else "rename of m to k"
    assert f"the staged {change} is dropped" in ran.err


# -- namespaces that are staged otherwise ----------------------------------------------------------


def test_no_line_creates_a_namespace_that_the_batch_deletes(nessie, catalog) -> None:
    namespace(catalog, "n")
    assert nessie("content", "delete", "n").code == 0
    assert nessie("content", "put", "n.a", *TABLE).code in (0, 3)
    catalog.commit("main", "gone", Delete(key("n")))
    for conflict in conflicts(nessie("commit", "-m", "m", "--json")):
        for line in conflict["resolutions"]:
            assert "content put n --type namespace" not in line


def test_a_namespace_replaces_a_table_that_the_batch_moves_below_it(nessie, catalog) -> None:
    catalog.create("main", "n")
    assert nessie("content", "rename", "n", "n.a").code == 0
    (conflict,) = conflicts(nessie("commit", "-m", "m", "--json"))
    line = conflict["resolutions"][0]
    assert "content put n --type namespace" in line
    assert nessie(*shlex.split(line)[1:]).code == 0
    assert nessie("commit", "-m", "m").code == 0
    assert catalog.snapshot("main", "n.a") == 1


@pytest.mark.parametrize("is_staged", [True, False])
def test_a_merge_prints_no_commit_of_a_key_that_is_staged(nessie, catalog, is_staged) -> None:
    catalog.branch("x")
    catalog.commit("x", "ns", Put(key("n"), Namespace(elements=("n",))))
    catalog.commit("x", "table", Put(key("n.a"), table("a", 1)))
    if is_staged:
        assert nessie("content", "put", "n", *TABLE).code == 0
    (conflict,) = conflicts(nessie("transplant", "x", "--json"))
    (line,) = conflict["resolutions"]
    assert ("reset n" in line) is is_staged
    assert nessie(*shlex.split(line)[1:]).code == 0


# -- an answer that contradicts an earlier one -----------------------------------------------------


def _move_namespace(catalog: Catalog, old: str, new: str) -> None:
    """Moves a namespace with the one table `a`."""
    contents = catalog.repository.contents("main", [key(old), key(f"{old}.a")])
    moved = structs.replace(contents[key(old)], elements=(new,))
    catalog.commit(
        "main",
        f"{old} to {new}",
        *(Delete(each) for each in (key(old), key(f"{old}.a"))),
        Put(key(new), moved),
        Put(key(f"{new}.a"), contents[key(f"{old}.a")]),
    )


def test_contradicting_answers_are_both_asked_again(catalog, answering) -> None:
    namespace(catalog, "m")
    catalog.create("main", "m.a")
    for old, new in (("m", "n"), ("n", "m"), ("m", "b")):
        _move_namespace(catalog, old, new)
    head = catalog.head("main")
    # Theirs moves b away, ours keeps b.a: b is needed. The edit of b is not possible.
    seen = answering("t\no\ne\no\no\n", "resolve", "revert", "main~1")
    assert seen.code == 0, seen
    assert catalog.head("main") == head
    shown = text(seen)
    assert "[e]dit not possible: the namespace is not empty" in shown
    assert shown.count("please answer again") == 1


# -- a staged rename of a content that was staged for deletion -------------------------------------


def test_a_reset_names_the_staged_rename_of_a_content_that_the_branch_renamed(
    nessie, catalog
) -> None:
    namespace(catalog, "m")
    catalog.create("main", "n")
    assert nessie("content", "delete", "n").code == 0
    catalog.rename("main", "n", "c")
    assert nessie("content", "rename", "c", "m.a").code == 0
    refused = nessie("commit", "-m", "m").expect(3)
    (conflict,) = conflicts(nessie("commit", "-m", "m", "--json"))
    assert conflict["resolutions"] == ["nessie reset n"]
    (effect,) = conflict["effects"]
    assert "rename c to m.a" in effect
    assert effect in " ".join(refused.err.split())
    assert "unstaged 3 operations" in nessie("reset", "n").out
