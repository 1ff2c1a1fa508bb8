"""Conflicts, decisions, merges and graphs as values."""

from collections.abc import Iterator

import pytest

from nessie_cli.errors import ReferenceConflict
from nessie_cli.inspection.conflicts import SideChange, differing_fields, side_changes
from nessie_cli.inspection.decisions import DecisionEffect, EffectKind, effects_of, options_of
from nessie_cli.inspection.graph import Across, Graph, GraphRow, Joint
from nessie_cli.inspection.merges import differences_of, displaced_contents
from nessie_cli.model import (
    Conflict,
    ConflictType,
    KeyBehavior,
    MergeBehavior,
    MergeOption,
    Rename,
)
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.repository.opening import create
from tests.repository.vocabulary import Catalog, key, table


@pytest.fixture
def catalog() -> Iterator[Catalog]:
    with create("memory:") as repository:
        yield Catalog(repository)


def conflict(expected, actual, proposed, **more) -> Conflict:
    states = {"expected": expected, "actual": actual, "proposed": proposed}
    return Conflict(ConflictType.VALUE_DIFFERS, key("a"), "differs", **states, **more)


BASE, OURS, THEIRS = (table(number, "id") for number in (1, 2, 3))
RENAME = Rename(key("old"), key("a"))


@pytest.mark.parametrize(
    ("example", "ours", "theirs"),
    [
        (conflict(BASE, OURS, None), SideChange(["changed"]), SideChange(["deleted"])),
        (conflict(None, OURS, THEIRS), SideChange(["created"]), SideChange(["created"])),
        (
            conflict(BASE, BASE, THEIRS, source_rename=RENAME),
            SideChange([]),
            SideChange(["renamed", "changed"]),
        ),
        (
            conflict(None, OURS, THEIRS, target_rename=RENAME),
            SideChange(["renamed"], key("old")),
            SideChange(["created"]),
        ),
    ],
)
def test_what_each_side_did(example: Conflict, ours: SideChange, theirs: SideChange) -> None:
    assert side_changes(example) == (ours, theirs)


def test_the_metadata_file_is_the_last_of_the_differing_fields() -> None:
    figures = [{"rows": "1"}, {"rows": "2"}, {"rows": "3"}]
    fields = differing_fields(conflict(BASE, OURS, THEIRS), figures)

    assert [field.label for field in fields] == ["snapshot-id", "rows", "metadata-location"]
    assert fields[0].texts == ("1", "2", "3")
    assert differing_fields(conflict(None, None, None)) == []


def test_a_decision_names_the_contents_that_lose_their_key() -> None:
    option = MergeOption(
        MergeBehavior.FORCE,
        deletes=(key("b"), key("c")),
        renames=((key("a"), key("b")),),
        leaves_out=(key("d"),),
    )

    assert effects_of(option, conflict(BASE, OURS, THEIRS)) == [
        DecisionEffect(EffectKind.RENAME, key("a"), key("b"), gives_up_key=True),
        DecisionEffect(EffectKind.DELETE, key("b"), gives_up_key=True),
        DecisionEffect(EffectKind.DELETE, key("c")),
        DecisionEffect(EffectKind.LEAVE_OUT, key("d")),
    ]


def test_the_decisions_of_a_real_conflict_and_the_merge_that_follows(catalog: Catalog) -> None:
    catalog.write("main", {"b": 0})
    catalog.branch("dev")
    catalog.write("main", {"a": 1})
    catalog.write("dev", {"a": 2})
    repository, dev = catalog.repository, catalog.head("dev")
    with pytest.raises(ReferenceConflict) as refused:
        repository.merge("main", dev, MergeOptions())
    (example,) = refused.value.conflicts

    assert {option.behavior for option in options_of(example)} == {
        MergeBehavior.FORCE,
        MergeBehavior.DROP,
    }
    ours = example.actual
    decision = KeyBehavior(key("a"), MergeBehavior.FORCE)
    result = repository.merge("main", dev, MergeOptions(behaviors=[decision]))
    (change,) = differences_of(result)
    (displaced,) = displaced_contents(result)
    assert (change.key, change.before) == (key("a"), ours)
    assert (displaced.content, displaced.is_ours) == (ours, True)


def test_a_graph_is_lanes_and_lines_between_them() -> None:
    graph = Graph("root")
    merge = graph.add("m", ["c", "f"])
    graph.add("c", ["b"])
    graph.add("f", ["b"])
    base = graph.add("b", ["root"])

    assert merge.own == GraphRow([True], 0, is_merge=True)
    assert merge.further == GraphRow([True, True])
    assert [row.across for row in merge.below] == [Across(0, 1, Joint.OPENS)]
    assert [row.across for row in base.above] == [Across(0, 1, Joint.ENDS)]
    assert list(base.further.lanes) == []
