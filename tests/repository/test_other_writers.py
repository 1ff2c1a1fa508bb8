"""Whatever other processes write, no answer is older than the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from nessie_cli import connect, create
from nessie_cli.errors import NotAllowed, ReferenceConflict, ReferenceNotFound
from nessie_cli.model import ReferenceType
from nessie_cli.repository.base import Repository
from tests.repository.plans import plan
from tests.repository.vocabulary import Catalog, put, table
from tests.store.postgres_server import new_url

Two = tuple[Repository, Catalog]


@pytest.fixture
def two() -> Iterator[Two]:
    """A process that has just written to main, and another one."""
    with new_url() as url, create(url) as first, connect(url) as second:
        for number in range(3):
            ask(first, lambda c, n=number: c.commit("main", put(f"k{n}", table(n))))
        yield first, Catalog(second)


def ask(repository: Repository, *calls: Callable[[Catalog], Any], name: str = "main") -> list[Any]:
    """Handles requests for one reference as a server does; returns their results or errors."""
    return list(repository.commit_all([plan(call) for call in calls], prefetch=[(name, "")]))


def test_a_read_sees_writes_of_another_process(two: Two) -> None:
    first, second = two
    head = second.commit("main", put("theirs", table(1)))
    assert ask(first, lambda c: c.head("main")) == [head]


def test_a_read_after_a_commit_sees_writes_of_both_processes(two: Two) -> None:
    first, second = two
    theirs = second.commit("main", put("theirs", table(1)))
    ours, head = ask(
        first, lambda c: c.commit("main", put("ours", table(1))), lambda c: c.head("main")
    )
    assert head == ours
    assert second.hashes()[:2] == [ours, theirs]


def test_a_conflict_shows_the_current_content(two: Two) -> None:
    first, second = two
    expected = second.head("main")
    second.commit("main", put("k", table(1)))
    [refused] = ask(first, lambda c: c.commit("main", put("k", table(2)), at=expected))
    assert isinstance(refused, ReferenceConflict)


def test_an_expected_hash_may_come_from_another_process(two: Two) -> None:
    first, second = two
    theirs = second.commit("main", put("theirs", table(1)))
    [ours] = ask(first, lambda c: c.commit("main", put("o", table(2)), at=theirs))
    assert second.hashes()[:2] == [ours, theirs]


def test_a_branch_that_another_process_has_deleted_is_not_found(two: Two) -> None:
    first, second = two
    second.branch("dev")
    ask(first, lambda c: c.commit("dev", put("k", table(1))), name="dev")
    second.repository.delete_reference("dev", expected_hash=second.head("dev"))
    for _ in range(2):
        [refused] = ask(first, lambda c: c.commit("dev", put("l", table(1))), name="dev")
        assert isinstance(refused, ReferenceNotFound)


def test_a_recreated_branch_is_the_new_one(two: Two) -> None:
    first, second = two
    second.branch("dev")
    ask(first, lambda c: c.commit("dev", put("k", table(1))), name="dev")
    second.repository.delete_reference("dev", expected_hash=second.head("dev"))
    second.repository.create_reference(ReferenceType.BRANCH, "dev", second.head("main"))
    [head] = ask(first, lambda c: c.commit("dev", put("l", table(1))), name="dev")
    assert second.hashes("dev")[:2] == [head, second.head("main")]


def test_a_protection_set_by_another_process_is_respected(two: Two) -> None:
    first, second = two
    second.repository.put_setting("protect.main", "merge-only")
    [refused] = ask(first, lambda c: c.commit("main", put("k", table(1))))
    assert isinstance(refused, NotAllowed)
    second.repository.put_setting("protect.main", None)
    [head] = ask(first, lambda c: c.commit("main", put("l", table(1))))
    assert head == second.head("main")


def test_a_request_recorded_by_another_process_is_not_repeated(two: Two) -> None:
    first, second = two
    operations = [put("once", table(1))]
    done = second.commit("main", *operations, request_id="r")
    again = first.commit_all(
        [plan(lambda c: c.commit("main", *operations, request_id="r"))], prefetch=[("main", "r")]
    )
    assert again == [done]
    assert second.head("main") == done
