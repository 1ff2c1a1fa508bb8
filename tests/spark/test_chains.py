"""Splitting the histories of many references: random forests against a plain walk."""

from __future__ import annotations

import random

import pytest

from nessie_cli import connect
from nessie_cli.model import NO_ANCESTOR, MergeBehavior, Reference
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.spark.chains import chains, segments
from tests.repository.vocabulary import Catalog


def forest(repository: Repository, chance: random.Random) -> list[Reference]:
    """Makes branches that fork at random commits, with merges."""
    catalog = Catalog(repository)
    names = ["main"]
    for number in range(40):
        branch = chance.choice(names)
        if chance.random() < 0.25:
            name = f"b{number}"
            catalog.branch(
                name, f"{branch}~{chance.randint(1, 3)}" if chance.random() < 0.7 else branch
            )
            names.append(name)
        elif chance.random() < 0.15:
            other = chance.choice(names)
            if (
                other != branch
                and repository.reference(other).hash != repository.reference(branch).hash
            ):
                repository.merge(
                    branch,
                    other,
                    MergeOptions(unrelated=True, default_behavior=MergeBehavior.FORCE),
                )
        else:
            catalog.write(branch, {f"k{number}": number})
    return [repository.reference(name) for name in chance.sample(names, len(names))]


@pytest.mark.parametrize("seed", range(25))
def test_each_commit_belongs_to_the_first_reference_that_has_it(seed: int) -> None:
    chance = random.Random(seed)
    with connect("memory:") as repository:
        heads = forest(repository, chance)
        hidden = [head.hash for head in heads if chance.random() < 0.2]
        out = {entry.hash for hash_ in hidden for entry in repository.log(f"@{hash_}")}
        expected: dict[str, str] = {}
        for head in heads:
            for entry in repository.log(head.name):
                if entry.hash not in out:
                    expected.setdefault(entry.hash, head.name)
        found: dict[str, str | None] = {}
        size = chance.randint(1, 9)
        for chain in chains(repository, heads, hidden):
            read = []
            for segment in segments(repository, chain, size):
                assert 0 < segment.count <= size
                walk = repository.log(f"@{segment.start}")
                read += [next(walk).hash for _ in range(segment.count)]
            assert (len(read), read[0]) == (chain.count, chain.head)
            assert repository.commit_at(f"@{read[-1]}").parent == chain.floor
            assert not found.keys() & set(read), "read twice"
            found |= dict.fromkeys(read, chain.reference)
        assert found == expected


class Counted:
    """A repository that counts its calls."""

    def __init__(self, repository: Repository) -> None:
        self.inner = repository
        self.asked = 0

    def __getattr__(self, name: str) -> object:
        self.asked += 1
        return getattr(self.inner, name)


def test_many_branches_of_one_commit_cost_a_few_requests_each() -> None:
    with connect("memory:") as repository:
        catalog = Catalog(repository)
        catalog.write("main", {"a": 1})
        for number in range(60):
            catalog.branch(f"b{number}")
            catalog.write(f"b{number}", {f"k{number}": number})
            catalog.write(f"b{number}", {f"k{number}": number + 1})
        heads = list(repository.references())
        counted = Counted(repository)
        found = chains(counted, heads)  # type: ignore[arg-type]
        assert sum(chain.count for chain in found) == 1 + 2 * 60
        assert counted.asked <= 4 * len(heads)


def test_an_empty_history_has_no_chain() -> None:
    with connect("memory:") as repository:
        assert list(chains(repository, [repository.reference("main")], [NO_ANCESTOR])) == []
