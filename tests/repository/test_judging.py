"""Writing in somebody's name, with a judge who is asked about what is really written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from nessie_cli.repository.judging import Acting, KeyChange

from nessie_cli import connect
from nessie_cli.errors import NotAllowed, ReferenceConflict
from nessie_cli.model import (
    CommitMeta,
    ContentKey,
    Delete,
    IcebergTable,
    KeyBehavior,
    MergeBehavior,
    Namespace,
    Put,
    ReferenceType,
)
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import MergeOptions

A, B, C = (ContentKey((name,)) for name in "abc")
TABLE, NAMESPACE = "ICEBERG_TABLE", "NAMESPACE"


@pytest.fixture
def repository() -> Iterator[Repository]:
    with connect("memory:", who="owner") as opened:
        opened.commit("main", [Put(A, table(1)), Put(B, Namespace(elements=("b",)))], CommitMeta("first"))
        yield opened


def table(number: int, id_: str | None = None) -> IcebergTable:
    return IcebergTable(metadata_location=f"file:/{number}", snapshot_id=number, schema_id=0, spec_id=0, sort_order_id=0, id=id_)


class Judge:
    def __init__(self, refuse: ContentKey | None = None) -> None:
        self.asked: list[tuple[str, list[KeyChange]]] = []
        self.refuse = refuse

    def __call__(self, branch: str, changes: object) -> None:
        found = list(changes)  # type: ignore[call-overload]
        self.asked.append((branch, found))
        if self.refuse in [change.key for change in found]:
            raise NotAllowed("no")


def acting(repository: Repository, judge: Judge | None = None, who: str = "ada") -> Repository:
    assert isinstance(repository, Acting)
    found: Repository = repository.acting_as(who, judge)  # type: ignore[assignment]
    return found


def newer(repository: Repository, branch: str = "main") -> Put:
    return Put(A, table(2, repository.content(branch, A).id))


def test_commits_bear_the_name_and_the_repository_itself_keeps_its_own(repository: Repository) -> None:
    acting(repository).commit("main", [Put(C, table(3))], CommitMeta("c"))
    assert repository.commit_at("main").meta.committer == "ada"
    assert next(repository.reflog("main")).who == "ada"
    repository.commit("main", [Delete(C)], CommitMeta("d"))
    assert repository.commit_at("main").meta.committer == "owner"


def test_the_judge_of_a_commit_hears_what_was_there_and_what_takes_its_place(repository: Repository) -> None:
    judge = Judge()
    acting(repository, judge).commit("main", [newer(repository), Delete(B), Put(C, table(3))], CommitMeta("m"))
    [(branch, changes)] = judge.asked
    assert branch == "main"
    assert sorted(changes) == [(A, TABLE, TABLE, True), (B, NAMESPACE, None, False), (C, None, TABLE, False)]


def test_another_content_under_one_key_is_not_the_same(repository: Repository) -> None:
    judge = Judge()
    acting(repository, judge).commit("main", [Delete(A), Put(A, table(9))], CommitMeta("again"))
    assert judge.asked == [("main", [(A, TABLE, TABLE, False)])]


def test_what_the_judge_refuses_is_not_written(repository: Repository) -> None:
    head = repository.reference("main").hash
    with pytest.raises(NotAllowed):
        acting(repository, Judge(A)).commit("main", [Put(C, table(3)), newer(repository)], CommitMeta("m"))
    assert repository.reference("main").hash == head


def test_a_conflict_is_told_before_the_judge_is_asked(repository: Repository) -> None:
    judge = Judge(A)
    with pytest.raises(ReferenceConflict):
        acting(repository, judge).commit("main", [Put(A, table(3))], CommitMeta("m"), expected_hash=repository.resolve("main~1").hash)
    assert judge.asked == []


def branched(repository: Repository) -> None:
    repository.create_reference(ReferenceType.BRANCH, "dev", repository.reference("main").hash)
    repository.commit("dev", [newer(repository, "dev")], CommitMeta("a"))
    repository.commit("dev", [Delete(B), Put(C, table(3))], CommitMeta("b and c"))


def test_the_judge_of_a_merge_hears_what_would_be_written(repository: Repository) -> None:
    branched(repository)
    judge = Judge()
    options = MergeOptions(behaviors=[KeyBehavior(C, MergeBehavior.DROP)], dry_run=True)
    acting(repository, judge).merge("main", "dev", options)
    assert [sorted(changes) for _, changes in judge.asked] == [[(A, TABLE, TABLE, True), (B, NAMESPACE, None, False)]]
    head = repository.reference("main").hash
    with pytest.raises(NotAllowed):
        acting(repository, Judge(C)).merge("main", "dev")
    assert repository.reference("main").hash == head
    acting(repository, judge).merge("main", "dev")
    assert repository.commit_at("main").meta.committer == "ada"


def test_the_judge_of_a_merge_is_asked_before_conflicts_are_told(repository: Repository) -> None:
    branched(repository)
    repository.commit("main", [Put(A, table(7, repository.content("main", A).id))], CommitMeta("other"))
    with pytest.raises(NotAllowed):
        acting(repository, Judge(A)).merge("main", "dev")
    with pytest.raises(ReferenceConflict):
        acting(repository, Judge(ContentKey(("z",)))).merge("main", "dev")


def test_the_judge_of_a_transplant_hears_of_each_commit(repository: Repository) -> None:
    branched(repository)
    hashes = [repository.resolve(spec).hash for spec in ("dev~1", "dev")]
    judge = Judge()
    acting(repository, judge).transplant("main", hashes, MergeOptions(dry_run=True))
    assert [sorted(change.key for change in changes) for _, changes in judge.asked] == [[A], [B, C]]
    head = repository.reference("main").hash
    with pytest.raises(NotAllowed):
        acting(repository, Judge(C)).transplant("main", hashes)
    assert repository.reference("main").hash == head
