"""Random histories of two branches whose tables share commits in other ways than by merges.

Picked and reverted commits, restored tables, and data files that both branches add.
"""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest

from nessie_cli.iceberg.combination.states import TableFile
from tests.iceberg.combination.model import Stored, Table, check_merge, is_update

COUNT = int(os.environ.get("NESSIE_TEST_COMBINATIONS", "4000"))
"""The number of histories, as in `test_decision`."""
STEPS = 9
LIMITS = {"merge": 0.65, "pick": 0.4, "revert": 0.45}
"""The most that may be refused. A merge that always refuses would pass every other check."""
LIMITS_WITH_EQUALITY_DELETES = {"merge": 0.75, "pick": 0.55, "revert": 0.7}


class Branches:
    """A table on two branches, with its commits: the tables before and after each."""

    def __init__(self, rng: random.Random, version: int, *, equality: bool) -> None:
        self.rng, self.equality = rng, equality
        base = Table(rng, version)
        for _ in range(rng.randint(1, 3)):
            base.step(equality=equality)
        self.base = base
        self.heads = [base.fork("m"), base.fork("d")]
        self.commits: list[list[tuple[Table, Table]]] = [[], []]
        self.outside: list[tuple[TableFile, Stored]] = []
        """Data files that a branch can add, in the order in which they were made."""
        self.outcomes: Counter[str] = Counter()

    def commit(self, branch: int, table: Table) -> None:
        self.commits[branch].append((self.heads[branch], table))
        self.heads[branch] = table

    def step(self) -> None:
        ours = self.rng.randrange(2)
        kinds = ["change"] * 8 + ["pick"] * 3 + ["merge"] * 2 + ["revert", "restore", "add", "add"]
        kind = self.rng.choice(kinds)
        getattr(self, kind)(ours)

    def change(self, ours: int) -> None:
        table = self.heads[ours].fork(self.heads[ours].name)
        table.step(equality=self.equality)
        self.commit(ours, table)

    def merge(self, ours: int) -> None:
        theirs = self.heads[1 - ours]
        if self.apply("merge", ours, self.base, theirs):
            self.base = theirs

    def pick(self, ours: int) -> None:
        if commits := self.commits[1 - ours]:
            before, after = self.rng.choice(commits)
            self.apply("pick", ours, before, after)

    def revert(self, ours: int) -> None:
        if commits := self.commits[ours]:
            before, after = self.rng.choice(commits)
            self.apply("revert", ours, after, before)

    def apply(self, kind: str, ours: int, base: Table, theirs: Table) -> bool:
        head = self.heads[ours]
        if head.files == base.files:
            # No combination: the result is the table of theirs.
            self.commit(ours, theirs.fork(theirs.name))
            return True
        result = check_merge(base, head, theirs, is_merge=kind == "merge")
        self.outcomes[f"{kind}: {'refused' if result is None else 'done'}"] += 1
        if result is None:
            return False
        if kind == "revert":
            updates = base.replaced.items() - theirs.replaced.items()
            live = result.tokens()
            result.replaced |= {new: old for old, new in updates if is_update(new) and old in live}
        self.commit(ours, result)
        return True

    def restore(self, ours: int) -> None:
        """Sets the table back, or to a state of the other branch."""
        if commits := self.commits[self.rng.randrange(2)]:
            self.commit(ours, self.rng.choice(commits)[1].fork("r"))

    def add(self, ours: int) -> None:
        """Adds a data file that the other branch can add, too."""
        table = self.heads[ours].fork(self.heads[ours].name)
        if not self.outside or self.rng.random() < 0.5:
            self.outside.append(table.new_file())
        file, stored = self.rng.choice(self.outside[-2:])
        tokens = {token for token, _ in stored.rows}
        if tokens.isdisjoint(table.tokens()) and tokens.isdisjoint(table.replaced):
            table.add_file(file, stored)
            self.commit(ours, table)


def run(seed: str, *, version: int, equality: bool) -> Counter[str]:
    branches = Branches(random.Random(seed), version, equality=equality)
    for _ in range(STEPS):
        branches.step()
    for ours in random.Random(seed).sample((0, 1), 2):
        branches.merge(ours)
    return branches.outcomes


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("equality", [False, True], ids=["", "equality deletes"])
def test_commits_that_came_by_picks_are_not_doubled(version: int, equality: bool) -> None:
    outcomes: Counter[str] = Counter()
    for number in range(COUNT // 12):
        outcomes += run(f"{version} {equality} {number}", version=version, equality=equality)
    limits = LIMITS_WITH_EQUALITY_DELETES if equality else LIMITS
    for kind, most in limits.items():
        refused, done = outcomes[f"{kind}: refused"], outcomes[f"{kind}: done"]
        assert refused < most * (refused + done)
