"""Drafts: the effects of a change, computed before any of them is visible."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest

from nessie_cli import connect
from nessie_cli.errors import AlreadyExists, MergeConflict, NotAllowed, ReferenceConflict
from nessie_cli.model import (
    CommitMeta,
    ConflictType,
    ContentKey,
    Delete,
    KeyBehavior,
    MergeBehavior,
    Namespace,
    Put,
    ReferenceType,
)
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import (
    AssignReference,
    Commit,
    CreateReference,
    DeleteReference,
    Merge,
    MergeOptions,
    RenameReference,
    Transplant,
)
from nessie_cli.repository.draft import ChangeSubmission, Draft, LargeMerge
from tests.repository.vocabulary import Catalog, table

A, B, C = (ContentKey((name,)) for name in "abc")
TABLE, NAMESPACE = "ICEBERG_TABLE", "NAMESPACE"
META = CommitMeta("m")


@pytest.fixture
def repository() -> Iterator[Repository]:
    with connect("memory:", who="owner") as opened:
        opened.commit(
            "main", [Put(A, table(1)), Put(B, Namespace(elements=("b",)))], CommitMeta("first")
        )
        yield opened


def newer(repository: Repository, branch: str = "main") -> Put:
    return Put(A, table(2, repository.content(branch, A).id))


def branched(repository: Repository) -> None:
    repository.create_reference(ReferenceType.BRANCH, "dev", repository.reference("main").hash)
    repository.commit("dev", [newer(repository, "dev")], CommitMeta("a"))
    repository.commit("dev", [Delete(B), Put(C, table(3))], CommitMeta("b and c"))


def changed(draft: Draft[object]) -> list[tuple[ContentKey, str | None, str | None, bool]]:
    return sorted(
        (key.key, key.type_before, key.type_after, key.same_content) for key in draft.key_changes()
    )


def test_a_draft_changes_nothing(repository: Repository) -> None:
    branched(repository)
    before = list(repository.reflog()), [reference.hash for reference in repository.references()]
    head = repository.reference("main").hash
    for change in (
        Commit("main", [newer(repository)], META),
        Merge("main", "dev"),
        Transplant(
            "main",
            [repository.reference("dev").hash],
            MergeOptions(behaviors=[KeyBehavior(B, MergeBehavior.DROP)]),
        ),
        CreateReference(ReferenceType.TAG, "t", head),
        AssignReference("dev", head, repository.reference("dev").hash),
        RenameReference("dev", "new", repository.reference("dev").hash),
        DeleteReference("dev", repository.reference("dev").hash),
    ):
        draft = repository.draft(change)
        assert draft.write is not None
        assert draft.exact
    assert (
        list(repository.reflog()),
        [reference.hash for reference in repository.references()],
    ) == before


def test_the_draft_of_a_commit_has_contents_before_and_after(
    repository: Repository,
) -> None:
    draft = repository.draft(Commit("main", [newer(repository), Delete(B), Put(C, table(3))], META))
    assert changed(draft) == [
        (A, TABLE, TABLE, True),
        (B, NAMESPACE, None, False),
        (C, None, TABLE, False),
    ]
    contents = {key.key: (key.before, key.after) for key in draft.key_changes()}
    old = repository.content("main", A)
    assert contents[A] == (old, table(2, old.id))
    assert contents[B][1] is contents[C][0] is None
    assert draft.references[0].before == repository.reference("main").hash
    assert draft.parents == (repository.reference("main").hash,)


def test_a_draft_shows_a_replaced_content(repository: Repository) -> None:
    draft = repository.draft(Commit("main", [Delete(A), Put(A, table(9))], META))
    assert changed(draft) == [(A, TABLE, TABLE, False)]


def test_the_view_of_a_draft_is_the_future_repository(repository: Repository) -> None:
    draft = repository.draft(Commit("main", [Delete(B), Put(C, table(3))], META))
    assert set(draft.view.contents("main", [A, B, C])) == {A, C}
    assert draft.view.reference("main").hash == draft.head == draft.answer().reference.hash
    assert draft.view.commit_at("main").meta.message == "m"
    assert next(draft.view.reflog("main")).after == draft.head
    assert set(repository.contents("main", [A, B, C])) == {A, B}


def test_a_draft_with_conflicts_still_lists_its_keys(repository: Repository) -> None:
    draft = repository.draft(
        Commit(
            "main", [Put(A, table(3)), Put(C, table(4))], META, repository.resolve("main~1").hash
        )
    )
    assert draft.refused
    assert draft.write is None
    assert [(conflict.key, conflict.type) for conflict in draft.conflicts] == [
        (A, ConflictType.KEY_EXISTS)
    ]
    assert {key for key, *_ in changed(draft)} == {A, C}
    with pytest.raises(ReferenceConflict):
        draft.answer()


def test_the_draft_of_a_merge_lists_changes_and_reachable_commits(
    repository: Repository,
) -> None:
    branched(repository)
    draft = repository.draft(
        Merge("main", "dev", MergeOptions(behaviors=[KeyBehavior(C, MergeBehavior.DROP)]))
    )
    assert changed(draft) == [(A, TABLE, TABLE, True), (B, NAMESPACE, None, False)]
    heads = repository.reference("main").hash, repository.reference("dev").hash
    assert draft.parents == heads
    assert draft.sources == heads[1:]
    # All changes of the source's commits, whether the merge takes them or not.
    reached = [change for hash_ in draft.reached_commits() for change in draft.changes_of(hash_)]
    assert sorted(change[:2] for change in reached) == [(A, TABLE), (B, None), (C, TABLE)]
    ids = {key: repository.content(heads[0], key).id for key in (A, B)}
    assert {c.key: str(UUID(bytes=c.content_id)) for c in reached if c.key in ids} == ids
    assert list(draft.reached_commits([heads[1]])) == []


def test_a_merge_in_conflict_has_a_draft(repository: Repository) -> None:
    branched(repository)
    repository.commit(
        "main", [Put(A, table(7, repository.content("main", A).id))], CommitMeta("other")
    )
    draft = repository.draft(Merge("main", "dev"))
    assert isinstance(draft.refusal, MergeConflict)
    assert [conflict.key for conflict in draft.conflicts] == [A]
    assert {key for key, *_ in changed(draft)} == {A, B, C}


def test_the_draft_of_a_transplant_lists_the_keys_of_all_commits(repository: Repository) -> None:
    branched(repository)
    hashes = [repository.resolve(spec).hash for spec in ("dev~1", "dev")]
    draft = repository.draft(Transplant("main", hashes))
    assert [key for key, *_ in changed(draft)] == [A, B, C]
    assert draft.sources == ()


def test_a_protected_branch_refuses_the_draft(repository: Repository) -> None:
    repository.put_setting("protect.main", "merge-only")
    draft = repository.draft(Commit("main", [Put(C, table(3))], META))
    assert isinstance(draft.refusal, NotAllowed)
    assert draft.write is None


def test_a_used_name_refuses_the_draft(repository: Repository) -> None:
    draft = repository.draft(
        CreateReference(ReferenceType.TAG, "main", repository.reference("main").hash)
    )
    assert isinstance(draft.refusal, AlreadyExists)


def test_a_repository_can_be_opened_for_another_committer(
    repository: Repository,
) -> None:
    repository.as_caller("ada").commit("main", [Put(C, table(3))], CommitMeta("c"))
    assert repository.commit_at("main").meta.committer == "ada"
    assert next(repository.reflog("main")).who == "ada"
    repository.commit("main", [Delete(C)], CommitMeta("d"))
    assert repository.commit_at("main").meta.committer == "owner"


def test_a_draft_of_a_committed_request_is_its_recorded_answer(repository: Repository) -> None:
    change = Commit("main", [Put(C, table(3))], META)
    answer = repository.submit(change, request_id="r")
    Catalog(repository).write("main", {"later": 1})
    seen: list[object] = []
    assert repository.submit(change, request_id="r", check=seen.append) == answer
    assert seen == []


@pytest.mark.parametrize("per_key", [False, True], ids=["per content", "per key"])
def test_a_submission_limits_the_changes_of_a_merge(repository: Repository, per_key: bool) -> None:
    branched(repository)
    for number in range(3):
        repository.commit("dev", [Put(ContentKey((f"new{number}",)), table(50 + number))], META)
    head = repository.reference("dev").hash
    options = MergeOptions(per_key=per_key)
    count = len(list(repository.diff("main", "dev")))
    commits = tuple(entry.hash for entry in repository.log("dev"))[:3][::-1]
    for change, changes in (
        (Merge("main", f"dev@{head}", options), count),
        (Transplant("main", commits, options), 3),
    ):
        assert repository.draft(change, ChangeSubmission(most_changes=changes)).write is not None
        with pytest.raises(LargeMerge):
            repository.draft(change, ChangeSubmission(most_changes=changes - 1))


@pytest.mark.parametrize("per_key", [True, False])
def test_a_submission_limits_the_search_for_the_merge_base(
    repository: Repository, per_key: bool
) -> None:
    """The source has a merge, so the commits of the target are visited."""
    branched(repository)
    for name in ("old", "side"):
        repository.create_reference(ReferenceType.BRANCH, name, repository.reference("main").hash)
        repository.commit(name, [Put(ContentKey((name,)), table(60 + len(name)))], META)
    repository.merge("old", "side")
    for number in range(100):
        repository.commit("main", [Put(ContentKey((f"new{number}",)), table(70 + number))], META)
    change = Merge("main", f"old@{repository.reference('old').hash}", MergeOptions(per_key=per_key))
    assert repository.draft(change, ChangeSubmission(most_changes=30)).write is not None
    with pytest.raises(LargeMerge):
        repository.draft(change, ChangeSubmission(most_changes=20))


@pytest.mark.parametrize("then", [Delete(C), None])
def test_a_chosen_content_id_is_for_a_key_that_was_not_changed_meanwhile(
    repository: Repository, then: Delete | None
) -> None:
    """The key had a content with this id and is free again, or another key was changed."""
    before = repository.reference("main").hash
    chosen = str(UUID(int=1))
    if then is None:
        repository.commit("main", [newer(repository)], META)
    else:
        repository.commit("main", [Put(C, table(3))], META)
        repository.commit("main", [then], META)
    submission = ChangeSubmission()
    submission.choose_content_ids({C: chosen})
    draft = repository.draft(Commit("main", [Put(C, table(4))], META, before), submission)
    if then is None:
        assert draft.answer().added[C] == chosen
    else:
        with pytest.raises(ReferenceConflict) as refused:
            draft.answer()
        assert [conflict.key for conflict in refused.value.conflicts] == [C]
