"""Random histories of three branches: commits, renames, restorations, merges, transplants.

After each merge or transplant: no content has two keys, what is listed is what changed, a dry run
shows what happens, and a repeated merge does nothing.
"""

from __future__ import annotations

import itertools
import os
import random
from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from nessie_cli.errors import InvalidInput, MergeConflict, ReferenceConflict
from nessie_cli.model import (
    Conflict,
    Content,
    IcebergTable,
    KeyBehavior,
    MergeBehavior,
    MergeResult,
    Put,
    RestoredFrom,
)
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.repository.opening import create
from tests.repository.vocabulary import Catalog, delete, key, put, table

COUNT = int(os.environ.get("NESSIE_TEST_MERGES", "160"))
"""The number of histories. A long run sets it to 10,000."""
NAMES, BRANCHES = "abcde", ("main", "x", "y")
MOST_ROUNDS = 5
DEFAULTS = [*[MergeBehavior.NORMAL] * 4, MergeBehavior.FORCE, MergeBehavior.DROP]

Merge = Callable[..., MergeResult]
State = dict[str, Content | None]


class History:
    """A catalog that changes at random."""

    def __init__(self, catalog: Catalog, seed: int) -> None:
        self.catalog = catalog
        self.random = random.Random(seed)
        self.done: Counter[str] = Counter()
        self._number = 1
        catalog.write("main", {"a": -1, "b": -2, "c": -3})
        for branch in BRANCHES[1:]:
            catalog.branch(branch)

    def step(self) -> None:
        branch = self.random.choice(BRANCHES)
        if self.random.random() < 0.5:
            self.commit(branch)
        else:
            self._combine(branch)

    def commit(self, branch: str) -> None:
        state, catalog = self.state(branch), self.catalog
        name, other = self.random.choice(NAMES), self.random.choice(NAMES)
        self._number += 1
        here, there = state.get(name), state.get(other)
        match self.random.randrange(6):
            case 0 if here:
                catalog.write(branch, {name: self._number})
            case 1 if here:
                catalog.write(branch, {name: None})
            case 2:
                gone = [delete(name)] if here else []
                new = table(self._number)
                if here and self.random.random() < 0.5:
                    # As `nessie content replace` does: another content with the same file.
                    new = here.with_id(None)
                catalog.commit(branch, *gone, put(name, new))
            case 3 if here and not there:
                catalog.rename(branch, name, other)
            case 4 if here and there and name != other:
                catalog.commit(branch, put(name, there, here), put(other, here, there))
            case 5:
                self._restore(branch)

    def _restore(self, branch: str) -> None:
        """Restores a content of any branch and time, mostly one that is not on the branch."""
        state = self.state(branch)
        keys = {content.id: name for name, content in state.items() if content}
        free = [name for name in NAMES if name not in state]
        commit = self.random.choice(self.catalog.hashes(self.random.choice(BRANCHES)))
        contents = {
            entry.key: entry.content
            for entry in self.catalog.repository.entries(commit, content=True)
            if entry.content and (entry.content.id not in keys or self.random.random() < 0.2)
        }
        if not contents or not free:
            return
        origin = self.random.choice(sorted(contents))
        content = contents[origin]
        restored_from = RestoredFrom(commit, origin)
        operation = Put(key(self.random.choice(free)), content, restored_from=restored_from)
        if content.id not in keys:
            self.catalog.commit(branch, operation)
            self.done["restorations"] += 1
            return
        with pytest.raises(ReferenceConflict) as refused:
            self.catalog.commit(branch, operation)
        (conflict,) = refused.value.conflicts
        assert conflict.other_key == key(keys[content.id])

    def _combine(self, branch: str) -> None:
        source = self.random.choice([other for other in BRANCHES if other != branch])
        default = self.random.choice(DEFAULTS)
        merge: Merge
        if is_merge := self.random.random() < 0.6:
            # A merge of an older state can make a criss-cross history.
            if self.random.random() < 0.5:
                source = f"@{self.random.choice(self.catalog.hashes(source)[:6])}"
            else:
                self._check_symmetry(source, branch)

            def merge(**options: object) -> MergeResult:
                return self.catalog.merge_contents(
                    source, branch, default_behavior=default, **options
                )
        else:
            commits = self.catalog.hashes(source)[: self.random.randrange(1, 4)][::-1]

            def merge(**options: object) -> MergeResult:
                return self.catalog.transplant_contents(
                    commits, branch, default_behavior=default, any_order=True, **options
                )

        before = self.state(branch)
        sources = [source] if is_merge else commits
        allowed = same_files(before).union(*(same_files(self.state(each)) for each in sources))
        try:
            behaviors, dry = self._decided(branch, before, merge)
        except InvalidInput as refused:
            # Random decisions can give one key to two contents.
            if "contradict each other" not in refused.message:
                raise
            assert self.state(branch) == before
            self.done["refused"] += 1
            return
        self._check(branch, before, dry, merge(behaviors=behaviors))
        present = {content.id for content in before.values() if content}
        # Contents that the branch has already are not compared: theirs alone can be large.
        added = same_files(self.state(branch)) - allowed
        assert all(pair <= present for pair in added)
        self.done["merges" if is_merge else "transplants"] += 1
        if is_merge:
            assert not self.catalog.repository.merge(branch, source, MergeOptions()).applied

    def cross(self) -> bool:
        """Merges main and x, as they are, into each other. Each keeps its contents in conflict.

        Checks that the next merge asks again about those that differ. Returns whether any do.
        """
        heads = {branch: self.catalog.head(branch) for branch in BRANCHES[:2]}
        sides = (("main", "x"), ("x", "main"))
        decided: set[str] = set()
        for branch, source in sides:
            decided |= self._merge_for_ours(f"@{heads[source]}", branch)[1]
        before = [self._positions(branch) for branch, _ in sides]
        differ = {id_ for id_ in decided if len({str(at.get(id_)) for at in before}) > 1}
        for (branch, source), at in zip(sides, before, strict=True):
            dry, conflicts = self._merge_for_ours(source, branch, dry_run=True)
            assert bool(conflicts) >= bool(differ)
            changed = {d.key.plain for d in dry.details if d.result != d.target}
            assert not changed & {at[id_][0] for id_ in differ if id_ in at}
            arrived = {d.result.id for d in dry.details if d.result and d.result != d.target}
            assert not arrived & differ
        return bool(differ)

    def _merge_for_ours(
        self, source: str, branch: str, **options: bool
    ) -> tuple[MergeResult, set[str]]:
        """Merges with ours for all conflicts. Also returns the ids of the contents in conflict."""
        behaviors: list[KeyBehavior] = []
        while True:
            try:
                result = self.catalog.merge_contents(source, branch, behaviors=behaviors, **options)
            except MergeConflict as refused:
                assert len(behaviors) < 100
                behaviors += [
                    KeyBehavior(c.key, MergeBehavior.DROP, content_id=c.content_id)
                    for c in refused.conflicts
                    if c.key is not None
                ]
            else:
                return result, {b.content_id for b in behaviors if b.content_id}

    def _positions(self, branch: str) -> dict[str, tuple[str, Content]]:
        state = self.state(branch)
        return {
            content.id: (name, content) for name, content in state.items() if content and content.id
        }

    def _check_symmetry(self, a: str, b: str) -> None:
        """Checks that each of two branches, merged into the other, gives the same contents."""
        results: list[object] = []
        for source, branch in ((a, b), (b, a)):
            after = self.state(branch)
            try:
                dry = self.catalog.merge_contents(source, branch, dry_run=True)
            except MergeConflict as refused:
                if any(conflict.same_file_key for conflict in refused.conflicts):
                    # Only files of contents that are new to ours are compared.
                    return
                results.append("conflict")
                continue
            after |= {d.key.plain: d.result for d in dry.details}
            results.append({name: content for name, content in after.items() if content})
        assert results[0] == results[1]

    def _decided(
        self, branch: str, before: State, merge: Merge
    ) -> tuple[list[KeyBehavior], MergeResult]:
        """Decides conflicts at random until there are none. Returns the dry run."""
        behaviors: list[KeyBehavior] = []
        for _ in range(MOST_ROUNDS):
            try:
                return behaviors, merge(behaviors=behaviors, dry_run=True)
            except MergeConflict as conflict:
                assert self.state(branch) == before
                self.done["conflicts"] += len(conflict.conflicts)
                # A content that was decided can have the metadata file of another one.
                anew = {(c.commit, c.key) for c in conflict.conflicts if c.same_file_key}
                self.done["same files"] += len(anew)
                behaviors = [b for b in behaviors if (b.commit, b.key) not in anew]
                behaviors += self._decisions(conflict.conflicts)
        return behaviors, merge(behaviors=behaviors, dry_run=True)

    def _decisions(self, conflicts: Sequence[Conflict]) -> list[KeyBehavior]:
        sides = [MergeBehavior.FORCE, MergeBehavior.DROP]
        return [
            KeyBehavior(
                c.key,
                MergeBehavior.DROP if c.same_file_key else self.random.choice(sides),
                content_id=c.content_id if c.is_ambiguous or c.commit else None,
                commit=c.commit,
            )
            for c in conflicts
            if c.key is not None
        ]

    def _check(self, branch: str, before: State, dry: MergeResult, done: MergeResult) -> None:
        after = self.state(branch)
        ids = [content.id for content in after.values() if content]
        assert len(ids) == len(set(ids))
        changed = {k for k in {*before, *after} if before.get(k) != after.get(k)}
        assert {d.key.plain for d in done.details if d.result != d.target} == changed
        assert all(after.get(d.key.plain) == d.result for d in done.details)
        assert rows(dry) == rows(done)

    def state(self, branch: str) -> State:
        entries = self.catalog.repository.entries(branch, content=True)
        return {entry.key.plain: entry.content for entry in entries}


def same_files(state: State) -> set[frozenset[str | None]]:
    """Returns the pairs of contents with one metadata file."""
    tables = [content for content in state.values() if isinstance(content, IcebergTable)]
    return {
        frozenset({first.id, second.id})
        for first, second in itertools.combinations(tables, 2)
        if first.metadata_location == second.metadata_location
    }


def rows(result: MergeResult) -> list[tuple[object, ...]]:
    return [(d.key, d.behavior, d.target, d.result) for d in result.details]


@pytest.mark.parametrize("seeds", [range(n, COUNT, 8) for n in range(8)], ids=str)
def test_merges_and_transplants_keep_every_content_once(seeds: range) -> None:
    done: Counter[str] = Counter()
    for seed in seeds:
        with create("memory:") as repository:
            history = History(Catalog(repository), seed)
            for _ in range(30):
                history.step()
            assert list(repository.check()) == []
            done += history.done
    # A merge that always refuses would pass every other check.
    assert done["merges"] > 3 * len(seeds)
    assert done["transplants"] > 2 * len(seeds)
    assert done["conflicts"] > len(seeds) / 2
    assert done["refused"] < len(seeds) / 2
    assert done["restorations"] > len(seeds) / 4


@pytest.mark.parametrize("seeds", [range(n, COUNT, 8) for n in range(8)], ids=str)
def test_opposite_decisions_are_conflicts_again(seeds: range) -> None:
    """Two branches merge each other's state, and each keeps its own contents in conflict."""
    asked = 0
    for seed in seeds:
        with create("memory:") as repository:
            history = History(Catalog(repository), seed)
            for _ in range(12):
                history.commit(history.random.choice(BRANCHES[:2]))
            for _ in range(history.random.randint(1, 3)):
                asked += history.cross()
            assert list(repository.check()) == []
    assert asked > len(seeds) / 4
