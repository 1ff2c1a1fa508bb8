"""Transplants: each commit is applied again on top of another branch."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from nessie_cli.errors import (
    CommitNotFound,
    InvalidInput,
    MergeConflict,
    NessieError,
    NotAllowed,
    ReferenceConflict,
    ReferenceNotFound,
)
from nessie_cli.model import CommitMeta, Conflict, ConflictType, MergeBehavior
from tests.repository.vocabulary import (
    EMPTY,
    NOBODY,
    NS,
    Catalog,
    behave,
    delete,
    key,
    put,
    table,
    touched,
    types_and_keys,
    unchanged,
)

FORCE, DROP = MergeBehavior.FORCE, MergeBehavior.DROP
WHEN = datetime(2020, 5, 6, 7, 8, 9, tzinfo=UTC)


def story(catalog: Catalog) -> list[str]:
    """Five commits on `dev` after one on `main`; the tag `t` is at the start of `dev`."""
    catalog.write("main", {"a": 1, "b": 1, "ns": NS})
    catalog.branch("dev")
    catalog.branch("t")
    commits = [
        catalog.write("dev", {"ns.x": 2}, "one"),
        catalog.write("dev", {"a": 2}, "two"),
        catalog.write("dev", {"b": None}, "three"),
    ]
    commits.append(catalog.commit("dev", unchanged("a"), message="four"))
    commits.append(catalog.write("dev", {"y": 2, "z": 2}, "five"))
    return commits


class Transplants:
    def test_commits_are_applied_one_by_one(self, catalog: Catalog) -> None:
        commits = story(catalog)
        start = catalog.write("t", {"other": 1})
        result = catalog.transplant(commits, onto="t")
        assert (result.applied, result.successful, result.common_ancestor) == (True, True, None)
        assert (result.resultant_hash, result.effective_target_hash, result.target_branch) == (
            catalog.head("t"),
            start,
            "t",
        )
        assert touched(result) == dict.fromkeys(["a", "b", "ns.x", "y", "z"], "NORMAL")
        assert catalog.numbers("t") == {"a": 2, "ns": NS, "ns.x": 2, "other": 1, "y": 2, "z": 2}
        log = catalog.log("t", until=start)
        assert [e.meta.message for e in log] == ["five", "three", "two", "one", "write other"]
        assert all(len(e.meta.parents) == 1 for e in log)
        assert not set(commits) & {e.hash for e in log}

    def test_each_commit_applies_only_its_own_changes(self, catalog: Catalog) -> None:
        commits = story(catalog)
        catalog.transplant(commits[1:3], onto="t")
        assert catalog.numbers("t") == {"a": 2, "ns": NS}
        assert [e.meta.message for e in catalog.log("t")[:2]] == ["three", "two"]

    def test_transplanted_contents_keep_their_ids(self, catalog: Catalog) -> None:
        commits = story(catalog)
        catalog.transplant(commits, onto="t")
        for name in ("a", "ns.x", "y"):
            assert catalog.content("t", name) == catalog.content("dev", name)

    def test_renames_are_transplanted(self, catalog: Catalog) -> None:
        story(catalog)
        moved = catalog.rename("dev", "a", "moved")
        catalog.write("t", {"a": 2})
        assert catalog.transplant([moved], onto="t").applied
        assert catalog.numbers("t") == {"b": 1, "moved": 2, "ns": NS}
        assert catalog.id("t", "moved") == catalog.id("dev", "moved")

    def test_a_transplanted_recreation_conflicts_with_the_target(self, catalog: Catalog) -> None:
        story(catalog)
        again = catalog.recreate("dev", "a", table(9))
        with pytest.raises(MergeConflict) as refused:
            catalog.transplant([again], onto="t")
        assert types_and_keys(refused.value.result.conflicts) == [("CONTENT_ID_DIFFERS", "a")]
        assert catalog.transplant([again], onto="t", default_behavior=FORCE).applied
        assert catalog.content("t", "a") == catalog.content("dev", "a")

    def test_metadata_except_committer_and_time_is_kept(self, catalog: Catalog) -> None:
        story(catalog)
        meta = CommitMeta(
            "hello\n\nyou",
            authors=("ann", "bob"),
            signed_off_by=("carol",),
            author_time=WHEN,
            properties={"k": ("v", "w")},
        )
        hash_ = catalog.repository.commit("dev", [put("n", table(1))], meta).reference.hash
        catalog.transplant([hash_], onto="t")
        old, new = catalog.top("dev").meta, catalog.top("t").meta
        assert (new.message, new.authors, new.signed_off_by, new.author_time) == (
            meta.message,
            meta.authors,
            meta.signed_off_by,
            WHEN,
        )
        assert {k: tuple(v) for k, v in new.properties.items()} == {"k": ("v", "w")}
        assert new.commit_time is not None
        assert old.commit_time is not None
        assert new.commit_time > old.commit_time

    def test_a_single_commit_may_get_another_message(self, catalog: Catalog) -> None:
        commits = story(catalog)
        catalog.transplant(commits[:1], onto="t", meta=CommitMeta("new message"))
        assert catalog.top("t").meta.message == "new message"

    def test_several_commits_keep_their_messages(self, catalog: Catalog) -> None:
        commits = story(catalog)
        catalog.transplant(commits[:2], onto="t", meta=CommitMeta("new message"))
        assert [e.meta.message for e in catalog.log("t")[:2]] == ["two", "one"]

    def test_a_commit_without_operations_is_skipped(self, catalog: Catalog) -> None:
        commits = story(catalog)
        head = catalog.head("t")
        result = catalog.transplant([commits[3]], onto="t")
        assert (result.applied, result.successful, result.resultant_hash, result.details) == (
            False,
            True,
            head,
            (),
        )
        assert catalog.head("t") == head

    def test_an_identical_put_is_copied(self, catalog: Catalog) -> None:
        story(catalog)
        same = catalog.write("dev", {"a": 2})
        catalog.write("t", {"a": 2})
        head = catalog.head("t")
        result = catalog.transplant([same], onto="t")
        assert result.applied
        assert catalog.head("t") != head

    def test_an_existing_addition_is_skipped(self, catalog: Catalog) -> None:
        commits = story(catalog)
        head = catalog.transplant(commits[:1], onto="t").resultant_hash
        again = catalog.transplant(commits[:1], onto="t")
        assert (again.applied, again.successful, again.resultant_hash, again.details) == (
            False,
            True,
            head,
            (),
        )

    def test_transplanting_an_update_twice_conflicts(self, catalog: Catalog) -> None:
        commits = story(catalog)
        catalog.transplant(commits[1:2], onto="t")
        with pytest.raises(MergeConflict) as refused:
            catalog.transplant(commits[1:2], onto="t")
        assert types_and_keys(refused.value.result.conflicts) == [("VALUE_DIFFERS", "a")]

    def test_commits_may_be_transplanted_onto_an_unrelated_history(self, catalog: Catalog) -> None:
        commits = story(catalog)
        catalog.branch("other", EMPTY)
        assert catalog.transplant(commits[4:], onto="other").applied
        assert catalog.numbers("other") == {"y": 2, "z": 2}
        with pytest.raises(MergeConflict) as refused:
            catalog.transplant(commits[1:2], onto="other")
        assert types_and_keys(refused.value.result.conflicts) == [("KEY_DOES_NOT_EXIST", "a")]
        with pytest.raises(ReferenceConflict) as missing:
            catalog.transplant(commits[:1], onto="other")
        assert not isinstance(missing.value, MergeConflict)
        assert types_and_keys(missing.value.conflicts) == [("NAMESPACE_ABSENT", "ns")]

    def test_the_first_commit_may_be_transplanted(self, catalog: Catalog) -> None:
        story(catalog)
        first = catalog.hash("dev~5")
        catalog.branch("other", EMPTY)
        assert catalog.transplant([first], onto="other").applied
        assert catalog.numbers("other") == catalog.numbers(first)

    # -- conflicts --

    def test_conflicts_of_all_commits_are_reported_and_nothing_is_written(
        self, catalog: Catalog
    ) -> None:
        commits = story(catalog)
        changed = catalog.write("t", {"a": 3, "y": 3})
        before = catalog.everything()
        with pytest.raises(MergeConflict) as refused:
            catalog.transplant(commits, onto="t")
        result = refused.value.result
        assert types_and_keys(result.conflicts) == [("KEY_EXISTS", "y"), ("VALUE_DIFFERS", "a")]
        assert (
            result.applied,
            result.successful,
            result.resultant_hash,
            result.common_ancestor,
        ) == (False, False, None, None)
        assert refused.value.message == "The following keys have been changed in conflict: 'a', 'y'"
        by_key = {c.key: c for c in result.conflicts}
        fact: Conflict = by_key[key("a")]
        content_id = catalog.id("t", "a")
        assert (fact.expected, fact.actual, fact.proposed) == (
            table(1, content_id),
            table(3, content_id),
            table(2, content_id),
        )
        assert fact.changed_by is not None
        assert fact.changed_by.hash == changed
        assert catalog.everything() == before

    def test_a_conflict_in_a_later_commit_writes_nothing(self, catalog: Catalog) -> None:
        commits = story(catalog)
        catalog.write("t", {"a": 3})
        before = catalog.everything()
        with pytest.raises(MergeConflict) as refused:
            catalog.transplant(commits[:3], onto="t")
        assert types_and_keys(refused.value.result.conflicts) == [("VALUE_DIFFERS", "a")]
        assert catalog.everything() == before

    def test_a_conflict_causes_no_others_in_later_commits(self, catalog: Catalog) -> None:
        story(catalog)
        first = catalog.write("dev", {"new": 1, "x": 1})
        second = catalog.write("dev", {"new": 2, "ns": NS})
        third = catalog.write("dev", {"new": None})
        catalog.write("t", {"x": 9})
        with pytest.raises(MergeConflict) as refused:
            catalog.transplant([first, second, third], onto="t")
        assert types_and_keys(refused.value.result.conflicts) == [("KEY_EXISTS", "x")]

    def test_a_missing_namespace_of_several_commits_is_named_once(self, catalog: Catalog) -> None:
        story(catalog)
        commits = [catalog.write("dev", {"ns.one": 1}), catalog.write("dev", {"ns.two": 1})]
        catalog.write("t", {"ns": None})
        with pytest.raises(ReferenceConflict) as refused:
            catalog.transplant(commits, onto="t")
        assert types_and_keys(refused.value.conflicts) == [("NAMESPACE_ABSENT", "ns")]

    def test_forced_keys_get_the_state_of_the_source(self, catalog: Catalog) -> None:
        commits = story(catalog)
        catalog.write("t", {"a": 3, "y": 3})
        result = catalog.transplant(commits, onto="t", default_behavior=FORCE)
        assert touched(result) == dict.fromkeys(["a", "b", "ns.x", "y", "z"], "FORCE")
        assert catalog.numbers("t") == {"a": 2, "ns": NS, "ns.x": 2, "y": 2, "z": 2}
        assert catalog.id("t", "y") == catalog.id("dev", "y")

    @pytest.mark.parametrize("behavior", [FORCE, DROP, MergeBehavior.NORMAL])
    def test_a_deletion_without_effect_is_not_transplanted(
        self, catalog: Catalog, behavior: MergeBehavior
    ) -> None:
        catalog.write("main", {"b": 1, "c": 1})
        for branch in ("s", "t"):
            catalog.branch(branch, "main")
        first = catalog.write("s", {"b": None, "z": 1})
        catalog.write("main", {"b": None})
        # The copy deletes a key that is absent.
        copied = catalog.transplant([first], onto="main", default_behavior=FORCE).resultant_hash
        there = catalog.content("t", "b")
        behaviors = [] if behavior is FORCE else [behave("b", behavior.name, there)]
        result = catalog.transplant(
            [copied], onto="t", default_behavior=behavior, behaviors=behaviors
        )
        assert set(touched(result)) == {"z"}
        assert catalog.content("t", "b") == there

    def test_drop_skips_only_conflicting_keys(self, catalog: Catalog) -> None:
        commits = story(catalog)
        catalog.write("t", {"a": 3, "y": 3})
        result = catalog.transplant(commits, onto="t", default_behavior=DROP)
        assert result.applied
        assert catalog.numbers("t") == {"a": 3, "ns": NS, "ns.x": 2, "y": 3, "z": 2}
        assert [e.meta.message for e in catalog.log("t")[:4]] == [
            "five",
            "three",
            "one",
            "write a, y",
        ]

    def test_each_transplanted_key_has_its_own_behavior(self, catalog: Catalog) -> None:
        commits = story(catalog)
        catalog.write("t", {"a": 3, "y": 3})
        result = catalog.transplant(
            commits, onto="t", behaviors=[behave("a", "DROP"), behave("y", "FORCE")]
        )
        assert touched(result) == {
            "a": "DROP",
            "b": "NORMAL",
            "ns.x": "NORMAL",
            "y": "FORCE",
            "z": "NORMAL",
        }
        assert catalog.numbers("t") == {"a": 3, "ns": NS, "ns.x": 2, "y": 2, "z": 2}

    def test_a_behavior_may_be_unused(self, catalog: Catalog) -> None:
        commits = story(catalog)
        assert catalog.transplant(
            commits[:1], onto="t", behaviors=[behave("never", "FORCE")]
        ).applied

    def test_expected_targets_are_compared_under_force(self, catalog: Catalog) -> None:
        commits = story(catalog)
        catalog.write("t", {"a": 3})
        there = catalog.content("t", "a")
        wrong = table(77, there.id)
        with pytest.raises(MergeConflict) as refused:
            catalog.transplant(commits[1:2], onto="t", behaviors=[behave("a", "FORCE", wrong)])
        assert types_and_keys(refused.value.result.conflicts) == [("VALUE_DIFFERS", "a")]
        assert catalog.transplant(
            commits[1:2], onto="t", behaviors=[behave("a", "NORMAL", there, table(23, there.id))]
        ).applied
        assert catalog.numbers("t")["a"] == 23

    def test_a_namespace_that_would_be_orphaned_is_refused(self, catalog: Catalog) -> None:
        commits = story(catalog)
        catalog.write("t", {"ns": None})
        for options in ({}, {"default_behavior": FORCE}, {"dry_run": True}):
            with pytest.raises(ReferenceConflict) as refused:
                catalog.transplant(commits[:1], onto="t", **options)
            assert not isinstance(refused.value, MergeConflict)
            assert [c.type for c in refused.value.conflicts] == [ConflictType.NAMESPACE_ABSENT]

    # -- order of commits --

    @pytest.mark.parametrize("order", [[0, 2], [1, 0], [0, 0], [4, 3], [2, 1, 0]], ids=str)
    def test_transplanted_commits_must_be_consecutive(
        self, catalog: Catalog, order: list[int]
    ) -> None:
        commits = story(catalog)
        with pytest.raises(InvalidInput, match="Sequence of hashes is not contiguous"):
            catalog.transplant([commits[n] for n in order], onto="t")

    def test_an_option_allows_any_order(self, catalog: Catalog) -> None:
        commits = story(catalog)
        start = catalog.head("t")
        chosen = [commits[4], commits[1], commits[0]]
        try:
            result = catalog.transplant(chosen, onto="t", any_order=True)
        except NotAllowed:
            pytest.skip("this server does not have the extension")
        assert [e.meta.message for e in catalog.log("t", until=start)][:-1] == [
            "one",
            "two",
            "five",
        ]
        assert touched(result) == dict.fromkeys(["a", "ns.x", "y", "z"], "NORMAL")
        assert all(
            detail.source == catalog.content("dev", detail.key.plain) for detail in result.details
        )

    def test_conflicts_in_any_order_show_the_states_of_their_own_commit(
        self, catalog: Catalog
    ) -> None:
        commits = story(catalog)
        catalog.write("t", {"a": 9})
        try:
            with pytest.raises(MergeConflict) as refused:
                catalog.transplant([commits[4], commits[1]], onto="t", any_order=True)
        except NotAllowed:
            pytest.skip("this server does not have the extension")
        (conflict,) = refused.value.conflicts
        assert (conflict.expected, conflict.actual) == (
            catalog.content(f"@{commits[0]}", "a"),
            catalog.content("t", "a"),
        )
        assert conflict.proposed == catalog.content("dev", "a")

    def test_a_transplant_requires_commits(self, catalog: Catalog) -> None:
        with pytest.raises(InvalidInput):
            catalog.transplant([])

    def test_unknown_commits_are_not_found(self, catalog: Catalog) -> None:
        commits = story(catalog)
        for hashes in ([NOBODY], [commits[0], NOBODY], [EMPTY]):
            with pytest.raises(NessieError) as refused:
                catalog.transplant(hashes, onto="t")
            assert isinstance(refused.value, CommitNotFound)

    def test_unknown_targets_are_not_found(self, catalog: Catalog) -> None:
        commits = story(catalog)
        catalog.tag("v1")
        with pytest.raises(ReferenceNotFound):
            catalog.transplant(commits, onto="nosuch")
        with pytest.raises(InvalidInput, match="must be a branch"):
            catalog.transplant(commits, onto="v1")
        for hash_ in (commits[0], NOBODY):
            with pytest.raises(CommitNotFound):
                catalog.transplant(commits, onto="t", expected_hash=hash_)

    def test_the_expected_hash_may_be_older(self, catalog: Catalog) -> None:
        commits = story(catalog)
        old = catalog.head("t")
        head = catalog.write("t", {"other": 1})
        result = catalog.transplant(commits, onto="t", expected_hash=old)
        assert (result.applied, result.expected_hash, result.effective_target_hash) == (
            True,
            old,
            head,
        )

    def test_a_merge_commit_is_transplanted_relative_to_its_first_parent(
        self, catalog: Catalog
    ) -> None:
        story(catalog)
        catalog.write("main", {"m": 1})
        merged = catalog.merge("dev").resultant_hash
        assert merged is not None
        catalog.transplant([merged], onto="t")
        assert catalog.numbers("t") == catalog.numbers("dev")
        assert len(catalog.top("t").meta.parents) == 1

    # -- dry run and request id --

    def test_a_dry_run_of_a_transplant_changes_nothing(self, catalog: Catalog) -> None:
        commits = story(catalog)
        before = catalog.everything()
        result = catalog.transplant(commits, onto="t", dry_run=True)
        assert (result.applied, result.successful, result.resultant_hash) == (False, True, None)
        assert sorted(touched(result)) == ["a", "b", "ns.x", "y", "z"]
        assert catalog.everything() == before

    def test_a_dry_run_without_remaining_changes_returns_no_hash(self, catalog: Catalog) -> None:
        commits = story(catalog)
        result = catalog.transplant([commits[3]], onto="t", dry_run=True)
        assert (result.applied, result.successful, result.resultant_hash) == (False, True, None)

    def test_a_dry_run_of_a_transplant_reports_conflicts(self, catalog: Catalog) -> None:
        commits = story(catalog)
        catalog.write("t", {"a": 3})
        before = catalog.everything()
        with pytest.raises(MergeConflict) as refused:
            catalog.transplant(commits, onto="t", dry_run=True)
        assert types_and_keys(refused.value.result.conflicts) == [("VALUE_DIFFERS", "a")]
        assert catalog.everything() == before

    def test_a_request_id_transplants_once(self, catalog: Catalog) -> None:
        commits = story(catalog)
        first = catalog.transplant(commits, onto="t", request_id="t-1")
        head = catalog.write("t", {"other": 1})
        again = catalog.transplant(commits, onto="t", request_id="t-1")
        assert (again.applied, again.successful, again.resultant_hash) == (
            True,
            True,
            first.resultant_hash,
        )
        assert catalog.head("t") == head

    def test_operations_are_those_of_the_source(self, catalog: Catalog) -> None:
        commits = story(catalog)
        catalog.transplant(commits[1:3], onto="t")
        assert catalog.top("t").operations == (delete("b"),)
        assert catalog.top("t~1").operations == (put("a", catalog.content("dev", "a")),)
