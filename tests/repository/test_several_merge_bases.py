"""Merges with several merge bases, because each branch merged an older state of the other."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from nessie_cli.errors import MergeConflict
from nessie_cli.model import (
    ConflictType,
    KeyBehavior,
    MergeBehavior,
    MergeResult,
    Put,
    RestoredFrom,
)
from nessie_cli.repository.opening import create
from tests.repository.vocabulary import Catalog, delete, key, namespace, put, table

Write = Callable[[Catalog, str], object]


@pytest.fixture
def catalog() -> Iterator[Catalog]:
    with create("memory:") as repository:
        catalog = Catalog(repository)
        catalog.write("main", {"t": 1, "other": 1})
        catalog.branch("dev")
        yield catalog


def cross(catalog: Catalog, **options: Any) -> None:
    """Merges each of main and dev, as they are, into the other."""
    heads = [catalog.head("main"), catalog.head("dev")]
    catalog.merge_contents(f"@{heads[1]}", "main", **options)
    catalog.merge_contents(f"@{heads[0]}", "dev", **options)


def decide_all(
    catalog: Catalog, source: str, into: str, behavior: MergeBehavior, **options: Any
) -> MergeResult:
    """Merges with one decision about all conflicts."""
    behaviors: list[KeyBehavior] = []
    while True:
        try:
            return catalog.merge_contents(source, into, behaviors=behaviors, **options)
        except MergeConflict as refused:
            assert len(behaviors) < 10
            behaviors += [
                KeyBehavior(c.key, behavior, content_id=c.content_id)
                for c in refused.conflicts
                if c.key
            ]


def conflicts(catalog: Catalog, source: str, into: str) -> dict[str, ConflictType]:
    with pytest.raises(MergeConflict) as refused:
        catalog.merge_contents(source, into, dry_run=True)
    return {c.key.plain: c.type for c in refused.value.conflicts if c.key}


def value(number: int) -> Write:
    return lambda catalog, branch: catalog.write(branch, {"t": number})


def renamed(name: str) -> Write:
    return lambda catalog, branch: catalog.rename(branch, "t", name)


def created(number: int) -> Write:
    return lambda catalog, branch: catalog.commit(branch, put("new", table(number)))


def recreated(number: int) -> Write:
    return lambda catalog, branch: catalog.recreate(branch, "t", table(number))


def replaced(catalog: Catalog, branch: str) -> None:
    """Sets the table aside and drops it: another one has its key."""
    catalog.rename(branch, "t", "aside")
    catalog.commit(branch, delete("aside"), put("t", table(2)))


def deleted(catalog: Catalog, branch: str) -> None:
    catalog.write(branch, {"t": None})


@pytest.mark.parametrize(
    ("on_main", "on_dev", "count"),
    [
        (value(2), value(3), 1),
        (value(2), deleted, 1),
        (deleted, value(3), 1),
        (renamed("x"), renamed("y"), 1),
        (renamed("x"), deleted, 1),
        (created(2), created(3), 1),
        (recreated(2), value(3), 1),
        (value(3), recreated(2), 1),
        # The new table and the old one have different keys.
        (recreated(2), renamed("x"), 2),
        (replaced, value(3), 1),
    ],
    ids=[
        "value",
        "value-deletion",
        "deletion-value",
        "keys",
        "key-deletion",
        "claim",
        "re-creation",
        "value-re-creation",
        "re-creation-key",
        "replacement",
    ],
)
def test_opposite_decisions_are_a_conflict_in_both_directions(
    catalog: Catalog, on_main: Write, on_dev: Write, count: int
) -> None:
    on_main(catalog, "main")
    on_dev(catalog, "dev")
    states = [catalog.numbers("main"), catalog.numbers("dev")]
    cross(catalog, default_behavior=MergeBehavior.DROP)
    assert [catalog.numbers("main"), catalog.numbers("dev")] == states
    for source, into in (("main", "dev"), ("dev", "main")):
        assert len(conflicts(catalog, source, into)) == count
    decide_all(catalog, "main", "dev", MergeBehavior.FORCE)
    assert catalog.numbers("dev") == states[0]
    assert not catalog.merge_contents("main", "dev").applied
    catalog.merge_contents("dev", "main")
    assert catalog.numbers("main") == states[0]


@pytest.mark.parametrize("longer", ["main", "dev"])
@pytest.mark.parametrize(("changed", "other"), [("main", "dev"), ("dev", "main")])
def test_a_namespace_that_both_sides_created_can_be_changed(
    catalog: Catalog, longer: str, changed: str, other: str
) -> None:
    """Each side has taken the namespace of the other one. The longer history is merged first."""
    for branch in ("main", "dev"):
        catalog.commit(branch, put("n", namespace("n")))
    catalog.write(longer, {"other": 2})
    ids = [catalog.id("dev", "n"), catalog.id("main", "n")]
    cross(catalog)
    assert [catalog.id("main", "n"), catalog.id("dev", "n")] == ids
    catalog.write(other, {"n.t": 1})
    catalog.commit(changed, put("n", namespace("n", catalog.id(changed, "n"), p="1")))
    before = catalog.content(changed, "n")
    taken = catalog.merge_contents(changed, other, dry_run=True)
    assert [d.result for d in taken.details] == [before]
    catalog.merge_contents(other, changed)
    assert (catalog.content(changed, "n"), catalog.numbers(changed)["n.t"]) == (before, 1)
    catalog.merge_contents(changed, other)
    assert catalog.content(other, "n") == before


@pytest.mark.parametrize("restored", ["main", "dev"])
def test_a_decision_for_the_state_at_the_fork_is_not_lost(catalog: Catalog, restored: str) -> None:
    value(2)(catalog, "main")
    value(3)(catalog, "dev")
    cross(catalog, default_behavior=MergeBehavior.DROP)
    value(1)(catalog, restored)
    assert list(conflicts(catalog, "main", "dev")) == ["t"]
    assert list(conflicts(catalog, "dev", "main")) == ["t"]


def test_a_decision_that_is_repeated_crosswise_stays_a_conflict(catalog: Catalog) -> None:
    value(2)(catalog, "main")
    value(3)(catalog, "dev")
    for number in range(3):
        cross(catalog, behaviors=[KeyBehavior(key("t"), MergeBehavior.DROP)])
        catalog.write("main", {"m": 10 + number})
        catalog.write("dev", {"d": 20 + number})
        assert list(conflicts(catalog, "main", "dev")) == ["t"]


@pytest.mark.parametrize("rounds", [1, 2, 30])
def test_changes_of_one_side_merge_however_often_the_branches_crossed(
    catalog: Catalog, rounds: int
) -> None:
    for number in range(rounds):
        catalog.write("main", {"t": 10 + number})
        catalog.write("dev", {"other": 500 + number})
        cross(catalog)
        assert catalog.numbers("main") == catalog.numbers("dev")
    catalog.write("main", {"t": 100})
    catalog.rename("dev", "t", "renamed")
    catalog.merge_contents("dev", "main")
    assert catalog.numbers("main") == {"renamed": 100, "other": 499 + rounds}


def test_a_table_that_both_sides_dropped_stays_dropped(catalog: Catalog) -> None:
    value(2)(catalog, "main")
    value(3)(catalog, "dev")
    cross(catalog, default_behavior=MergeBehavior.DROP)
    deleted(catalog, "main")
    deleted(catalog, "dev")
    catalog.merge_contents("dev", "main")
    assert catalog.numbers("main") == {"other": 1}


def test_three_merge_bases(catalog: Catalog) -> None:
    names = {"x": 20, "y": 21, "z": 22}
    for name, number in names.items():
        catalog.branch(name)
        catalog.write(name, {name: number, "t": number - 10})
    for number, branch in enumerate(("left", "right"), 30):
        catalog.branch(branch, "main")
        winner = "x" if branch == "left" else "z"
        for name in names:
            behavior = MergeBehavior.FORCE if name == winner else MergeBehavior.DROP
            catalog.merge_contents(name, branch, behaviors=[KeyBehavior(key("t"), behavior)])
        catalog.write(branch, {branch: number})
    assert conflicts(catalog, "left", "right") == {"t": ConflictType.VALUE_DIFFERS}
    catalog.write("left", {"t": 12})
    catalog.merge_contents("left", "right")
    assert catalog.numbers("right") == {"t": 12, "other": 1, "left": 30, "right": 31} | names


def agreed(catalog: Catalog) -> None:
    """Both sides keep a new table at t, about whose key their merge bases conflict."""
    catalog.rename("main", "t", "u")
    catalog.recreate("dev", "t", table(3))
    heads = [catalog.head("main"), catalog.head("dev")]
    theirs, ours = (
        [KeyBehavior(key("u"), behavior)] for behavior in (MergeBehavior.FORCE, MergeBehavior.DROP)
    )
    catalog.merge_contents(f"@{heads[1]}", "main", behaviors=theirs)
    catalog.merge_contents(f"@{heads[0]}", "dev", behaviors=ours)
    assert catalog.numbers("main") == catalog.numbers("dev") == {"t": 3, "other": 1}


@pytest.mark.parametrize("change", [value(9), renamed("x")], ids=["value", "key"])
def test_a_table_on_which_both_sides_agreed_can_be_changed(catalog: Catalog, change: Write) -> None:
    agreed(catalog)
    change(catalog, "dev")
    assert not catalog.merge_contents("main", "dev", dry_run=True).details
    catalog.merge_contents("dev", "main")
    assert catalog.numbers("main") == catalog.numbers("dev")


def test_the_deletion_of_a_table_on_which_both_sides_agreed_is_asked(catalog: Catalog) -> None:
    """The merge bases do not tell it from a decision against the table."""
    agreed(catalog)
    deleted(catalog, "dev")
    assert list(conflicts(catalog, "main", "dev")) == ["t"]
    assert list(conflicts(catalog, "dev", "main")) == ["t"]
    behaviors = [KeyBehavior(key("t"), MergeBehavior.FORCE)]
    catalog.merge_contents("dev", "main", behaviors=behaviors)
    assert catalog.numbers("main") == {"other": 1}


@pytest.mark.parametrize("order", ["abc", "acb", "bac", "bca", "cab", "cba"])
def test_a_key_of_a_contested_table_in_a_third_merge_base(catalog: Catalog, order: str) -> None:
    """Two merge bases renamed t; the third one has another table at one of the names."""
    changes: dict[str, Write] = {
        "a": renamed("u"),
        "b": renamed("w"),
        "c": lambda at, branch: at.commit(branch, put("u", table(9))),
    }
    for number, name in enumerate(order):
        catalog.branch(name)
        changes[name](catalog, name)
        for more in range(number):
            catalog.write(name, {"other": 30 + more})
            catalog.write(name, {"other": 1})
    # m has the table at u, n has it at w and the other one at u.
    for branch, names in (("m", "abc"), ("n", "bac")):
        catalog.branch(branch, names[0])
        for name in names[1:]:
            behavior = MergeBehavior.FORCE if branch == "n" and name == "c" else MergeBehavior.DROP
            decide_all(catalog, name, branch, behavior)
    assert catalog.numbers("m") == {"u": 1, "other": 1}
    assert catalog.numbers("n") == {"u": 9, "w": 1, "other": 1}
    for source, into in (("m", "n"), ("n", "m")):
        dry = decide_all(catalog, source, into, MergeBehavior.DROP, dry_run=True)
        assert all(detail.result == detail.target for detail in dry.details)


def octopus(catalog: Catalog) -> None:
    """Merges a, b and c into m, and in the other order into n: these are their merge bases."""
    for branch, names in (("m", "abc"), ("n", "cba")):
        catalog.branch(branch, names[0])
        for name in names[1:]:
            catalog.merge_contents(name, branch)


@pytest.mark.parametrize("is_first", [False, True])
def test_merge_bases_are_compared_with_what_they_share(catalog: Catalog, is_first: bool) -> None:
    """Two of three merge bases share a commit that the third one has not."""
    catalog.branch("x")
    catalog.write("x", {"new": 10})
    for number, name in enumerate("abc", 20):
        catalog.branch(name, "main" if name == "c" else "x")
        catalog.write(name, {name: number})
        if is_first and name == "c":
            for more in range(5):
                catalog.write(name, {name: 30 + more})
    catalog.write("a", {"new": None})
    octopus(catalog)
    assert catalog.numbers("m") == catalog.numbers("n")
    assert "new" not in catalog.numbers("m")
    content = catalog.content("x", "new")
    restored = RestoredFrom(catalog.head("x"), key("new"))
    catalog.commit("n", Put(key("new"), content, restored_from=restored))
    state = catalog.numbers("n")
    assert not catalog.merge_contents("m", "n").details
    assert catalog.numbers("n") == state
    catalog.merge_contents("n", "m")
    assert catalog.numbers("m") == state


@pytest.mark.parametrize("order", ["abc", "acb", "bac", "bca", "cab", "cba"])
def test_three_states_of_a_table_that_their_base_does_not_have(
    catalog: Catalog, order: str
) -> None:
    catalog.branch("origin")
    create = catalog.commit("origin", put("new", table(10)))
    for number, name in enumerate(order, 20):
        catalog.branch(name)
        catalog.transplant_contents([create], name)
        catalog.write(name, {"new": number})
        for more in range(number - 20):
            catalog.write(name, {"other": 30 + number + more})
            catalog.write(name, {"other": 1})
    ours = [KeyBehavior(key("new"), MergeBehavior.DROP)]
    for branch, names in (("m", "abc"), ("n", "cba")):
        catalog.branch(branch, names[0])
        for name in names[1:]:
            catalog.merge_contents(name, branch, behaviors=ours)
    assert conflicts(catalog, "m", "n") == {"new": ConflictType.VALUE_DIFFERS}
    assert conflicts(catalog, "n", "m") == {"new": ConflictType.VALUE_DIFFERS}


@pytest.mark.slow
def test_a_history_of_more_crossings_than_calls_nest(catalog: Catalog) -> None:
    crossings = 130
    for number in range(crossings):
        catalog.write("main", {"t": 10 + number})
        cross(catalog)
    catalog.write("main", {"t": 5})
    catalog.write("dev", {"other": 5})
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + crossings)
    try:
        catalog.merge_contents("dev", "main")
    finally:
        sys.setrecursionlimit(usual)
    assert catalog.numbers("main") == {"t": 5, "other": 5}
