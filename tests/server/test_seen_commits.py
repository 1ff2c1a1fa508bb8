"""Through which references a caller sees a commit: the search is short."""

from __future__ import annotations

import time
from collections.abc import Iterator
from uuid import uuid4

import pytest

from nessie_cli import connect
from nessie_cli.model import CommitMeta, ContentKey, IcebergTable, Put, ReferenceType
from nessie_cli.repository.base import Repository
from nessie_cli.server.auth import rights
from nessie_cli.server.auth.identity import Caller
from nessie_cli.server.auth.rights import DETACHED, Rights, Visibility
from nessie_cli.server.auth.rules import read_rules

MERGES, BRANCHES = 100, 200
MOST_SECONDS = 0.2
"""Seconds of processor time. Testing one branch after the other takes three times as long."""
RULES = read_rules(b"""r = "ref != 'DETACHED' && ref != 'hidden'" """)


def commit(repository: Repository, branch: str) -> str:
    key = ContentKey((uuid4().hex,))
    put = Put(key, IcebergTable(metadata_location=uuid4().hex))
    return repository.commit(branch, [put], CommitMeta("m")).reference.hash


def branch(repository: Repository, name: str, at: str) -> None:
    repository.create_reference(ReferenceType.BRANCH, name, at)


@pytest.fixture(scope="module")
def repository() -> Iterator[Repository]:
    """`merged` was merged into `main` often and deleted. `old` and `hidden` have older commits."""
    with connect("memory:") as opened:
        base = commit(opened, "main")
        for name in ("merged", "old", "hidden"):
            branch(opened, name, base)
        for _ in range(MERGES):
            commit(opened, "merged")
            opened.merge("main", "merged")
        opened.delete_reference("merged", expected_hash=opened.reference("merged").hash)
        for number in range(BRANCHES):
            branch(opened, f"b{number:03}", opened.reference("main").hash)
            commit(opened, f"b{number:03}")
        yield opened


def sight(repository: Repository) -> Visibility:
    return Visibility(repository, Rights(Caller("ann"), RULES, 2))


def test_a_commit_is_searched_on_all_references_together(repository: Repository) -> None:
    old, hidden = commit(repository, "old"), commit(repository, "hidden")
    merged = repository.commit_at("main").meta.parents[1]
    start = time.thread_time()
    assert sight(repository).through(hidden) == DETACHED
    assert sight(repository).through(old) == "old"
    assert sight(repository).through(merged) == "b000"
    assert len(list(sight(repository).ways(merged))) == BRANCHES + 1
    assert time.thread_time() - start < MOST_SECONDS


def test_a_search_ends(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then a commit counts as being on none of the references that the request does not name."""
    head = repository.reference("main").hash
    monkeypatch.setattr(rights, "SEARCH_SECONDS", 0)
    ended = sight(repository)
    assert ended.through(head) == DETACHED
    named = sight(repository)
    named.name(repository.reference("main"))
    assert named.through(head) == "main"


def test_the_next_commit_is_often_on_the_same_reference(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = commit(repository, "b001"), commit(repository, "b001")
    other = commit(repository, "b002")
    searching = sight(repository)
    assert searching.through(first) == "b001"
    monkeypatch.setattr(rights, "SEARCH_SECONDS", 0)
    assert searching.through(second) == "b001"
    assert searching.through(other) == DETACHED
