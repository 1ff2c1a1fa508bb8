"""The repository contract in plain REST v2, as our client uses it with other servers.

`make test-plain` runs it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import pytest

from nessie_cli.errors import InvalidInput, MergeConflict, ReferenceConflict, ReferenceMoved
from nessie_cli.model import (
    NO_ANCESTOR,
    CommitMeta,
    Content,
    KeyBehavior,
    MergeBehavior,
    MergeResult,
    ReferenceType,
)
from nessie_cli.repository.access import Access
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import CreateReference, Merge
from nessie_cli.repository.remote.opening import open_remote
from tests.repository.contract_division import Divides
from tests.repository.contract_searching import Searches
from tests.repository.servers import Servers
from tests.repository.test_remote import Served
from tests.repository.vocabulary import (
    NS,
    Catalog,
    behave,
    delete,
    key,
    namespace,
    put,
    table,
    touched,
    view,
)


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    running = Servers()
    yield running
    running.close()


RETYPED = (
    *(
        f"test_every_combination_of_operation_and_states[{action}-same-type-PAYLOAD_DIFFERS]"
        for action in ("delete", "move", "put", "recreate", "unchanged")
    ),
    "test_a_recreated_key_that_the_target_changed_conflicts[retype-update]",
    "test_all_conflicts_are_reported_at_once",
    "test_a_delete_and_a_put_without_id_recreate_a_content[content1]",
    "test_a_delete_and_a_put_without_id_recreate_a_content[content2]",
    "test_every_combination_of_changes_under_normal[remove-retype-PAYLOAD_DIFFERS-None]",
    "test_every_combination_of_changes_under_normal[retype-nothing-None-view 2]",
    "test_every_combination_of_changes_under_normal[update-retype-PAYLOAD_DIFFERS-2]",
    *(
        f"test_every_combination_of_changes_under_force[{by_key}-{row}]"
        for by_key in (False, True)
        for row in ("remove-retype-None", "retype-nothing-view 2", "update-retype-2")
    ),
    *(
        f"test_every_combination_of_changes_under_drop[{by_key}-{row}]"
        for by_key in (False, True)
        for row in ("remove-retype", "retype-nothing", "update-retype")
    ),
)
"""Tests that recreate a key as another type in one commit."""


class Plain(Served):
    """A server that is used in plain REST v2.

    Operations that REST v2 lacks are listed here, each with its reason.
    """

    MESSAGES = "a tag has no message"
    REFLOG = (
        "only the former hashes of existing references are available, not who moved them, how, and"
        " what was deleted"
    )
    RESTORED = "a deleted content comes back with a new content id"
    RENAMES = "a rename is refused, unless the other branch made it as well"
    TAKEN = "a commit cannot move a content to a key that another content leaves"
    SKIPPED = "skipped commits are not reported"
    SETTINGS = "there is no place for settings"
    LACKING: Mapping[str, str] = {
        **dict.fromkeys(RETYPED, "one commit cannot replace a content by another type"),
        "test_a_deleted_reference_can_be_restored_from_the_reflog": REFLOG,
        "test_a_tag_keeps_its_message": MESSAGES,
        "test_a_rename_is_in_the_reflog_of_both_names": REFLOG,
        "test_a_request_id_transplants_once": (
            "a transplant of several commits keeps their metadata, so its request leaves no trace"
        ),
        "test_any_other_value_validates_namespaces": SETTINGS,
        "test_a_change_of_a_setting_under_a_request_id_happens_once": SETTINGS,
        "test_a_repeated_change_of_a_setting_is_not_compared_again": SETTINGS,
        "test_a_setting_changes_only_from_its_expected_value": SETTINGS,
        "test_a_repository_setting_can_be_reverted": SETTINGS,
        "test_changes_of_settings_are_in_the_reflog": SETTINGS,
        "test_the_number_of_settings_is_limited": SETTINGS,
        "test_every_content_is_stored_exactly[PAIMON_TABLE]": (
            "a content of an unknown type is refused"
        ),
        "test_every_content_is_stored_exactly[iceberg_table]": (
            "a content of an unknown type is refused"
        ),
        "test_a_kept_key_before_a_conflict_names_no_commit_of_a_draft": (
            "the place of a kept content is not known"
        ),
        **dict.fromkeys(
            (
                "test_ours_is_what_earlier_commits_made_of_it",
                "test_ours_is_the_value_that_was_given_for_an_earlier_commit",
            ),
            "the commit is not known that changed a content under another key",
        ),
        "test_a_decision_keeps_the_namespace_of_the_target": "such a decision is refused",
        "test_a_conflict_with_a_deletion_has_no_content_of_ours": (
            "another table at the key is reported, not the deletion of the first"
        ),
        "test_a_content_that_is_left_out_is_listed_beside_the_one_that_stays": (
            "keys that stay as they are are listed, too"
        ),
        "test_a_resolved_content_stays_if_theirs_deleted_it": (
            "a content for a key that the source deleted is refused"
        ),
        **dict.fromkeys(
            (
                "test_theirs_is_no_option_if_it_removes_a_namespace_with_contents",
                "test_the_content_that_takes_the_key_of_a_namespace_is_named_by_its_id",
            ),
            "the contents below a namespace are not read",
        ),
        "test_heights_count_first_parents": "the height of a commit is not available",
        **dict.fromkeys(
            (
                "test_a_claim_shows_the_value_that_theirs_would_give_the_key",
                "test_a_creation_and_a_rename_conflict",
                "test_a_decision_is_not_about_a_content_that_had_the_key_before",
                "test_a_deletion_of_a_renamed_content_conflicts_under_its_new_key",
                "test_a_former_key_means_the_content_if_no_other_one_has_it",
                "test_a_lost_claim_gives_the_content_its_other_key",
                "test_a_namespace_with_the_old_key_of_a_renamed_one_is_another_one",
                "test_a_new_content_at_the_old_key_is_not_a_rename",
                "test_a_pick_follows_a_rename",
                "test_a_rename_and_a_new_content_at_the_old_key_are_two_contents",
                "test_a_rename_into_a_namespace_that_the_target_dropped_is_refused",
                "test_a_renamed_and_changed_table_merges_if_the_target_did_not_change_it[rename only]",
                "test_a_replaced_and_a_renamed_content_with_one_metadata_file_conflict",
                "test_a_resolved_content_has_the_merged_key",
                "test_forcing_a_rename_keeps_one_content_at_one_key",
                "test_random_histories_merge_as_the_model",
                "test_several_commits_are_listed_by_what_they_change_together",
                "test_options_name_the_contents_that_give_way",
                "test_swapped_names_merge_with_changes",
                "test_two_contents_claim_one_key",
                "test_what_a_merge_changes_is_listed",
            ),
            RENAMES,
        ),
        "test_a_change_that_ours_has_is_skipped": SKIPPED,
        "test_a_content_that_came_back_merges_as_the_same_one": RESTORED,
        "test_a_deleted_content_comes_back_under_its_id": RESTORED,
        "test_contents_of_many_commits_come_back_at_once": RESTORED,
        "test_a_reverted_replacement_or_deletion_has_its_id_back": RESTORED,
        "test_a_namespace_of_both_sides_is_that_of_theirs": "such a namespace is not listed",
        "test_a_namespace_that_is_still_needed_can_be_kept": (
            "a conflict of namespaces comes before those of keys, without a result"
        ),
        "test_a_namespace_that_was_created_again_gets_the_changes_of_the_other_side": (
            "a namespace that was created again is another one"
        ),
        **dict.fromkeys(
            (
                "test_contents_change_places_in_one_commit",
                "test_a_swap_is_reverted_with_both_ids",
                "test_a_renamed_table_takes_its_key_back_from_another_table",
            ),
            TAKEN,
        ),
        "test_a_merge_without_changes_is_recorded": "a merge without changes is not recorded",
        "test_decisions_are_for_a_commit_and_a_content": (
            "a transplant has one decision for each key"
        ),
        "test_many_renames_combine_with_many_changes": RENAMES,
        "test_reflog_entries_have_committer_time_and_reason": REFLOG,
        "test_renames_to_different_keys_conflict": RENAMES,
        "test_setting_a_value_returns_the_previous_one": SETTINGS,
        "test_source_renamed_and_target_changed_combine": RENAMES,
        "test_target_renamed_and_source_changed_combine": RENAMES,
        "test_messages_of_many_tags_are_read_at_once": MESSAGES,
        "test_the_reflog_of_all_references_is_one_sequence": REFLOG,
        "test_the_reflog_has_every_move_newest_first": REFLOG,
        "test_without_validation_merges_need_no_namespace": SETTINGS,
        "test_without_validation_keys_need_no_namespace": SETTINGS,
        "test_the_setting_makes_expected_content_mandatory_for_updates": SETTINGS,
    }

    @pytest.fixture(autouse=True)
    def carried(self, request: pytest.FixtureRequest) -> None:
        reason = self.LACKING.get(request.node.name) or self.LACKING.get(request.node.originalname)
        if reason:
            pytest.skip(reason)

    @pytest.mark.parametrize("new", [namespace("n"), view(2)])
    def test_a_replacement_by_another_type_is_refused_before_it_is_sent(
        self, catalog: Catalog, new: Content
    ) -> None:
        catalog.write("main", {"n": 1, "m": NS})
        head = catalog.head()
        for dry_run in (True, False):
            with pytest.raises(InvalidInput, match="commit the deletion of 'n' first"):
                catalog.repository.commit(
                    "main", [delete("n"), put("n", new)], CommitMeta(""), dry_run=dry_run
                )
        assert catalog.head() == head
        # The original replaces namespaces correctly.
        catalog.commit("main", delete("m"), put("m", table(3)))
        catalog.commit("main", delete("n"))
        catalog.commit("main", put("n", new))
        assert catalog.content("main", "n").type_name == new.type_name

    def test_a_move_to_the_key_of_another_content_is_refused_before_it_is_sent(
        self, catalog: Catalog
    ) -> None:
        catalog.write("main", {"a": 1, "b": 2})
        head = catalog.head()
        a, b = catalog.content("main", "a"), catalog.content("main", "b")
        for operations in ([put("a", b, a), put("b", a, b)], [put("a", b, a), delete("b")]):
            for dry_run in (True, False):
                with pytest.raises(InvalidInput, match="cannot move another content to 'a'"):
                    catalog.repository.commit("main", operations, CommitMeta(""), dry_run=dry_run)
        assert catalog.head() == head
        catalog.commit("main", delete("a"))
        catalog.rename("main", "b", "a")
        assert catalog.content("main", "a").id == b.id

    @pytest.mark.parametrize("value", [None, 2])
    @pytest.mark.parametrize("side", ["ours", "theirs"])
    def test_a_rename_that_cannot_be_merged_is_refused_and_can_be_made_first(
        self, catalog: Catalog, side: str, value: int | None
    ) -> None:
        catalog.write("main", {"old": 1})
        catalog.branch("dev")
        renaming, changing = ("main", "dev") if side == "ours" else ("dev", "main")
        catalog.rename(renaming, "old", "new")
        catalog.write(changing, {"aside": 1} if value is None else {"old": value})
        if side == "ours" and value is None:
            catalog.merge_contents("dev")
        else:
            head = catalog.head()
            for dry_run in (True, False):
                with pytest.raises(
                    ReferenceConflict, match=f"nessie --ref {changing} content rename old new"
                ):
                    catalog.merge_contents("dev", dry_run=dry_run)
            with pytest.raises(ReferenceConflict, match="content rename"):
                catalog.repository.draft(Merge("main", "dev")).answer()
            assert catalog.head() == head
            catalog.rename(changing, "old", "new")
            catalog.merge_contents("dev")
        assert catalog.numbers() == {"new": value or 1} | ({} if value else {"aside": 1})

    def test_no_line_renames_a_namespace_without_its_contents(self, catalog: Catalog) -> None:
        catalog.write("main", {"n": NS, "n.a": 1})
        catalog.branch("dev")
        n, a = catalog.content("dev", "n"), catalog.content("dev", "n.a")
        moves = delete("n"), delete("n.a"), put("x", namespace("x", n.id)), put("x.a", a)
        catalog.commit("dev", *moves)
        catalog.write("main", {"x": 5})
        with pytest.raises(ReferenceConflict) as refused:
            catalog.merge_contents("dev", behaviors=[behave("x", "DROP")])
        assert refused.value.hint == "make this change by a commit first, then try again"

    @pytest.mark.parametrize("side", ["ours", "theirs"])
    def test_a_transplant_over_a_rename_is_refused(self, catalog: Catalog, side: str) -> None:
        catalog.write("main", {"old": 1})
        catalog.branch("dev")
        if side == "ours":
            catalog.rename("main", "old", "new")
            picked = catalog.write("dev", {"old": 2})
            line = "nessie --ref main content rename new old"
        else:
            picked = catalog.rename("dev", "old", "new")
            line = "nessie --ref main content rename old new"
        before = catalog.numbers()
        with pytest.raises(ReferenceConflict, match=line):
            catalog.transplant_contents([picked])
        assert catalog.numbers() == before

    def test_a_decision_about_a_renamed_content_is_for_both_keys(self, catalog: Catalog) -> None:
        catalog.write("main", {"old": 1})
        catalog.branch("dev")
        catalog.rename("dev", "old", "new", 2)
        catalog.write("main", {"old": 3})
        with pytest.raises(MergeConflict):
            catalog.merge_contents("dev")
        kept = catalog.merge_contents("dev", behaviors=[behave("old", "DROP")], dry_run=True)
        assert touched(kept) == {"old": "DROP"}
        catalog.merge_contents("dev", behaviors=[behave("old", "FORCE")])
        assert catalog.numbers() == {"new": 2}

    @pytest.mark.parametrize("by_id", [False, True])
    def test_a_transplant_that_keeps_a_namespace_is_refused(
        self, catalog: Catalog, by_id: bool
    ) -> None:
        catalog.write("main", {"a": 1})
        catalog.branch("dev")
        picked = catalog.write("dev", {"n": NS})
        head = catalog.write("main", {"n": NS})
        content_id = catalog.id("dev", "n") if by_id else None
        kept = KeyBehavior(key("n"), MergeBehavior.DROP, content_id=content_id)
        with pytest.raises(ReferenceConflict, match="it cannot give n the result"):
            catalog.transplant_contents([picked], behaviors=[kept])
        assert catalog.head() == head

    @pytest.mark.parametrize("verb", ["merge", "transplant"])
    @pytest.mark.parametrize("value", [None, 2])
    @pytest.mark.parametrize("side", ["ours", "theirs"])
    def test_a_deletion_conflicts_with_a_rename(
        self, catalog: Catalog, side: str, value: int | None, verb: str
    ) -> None:
        catalog.write("main", {"old": 1, "aside": 1})
        catalog.branch("dev")
        renaming, deleting = ("main", "dev") if side == "ours" else ("dev", "main")
        catalog.rename(renaming, "old", "new", value)
        catalog.write(deleting, {"old": None})
        if verb == "merge":
            catalog.write("dev", {"theirs": 5})
            catalog.write("main", {"ours": 6})

        def combine(**options: Any) -> MergeResult:
            if verb == "merge":
                return catalog.merge_contents("dev", **options)
            return catalog.transplant_contents([catalog.head("dev")], **options)

        before = catalog.numbers()
        for dry_run in (True, False):
            with pytest.raises(MergeConflict) as refused:
                combine(dry_run=dry_run)
        (conflict,) = refused.value.result.conflicts
        assert (conflict.key, conflict.base_key) == (key("new"), key("old"))
        # The original loses a content that the source only renamed, and edits no key of the target.
        # In a transplant, it leaves out only keys that are in conflict themselves.
        possible = ["FORCE"] if side == "theirs" and value else []
        if verb == "merge" or side == "ours":
            possible.append("DROP")
        assert [option.behavior.value for option in conflict.options] == possible
        for each in {"DROP", "FORCE"} - {*possible}:
            with pytest.raises(ReferenceConflict, match="merges key by key"):
                combine(behaviors=[behave("new", each)])
        assert catalog.numbers() == before
        if not possible:
            return
        combine(behaviors=[behave("new", possible[0])])
        taken = {"new": 2} if "FORCE" in possible else {}
        created = {"theirs": 5} if verb == "merge" else {}
        assert catalog.numbers() == before | created | taken

    def test_a_merge_of_new_contents_and_deletions_needs_no_decisions(
        self, catalog: Catalog
    ) -> None:
        catalog.write("main", {"a": 1, "b": 1, "both": 1})
        catalog.branch("dev")
        catalog.write("dev", {"a": None, "theirs": 2, "both": None})
        catalog.write("main", {"b": None, "ours": 2})
        catalog.merge_contents("dev")
        assert catalog.numbers() == {"theirs": 2, "ours": 2}

    @pytest.mark.parametrize("name", ["new", "id"])
    def test_a_decision_is_about_the_key_at_the_expected_hash(
        self, catalog: Catalog, name: str
    ) -> None:
        catalog.write("main", {"old": 1, "aside": 1})
        catalog.branch("dev")
        catalog.rename("dev", "old", "new", 2)
        expected = catalog.rename("main", "old", "ours")
        content_id = catalog.id("main", "ours") if name == "id" else None
        decision = KeyBehavior(key("new"), MergeBehavior.FORCE, content_id=content_id)
        head = catalog.write("main", {"ours": None})
        for dry_run in (True, False):
            with pytest.raises(ReferenceMoved, match="has changed ours since"):
                catalog.merge_contents(
                    "dev", behaviors=[decision], expected_hash=expected, dry_run=dry_run
                )
        assert catalog.head() == head
        later = catalog.write("main", {"other": 5})
        catalog.merge_contents("dev", behaviors=[decision], expected_hash=head)
        assert later in catalog.top().meta.parents
        assert catalog.numbers() == {"aside": 1, "new": 2, "other": 5}

    def test_a_range_with_two_decisions_about_a_content_is_refused(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        catalog.branch("dev")
        commits = [catalog.write("dev", {"a": 2}), catalog.write("dev", {"a": 3})]
        catalog.write("main", {"a": 9})
        sides = zip(commits, (MergeBehavior.DROP, MergeBehavior.FORCE), strict=True)
        behaviors = [KeyBehavior(key("a"), side, commit=commit) for commit, side in sides]
        with pytest.raises(ReferenceConflict, match="one commit after the other"):
            catalog.transplant_contents(commits, behaviors=behaviors)
        catalog.transplant_contents(commits[:1], behaviors=behaviors[:1])
        catalog.transplant_contents(commits[1:], behaviors=behaviors[1:])
        assert catalog.numbers() == {"a": 3}


class TestPlain(Plain, Divides, Searches):
    """Our own server without its extensions."""

    @pytest.fixture
    def repository(self, servers: Servers, store: str) -> Iterator[Repository]:
        with servers.serving(store) as address, plain(address) as opened:
            yield opened

    def test_decisions_name_a_content_that_was_created_again_and_is_deleted(
        self, catalog: Catalog
    ) -> None:
        """The server decides about the key: the branch has another content there now."""
        catalog.write("main", {"a": 1, "b": 2})
        catalog.branch("dev")
        catalog.write("dev", {"a": None, "b": 3})
        catalog.recreate("main", "a", table(4))
        catalog.write("main", {"b": 5})
        with pytest.raises(MergeConflict) as refused:
            catalog.merge_contents("dev", behaviors=[behave("a", "FORCE")])
        assert refused.value.decided.deletes == (key("a"),)
        assert [conflict.key for conflict in refused.value.conflicts] == [key("b")]

    def test_each_decision_about_a_transplant_of_several_commits_can_be_carried_out(
        self, catalog: Catalog
    ) -> None:
        """A later commit changes the content that the first one creates."""
        catalog.write("main", {"aside": 1})
        catalog.branch("dev")
        commits = [catalog.write("dev", {"a": 2}), catalog.write("dev", {"a": 3})]
        catalog.write("main", {"a": 4})
        with pytest.raises(MergeConflict) as refused:
            catalog.transplant_contents(commits)
        (conflict,) = refused.value.conflicts
        assert conflict.options
        for option in conflict.options:
            decision = behave("a", option.behavior.value)
            # Another conflict can be left, but the server carries out the decision.
            with suppress(ReferenceConflict):
                catalog.transplant_contents(commits, behaviors=[decision], dry_run=True)

    def test_a_message_of_a_tag_is_refused_before_anything_is_created(
        self, repository: Repository
    ) -> None:
        change = CreateReference(ReferenceType.TAG, "v1", NO_ANCESTOR, "a message")
        for refused in (repository.submit, repository.draft):
            with pytest.raises(InvalidInput, match="keeps no message of a tag"):
                refused(change)
        assert [found.name for found in repository.references()] == ["main"]
        assert repository.messages(["v1"]) == {}


def plain(address: str) -> Repository:
    """A repository that uses only REST v2."""
    return open_remote(address, Access(), os.urandom, extensions=False)
