"""Transplants of many or large commits, which are in memory until all are stored."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nessie_cli import connect
from nessie_cli.errors import InvalidInput
from nessie_cli.model import CommitMeta, ContentKey, IcebergTable, Put, ReferenceType
from nessie_cli.repository import transplants
from nessie_cli.repository.base import Repository


@pytest.fixture
def repository() -> Iterator[Repository]:
    with connect("memory:") as repository:
        assert isinstance(repository, Repository)
        yield repository


def commits(repository: Repository, message: str, changes: int) -> list[str]:
    """Makes three commits on a new branch, and returns their hashes."""
    start = repository.reference("main").hash
    repository.create_reference(ReferenceType.BRANCH, "dev", start)
    return [
        repository.commit(
            "dev",
            [
                Put(ContentKey((f"t{number}-{key}",)), IcebergTable(metadata_location="s3://a/b"))
                for key in range(changes)
            ],
            CommitMeta(message),
        ).reference.hash
        for number in range(3)
    ]


@pytest.mark.parametrize(("limit", "most"), [("MOST_TEXT", 25_000), ("MOST_CHANGES", 5)])
def test_several_commits_have_limits(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    copied = commits(repository, "m" * 10_000, 2)
    monkeypatch.setattr(transplants, limit, most)
    head = repository.reference("main").hash
    with pytest.raises(InvalidInput, match="transplant fewer commits at once"):
        repository.transplant("main", copied)
    assert repository.reference("main").hash == head
    # One commit is as large as a commit may be.
    monkeypatch.setattr(transplants, limit, 1)
    for commit in copied:
        assert repository.transplant("main", [commit]).applied
