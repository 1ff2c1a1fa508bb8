"""Protected branches: the repository refuses changes of every caller."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nessie_cli import connect
from nessie_cli.errors import InvalidInput, NotAllowed, WriteRefused
from nessie_cli.model import CommitMeta, ContentKey, MergeBehavior, Namespace, Put, ReferenceType
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import (
    AssignReference,
    Change,
    Commit,
    DeleteReference,
    Merge,
    MergeOptions,
    RenameReference,
    Transplant,
)
from tests.repository.vocabulary import Catalog, behave, key, put, table


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
    [
        ("protect.main", "no-deletion"),
        ("protect.main", " , "),
        ("protect.", "no-delete"),
        (f"protect.{'*a' * 17}", "no-delete"),
        (f"protect.{'[a]' * 17}", "no-delete"),
        (f"protect.{'a' * 1025}", "no-delete"),
    ],
)
def test_an_invalid_protection_is_refused(repository: Repository, name: str, value: str) -> None:
    with pytest.raises(InvalidInput, match="protect"):
        repository.put_setting(name, value)


def test_the_longest_pattern_protects(repository: Repository) -> None:
    repository.put_setting(f"protect.{'*' * 16}main{'?' * 1004}", "no-delete")
    repository.put_setting(f"protect.{'*' * 16}", "no-delete")
    repository.create_reference(ReferenceType.BRANCH, "dev", repository.reference("main").hash)
    with pytest.raises(WriteRefused, match="protected"):
        repository.delete_reference("dev", expected_hash=repository.reference("dev").hash)


def in_conflict(repository: Repository) -> None:
    """Changes the table `t` on `main` and on `dev`, in different ways."""
    catalog = Catalog(repository)
    catalog.write("main", {"t": 1})
    catalog.branch("dev")
    catalog.write("dev", {"t": 2, "only_there": 2})
    catalog.write("main", {"t": 3})


def changes_of_main(repository: Repository) -> dict[str, Change]:
    """Every change of a branch but a plain merge; `dev` has a conflict with `main`."""
    at, dev = head(repository, "main"), head(repository, "dev")
    before = repository.resolve("main~1").hash
    theirs = repository.content("main", key("t"))
    resolution = behave("t", "NORMAL", theirs, table(9, theirs.id))
    operations = [put("u", table(4))]
    return {
        "commit": Commit("main", operations, CommitMeta("u")),
        "commit on -": Commit("-", operations, CommitMeta("u")),
        "dry run of a commit": Commit("main", operations, CommitMeta("u"), dry_run=True),
        "conflicting commit": Commit(
            "main", [put("t", table(5, theirs.id))], CommitMeta("t"), before
        ),
        "transplant": Transplant("main", [dev]),
        "transplant of one side": Transplant(
            "main", [dev], MergeOptions(default_behavior=MergeBehavior.FORCE)
        ),
        "merge of a resolution": Merge("main", "dev", MergeOptions(behaviors=[resolution])),
        "dry run of a resolution": Merge(
            "main", "dev", MergeOptions(behaviors=[resolution], dry_run=True)
        ),
        "assign": AssignReference("main", dev, at),
        "assign to a descendant": AssignReference("main", at, at),
    }


def test_a_merge_only_branch_refuses_every_change_but_a_merge(repository: Repository) -> None:
    in_conflict(repository)
    repository.put_setting("protect.main", "merge-only")
    at = head(repository, "main")
    for name, change in changes_of_main(repository).items():
        with pytest.raises(NotAllowed, match=r"protect\.main = merge-only"):
            repository.draft(change).answer()
        with pytest.raises(NotAllowed):
            repository.submit(change)
        assert head(repository, "main") == at, name
    repository.put_setting("protect.main", "no-delete")
    for name in ("commit", "dry run of a commit", "merge of a resolution"):
        assert repository.draft(changes_of_main(repository)[name]).answer()


@pytest.mark.parametrize("side", ["FORCE", "DROP"])
def test_a_merge_only_branch_accepts_a_choice_of_one_side(
    repository: Repository, side: str
) -> None:
    in_conflict(repository)
    repository.put_setting("protect.main", "merge-only")
    assert repository.merge("main", "dev", MergeOptions(behaviors=[behave("t", side)])).applied


def test_a_merge_only_branch_accepts_what_the_merge_combines(repository: Repository) -> None:
    """A rename on one side and a change on the other are one content afterwards."""
    catalog = Catalog(repository)
    catalog.write("main", {"t": 1})
    content = repository.content("main", key("t"))
    catalog.branch("dev")
    catalog.write("dev", {"t": 2})
    catalog.rename("main", "t", "renamed")
    repository.put_setting("protect.main", "merge-only")
    assert repository.merge("main", "dev", MergeOptions()).applied
    assert repository.content("main", key("renamed")) == table(2, content.id)


@pytest.mark.parametrize("rule", ["no-delete", "no-rewind", "merge-only"])
def test_no_rule_forbids_a_new_reference(repository: Repository, rule: str) -> None:
    repository.put_setting("protect.new*", rule)
    at = head(repository, "main")
    repository.create_reference(ReferenceType.BRANCH, "new1", at)
    repository.rename_reference("release/1", "new2", expected_hash=head(repository, "release/1"))
    assert head(repository, "new1") == at


@pytest.mark.parametrize("rule", ["no-rewind", "merge-only"])
def test_deleting_and_renaming_need_a_rule_of_their_own(repository: Repository, rule: str) -> None:
    repository.put_setting("protect.release/1", rule)
    at = head(repository, "release/1")
    for change in (
        RenameReference("release/1", "other", at),
        DeleteReference("release/1", at),
    ):
        assert not repository.draft(change).refused
    repository.put_setting("protect.release/1", f"{rule},no-delete")
    for change, reason in (
        (RenameReference("release/1", "other", at), "it cannot be renamed"),
        (DeleteReference("release/1", at), "it cannot be deleted"),
    ):
        with pytest.raises(NotAllowed, match=reason):
            repository.draft(change).answer()


def test_a_tag_is_protected_like_a_branch(repository: Repository) -> None:
    before = head(repository, "main")
    repository.create_reference(ReferenceType.TAG, "v1", before)
    repository.put_setting("protect.v*", "merge-only")
    after = commit(repository, "main", "b")
    with pytest.raises(NotAllowed, match="tag 'v1'"):
        repository.assign_reference("v1", after, expected_hash=before)
