"""The repository contract in plain REST v2, as our client uses it with other servers.

`make test-plain` runs it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping

import pytest

from nessie_cli.errors import InvalidInput
from nessie_cli.model import NO_ANCESTOR, ReferenceType
from nessie_cli.repository.access import Access
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import CreateReference
from nessie_cli.repository.context import Context
from nessie_cli.repository.remote.opening import open_remote
from tests.repository.contract_division import Divides
from tests.repository.servers import Servers
from tests.repository.test_remote import Served


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    running = Servers()
    yield running
    running.close()


class Plain(Served):
    """A server that is used in plain REST v2.

    Operations that REST v2 lacks are listed here, each with its reason.
    """

    MESSAGES = "a tag has no message"
    REFLOG = (
        "only the former hashes of existing references are available, not who moved them, how, and"
        " what was deleted"
    )
    RENAMES = "renames are neither reported nor followed"
    SETTINGS = "there is no place for settings"
    LACKING: Mapping[str, str] = {
        "test_a_deleted_reference_can_be_restored_from_the_reflog": REFLOG,
        "test_a_tag_keeps_its_message": MESSAGES,
        "test_a_rename_is_in_the_reflog_of_both_names": REFLOG,
        "test_a_request_id_transplants_once": (
            "a transplant of several commits keeps their metadata, so its request leaves no trace"
        ),
        "test_any_other_value_validates_namespaces": SETTINGS,
        "test_a_repository_setting_can_be_reverted": SETTINGS,
        "test_every_content_is_stored_exactly[PAIMON_TABLE]": (
            "a content of an unknown type is refused"
        ),
        "test_every_content_is_stored_exactly[iceberg_table]": (
            "a content of an unknown type is refused"
        ),
        "test_heights_count_first_parents": "the height of a commit is not available",
        "test_many_renames_combine_with_many_changes": RENAMES,
        "test_reflog_entries_have_committer_time_and_reason": REFLOG,
        "test_renames_to_different_keys_conflict": RENAMES,
        "test_setting_a_value_returns_the_previous_one": SETTINGS,
        "test_source_renamed_and_target_changed_combine": RENAMES,
        "test_source_renamed_and_target_changed_is_one_conflict": RENAMES,
        "test_target_renamed_and_source_changed_combine": RENAMES,
        "test_target_renamed_and_source_changed_is_one_conflict": RENAMES,
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
        follows = hasattr(request.node, "callspec") and request.node.callspec.params.get("follow")
        if reason or follows:
            pytest.skip(reason or self.RENAMES)


class TestPlain(Plain, Divides):
    """Our own server without its extensions."""

    @pytest.fixture
    def repository(self, servers: Servers, store: str) -> Iterator[Repository]:
        with servers.serving(store) as address, plain(address) as opened:
            yield opened

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
    return open_remote(
        address, Access(), Context("", lambda: time.time_ns() // 1000, os.urandom), extensions=False
    )
