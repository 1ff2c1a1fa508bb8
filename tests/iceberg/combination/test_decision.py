"""Random histories of two sides of a table: a merge is refused, or gives the rows of both.

A row version is a token that never comes back, so that the model knows where each row is from.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable

import pytest
from msgspec import structs

from nessie_cli.iceberg.combination.decision import merge_files
from nessie_cli.iceberg.combination.states import FileContent, Identity
from tests.iceberg.combination.model import Table, check_merge, steps

COUNT = int(os.environ.get("NESSIE_TEST_COMBINATIONS", "4000"))
"""The number of histories. A long run sets it to 1,000,000."""


def check(rng: random.Random, *, version: int, equality: bool) -> str:
    """Runs one history. Returns its outcome."""
    base = Table(rng, version)
    for _ in range(rng.randint(1, 3)):
        base.step(equality=equality)
    ours, theirs = base.fork("o"), base.fork("t")
    for side in (ours, theirs):
        steps(side, equality=equality)
    result = check_merge(base, ours, theirs)
    if result is None:
        # A merge whose one side is unchanged is that side's table.
        assert (ours.files, ours.last) != (base.files, base.last)
        assert (theirs.files, theirs.last) != (base.files, base.last)
        return "conflict"
    return check_again(theirs, result, lambda side: steps(side, equality=equality))


def check_again(theirs: Table, result: Table, change: Callable[[Table], object]) -> str:
    """Both sides go on after a merge, and one is merged again, in either direction."""
    rng = result.rng
    later, history = theirs.fork("l"), list(result.history)
    for side in (result, later):
        side.earlier.clear()
    for side in (result, later):
        change(side)
    assert result.history[: len(history)] == history
    sides = (result, later) if rng.random() < 0.5 else (later, result)
    return "merged" if check_merge(theirs, *sides) is None else "merged twice"


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("equality", [False, True], ids=["", "equality deletes"])
def test_a_merge_is_refused_or_gives_the_rows_of_both(version: int, equality: bool) -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(COUNT // 6):
        outcomes[
            check(random.Random(f"{version}{equality}{seed}"), version=version, equality=equality)
        ] += 1
    # A merge that always refuses would pass every other check.
    assert outcomes["conflict"] < 0.5 * outcomes.total(), outcomes
    assert outcomes["merged twice"] > 0.2 * outcomes.total(), outcomes


def change_one_file(side: Table, path: str) -> None:
    """Deletes and updates rows of a data file, appends, and rolls back."""
    for _ in range(side.rng.randint(1, 2)):
        live = side.live(path)
        operation = side.rng.choice(["delete", "delete", "delete", "update", "append", "back"])
        if operation == "append":
            side.commit("append", (side.rows(1),))
        elif operation == "back":
            if side.earlier and Identity(path) in side.earlier[-1][0]:
                side.roll_back(len(side.earlier) - 1)
        elif live:
            side.delete(path, side.rng.choice(live), is_updated=operation == "update")


@pytest.mark.parametrize(("version", "refused", "twice"), [(2, 0.55, 0.2), (3, 0.3, 0.5)])
def test_both_sides_delete_rows_of_one_file(version: int, refused: float, twice: float) -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(COUNT // 6):
        rng = random.Random(f"vectors{seed}")
        # The rows of an upgraded table can be deleted by older files.
        base = Table(rng, rng.choice([2, version, version]))
        base.commit("append", (base.rows(8),))
        (path,) = base.paths
        for _ in range(rng.randint(0, 2)):
            base.delete(path, rng.choice(base.live(path)), is_updated=False)
        base.version = version
        base.history.clear()
        ours, theirs = base.fork("o"), base.fork("t")
        for side in (ours, theirs):
            change_one_file(side, path)
        result = check_merge(base, ours, theirs)
        if result is None:
            outcomes["conflict"] += 1
        else:
            outcomes[check_again(theirs, result, lambda side: change_one_file(side, path))] += 1  # noqa: B023
    assert outcomes["conflict"] < refused * outcomes.total(), outcomes
    assert outcomes["merged twice"] > twice * outcomes.total(), outcomes


def test_both_sides_upgrade_a_table_with_position_deletes() -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(COUNT // 6):
        rng = random.Random(f"upgraded{seed}")
        base = Table(rng, 2)
        base.commit("append", (base.rows(8),))
        (path,) = base.paths
        base.delete(path, rng.choice(base.live(path)), is_updated=False)
        ours, theirs = base.fork("o"), base.fork("t")
        for side in (ours, theirs):
            for _ in range(rng.choice([0, 0, 1])):
                change_one_file(side, path)
            side.version = 3
            side.earlier.clear()
            change_one_file(side, path)
        result = check_merge(base, ours, theirs)
        outcomes["refused" if result is None else "done"] += 1
        # Format version 3 allows no new position delete files.
        new = (
            []
            if result is None
            else [result.files[id_][0] for id_ in result.files.keys() - ours.files]
        )
        assert all(file.is_data or file.is_vector for file in new)
    assert outcomes["done"] > 0.3 * outcomes.total(), outcomes


@pytest.mark.parametrize("has_other_ids", [False, True])
def test_a_file_whose_rows_have_other_ids_on_ours_is_not_combined(has_other_ids: bool) -> None:
    """The sides were combined before, and ours gave the rows of theirs new ids.

    Then theirs rewrote them with their old ids, which ours has given to rows of its own.
    """
    base = Table(random.Random(1), 3)
    base.commit("append", (base.rows(3),))
    base.commit("append", (base.rows(2),))
    (path,) = base.paths[1:]
    ours, theirs = base.fork("o"), base.fork("t")
    ours.commit("append", (ours.rows(1),))
    if has_other_ids:
        file, stored = ours.files[Identity(path)]
        ours.files[Identity(path)] = (structs.replace(file, first_row_id=900), stored)
    theirs.commit("replace", (theirs.rows(2),), (path,))
    merge = merge_files(base.state(base), ours.state(base), theirs.state(base), base.last)
    reasons = [conflict.reason for conflict in merge.conflicts]
    assert any("rows with these ids" in reason for reason in reasons) is has_other_ids


def test_a_restored_file_of_another_line_is_not_combined() -> None:
    """Ours was set back to a state before theirs had given ids to the rows of the file.

    Theirs is the state before a commit of this other line, and the base the one after it.
    """
    base = Table(random.Random(1), 3)
    base.commit("append", (base.rows(2),))
    ours, line = base.fork("o"), base.fork("t")
    line.commit("append", (line.rows(2),))
    (path,) = set(line.paths) - set(base.paths)
    row, new = line.live(path)[0][1], line.rows(1)
    line.commit("overwrite", (new,), (path,), updated=(row[0], new[0][0]))
    theirs = line.fork("t")
    line.commit("delete", removed=tuple(set(line.paths) - set(base.paths)))
    ours.commit("append", (ours.rows(2),))
    merge = merge_files(line.state(line), ours.state(line), theirs.state(line), base.last)
    assert any("theirs restored files" in conflict.reason for conflict in merge.conflicts)


def test_a_restored_file_of_the_same_line_combines() -> None:
    """A revert of a commit since which only ours has changed."""
    before = Table(random.Random(1), 3)
    before.commit("append", (before.rows(2),))
    new = before.rows(1)
    (path,) = before.paths
    row = before.live(path)[0][1]
    before.commit("overwrite", (new,), (path,), updated=(row[0], new[0][0]))
    base = before.fork("b")
    base.commit("delete", removed=tuple(base.paths))
    ours = base.fork("o")
    ours.commit("append", (ours.rows(2),))
    result = check_merge(base, ours, before, is_merge=False)
    assert result is not None
    assert len(result.tokens()) == 3


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("change", ["delete", "drop", "compact"])
def test_a_deletion_that_a_combined_revert_took_back_stays_so(version: int, change: str) -> None:
    base = Table(random.Random(1), version)
    base.commit("append", (base.rows(3),))
    (path,) = base.paths
    before = base.fork("b")
    base.commit("delete", positions={path: frozenset({1})})
    ours, theirs = base.fork("o"), base.fork("t")
    ours.commit("append", (ours.rows(1),))
    reverted = check_merge(base, ours, before, is_merge=False)
    assert reverted is not None
    assert len(reverted.tokens()) == 4
    if change == "delete":
        theirs.commit("delete", positions={path: frozenset({2})})
    elif change == "drop":
        theirs.commit("delete", removed=(path,))
    else:
        theirs.commit("replace", (tuple(row for _, row in theirs.live(path)),), (path,))
    for sides in ((reverted, theirs), (theirs, reverted)):
        states = [side.state(base) for side in (base, *sides)]
        conflicts = merge_files(*states, fork_sequence=base.last).conflicts
        assert any("took deletions back" in conflict.reason for conflict in conflicts)


@pytest.mark.parametrize("version", [2, 3])
def test_more_deletions_in_a_file_are_no_revert(version: int) -> None:
    """The side has replaced the deletion vector by one with more rows."""
    base = Table(random.Random(1), version)
    base.commit("append", (base.rows(3),))
    (path,) = base.paths
    base.commit("delete", positions={path: frozenset({1})})
    ours, theirs = base.fork("o"), base.fork("t")
    ours.commit("delete", positions={path: frozenset({2})})
    theirs.commit("delete", removed=(path,))
    assert check_merge(base, ours, theirs) is not None
    assert check_merge(base, theirs, ours) is not None


@pytest.mark.parametrize("is_wide", [False, True], ids=["", "many files"])
@pytest.mark.parametrize("updates", ["", "ours", "theirs"])
def test_position_deletes_of_one_file_combine_without_updates(updates: str, is_wide: bool) -> None:
    """A row that one side updates and the other one deletes would exist although it is deleted."""
    base = Table(random.Random(1), 2)
    base.commit("append", (base.rows(3),))
    (path,) = base.paths
    ours, theirs = base.fork("o"), base.fork("t")
    ours.delete(path, ours.live(path)[0], is_updated=updates == "ours")
    theirs.delete(path, theirs.live(path)[0], is_updated=updates == "theirs")
    theirs.delete(path, theirs.live(path)[0], is_updated=False)
    states = [side.state(base) for side in (base, ours, theirs)]
    if is_wide:
        # The entries do not name the data file.
        files = {id_: structs.replace(f, referenced=None) for id_, f in states[1].files.items()}
        history = [
            structs.replace(each, deleted_in=(), has_wide_deletes=True)
            for each in states[1].history or ()
        ]
        states[1] = structs.replace(states[1], files=files, history=history)
    merge = merge_files(*states, fork_sequence=base.last)
    assert bool(merge.conflicts) is bool(updates)
    if not updates:
        assert [each.file.content for each in merge.added] == [FileContent.POSITION_DELETES] * 2
        assert merge.removed == []
    if not is_wide:
        result = check_merge(base, ours, theirs)
        assert (result is None) is bool(updates)


def test_files_of_unknown_origin_are_not_combined() -> None:
    """Ours was replaced, or its snapshots have expired."""
    base = Table(random.Random(1), 2)
    ours, theirs = base.fork("o"), base.fork("t")
    for side in (ours, theirs):
        side.commit("append", (side.rows(1),))
    unknown = structs.replace(ours.state(base), history=None)
    (conflict,) = merge_files(base.state(base), unknown, theirs.state(base), base.last).conflicts
    assert conflict.reason.startswith("the snapshots of ours do not lead back to the base")
