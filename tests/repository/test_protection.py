"""Protected branches: the repository refuses changes of every caller."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nessie_cli import connect
from nessie_cli.errors import InvalidInput, NotAllowed
from nessie_cli.model import CommitMeta, ContentKey, Namespace, Put, ReferenceType
from nessie_cli.repository.base import Repository


@pytest.fixture
def repository() -> Iterator[Repository]:
    with connect("memory:") as opened:
        commit(opened, "main", "a")
        opened.create_reference(ReferenceType.BRANCH, "release/1", opened.resolve("main").hash)
        yield opened


def commit(repository: Repository, branch: str, name: str) -> str:
    return repository.commit(
        branch, [Put(ContentKey((name,)), Namespace(elements=(name,)))], CommitMeta(f"add {name}")
    ).reference.hash


def head(repository: Repository, name: str) -> str:
    return repository.reference(name).hash


def test_a_protected_branch_cannot_be_deleted_or_renamed(repository: Repository) -> None:
    repository.put_setting("protect.release/*", "no-delete")
    at = head(repository, "release/1")
    with pytest.raises(NotAllowed, match=r"release/1.*protect\.release/\*"):
        repository.delete_reference("release/1", expected_hash=at)
    with pytest.raises(NotAllowed):
        repository.rename_reference("release/1", "other", expected_hash=at)
    assert head(repository, "release/1") == at
    repository.put_setting("protect.release/*", None)
    repository.delete_reference("release/1", expected_hash=at)


def test_a_protected_branch_can_only_be_assigned_to_descendants(repository: Repository) -> None:
    repository.put_setting("protect.release/1", "no-rewind, no-delete")
    before = head(repository, "release/1")
    after = commit(repository, "main", "b")
    repository.assign_reference("release/1", after, expected_hash=before)
    with pytest.raises(NotAllowed, match="descendants"):
        repository.assign_reference("release/1", before, expected_hash=after)
    assert head(repository, "release/1") == after


def test_a_merge_only_branch_accepts_only_merges(repository: Repository) -> None:
    repository.put_setting("protect.main", "merge-only")
    source = commit(repository, "release/1", "b")
    at = head(repository, "main")
    with pytest.raises(NotAllowed):
        commit(repository, "main", "c")
    with pytest.raises(NotAllowed):
        repository.transplant("main", [source])
    with pytest.raises(NotAllowed):
        repository.assign_reference("main", source, expected_hash=at)
    assert head(repository, "main") == at
    assert repository.merge("main", "release/1").applied


@pytest.mark.parametrize(
    ("name", "value"),
    [("protect.main", "no-deletion"), ("protect.main", " , "), ("protect.", "no-delete")],
)
def test_an_invalid_protection_is_refused(repository: Repository, name: str, value: str) -> None:
    with pytest.raises(InvalidInput, match="protect"):
        repository.put_setting(name, value)
