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

RETYPED = (
    *(
        f"test_the_table_of_conflicts[{action}-same-type-PAYLOAD_DIFFERS]"
        for action in ("delete", "move", "put", "recreate", "unchanged")
    ),
    "test_a_recreated_key_that_the_target_changed_conflicts[retype-update]",
    "test_all_conflicts_are_reported_at_once",
    "test_delete_then_put_without_id_creates_again[content1]",
    "test_delete_then_put_without_id_creates_again[content2]",
    "test_the_table_under_normal[remove-retype-PAYLOAD_DIFFERS-None]",
    "test_the_table_under_normal[retype-nothing-None-view 2]",
    "test_the_table_under_normal[update-retype-PAYLOAD_DIFFERS-2]",
    *(
        f"test_the_table_under_force[{by_key}-{row}]"
        for by_key in (False, True)
        for row in ("remove-retype-None", "retype-nothing-view 2", "update-retype-2")
    ),
    *(
        f"test_the_table_under_drop[{by_key}-{row}]"
        for by_key in (False, True)
        for row in ("remove-retype", "retype-nothing", "update-retype")
    ),
)
"""Tests that create a key again as another type in one commit."""


class TestOriginal(Plain):
    """The released original. Overrides name its differences with reasons.

    D1, D2 ... are rows of `docs/reference/differences.md`.
    """

    EMPTY_SOURCE = "D10: merging a source at the empty history deletes everything"
    FAR = "0.99.0 knows no predecessor beyond the 2147483646th"
    FAULT = "a bug of the original: it answers 500"
    ID = "D14: a resolved content takes the id that it is given"
    ORPHAN = "D11: a key may be left without its namespace"
    RENAMES = "D12: renames are taken for removals and additions"
    RETYPE = "0.99.0 cannot create a key again as another type in one commit; 0.108.5 can"
    SAME_CHANGE = "D18: the same change on both sides is a conflict"
    TIME = (
        "the time that it looks for is finer than the one that it tells: a commit is found a"
        " microsecond later"
    )
    LACKING = Plain.LACKING | {
        **dict.fromkeys(RETYPED, RETYPE),
        "test_a_new_content_under_the_old_key_is_no_rename": RENAMES,
        "test_a_rename_into_a_namespace_that_the_target_dropped_is_refused": RENAMES,
        "test_a_renamed_and_changed_table_merges_cleanly_when_the_target_left_it_alone": RENAMES,
        "test_a_resolved_content_never_changes_the_id": ID,
        "test_a_dropped_namespace_serves_no_key_below_it": ORPHAN,
        "test_beyond_the_first_commit_lies_the_empty_history": FAR,
        "test_forcing_over_a_rename_leaves_one_content_at_one_key": RENAMES,
        "test_renames_are_transplanted": RENAMES,
        "test_the_empty_history_brings_nothing": EMPTY_SOURCE,
        "test_the_same_change_alone_makes_no_commit": SAME_CHANGE,
        "test_the_same_change_on_both_sides_is_no_conflict": SAME_CHANGE,
        "test_the_same_rename_on_both_sides_is_no_conflict": RENAMES,
        "test_the_table_under_normal[remove-remove-the same change-None]": SAME_CHANGE,
        "test_times": TIME,
        "test_wrong_behaviors_are_refused[twice]": FAULT,
    }

    @pytest.fixture
    def repository(self, server: Original) -> Iterator[Repository]:
        """The one server, as a new one: only `main`, at the empty history.

        Commits of earlier tests are in its store, but nothing leads to them.
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
    def sound(self) -> None:
        """Its store cannot be looked at."""
