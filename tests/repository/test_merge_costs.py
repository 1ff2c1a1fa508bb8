"""The cost of a merge grows with its conflicts and decisions, not with their square."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress

import pytest

from nessie_cli.errors import MergeConflict
from nessie_cli.model import CommitMeta, KeyBehavior, MergeBehavior
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import MergeOptions
from nessie_cli.repository.opening import create
from tests.repository.vocabulary import Catalog, key, put, table


def calls_of(work: Callable[[], object]) -> int:
    """Returns how many functions are called, and generators resumed."""
    number = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal number
        number += event == "call"

    sys.setprofile(count)
    try:
        with suppress(MergeConflict):
            work()
    finally:
        sys.setprofile(None)
    return number


def in_conflict(repository: Repository, tables: int) -> list[str]:
    """Creates a branch `dev` that is in conflict with `main` about so many tables."""
    catalog = Catalog(repository)
    names = [f"t{number}" for number in range(tables)]
    repository.commit("main", [put(name, table(0)) for name in names], CommitMeta("first"))
    catalog.branch("dev")
    contents = repository.contents("main", [key(name) for name in names])
    ids = [contents[key(name)].id or "" for name in names]
    for version, branch in enumerate(("main", "dev"), 1):
        operations = [put(name, table(version, id_)) for name, id_ in zip(names, ids, strict=True)]
        repository.commit(branch, operations, CommitMeta("again"))
    return ids


@pytest.mark.parametrize("are_decided", [False, True])
def test_the_cost_of_a_merge_is_linear_in_its_conflicts(are_decided: bool) -> None:
    calls = []
    for tables in (50, 200):
        with create("memory:") as repository:
            ids = in_conflict(repository, tables)
            behaviors = [
                KeyBehavior(key(f"t{number}"), MergeBehavior.DROP, content_id=id_)
                for number, id_ in enumerate(ids if are_decided else ())
            ]
            options = MergeOptions(behaviors=behaviors, dry_run=True)
            calls.append(calls_of(lambda: repository.merge("main", "dev", options)))  # noqa: B023
    assert calls[1] < 4.5 * calls[0], calls
