"""The repository contract over the original server, through our remote repository.

`make test-original` runs it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nessie_cli.model import NO_ANCESTOR
from nessie_cli.repository.base import Repository
from nessie_cli.repository.opening import connect
from tests.original.server import Original
from tests.repository.plain_remote import Plain


class TestOriginal(Plain):
    """The released original. Overrides list its differences with reasons.

    D1, D2 ... are rows of `docs/reference/differences.md`.
    """

    EMPTY_SOURCE = "D10: merging a source at the empty history deletes everything"
    FAR = "0.99.0 knows no predecessor beyond the 2147483646th"
    FAULT = "a bug of the original: it answers 500"
    ID = "D14: a resolved content takes the id that it is given"
    ORPHAN = "D11: a key may be left without its namespace"
    RENAMES = "D12: a content gets two keys, or is lost if the source renamed it"
    SAME_CHANGE = "D18: the same change on both sides is a conflict"
    TIME = (
        "the time that it looks for is finer than the one that it tells: a commit is found a"
        " microsecond later"
    )
    LACKING = Plain.LACKING | {
        "test_a_second_key_is_a_conflict": RENAMES,
        "test_a_second_key_of_a_namespace_on_both_sides_is_a_conflict": RENAMES,
        "test_random_histories_have_no_second_key": RENAMES,
        "test_a_new_content_at_the_old_key_is_not_a_rename": RENAMES,
        "test_a_rename_into_a_namespace_that_the_target_dropped_is_refused": RENAMES,
        "test_a_renamed_and_changed_table_merges_if_the_target_did_not_change_it": RENAMES,
        "test_a_resolved_content_cannot_change_the_id": ID,
        "test_a_dropped_namespace_does_not_exist_for_its_keys": ORPHAN,
        "test_the_predecessor_of_the_first_commit_is_the_empty_history": FAR,
        "test_force_edits_only_keys_that_the_source_changed": SAME_CHANGE,
        "test_forcing_a_rename_keeps_one_content_at_one_key": RENAMES,
        "test_renames_are_transplanted": RENAMES,
        "test_merging_the_empty_history_changes_nothing": EMPTY_SOURCE,
        "test_only_equal_changes_create_no_commit": SAME_CHANGE,
        "test_the_same_change_on_both_sides_does_not_conflict": SAME_CHANGE,
        "test_the_same_rename_on_both_sides_does_not_conflict": RENAMES,
        "test_every_combination_of_changes_under_normal[remove-remove-the same change-None]": SAME_CHANGE,
        "test_times_are_resolved": TIME,
        "test_invalid_behaviors_are_refused[twice]": FAULT,
        "test_a_deletion_without_effect_is_not_transplanted": FAULT,
    }

    @pytest.fixture
    def repository(self, server: Original) -> Iterator[Repository]:
        """The one server, reset: only `main`, at the empty history.

        Commits of earlier tests remain in its store, but are unreachable.
        """
        with connect(f"{server.url}/api/v2") as opened:
            for reference in list(opened.references()):
                if reference.name != "main":
                    opened.delete_reference(reference.name, expected_hash=reference.hash)
            opened.assign_reference(
                "main", NO_ANCESTOR, expected_hash=opened.reference("main").hash
            )
            yield opened

    @pytest.fixture(autouse=True)
    def check_store(self) -> None:
        """Its store cannot be checked."""
