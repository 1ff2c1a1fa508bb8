"""Merges: every combination of changes, behaviors, expected and resolved contents, dry runs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from nessie_cli.errors import (
    CommitNotFound,
    InvalidInput,
    MergeConflict,
    NessieError,
    ReferenceConflict,
    ReferenceNotFound,
)
from nessie_cli.model import CommitMeta, MergeBehavior
from tests.repository.vocabulary import (
    EMPTY,
    NOBODY,
    NS,
    Catalog,
    behave,
    delete,
    key,
    namespace,
    put,
    table,
    touched,
    types_and_keys,
    view,
)

NORMAL, FORCE, DROP = MergeBehavior.NORMAL, MergeBehavior.FORCE, MergeBehavior.DROP
NOTHING, UPDATE, REMOVE, AGAIN, RETYPE, ADD, SAME_ADD, SPACE = (
    "nothing",
    "update",
    "remove",
    "again",
    "retype",
    "add",
    "same add",
    "namespace",
)

SAME = "the same change"
ROWS = [
    # change of the source, change of the target, conflict under NORMAL, state after FORCE
    (UPDATE, NOTHING, None, 2),
    (UPDATE, UPDATE, "VALUE_DIFFERS", 2),
    (UPDATE, REMOVE, "KEY_DOES_NOT_EXIST", 2),
    (UPDATE, AGAIN, "CONTENT_ID_DIFFERS", 2),
    (UPDATE, RETYPE, "PAYLOAD_DIFFERS", 2),
    (REMOVE, NOTHING, None, None),
    (REMOVE, UPDATE, "VALUE_DIFFERS", None),
    (REMOVE, REMOVE, SAME, None),
    (REMOVE, AGAIN, "CONTENT_ID_DIFFERS", None),
    (REMOVE, RETYPE, "PAYLOAD_DIFFERS", None),
    (AGAIN, NOTHING, None, 2),
    (RETYPE, NOTHING, None, "view 2"),
    (ADD, NOTHING, None, 2),
    (ADD, ADD, "KEY_EXISTS", 2),
    (ADD, RETYPE, "KEY_EXISTS", 2),
]
CHANGED_AFTER_RECREATION = [(AGAIN, UPDATE), (AGAIN, REMOVE), (AGAIN, AGAIN), (RETYPE, UPDATE)]


def change(catalog: Catalog, branch: str, what: str, number: int) -> None:
    match what:
        case "update" | "add":
            catalog.write(branch, {"k": number})
        case "remove":
            catalog.write(branch, {"k": None})
        case "again":
            catalog.recreate(branch, "k", table(number))
        case "retype" if "k" in catalog.numbers(branch):
            catalog.recreate(branch, "k", view(number))
        case "retype":
            catalog.commit(branch, put("k", view(number)))


def both_sides(catalog: Catalog, source: str, target: str) -> None:
    """Creates `dev` and `main` from one base; `k` is 1 in the base unless it is added later."""
    catalog.write("main", {"aside": 1} | ({} if source == ADD else {"k": 1}))
    catalog.branch("dev")
    change(catalog, "dev", source, 2)
    change(catalog, "main", target, 3)
    catalog.write("main", {"aside": 2})


class Merges:
    @pytest.mark.parametrize(("source", "target", "conflict", "forced"), ROWS)
    def test_every_combination_of_changes_under_normal(
        self,
        catalog: Catalog,
        source: str,
        target: str,
        conflict: str | None,
        forced: int | str | None,
    ) -> None:
        both_sides(catalog, source, target)
        base, head = catalog.repository.merge_base("main", "dev"), catalog.head()
        if conflict in (None, SAME):
            result = catalog.merge("dev")
            assert touched(result) == ({} if conflict else {"k": "NORMAL"})
            assert catalog.numbers().get("k") == forced
            return
        everything = catalog.everything()
        with pytest.raises(MergeConflict) as refused:
            catalog.merge("dev")
        result = refused.value.result
        assert types_and_keys(result.conflicts) == [(conflict, "k")]
        (fact,) = result.conflicts

        def state(at: str) -> object:
            return catalog.repository.contents(at, [key("k")]).get(key("k"))

        assert (fact.expected, fact.actual, fact.proposed) == (
            state(base),
            state("main"),
            state("dev"),
        )
        assert fact.changed_by is not None
        assert fact.changed_by.hash == catalog.hash("main~1")
        assert (result.applied, result.successful, result.resultant_hash) == (False, False, None)
        assert (result.effective_target_hash, result.common_ancestor, result.target_branch) == (
            head,
            base,
            "main",
        )
        (detail,) = result.details
        assert (detail.key, detail.behavior, detail.conflict) == (key("k"), NORMAL, fact)
        assert (detail.source, detail.target) == (state("dev"), state("main"))
        assert refused.value.message == "The following keys have been changed in conflict: 'k'"
        assert catalog.everything() == everything

    @pytest.mark.parametrize(
        ("source", "target", "forced"),
        [(source, target, forced) for source, target, _, forced in ROWS],
    )
    @pytest.mark.parametrize("by_key", [False, True])
    def test_every_combination_of_changes_under_force(
        self, catalog: Catalog, source: str, target: str, forced: int | str | None, by_key: bool
    ) -> None:
        both_sides(catalog, source, target)
        options = {"behaviors": [behave("k", "FORCE")]} if by_key else {"default_behavior": FORCE}
        result = catalog.merge("dev", **options)
        assert (result.applied, result.successful) == (True, True)
        assert touched(result) == {"k": "FORCE"}
        operations = catalog.top().operations
        assert operations is not None
        assert [o.key.plain for o in operations] == ["k"]
        assert catalog.numbers().get("k") == forced
        assert catalog.numbers()["aside"] == 2
        if forced is not None:
            assert catalog.id("main", "k") == catalog.id("dev", "k")

    @pytest.mark.parametrize(
        ("source", "target"), [(source, target) for source, target, _, _ in ROWS]
    )
    @pytest.mark.parametrize("by_key", [False, True])
    def test_every_combination_of_changes_under_drop(
        self, catalog: Catalog, source: str, target: str, by_key: bool
    ) -> None:
        both_sides(catalog, source, target)
        before, head = catalog.numbers(), catalog.head()
        options = {"behaviors": [behave("k", "DROP")]} if by_key else {"default_behavior": DROP}
        result = catalog.merge("dev", **options)
        assert (result.applied, result.successful, result.resultant_hash) == (False, True, head)
        assert touched(result)["k"] == "DROP"
        assert catalog.numbers() == before
        assert catalog.head() == head

    @pytest.mark.parametrize(("source", "target"), CHANGED_AFTER_RECREATION)
    def test_a_recreated_key_that_the_target_changed_conflicts(
        self, catalog: Catalog, source: str, target: str
    ) -> None:
        both_sides(catalog, source, target)
        with pytest.raises(MergeConflict) as refused:
            catalog.merge("dev")
        assert [c.key for c in refused.value.result.conflicts] == [key("k")]
        assert catalog.merge("dev", default_behavior=FORCE).applied
        assert catalog.content("main", "k") == catalog.content("dev", "k")

    def test_a_merged_recreation_has_the_new_id(self, catalog: Catalog) -> None:
        both_sides(catalog, AGAIN, NOTHING)
        catalog.merge("dev")
        assert catalog.id("main", "k") == catalog.id("dev", "k") != catalog.id("main~1", "k")

    @pytest.mark.parametrize("behavior", [NORMAL, FORCE])
    def test_an_addition_that_exists_on_the_target_is_skipped(
        self, catalog: Catalog, behavior: MergeBehavior
    ) -> None:
        catalog.write("main", {"aside": 1})
        catalog.branch("dev")
        added = catalog.write("dev", {"k": 1})
        catalog.write("dev", {"more": 1})
        catalog.transplant([added])
        result = catalog.merge("dev", default_behavior=behavior)
        assert touched(result) == {"more": behavior.value}
        assert catalog.numbers() == {"aside": 1, "k": 1, "more": 1}
        operations = catalog.top().operations
        assert operations is not None
        assert [o.key.plain for o in operations] == ["more"]

    def test_a_merge_of_existing_additions_creates_no_commit(self, catalog: Catalog) -> None:
        catalog.write("main", {"aside": 1})
        catalog.branch("dev")
        catalog.transplant([catalog.write("dev", {"k": 1})])
        head = catalog.head()
        result = catalog.merge("dev")
        assert (result.applied, result.successful, result.resultant_hash, result.details) == (
            False,
            True,
            head,
            (),
        )
        assert catalog.head() == head

    @pytest.mark.parametrize("behavior", [NORMAL, FORCE])
    def test_a_namespace_created_on_both_sides_becomes_that_of_the_source(
        self, catalog: Catalog, behavior: MergeBehavior
    ) -> None:
        catalog.write("main", {"aside": 1})
        catalog.branch("dev")
        catalog.commit("dev", put("n", namespace("n", owner="dev")), put("n.d", table(1)))
        catalog.commit("main", put("n", namespace("n", owner="main")), put("n.m", table(1)))
        result = catalog.merge("dev", default_behavior=behavior)
        assert touched(result) == {"n.d": behavior.value}
        assert catalog.numbers() == {"aside": 1, "n": NS, "n.d": 1, "n.m": 1}
        assert catalog.content("main", "n") == catalog.content("dev", "n")

    @pytest.mark.parametrize("number", [2, None])
    def test_the_same_change_on_both_sides_does_not_conflict(
        self, catalog: Catalog, number: int | None
    ) -> None:
        catalog.write("main", {"k": 1, "aside": 1})
        catalog.branch("dev")
        changed = catalog.write("dev", {"k": number})
        catalog.write("dev", {"more": 1})
        catalog.transplant([changed])
        result = catalog.merge("dev")
        assert result.applied
        assert touched(result) == {"more": "NORMAL"}
        assert catalog.top().operations == (put("more", catalog.content("dev", "more")),)
        assert catalog.numbers() == {"aside": 1, "more": 1} | ({"k": number} if number else {})

    def test_only_equal_changes_create_no_commit(self, catalog: Catalog) -> None:
        catalog.write("main", {"k": 1, "gone": 1})
        catalog.branch("dev")
        catalog.transplant([catalog.write("dev", {"k": 2, "gone": None})])
        head = catalog.head()
        result = catalog.merge("dev")
        assert (result.applied, result.successful, result.resultant_hash, result.details) == (
            False,
            True,
            head,
            (),
        )

    def test_an_equal_change_is_compared_with_the_expected_content(self, catalog: Catalog) -> None:
        catalog.write("main", {"k": 1})
        catalog.branch("dev")
        catalog.transplant([catalog.write("dev", {"k": 2})])
        with pytest.raises(MergeConflict) as refused:
            catalog.merge("dev", behaviors=[behave("k", "NORMAL", catalog.content("main~1", "k"))])
        assert types_and_keys(refused.value.result.conflicts) == [("VALUE_DIFFERS", "k")]
        assert touched(
            catalog.merge("dev", behaviors=[behave("k", "NORMAL", catalog.content("main", "k"))])
        ) == {"k": "NORMAL"}

    def test_the_same_value_with_another_content_id_conflicts(self, catalog: Catalog) -> None:
        catalog.write("main", {"k": 1})
        catalog.branch("dev")
        catalog.write("dev", {"k": 2})
        catalog.recreate("main", "k", table(2))
        with pytest.raises(MergeConflict) as refused:
            catalog.merge("dev")
        assert types_and_keys(refused.value.result.conflicts) == [("CONTENT_ID_DIFFERS", "k")]

    def test_all_conflicts_of_a_merge_are_reported_at_once(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1, "b": 1, "c": 1, "d": 1, "fine": 1})
        catalog.branch("dev")
        catalog.write("dev", {"a": 2, "b": None, "c": 2, "d": 2, "fine": 2, "new": 2, "e": 2})
        catalog.write("main", {"a": 3, "b": 3, "c": None, "e": 3})
        catalog.recreate("main", "d", table(3))
        with pytest.raises(MergeConflict) as refused:
            catalog.merge("dev")
        result = refused.value.result
        assert types_and_keys(result.conflicts) == sorted(
            [
                ("VALUE_DIFFERS", "a"),
                ("VALUE_DIFFERS", "b"),
                ("KEY_DOES_NOT_EXIST", "c"),
                ("CONTENT_ID_DIFFERS", "d"),
                ("KEY_EXISTS", "e"),
            ]
        )
        assert sorted(touched(result)) == ["a", "b", "c", "d", "e", "fine", "new"]
        assert (
            refused.value.message
            == "The following keys have been changed in conflict: 'a', 'b', 'c', 'd', 'e'"
        )

    def test_each_merged_key_has_its_own_behavior(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1, "b": 1, "c": 1})
        catalog.branch("dev")
        catalog.write("dev", {"a": 2, "b": 2, "c": 2, "d": 2})
        catalog.write("main", {"a": 3, "b": 3})
        with pytest.raises(MergeConflict) as refused:
            catalog.merge("dev", behaviors=[behave("a", "FORCE")])
        assert types_and_keys(refused.value.result.conflicts) == [("VALUE_DIFFERS", "b")]
        result = catalog.merge(
            "dev",
            behaviors=[behave("a", "FORCE"), behave("b", "DROP"), behave("d", "NORMAL")],
            default_behavior=FORCE,
        )
        assert touched(result) == {"a": "FORCE", "b": "DROP", "c": "FORCE", "d": "NORMAL"}
        assert catalog.numbers() == {"a": 2, "b": 3, "c": 2, "d": 2}

    # -- the merge commit --

    def test_a_merge_is_one_commit_with_two_parents(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1, "b": 1})
        catalog.branch("dev")
        catalog.write("dev", {"a": 2})
        catalog.write("dev", {"a": 3, "c": 1})
        source = catalog.write("dev", {"b": None})
        target = catalog.write("main", {"m": 1})
        base = catalog.hash("main~1")
        result = catalog.merge("dev", expected_hash=base)
        assert (result.applied, result.successful, result.common_ancestor) == (True, True, base)
        assert (result.resultant_hash, result.effective_target_hash, result.expected_hash) == (
            catalog.head(),
            target,
            base,
        )
        assert touched(result) == {"a": "NORMAL", "b": "NORMAL", "c": "NORMAL"}
        entry = catalog.top()
        assert entry.meta.parents == (target, source)
        assert entry.operations == (
            delete("b"),
            put("a", catalog.content("dev", "a")),
            put("c", catalog.content("dev", "c")),
        )
        assert catalog.numbers() == {"a": 3, "c": 1, "m": 1}

    def test_merged_contents_keep_their_ids(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        catalog.branch("dev")
        catalog.write("dev", {"a": 2, "b": 1})
        catalog.rename("dev", "b", "c")
        catalog.merge("dev")
        assert {k: catalog.id("main", k) for k in ("a", "c")} == {
            k: catalog.id("dev", k) for k in ("a", "c")
        }
        assert catalog.id("main", "a") == catalog.id("main~1", "a")

    def test_a_merge_has_a_default_message(self, catalog: Catalog) -> None:
        target = catalog.write("main", {"a": 1})
        catalog.branch("dev")
        source = catalog.write("dev", {"b": 1})
        catalog.merge("dev")
        meta = catalog.top().meta
        assert meta.message == f"Merged dev at {source} into main at {target}"
        assert meta.authors == (meta.committer,)

    def test_given_metadata_of_a_merge_is_stored(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        catalog.branch("dev")
        catalog.write("dev", {"b": 1})
        when = datetime(2020, 1, 1, tzinfo=UTC)
        given = CommitMeta(
            "hello",
            authors=("ann", "bob"),
            signed_off_by=("carol",),
            author_time=when,
            properties={"k": ("v",)},
        )
        catalog.merge("dev", meta=given)
        meta = catalog.top().meta
        assert (meta.message, meta.authors, meta.signed_off_by, meta.author_time) == (
            "hello",
            ("ann", "bob"),
            ("carol",),
            when,
        )
        assert dict(meta.properties) == {"k": ("v",)}
        assert meta.commit_time is not None
        assert meta.commit_time.year > 2020

    def test_an_empty_message_means_the_default(self, catalog: Catalog) -> None:
        target = catalog.write("main", {"a": 1})
        catalog.branch("dev")
        source = catalog.write("dev", {"b": 1})
        catalog.merge("dev", meta=CommitMeta("", authors=("ann",)))
        meta = catalog.top().meta
        assert (meta.message, meta.authors) == (
            f"Merged dev at {source} into main at {target}",
            ("ann",),
        )

    # -- nothing to merge --

    def test_merging_an_ancestor_changes_nothing(self, catalog: Catalog) -> None:
        first = catalog.write("main", {"a": 1})
        head = catalog.write("main", {"a": 2})
        catalog.branch("dev")
        for source in ("main", "dev", f"@{first}", "main~1"):
            result = catalog.merge(source)
            assert (result.applied, result.successful, result.resultant_hash, result.details) == (
                False,
                True,
                head,
                (),
            )
        assert catalog.head() == head

    def test_merging_again_changes_nothing(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        catalog.branch("dev")
        catalog.write("dev", {"b": 1})
        head = catalog.merge("dev").resultant_hash
        again = catalog.merge("dev")
        assert (again.applied, again.successful, again.resultant_hash) == (False, True, head)
        assert again.common_ancestor == catalog.head("dev")

    def test_merging_reverted_changes_changes_nothing(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        catalog.branch("dev")
        catalog.write("dev", {"a": 2, "b": 1})
        catalog.write("dev", {"a": 1, "b": None})
        head = catalog.write("main", {"a": 3})
        result = catalog.merge("dev")
        assert (result.applied, result.successful, result.resultant_hash, result.details) == (
            False,
            True,
            head,
            (),
        )

    def test_merging_the_empty_history_changes_nothing(self, catalog: Catalog) -> None:
        head = catalog.write("main", {"a": 1})
        catalog.branch("empty", EMPTY)
        for source in ("empty", f"@{EMPTY}", "main~5"):
            result = catalog.merge(source)
            assert (result.applied, result.successful, result.resultant_hash) == (False, True, head)
        assert catalog.numbers() == {"a": 1}

    def test_histories_without_a_common_commit_cannot_be_merged(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        catalog.branch("other", EMPTY)
        for _ in range(2):
            for source, target in (("main", "other"), ("other", "main")):
                if catalog.head(source) == EMPTY:
                    continue
                with pytest.raises(CommitNotFound, match="No common ancestor"):
                    catalog.merge(source, into=target)
            catalog.write("other", {"b": 1})

    # -- sources and targets --

    def test_the_source_may_be_any_revision(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        catalog.branch("dev")
        first = catalog.write("dev", {"b": 1})
        catalog.write("dev", {"c": 1})
        catalog.tag("v1", first)
        catalog.branch("two", "main")
        catalog.branch("three", "main")
        for source, target in (("v1", "main"), (f"@{first}", "two"), ("dev~1", "three")):
            assert catalog.merge(source, into=target).applied
            assert catalog.numbers(target) == {"a": 1, "b": 1}
            assert catalog.top(target).meta.parents[1] == first

    def test_unknown_sources_and_targets_are_not_found(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        catalog.tag("v1")
        with pytest.raises(ReferenceNotFound):
            catalog.merge("nosuch")
        with pytest.raises(CommitNotFound):
            catalog.merge(f"@{NOBODY}")
        with pytest.raises(ReferenceNotFound):
            catalog.merge("main", into="nosuch")
        with pytest.raises(InvalidInput, match="must be a branch"):
            catalog.merge("main", into="v1")

    def test_the_expected_hash_must_be_on_the_target(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        catalog.branch("dev")
        aside = catalog.write("dev", {"b": 1})
        for hash_ in (aside, NOBODY):
            with pytest.raises(CommitNotFound):
                catalog.merge("dev", expected_hash=hash_)
        assert catalog.merge("dev", expected_hash=EMPTY).applied

    def test_changes_of_the_target_since_the_expected_hash_conflict(self, catalog: Catalog) -> None:
        base = catalog.write("main", {"k": 1})
        catalog.branch("dev")
        catalog.write("dev", {"k": 2})
        catalog.write("main", {"k": 3})
        with pytest.raises(MergeConflict):
            catalog.merge("dev", expected_hash=base)

    # -- dry run and request id --

    def test_a_dry_run_of_a_merge_changes_nothing(self, catalog: Catalog) -> None:
        base = catalog.write("main", {"a": 1})
        catalog.branch("dev")
        catalog.write("dev", {"a": 2, "b": 1})
        before = catalog.everything()
        result = catalog.merge("dev", dry_run=True)
        assert (
            result.applied,
            result.successful,
            result.resultant_hash,
            result.common_ancestor,
        ) == (False, True, None, base)
        assert touched(result) == {"a": "NORMAL", "b": "NORMAL"}
        assert catalog.everything() == before
        assert catalog.numbers() == {"a": 1}

    def test_a_dry_run_without_changes_returns_the_head(self, catalog: Catalog) -> None:
        head = catalog.write("main", {"a": 1})
        assert catalog.merge("main", dry_run=True).resultant_hash == head

    def test_a_dry_run_that_drops_everything_returns_no_hash(self, catalog: Catalog) -> None:
        both_sides(catalog, UPDATE, UPDATE)
        result = catalog.merge("dev", default_behavior=DROP, dry_run=True)
        assert (result.applied, result.successful, result.resultant_hash) == (False, True, None)

    def test_a_dry_run_of_a_merge_reports_conflicts(self, catalog: Catalog) -> None:
        both_sides(catalog, UPDATE, UPDATE)
        before = catalog.everything()
        with pytest.raises(MergeConflict) as refused:
            catalog.merge("dev", dry_run=True)
        assert types_and_keys(refused.value.result.conflicts) == [("VALUE_DIFFERS", "k")]
        assert catalog.everything() == before

    def test_a_request_id_merges_once(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        catalog.branch("dev")
        catalog.write("dev", {"b": 1})
        first = catalog.merge("dev", request_id="m-1")
        catalog.write("dev", {"b": 2})
        head = catalog.write("main", {"c": 1})
        again = catalog.merge("dev", request_id="m-1")
        assert (again.applied, again.successful, again.resultant_hash) == (
            True,
            True,
            first.resultant_hash,
        )
        assert catalog.head() == head
        answer = catalog.repository.find_request("m-1")
        assert answer is not None
        assert answer.reference.hash == first.resultant_hash

    # -- expected and resolved contents --

    def test_the_expected_target_is_compared_under_normal_and_force(self, catalog: Catalog) -> None:
        both_sides(catalog, UPDATE, UPDATE)
        there = catalog.content("main", "k")
        wrong = table(77, there.id)
        for behavior in ("NORMAL", "FORCE"):
            for expected in (wrong, catalog.content("main~2", "k")):
                with pytest.raises(MergeConflict) as refused:
                    catalog.merge("dev", behaviors=[behave("k", behavior, expected)])
                assert types_and_keys(refused.value.result.conflicts) == [("VALUE_DIFFERS", "k")]
        assert catalog.merge(
            "dev", behaviors=[behave("k", "FORCE", there)], dry_run=True
        ).successful
        assert catalog.merge("dev", behaviors=[behave("k", "NORMAL", there)]).applied
        assert catalog.numbers()["k"] == 2

    def test_a_dropped_key_is_not_compared_with_its_expectation(self, catalog: Catalog) -> None:
        both_sides(catalog, UPDATE, UPDATE)
        wrong = table(77, catalog.id("main", "k"))
        assert catalog.merge("dev", behaviors=[behave("k", "DROP", wrong)]).successful
        assert catalog.numbers()["k"] == 3

    def test_a_wrong_expected_target_is_a_conflict_of_its_own(self, catalog: Catalog) -> None:
        both_sides(catalog, UPDATE, NOTHING)
        with pytest.raises(MergeConflict) as refused:
            catalog.merge(
                "dev", behaviors=[behave("k", "NORMAL", table(77, catalog.id("main", "k")))]
            )
        assert types_and_keys(refused.value.result.conflicts) == [("VALUE_DIFFERS", "k")]
        assert catalog.merge(
            "dev", behaviors=[behave("k", "NORMAL", catalog.content("main", "k"))]
        ).applied

    def test_a_missing_expected_target_conflicts(self, catalog: Catalog) -> None:
        both_sides(catalog, ADD, NOTHING)
        with pytest.raises(MergeConflict) as refused:
            catalog.merge("dev", behaviors=[behave("k", "NORMAL", catalog.content("dev", "k"))])
        assert types_and_keys(refused.value.result.conflicts) == [("KEY_DOES_NOT_EXIST", "k")]

    def test_a_resolved_content_is_written(self, catalog: Catalog) -> None:
        both_sides(catalog, UPDATE, UPDATE)
        there = catalog.content("main", "k")
        resolved = table(23, there.id)
        result = catalog.merge("dev", behaviors=[behave("k", "NORMAL", there, resolved)])
        assert result.applied
        assert touched(result) == {"k": "NORMAL"}
        assert catalog.content("main", "k") == resolved
        assert catalog.top().operations == (put("k", resolved),)
        assert catalog.repository.merge_base("main", "dev") == catalog.head("dev")

    def test_a_resolved_content_cannot_change_the_id(self, catalog: Catalog) -> None:
        both_sides(catalog, UPDATE, UPDATE)
        there = catalog.content("main", "k")
        other = table(23, catalog.id("main", "aside"))
        try:
            catalog.merge("dev", behaviors=[behave("k", "NORMAL", there, other)])
        except InvalidInput:
            assert catalog.content("main", "k") == there
        else:
            assert catalog.content("main", "k") == other.with_id(there.id)

    def test_a_resolved_content_does_not_override_a_wrong_expectation(
        self, catalog: Catalog
    ) -> None:
        both_sides(catalog, UPDATE, UPDATE)
        content_id = catalog.id("main", "k")
        with pytest.raises(MergeConflict) as refused:
            catalog.merge(
                "dev",
                behaviors=[behave("k", "NORMAL", table(77, content_id), table(23, content_id))],
            )
        assert types_and_keys(refused.value.result.conflicts) == [("VALUE_DIFFERS", "k")]

    def test_two_creations_cannot_be_resolved(self, catalog: Catalog) -> None:
        both_sides(catalog, ADD, ADD)
        there = catalog.content("main", "k")
        with pytest.raises(MergeConflict) as refused:
            catalog.merge("dev", behaviors=[behave("k", "NORMAL", there, table(23, there.id))])
        assert [c.key for c in refused.value.result.conflicts] == [key("k")]

    @pytest.mark.parametrize(
        "case",
        [
            "no expectation",
            "forced",
            "dropped",
            "twice",
            "unused",
            "expected without id",
            "resolved without id",
        ],
    )
    def test_invalid_behaviors_are_refused(self, catalog: Catalog, case: str) -> None:
        both_sides(catalog, UPDATE, UPDATE)
        there = catalog.content("main", "k")
        resolved = table(23, there.id)
        behaviors, message = {
            "no expectation": ([behave("k", "NORMAL", None, resolved)], "expectedTarget"),
            "forced": (
                [behave("k", "FORCE", there, resolved)],
                "must be null for MergeBehavior.FORCE",
            ),
            "dropped": (
                [behave("k", "DROP", there, resolved)],
                "must be null for MergeBehavior.DROP",
            ),
            "twice": ([behave("k", "FORCE"), behave("k", "DROP")], "k"),
            "unused": (
                [behave("k", "FORCE"), behave("never", "FORCE"), behave("aside", "DROP")],
                "never",
            ),
            "expected without id": ([behave("k", "NORMAL", table(3))], "content ID"),
            "resolved without id": ([behave("k", "NORMAL", there, table(23))], "content ID"),
        }[case]
        before = catalog.everything()
        with pytest.raises(InvalidInput, match=message):
            catalog.merge("dev", behaviors=behaviors)
        assert catalog.everything() == before

    def test_an_unused_behavior_is_refused_before_conflicts_are_reported(
        self, catalog: Catalog
    ) -> None:
        both_sides(catalog, UPDATE, UPDATE)
        with pytest.raises(InvalidInput, match="never"):
            catalog.merge("dev", behaviors=[behave("never", "FORCE")])

    def test_namespace_conflicts_are_reported_before_unused_behaviors(
        self, catalog: Catalog
    ) -> None:
        catalog.write("main", {"z": NS})
        catalog.branch("dev")
        catalog.write("dev", {"z": None})
        catalog.write("main", {"z.t": 1})
        with pytest.raises(ReferenceConflict) as refused:
            catalog.merge("dev", behaviors=[behave("never", "FORCE")])
        assert types_and_keys(refused.value.conflicts) == [("NAMESPACE_NOT_EMPTY", "z")]

    def test_a_key_that_the_source_did_not_change_may_be_dropped(self, catalog: Catalog) -> None:
        both_sides(catalog, UPDATE, NOTHING)
        assert catalog.merge("dev", behaviors=[behave("aside", "DROP")]).applied
        assert catalog.numbers() == {"aside": 2, "k": 2}

    def test_a_resolution_for_a_removed_key_is_refused(self, catalog: Catalog) -> None:
        both_sides(catalog, REMOVE, UPDATE)
        there = catalog.content("main", "k")
        with pytest.raises(InvalidInput, match="unused resolvedContent"):
            catalog.merge("dev", behaviors=[behave("k", "NORMAL", there, table(23, there.id))])

    # -- namespaces --

    @pytest.mark.parametrize(
        "options", [{}, {"default_behavior": FORCE}, {"dry_run": True}], ids=str
    )
    def test_a_namespace_that_the_target_deleted_is_reported(
        self, catalog: Catalog, options: dict[str, Any]
    ) -> None:
        catalog.write("main", {"a": NS, "a.b": NS, "z": NS})
        catalog.branch("dev")
        catalog.write("dev", {"a.b.t": 1, "z.t": 1, "fine": 1})
        catalog.write("main", {"a.b": None, "z": None})
        before = catalog.everything()
        with pytest.raises(ReferenceConflict) as refused:
            catalog.merge("dev", **options)
        assert not isinstance(refused.value, MergeConflict)
        assert types_and_keys(refused.value.conflicts) == [
            ("NAMESPACE_ABSENT", "a.b"),
            ("NAMESPACE_ABSENT", "z"),
        ]
        assert catalog.everything() == before
        assert catalog.merge(
            "dev", behaviors=[behave("a.b.t", "DROP"), behave("z.t", "DROP")]
        ).applied
        assert catalog.numbers() == {"a": NS, "fine": 1}

    @pytest.mark.parametrize(
        "options",
        [{}, {"default_behavior": FORCE}, {"behaviors": [behave("c", "DROP")]}],
        ids=["", "forced", "dropped"],
    )
    def test_a_namespace_that_is_a_table_on_the_target_is_reported(
        self, catalog: Catalog, options: dict[str, Any]
    ) -> None:
        catalog.write("main", {"aside": 1})
        catalog.branch("dev")
        catalog.write("dev", {"c": NS, "c.x": 1})
        catalog.write("main", {"c": 1})
        with pytest.raises(ReferenceConflict) as refused:
            catalog.merge("dev", **options)
        assert not isinstance(refused.value, MergeConflict)
        assert types_and_keys(refused.value.conflicts) == [("NOT_A_NAMESPACE", "c")]
        assert catalog.numbers() == {"aside": 1, "c": 1}

    def test_a_namespace_with_new_keys_on_the_target_cannot_be_deleted(
        self, catalog: Catalog
    ) -> None:
        catalog.write("main", {"z": NS})
        catalog.branch("dev")
        catalog.write("dev", {"z": None})
        catalog.write("main", {"z.t": 1})
        with pytest.raises(ReferenceConflict) as refused:
            catalog.merge("dev")
        assert types_and_keys(refused.value.conflicts) == [("NAMESPACE_NOT_EMPTY", "z")]
        assert catalog.merge("dev", default_behavior=DROP).successful

    def test_a_namespace_in_conflict_is_not_reported_as_absent(self, catalog: Catalog) -> None:
        catalog.write("main", {"n": NS, "n.a": 1})
        catalog.branch("dev")
        catalog.commit(
            "dev",
            put("n", namespace("n", catalog.id("dev", "n"), owner="dev")),
            put("n.b", table(2)),
        )
        catalog.write("main", {"n": None, "n.a": None})
        with pytest.raises(MergeConflict) as refused:
            catalog.merge("dev")
        assert types_and_keys(refused.value.result.conflicts) == [("KEY_DOES_NOT_EXIST", "n")]

    def test_a_child_in_conflict_does_not_keep_its_namespace(self, catalog: Catalog) -> None:
        catalog.write("main", {"o": NS, "o.z": 1})
        catalog.branch("dev")
        catalog.write("dev", {"o": None, "o.z": None})
        catalog.recreate("main", "o.z", table(3))
        with pytest.raises(MergeConflict) as refused:
            catalog.merge("dev")
        assert types_and_keys(refused.value.result.conflicts) == [("CONTENT_ID_DIFFERS", "o.z")]
        assert catalog.merge("dev", default_behavior=FORCE).applied
        assert catalog.numbers() == {}

    def test_a_dropped_child_keeps_its_namespace(self, catalog: Catalog) -> None:
        catalog.write("main", {"o": NS, "o.z": 1})
        catalog.branch("dev")
        catalog.write("dev", {"o": None, "o.z": None})
        with pytest.raises(ReferenceConflict) as refused:
            catalog.merge("dev", behaviors=[behave("o.z", "DROP")])
        assert types_and_keys(refused.value.conflicts) == [("NAMESPACE_NOT_EMPTY", "o")]

    def test_a_merge_may_delete_and_create_a_hierarchy(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": NS, "a.b": NS, "a.b.t": 1})
        catalog.branch("dev")
        catalog.write(
            "dev", {"a": None, "a.b": None, "a.b.t": None, "n": NS, "n.m": NS, "n.m.t": 1}
        )
        assert catalog.merge("dev").applied
        assert catalog.numbers() == {"n": NS, "n.m": NS, "n.m.t": 1}

    def test_a_dropped_namespace_leaves_no_orphans(self, catalog: Catalog) -> None:
        catalog.write("main", {"aside": 1})
        catalog.branch("dev")
        catalog.write("dev", {"n": NS, "n.t": 1})
        with pytest.raises(ReferenceConflict) as refused:
            catalog.merge("dev", behaviors=[behave("n", "DROP")])
        assert ("NAMESPACE_ABSENT", "n") in types_and_keys(refused.value.conflicts)

    def test_large_merges(self, catalog: Catalog) -> None:
        catalog.commit("main", *(put(f"t{n:04}", table(n)) for n in range(2000)))
        catalog.branch("dev")
        catalog.write("dev", {f"t{n:04}": 5000 for n in range(0, 1000, 10)})
        catalog.write("main", {f"t{n:04}": 6000 for n in range(1000, 2000, 10)})
        result = catalog.merge("dev")
        assert len(result.details) == 100
        expected = {f"t{n:04}": (n if n % 10 else 5000 if n < 1000 else 6000) for n in range(2000)}
        assert catalog.numbers() == expected

    def test_a_merge_refuses_metadata_that_the_repository_sets(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        catalog.branch("dev")
        catalog.write("dev", {"b": 1})
        with pytest.raises(NessieError):
            catalog.merge("dev", meta=CommitMeta("m", hash=NOBODY))
