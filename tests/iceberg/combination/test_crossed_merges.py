"""Random histories of two branches that merge each other's older states, again and again."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest

from tests.iceberg.combination.model import Table, check_merge, merged_base, steps

COUNT = int(os.environ.get("NESSIE_TEST_COMBINATIONS", "4000"))
"""The number of histories, as in `test_decision`."""


def check(rng: random.Random, version: int) -> Counter[str]:
    """Both branches change, and each merges the other as it was before. Returns the outcomes."""
    base = Table(rng, version)
    for _ in range(rng.randint(1, 3)):
        base.step(equality=False)
    sides = [base.fork("o"), base.fork("t")]
    outcomes: Counter[str] = Counter()
    for number in range(4):
        for side in sides:
            steps(side, equality=False)
        ours, theirs = (check_merge(base, *pair, is_merge=False) for pair in (sides, sides[::-1]))
        name = "crossed" if number else "first"
        outcomes[f"{name}: {'refused' if ours is None or theirs is None else 'done'}"] += 1
        if ours is None or theirs is None:
            break
        assert ours.tokens() == theirs.tokens()
        both = merged_base(base, *sides)
        if both is None:
            outcomes["merge bases: refused"] += 1
            break
        if rng.random() < 0.1:
            # A merge takes the table of one side as a whole.
            ours = rng.choice(sides)
        base, sides = both, [ours.fork("o"), theirs.fork("t")]
    return outcomes


@pytest.mark.parametrize("version", [1, 2, 3])
def test_crossed_merges_are_refused_or_give_the_rows_of_both(version: int) -> None:
    outcomes: Counter[str] = Counter()
    for number in range(COUNT // 12):
        outcomes += check(random.Random(f"{version} {number}"), version)
    # A merge that always refuses would pass every other check.
    refused, done = outcomes["crossed: refused"], outcomes["crossed: done"]
    assert done > (0.25 if version == 3 else 0.5) * (refused + done), outcomes
