"""What a decision does to contents beside the one in conflict is said before and after."""

from __future__ import annotations

import json
import shlex

import pytest

from nessie_cli.model import Delete, Namespace, Put

from .conftest import key, table


def chain(catalog) -> None:
    """Taking theirs of `a` moves `k` back to `c`, where main has another table by now."""
    catalog.create("main", "a", 1)
    catalog.create("main", "c", 2)
    catalog.branch("x")
    catalog.rename("main", "c", "k")
    catalog.create("main", "c", 30)
    catalog.update("main", "a", 11)
    catalog.rename("x", "a", "k")
    catalog.update("x", "k", 12)


def set_aside(catalog) -> None:
    """Keeping ours of `a` leaves no key for the new `a` of theirs."""
    catalog.create("main", "a", 1)
    catalog.branch("x")
    catalog.update("main", "a", 11)
    catalog.rename("x", "a", "old")
    catalog.update("x", "old", 12)
    catalog.create("x", "a", 30)


def onto_a_new_table(catalog) -> None:
    """Keeping ours of `m` leaves `d` at its key, where theirs has a new table."""
    catalog.create("main", "d", 1)
    catalog.branch("x")
    catalog.create("main", "m", 7)
    catalog.rename("x", "d", "m")
    catalog.create("x", "d", 30)


CASES = {
    chain: (
        "a",
        (
            "(renames a on main to k; renames the present k on main to c;"
            " deletes the present c on main)"
        ),
        "",
        "c: the iceberg-table snapshot 30 of main is deleted\n",
        "",
    ),
    set_aside: (
        "a",
        "(renames a on main to old)",
        "(leaves out the a of theirs)",
        "",
        "a: the iceberg-table snapshot 30 of theirs is left out\n",
    ),
    onto_a_new_table: (
        "m",
        "(renames d on main to m; deletes the present m on main)",
        "(leaves out the d of theirs)",
        "m: the iceberg-table snapshot 7 of main is deleted\n",
        "d: the iceberg-table snapshot 30 of theirs is left out\n",
    ),
}


@pytest.mark.parametrize("make", CASES)
def test_advice_and_answer_name_every_content_that_is_lost(nessie, catalog, make) -> None:
    make(catalog)
    name, theirs, ours, *lost = CASES[make]
    refused = nessie("merge", "x")
    assert refused.code == 3
    expected = f"--expected-hash {catalog.head('main')[:12]}"
    for side, effect, line in (("--theirs", theirs, lost[0]), ("--ours", ours, lost[1])):
        line_of_side = f"nessie merge x@{catalog.head('x')[:12]} {side} {name} {expected}"
        advice = f"  or                 {line_of_side}\n" + (
            f"                     {effect}\n" if effect else ""
        )
        assert advice in refused.err
        copy = f"copy{side}"
        catalog.branch(copy)
        for options in (["--dry-run"], []):
            ran = nessie("merge", "x", "--into", copy, side, name, *options)
            assert ran.code == 0
            assert ran.err.replace(copy, "main").endswith(line)


def test_a_decision_that_contradicts_another_one_is_not_offered(nessie, catalog) -> None:
    for name in ("k", "b"):
        catalog.create("main", name)
    catalog.branch("x")
    catalog.rename("main", "k", "a")
    catalog.rename("main", "b", "d")
    catalog.drop("x", "k")
    catalog.rename("x", "b", "a")
    lines = advice(nessie("merge", "x", "--json"))
    for first in lines:
        ran = nessie(*first.split()[1:], "--dry-run", "--json")
        seconds = advice(ran) if ran.code == 3 else []
        assert ran.code == 0 or seconds, first
        for second in seconds:
            assert nessie(*second.split()[1:], "--dry-run").code in (0, 3), second


FIELDS = (
    *("--type", "iceberg-table", "--metadata-location", "s3://lake/b.json"),
    *("--snapshot-id", "7", "--schema-id", "0", "--spec-id", "0", "--sort-order-id", "0"),
)
"""The table `b` with its metadata file and another snapshot."""


def advice(refused) -> list[str]:
    conflicts = refused.error["errorDetails"]["conflicts"]
    return [line for conflict in conflicts for line in conflict["resolutions"]]


@pytest.mark.parametrize("words", [["merge", "x"], ["transplant", "main..x"]])
def test_a_content_that_takes_the_key_of_a_namespace_with_contents_can_give_way(
    nessie, catalog, words
) -> None:
    catalog.create("main", "b")
    catalog.branch("x")
    catalog.rename("x", "b", "m")
    catalog.commit("main", "m", Put(key("m"), Namespace(elements=("m",))))
    catalog.create("main", "m.a")
    refused = nessie(*words, "--theirs", "m", "--json")
    (conflict,) = refused.error["errorDetails"]["conflicts"]
    assert conflict["conflictType"] == "NAMESPACE_NOT_EMPTY"
    (line,) = conflict["resolutions"]
    assert "--theirs" not in line
    assert nessie(*shlex.split(line)[1:]).code == 0, line
    assert catalog.snapshot("main", "m.a") == 1
    assert catalog.snapshot("main", "b") == 1


@pytest.mark.parametrize("words", [["--theirs", "a"], ["--theirs", "*"], ["--behavior", "force"]])
def test_a_table_that_takes_the_key_of_a_namespace_gives_way_by_its_id(
    nessie, catalog, words
) -> None:
    catalog.create("main", "m")
    catalog.branch("x")
    catalog.update("x", "m", 2)
    catalog.rename("main", "m", "a")
    catalog.update("main", "a", 3)
    catalog.commit("main", "m", Put(key("m"), Namespace(elements=("m",))))
    catalog.create("main", "m.b")
    refused = nessie("merge", "x", *words, "--json")
    (line,) = advice(refused)
    assert nessie(*shlex.split(line)[1:]).code == 0, line
    assert catalog.snapshot("main", "a") == 3
    assert catalog.snapshot("main", "m.b") == 1


@pytest.mark.parametrize("is_revert", [True, False])
def test_theirs_is_not_printed_if_a_namespace_would_not_be_empty(
    nessie, catalog, is_revert
) -> None:
    catalog.branch("x")
    catalog.commit("main", "n", Put(key("n"), Namespace(elements=("n",))))
    words = ("merge", "x")
    if is_revert:
        words = ("revert", catalog.repository.resolve("main").hash)
        present = catalog.repository.content("main", key("n"))
        assert isinstance(present, Namespace)
        changed = Namespace(id=present.id, elements=("n",), properties={"p": "1"})
        catalog.commit("main", "p", Put(key("n"), changed))
    else:
        catalog.create("x", "n")
    catalog.create("main", "n.a")
    refused = nessie(*words, "--json")
    (conflict,) = refused.error["errorDetails"]["conflicts"]
    (line,) = conflict["resolutions"]
    assert "--ours n" in line
    assert conflict["blockingNamespace"]["elements"] == ["n"]
    report = nessie(*words).err
    assert "not possible" in report
    assert "theirs, because namespace n is not empty" in report
    assert nessie(*shlex.split(line)[1:]).code == 0, line
    assert catalog.snapshot("main", "n.a") == 1


def test_a_namespace_that_is_needed_is_kept_instead_of_the_earlier_decision(
    nessie, catalog
) -> None:
    for name in ("n", "m"):
        catalog.commit("main", name, Put(key(name), Namespace(elements=(name,))))
    catalog.branch("x")
    catalog.create("main", "m.a")
    catalog.create("main", "n.t")
    catalog.rename("x", "n", "m.a")
    refused = nessie("merge", "x", "--theirs", "m.a")
    assert "conflict: namespace 'n' is not empty" in refused.err
    assert (
        f"  or                 nessie merge x@{catalog.head('x')[:12]} --ours n --expected-hash "
        in refused.err
    )
    assert nessie("merge", "x", "--ours", "n").code == 0
    assert catalog.snapshot("main", "m.a") == 1


def test_a_resolved_namespace_has_its_key_as_elements(nessie, catalog, tmp_path) -> None:
    catalog.branch("x")
    for branch, text in (("x", "2"), ("main", "3")):
        before = catalog.repository.contents(branch, [key("db")])[key("db")]
        changed = Namespace(id=before.id, elements=("db",), properties={"k": text})
        catalog.commit(branch, text, Put(key("db"), changed, before))
    head = catalog.head("main")
    for elements, code in ((["other"], 2), (["db"], 0)):
        document = {"type": "NAMESPACE", "elements": elements, "properties": {"k": "4"}}
        (tmp_path / "n.json").write_text(json.dumps(document))
        ran = nessie("merge", "x", "--resolve", "db=n.json")
        assert ran.code == code, ran
        assert (catalog.head("main") == head) == (code == 2), ran
        if code:
            assert "db: the elements of the namespace to store are not its key" in ran.err
            assert "['db']" in ran.err


def test_a_resolved_content_has_the_type_of_ours(nessie, catalog, tmp_path) -> None:
    catalog.branch("x")
    catalog.update("x", "db.orders", 2)
    catalog.update("main", "db.orders", 3)
    view = {"type": "ICEBERG_VIEW", "metadataLocation": "s3://v", "versionId": 1, "schemaId": 0}
    (tmp_path / "v.json").write_text(json.dumps(view))
    ran = nessie("merge", "x", "--resolve", "db.orders=v.json")
    assert (ran.code, catalog.snapshot("main", "db.orders")) == (2, 3)
    assert "db.orders: the content to store has another type than ours" in ran.err


@pytest.mark.parametrize("moved", ["table", "namespace"])
def test_a_namespace_is_not_added_where_a_decision_moves_another_content_away(
    nessie, catalog, moved
) -> None:
    """The line that follows keeps the content, or starts over without the decision."""
    space = Namespace(elements=("m",))
    catalog.create("main", "a")
    catalog.commit("main", "m", Put(key("m"), space if moved == "namespace" else table("m", 1)))
    catalog.branch("dev")
    catalog.commit("dev", "n", Put(key("n"), Namespace(elements=("n",))))
    if moved == "namespace":
        catalog.rename("dev", "m", "k")
        catalog.rename("dev", "a", "n.t")
    else:
        catalog.rename("dev", "m", "n.t")
    catalog.rename("main", "m", "n")
    commits = ("dev~2..dev",) if moved == "namespace" else ("dev",)
    ran = nessie("transplant", *commits, "--onto", "main", "--json")
    assert ran.code == 3, ran
    (theirs,) = (line for line in advice(ran) if "--theirs" in line)
    ran = nessie(*shlex.split(theirs)[1:], "--json")
    assert ran.code == 3, ran
    (conflict,) = ran.json["error"]["errorDetails"]["conflicts"]
    assert conflict["conflictType"] == "NAMESPACE_ABSENT"
    (line,) = advice(ran)
    assert "content put" not in line
    assert nessie(*shlex.split(line)[1:]).code == (0 if moved == "namespace" else 3)


@pytest.mark.parametrize("words", [["--behavior", "force"], ["--behavior=force"], []])
def test_no_line_asks_one_by_one_with_an_option_that_resolve_does_not_take(
    nessie, catalog, words
) -> None:
    catalog.commit("main", "n", Put(key("n"), Namespace(elements=("n",))))
    catalog.branch("x")
    catalog.commit("x", "n", Delete(key("n")))
    catalog.create("main", "n.t")
    refused = nessie("merge", "x", *words)
    refused.expect(3, "nessie merge x")
    assert ("nessie resolve" in refused.err) is not bool(words)


def test_a_table_that_was_created_again_with_its_file_is_not_merged_beside_the_first(
    nessie, catalog
) -> None:
    catalog.create("main", "b")
    catalog.branch("x")
    catalog.rename("main", "b", "c")
    assert nessie("content", "replace", "b", "--ref", "x", *FIELDS, "-m", "again").code == 0
    refused = nessie("merge", "x", "--ours", "c", "--dry-run")
    refused.expect(3, "conflict: b has the metadata file of c: one table would have two keys")
    (line,) = advice(nessie("merge", "x", "--ours", "c", "--json"))
    assert nessie(*shlex.split(line)[1:]).code == 0
    assert (catalog.snapshot("main", "c"), catalog.snapshot("main", "b")) == (1, None)
