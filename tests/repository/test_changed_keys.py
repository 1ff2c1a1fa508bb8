"""The changed keys of a commit equal its difference to its parent, on random histories with
renames and merges."""

from __future__ import annotations

from contextlib import suppress
from random import Random

from nessie_cli.errors import ReferenceConflict
from nessie_cli.inspection.changes import ContentChange, changes_of, outlined
from nessie_cli.model import LogEntry, MergeBehavior, Operation
from nessie_cli.repository.base import Repository
from nessie_cli.repository.local import LocalRepository
from nessie_cli.repository.opening import create
from tests.repository.vocabulary import NS, Catalog, delete, number_of, put, table

BRANCHES = ("main", "dev")
KEYS = ("a", "b", "c", "ns.a", "ns.b")


def check(repository: LocalRepository, entry: LogEntry, seed: int) -> set[str]:
    """Compares both; returns the letters of the changes."""
    changes = changes_of(repository.diff(entry.parent, entry.hash))
    found = repository.changed_keys(entry)
    assert outlined(found) == [
        ContentChange(kind, key, None, None, old_key) for kind, key, _, _, old_key, _ in changes
    ], f"seed {seed}"
    assert Repository.changed_keys(repository, entry) == found, (
        f"seed {seed}: what a repository without a faster way answers"
    )
    return {change.kind.value for change in changes} or {""}


def some_operations(random: Random, catalog: Catalog, branch: str) -> list[Operation]:
    """Returns operations on one to three keys: an update (possibly without a change), a
    creation, a deletion, a recreation, or a rename."""
    state = {
        name: catalog.content(branch, name)
        for name, number in catalog.numbers(branch).items()
        if number != NS
    }
    operations: list[Operation] = []
    free = [name for name in KEYS if name not in state]
    for name in random.sample(KEYS, random.choice([1, 1, 2, 3])):
        old = state.get(name)
        if old is None:
            if name in free:
                free.remove(name)
                operations.append(put(name, table(random.randrange(3))))
            continue
        number = number_of(old)
        assert isinstance(number, int)
        way = random.choice(["same", "update", "delete", "again", "rename"])
        if way in ("same", "update"):
            operations.append(put(name, table(number + (way == "update"), old.id)))
            continue
        operations.append(delete(name))
        if way == "again":
            operations.append(put(name, table(number)))
        elif way == "rename" and free:
            operations.append(put(free.pop(), table(random.choice([number, 7]), old.id)))
    return operations


def letters(seed: int) -> set[str]:
    """Compares all commits of a history; returns the letters of their changes."""
    random = Random(seed)
    with create("memory:") as repository:
        assert isinstance(repository, LocalRepository)
        catalog = Catalog(repository)
        catalog.write("main", {"ns": NS, **{name: number for number, name in enumerate(KEYS)}})
        catalog.branch("dev")
        for number in range(40):
            branch, other = random.sample(BRANCHES, 2)
            # If a namespace prevents a step, the next random one is tried.
            with suppress(ReferenceConflict):
                if number % 4 == 3:
                    catalog.merge(other, branch, default_behavior=MergeBehavior.FORCE)
                elif operations := some_operations(random, catalog, branch):
                    catalog.commit(branch, *operations)
        commits = [entry for branch in BRANCHES for entry in catalog.log(branch, all_parents=True)]
        return set().union(*(check(repository, entry, seed) for entry in commits))


def test_the_changed_keys_of_a_commit_equal_its_difference_to_its_parent() -> None:
    assert set().union(*map(letters, range(4))) == {"A", "M", "D", "R", ""}
