"""References: names, kinds, listing, moves and the reflog."""

from __future__ import annotations

from typing import Any

import pytest

from nessie_cli.errors import (
    AlreadyExists,
    CommitNotFound,
    InvalidInput,
    NessieError,
    ReferenceConflict,
    ReferenceMoved,
    ReferenceNotFound,
)
from nessie_cli.model import MAX_NAME_LENGTH, ConflictType, Reference, ReferenceType, ReflogType
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import PutSettings
from nessie_cli.repository.settings import MOST_SETTINGS
from tests.repository.vocabulary import EMPTY, NOBODY, Catalog

BRANCH, TAG = ReferenceType.BRANCH, ReferenceType.TAG
LONGEST = pytest.param("a" * MAX_NAME_LENGTH, id="longest")
BOTH = pytest.mark.parametrize("kind", [BRANCH, TAG])


class References:
    def test_a_new_repository_has_only_the_default_branch_at_the_empty_history(
        self, repository: Repository
    ) -> None:
        assert list(repository.references()) == [Reference(BRANCH, "main", EMPTY)]
        assert repository.config().default_branch == "main"
        assert list(repository.entries("main")) == []
        assert list(repository.log("main")) == []

    @BOTH
    def test_creating_a_reference_returns_it(self, catalog: Catalog, kind: ReferenceType) -> None:
        head = catalog.write("main", {"a": 1})
        created = catalog.repository.create_reference(kind, "x/y", head)
        assert created == Reference(kind, "x/y", head)
        assert catalog.repository.reference("x/y") == created
        assert catalog.numbers("x/y") == {"a": 1}

    def test_a_tag_keeps_its_message(self, catalog: Catalog) -> None:
        repository, first = catalog.repository, catalog.write("main", {"a": 1})
        head = catalog.write("main", {"a": 2})
        repository.create_reference(TAG, "v1", first, message="Figures of March\n\nä")
        repository.create_reference(TAG, "v2", first)
        messages = {"v1": "Figures of March\n\nä"}
        assert repository.messages(["v1", "v2", "main", "none"]) == messages
        repository.assign_reference("v1", head, expected_hash=first)
        assert repository.messages(["v1"]) == messages
        repository.rename_reference("v1", "r1", expected_hash=head)
        assert repository.messages(["v1", "r1"]) == {"r1": messages["v1"]}
        repository.delete_reference("r1", expected_hash=head)
        assert repository.messages(["r1"]) == {}
        repository.create_reference(TAG, "r1", head)
        assert repository.messages(["r1"]) == {}

    def test_messages_of_many_tags_are_read_at_once(self, catalog: Catalog) -> None:
        names = [f"v{number}" for number in range(220)]
        for name in names[::20]:
            catalog.repository.create_reference(TAG, name, EMPTY, message=f"of {name}")
        assert catalog.repository.messages(names) == {name: f"of {name}" for name in names[::20]}

    def test_a_branch_has_no_message(self, catalog: Catalog) -> None:
        with pytest.raises(InvalidInput):
            catalog.repository.create_reference(BRANCH, "dev", EMPTY, message="a message")
        assert [r.name for r in catalog.repository.references()] == ["main"]

    @BOTH
    def test_a_reference_may_point_to_the_empty_history(
        self, catalog: Catalog, kind: ReferenceType
    ) -> None:
        catalog.write("main", {"a": 1})
        catalog.repository.create_reference(kind, "empty", EMPTY)
        assert catalog.numbers("empty") == {}

    def test_a_reference_may_point_to_any_commit(self, catalog: Catalog) -> None:
        first = catalog.write("main", {"a": 1})
        catalog.write("main", {"a": 2})
        catalog.branch("old", first)
        assert catalog.numbers("old") == {"a": 1}

    @BOTH
    def test_creation_at_an_unknown_commit_is_refused(
        self, catalog: Catalog, kind: ReferenceType
    ) -> None:
        with pytest.raises(CommitNotFound):
            catalog.repository.create_reference(kind, "x", NOBODY)
        assert [r.name for r in catalog.repository.references()] == ["main"]

    @pytest.mark.parametrize("target", ["", "xyz", "main~1", "2e1c 2e1c"])
    def test_creation_at_an_invalid_hash_is_refused(self, catalog: Catalog, target: str) -> None:
        with pytest.raises(NessieError) as refused:
            catalog.repository.create_reference(BRANCH, "x", target)
        assert refused.value.status in (400, 404)
        assert [r.name for r in catalog.repository.references()] == ["main"]

    @BOTH
    @pytest.mark.parametrize("taken", [BRANCH, TAG])
    def test_names_are_unique_among_branches_and_tags(
        self, catalog: Catalog, kind: ReferenceType, taken: ReferenceType
    ) -> None:
        head = catalog.write("main", {"a": 1})
        catalog.repository.create_reference(taken, "x", EMPTY)
        with pytest.raises(AlreadyExists) as refused:
            catalog.repository.create_reference(kind, "x", head)
        assert refused.value.name == "x"
        assert catalog.repository.reference("x") == Reference(taken, "x", EMPTY)

    def test_names_are_case_sensitive(self, catalog: Catalog) -> None:
        head = catalog.write("main", {"a": 1})
        catalog.branch("x", EMPTY)
        catalog.branch("X", head)
        catalog.branch("Main", EMPTY)
        assert (catalog.head("x"), catalog.head("X"), catalog.head("main")) == (EMPTY, head, head)
        with pytest.raises(ReferenceNotFound):
            catalog.repository.reference("MAIN")

    @pytest.mark.parametrize(
        "name",
        [
            "HEAD",
            "head",
            "DETACHED",
            "Detached",
            "deadbeef",
            "a" * 64,
            "1x",
            "a..b",
            "a/",
            "a.",
            "",
            "-",
            "a b",
            "ä",
            "a@b",
            pytest.param("a" * (MAX_NAME_LENGTH + 1), id="too long"),
        ],
    )
    def test_forbidden_names_are_refused(self, catalog: Catalog, name: str) -> None:
        with pytest.raises(InvalidInput):
            catalog.repository.create_reference(BRANCH, name, EMPTY)
        assert [r.name for r in catalog.repository.references()] == ["main"]

    @pytest.mark.parametrize(
        "name", ["a", "beef", "x-", "a//b", "v1.0", "feature/JIRA-1_x", LONGEST]
    )
    def test_unusual_names_are_allowed(self, catalog: Catalog, name: str) -> None:
        catalog.tag(name, EMPTY)
        assert catalog.repository.reference(name).name == name

    def test_the_error_names_the_unknown_reference(self, repository: Repository) -> None:
        with pytest.raises(ReferenceNotFound, match="nosuch") as refused:
            repository.reference("nosuch")
        assert refused.value.name == "nosuch"

    # -- listing --

    def test_branches_come_first_then_tags_each_by_name(self, catalog: Catalog) -> None:
        for name in ("z", "B", "a/2", "a/1", "m"):
            catalog.branch(name, EMPTY)
        for name in ("y", "A", "c"):
            catalog.tag(name, EMPTY)
        names = [(r.type, r.name) for r in catalog.repository.references()]
        assert names == [
            *((BRANCH, n) for n in ("B", "a/1", "a/2", "m", "main", "z")),
            *((TAG, n) for n in ("A", "c", "y")),
        ]

    def test_listing_by_kind_prefix_and_start(self, catalog: Catalog) -> None:
        for name in ("dev", "dev/1", "dev/2", "develop", "x"):
            catalog.branch(name, EMPTY)
        catalog.tag("dev/tag", EMPTY)

        def names(*arguments: Any, **options: Any) -> list[str]:
            return [r.name for r in catalog.repository.references(*arguments, **options)]

        assert names(BRANCH) == ["dev", "dev/1", "dev/2", "develop", "main", "x"]
        assert names(TAG) == ["dev/tag"]
        assert names(prefix="dev/") == ["dev/1", "dev/2", "dev/tag"]
        assert names(BRANCH, prefix="dev") == ["dev", "dev/1", "dev/2", "develop"]
        assert names(BRANCH, start="dev/2") == ["dev/2", "develop", "main", "x"]
        assert names(BRANCH, start="dev/15") == ["dev/2", "develop", "main", "x"]
        assert names(BRANCH, prefix="dev/", start="dev/2") == ["dev/2"]
        assert names(BRANCH, start="zzz") == []
        assert names(prefix="nosuch") == []

    @pytest.mark.slow
    def test_long_listings_are_complete(self, catalog: Catalog) -> None:
        made = [f"b{n:04}" for n in range(1100)]
        for name in made:
            catalog.branch(name, EMPTY)
        assert [r.name for r in catalog.repository.references(BRANCH)] == [*made, "main"]
        assert [
            r.name for r in catalog.repository.references(BRANCH, start="b1000", prefix="b")
        ] == made[1000:]

    # -- metadata --

    def test_metadata_counts_commits_relative_to_the_default_branch(self, catalog: Catalog) -> None:
        base = catalog.write("main", {"a": 1})
        catalog.branch("dev")
        catalog.write("dev", {"b": 1})
        head = catalog.write("dev", {"b": 2}, "subject\n\nbody")
        catalog.write("main", {"a": 2})
        metadata = catalog.repository.reference("dev", metadata=True).metadata
        assert metadata is not None
        assert (metadata.ahead, metadata.behind, metadata.common_ancestor, metadata.total) == (
            2,
            1,
            base,
            3,
        )
        assert metadata.head is not None
        assert (metadata.head.hash, metadata.head.subject) == (head, "subject")

    def test_metadata_of_the_default_branch_and_of_tags_has_no_counts(
        self, catalog: Catalog
    ) -> None:
        catalog.write("main", {"a": 1})
        head = catalog.write("main", {"a": 2})
        catalog.tag("t")
        for name in ("main", "t"):
            metadata = catalog.repository.reference(name, metadata=True).metadata
            assert metadata is not None
            assert (metadata.ahead, metadata.behind, metadata.common_ancestor, metadata.total) == (
                None,
                None,
                None,
                2,
            )
            assert metadata.head is not None
            assert metadata.head.hash == head

    def test_a_reference_at_the_empty_history_has_no_metadata(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        catalog.branch("empty", EMPTY)
        assert catalog.repository.reference("empty", metadata=True).metadata is None

    def test_unrelated_histories_meet_at_the_empty_one(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        catalog.branch("other", EMPTY)
        for n in (1, 2, 3):
            catalog.write("other", {"b": n})
        metadata = catalog.repository.reference("other", metadata=True).metadata
        assert metadata is not None
        assert (metadata.ahead, metadata.behind, metadata.common_ancestor, metadata.total) == (
            3,
            1,
            EMPTY,
            3,
        )

    def test_counts_follow_first_parents_only(self, catalog: Catalog) -> None:
        base = catalog.write("main", {"a": 1})
        catalog.branch("dev")
        catalog.branch("side")
        for n in (1, 2, 3):
            catalog.write("side", {"s": n})
        catalog.merge("side", into="dev")
        metadata = catalog.repository.reference("dev", metadata=True).metadata
        assert metadata is not None
        assert (metadata.ahead, metadata.behind, metadata.common_ancestor, metadata.total) == (
            1,
            0,
            base,
            2,
        )

    def test_a_listing_has_the_same_metadata_as_each_reference(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        catalog.branch("dev")
        catalog.branch("empty", EMPTY)
        catalog.write("dev", {"b": 1})
        catalog.tag("t", "dev")
        listed = list(catalog.repository.references(metadata=True))
        assert listed == [catalog.repository.reference(r.name, metadata=True) for r in listed]
        assert all(r.metadata is None for r in catalog.repository.references())

    # -- assign --

    @BOTH
    def test_assigning_moves_a_reference_to_any_commit(
        self, catalog: Catalog, kind: ReferenceType
    ) -> None:
        first = catalog.write("main", {"a": 1})
        second = catalog.write("main", {"a": 2})
        catalog.repository.create_reference(kind, "x", first)
        assert catalog.repository.assign_reference("x", second, expected_hash=first) == Reference(
            kind, "x", second
        )
        assert catalog.numbers("x") == {"a": 2}
        assert catalog.repository.assign_reference("x", EMPTY, expected_hash=second) == Reference(
            kind, "x", EMPTY
        )
        assert catalog.numbers("x") == {}

    def test_the_default_branch_may_be_assigned(self, catalog: Catalog) -> None:
        first = catalog.write("main", {"a": 1})
        second = catalog.write("main", {"a": 2})
        catalog.repository.assign_reference("main", first, expected_hash=second)
        assert catalog.numbers() == {"a": 1}

    @pytest.mark.parametrize("stale", ["first", "nobody", "empty"])
    def test_assigning_with_a_stale_hash_conflicts(self, catalog: Catalog, stale: str) -> None:
        first = catalog.write("main", {"a": 1})
        second = catalog.write("main", {"a": 2})
        expected = {"first": first, "nobody": NOBODY, "empty": EMPTY}[stale]
        with pytest.raises(ReferenceMoved) as refused:
            catalog.repository.assign_reference("main", first, expected_hash=expected)
        (conflict,) = refused.value.conflicts
        assert (conflict.type, conflict.key) == (ConflictType.UNEXPECTED_HASH, None)
        assert (
            conflict.message
            == f"named-reference 'main' is not at expected hash '{expected}', but at '{second}'"
        )
        assert catalog.head() == second

    def test_assigning_to_an_unknown_commit_is_refused(self, catalog: Catalog) -> None:
        head = catalog.write("main", {"a": 1})
        with pytest.raises(CommitNotFound):
            catalog.repository.assign_reference("main", NOBODY, expected_hash=head)
        assert catalog.head() == head

    def test_assigning_an_unknown_reference_is_refused(self, repository: Repository) -> None:
        with pytest.raises(ReferenceNotFound):
            repository.assign_reference("nosuch", EMPTY, expected_hash=EMPTY)

    # -- delete --

    @BOTH
    def test_deleting_returns_the_deleted_reference(
        self, catalog: Catalog, kind: ReferenceType
    ) -> None:
        head = catalog.write("main", {"a": 1})
        catalog.repository.create_reference(kind, "x", head)
        assert catalog.repository.delete_reference("x", expected_hash=head) == Reference(
            kind, "x", head
        )
        with pytest.raises(ReferenceNotFound):
            catalog.repository.reference("x")
        assert [r.name for r in catalog.repository.references()] == ["main"]
        catalog.repository.create_reference(kind, "x", EMPTY)

    def test_deleting_with_a_stale_hash_conflicts(self, catalog: Catalog) -> None:
        head = catalog.write("main", {"a": 1})
        catalog.branch("x")
        with pytest.raises(ReferenceMoved) as refused:
            catalog.repository.delete_reference("x", expected_hash=EMPTY)
        assert [c.type for c in refused.value.conflicts] == [ConflictType.UNEXPECTED_HASH]
        assert catalog.head("x") == head

    @pytest.mark.parametrize("expected", [EMPTY, NOBODY])
    def test_the_default_branch_cannot_be_deleted(self, catalog: Catalog, expected: str) -> None:
        with pytest.raises(InvalidInput, match="Default branch 'main' cannot be deleted"):
            catalog.repository.delete_reference("main", expected_hash=expected)
        assert catalog.head() == EMPTY

    def test_deleting_an_unknown_reference_is_refused(self, repository: Repository) -> None:
        with pytest.raises(ReferenceNotFound):
            repository.delete_reference("nosuch", expected_hash=EMPTY)

    def test_commits_remain_after_their_branch_is_deleted(self, catalog: Catalog) -> None:
        catalog.branch("x", EMPTY)
        head = catalog.write("x", {"a": 1})
        catalog.repository.delete_reference("x", expected_hash=head)
        assert catalog.numbers(f"@{head}") == {"a": 1}
        catalog.branch("again", f"@{head}")
        assert catalog.numbers("again") == {"a": 1}

    # -- rename --

    @BOTH
    def test_renaming_keeps_kind_and_hash(self, catalog: Catalog, kind: ReferenceType) -> None:
        head = catalog.write("main", {"a": 1})
        catalog.repository.create_reference(kind, "old", head)
        assert catalog.repository.rename_reference("old", "new", expected_hash=head) == Reference(
            kind, "new", head
        )
        assert catalog.repository.reference("new") == Reference(kind, "new", head)
        with pytest.raises(ReferenceNotFound):
            catalog.repository.reference("old")

    def test_renaming_is_refused_like_creating_and_deleting(self, catalog: Catalog) -> None:
        head = catalog.write("main", {"a": 1})
        catalog.branch("old")
        catalog.tag("taken", EMPTY)
        before = catalog.everything()
        with pytest.raises(AlreadyExists):
            catalog.repository.rename_reference("old", "taken", expected_hash=head)
        with pytest.raises(InvalidInput):
            catalog.repository.rename_reference("old", "HEAD", expected_hash=head)
        with pytest.raises(InvalidInput):
            catalog.repository.rename_reference("old", "a..b", expected_hash=head)
        with pytest.raises(ReferenceMoved):
            catalog.repository.rename_reference("old", "new", expected_hash=EMPTY)
        with pytest.raises(ReferenceNotFound):
            catalog.repository.rename_reference("nosuch", "new", expected_hash=head)
        assert catalog.everything() == before

    # -- reflog --

    def test_the_reflog_has_every_move_newest_first(self, catalog: Catalog) -> None:
        catalog.branch("x", EMPTY)
        one = catalog.write("x", {"a": 1})
        two = catalog.write("x", {"a": 2})
        catalog.repository.assign_reference("x", one, expected_hash=two)
        catalog.repository.delete_reference("x", expected_hash=one)
        moves = [(e.before, e.after) for e in catalog.repository.reflog("x")]
        assert moves == [(one, None), (two, one), (one, two), (EMPTY, one), (None, EMPTY)]

    def test_reflog_entries_have_committer_time_and_reason(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1}, "first line\n\nmore")
        entry = next(catalog.repository.reflog("main"))
        assert (entry.reference, entry.type) == ("main", BRANCH)
        assert entry.operation
        assert entry.time.tzinfo is not None
        assert entry.time.utcoffset().total_seconds() == 0  # type: ignore[union-attr]

    def test_the_reflog_of_all_references_is_one_sequence(self, catalog: Catalog) -> None:
        catalog.branch("x", EMPTY)
        catalog.write("main", {"a": 1})
        catalog.tag("t")
        entries = list(catalog.repository.reflog())
        assert [e.reference for e in entries[:3]] == ["t", "main", "x"]
        numbers = [e.number for e in entries]
        assert numbers == sorted(numbers, reverse=True)
        assert len(set(numbers)) == len(numbers)

    def test_the_reflog_can_be_limited(self, catalog: Catalog) -> None:
        for n in (1, 2, 3):
            catalog.write("main", {"a": n})
        everything = list(catalog.repository.reflog("main"))
        assert list(catalog.repository.reflog("main", limit=2)) == everything[:2]
        assert list(catalog.repository.reflog(limit=1)) == everything[:1]
        third = everything[2].number
        assert list(catalog.repository.reflog("main", before=third)) == everything[3:]
        assert list(catalog.repository.reflog(before=third, limit=1)) == everything[3:4]

    def test_the_reflog_of_an_invalid_name_is_empty(self, catalog: Catalog) -> None:
        for name in ("R\udcff", "été"):
            assert list(catalog.repository.reflog(name)) == []
            with pytest.raises(ReferenceNotFound):
                catalog.repository.reference(name)

    def test_merges_and_transplants_are_in_the_reflog(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        catalog.branch("dev")
        one = catalog.write("dev", {"b": 1})
        merged = catalog.merge("dev").resultant_hash
        catalog.branch("other", EMPTY)
        moved = catalog.transplant([one], onto="other").resultant_hash
        assert next(catalog.repository.reflog("main")).after == merged
        assert next(catalog.repository.reflog("other")).after == moved

    def test_a_deleted_reference_can_be_restored_from_the_reflog(self, catalog: Catalog) -> None:
        catalog.branch("x", EMPTY)
        head = catalog.write("x", {"a": 1})
        catalog.repository.delete_reference("x", expected_hash=head)
        last = next(catalog.repository.reflog("x"))
        assert last.before == head
        catalog.repository.create_reference(last.type, last.reference, last.before)
        assert catalog.numbers("x") == {"a": 1}

    def test_a_rename_is_in_the_reflog_of_both_names(self, catalog: Catalog) -> None:
        head = catalog.write("main", {"a": 1})
        catalog.branch("old")
        catalog.repository.rename_reference("old", "new", expected_hash=head)
        assert next(catalog.repository.reflog("old")).after is None
        assert next(catalog.repository.reflog("old")).before == head
        assert next(catalog.repository.reflog("new")).after == head

    def test_refused_moves_are_not_in_the_reflog(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        before = list(catalog.repository.reflog())
        with pytest.raises(ReferenceMoved):
            catalog.repository.assign_reference("main", EMPTY, expected_hash=EMPTY)
        assert list(catalog.repository.reflog()) == before

    # -- settings --

    def test_setting_a_value_returns_the_previous_one(self, repository: Repository) -> None:
        assert repository.put_setting("retention", "30 days") is None
        assert repository.config().settings["retention"] == "30 days"
        assert repository.put_setting("retention", "ünï") == "30 days"
        assert repository.put_setting("retention", None) == "ünï"
        assert "retention" not in repository.config().settings

    def test_the_number_of_settings_is_limited(self, repository: Repository) -> None:
        many = {f"s{number}": "v" for number in range(MOST_SETTINGS)}
        with pytest.raises(InvalidInput, match="at most 1000 settings"):
            repository.submit(PutSettings({**many, "one.more": "v"}))
        repository.submit(PutSettings(many))
        with pytest.raises(InvalidInput, match="at most 1000 settings"):
            repository.put_setting("one.more", "v")
        repository.submit(PutSettings({"s0": None, "s1": "w", "one.more": "v"}))
        assert len(repository.config().settings) == MOST_SETTINGS

    def test_changes_of_settings_are_in_the_reflog(self, repository: Repository) -> None:
        before = next(repository.reflog()).number
        for value in ("30 days", "30 days", "ünï", None, None):
            repository.put_setting("main", value)
        entries = list(repository.reflog("setting:main"))
        assert entries == [one for one in repository.reflog() if one.number > before]
        assert [(one.value_before, one.value_after) for one in entries] == [
            ("ünï", None),
            ("30 days", "ünï"),
            (None, "30 days"),
        ]
        for entry in entries:
            assert (entry.type, entry.setting) == (ReflogType.SETTING, "main")
            assert (entry.reference, entry.before, entry.after) == ("setting:main", None, None)
            assert (entry.operation, entry.message) == ("settings", "")
        assert all(one.type is ReflogType.BRANCH for one in repository.reflog("main"))
        assert repository.reference("main")
        assert len({one.request_id for one in entries}) == len(entries)

    def test_a_change_of_a_setting_under_a_request_id_happens_once(
        self, repository: Repository
    ) -> None:
        for _ in range(2):
            assert repository.put_setting("retention", "1", request_id="set-1") is None
        assert len(list(repository.reflog("setting:retention"))) == 1

    def test_a_setting_changes_only_from_its_expected_value(self, repository: Repository) -> None:
        change = PutSettings({"retention": "1", "owner": "eva"}, {"retention": None})
        assert repository.submit(change) == {"retention": None, "owner": None}
        for wrong in ({"retention": None}, {"retention": "2"}, {"retention": "1", "absent": ""}):
            with pytest.raises(ReferenceConflict, match="has changed meanwhile"):
                repository.submit(PutSettings({"retention": "3", "owner": None}, wrong))
            with pytest.raises(ReferenceConflict, match="has changed meanwhile"):
                repository.draft(PutSettings({"retention": "3"}, wrong))
        assert repository.config().settings == {"retention": "1", "owner": "eva"}
        expected = {"retention": "1", "owner": "eva", "absent": None}
        repository.submit(PutSettings({"retention": None}, expected))
        assert repository.config().settings == {"owner": "eva"}

    def test_a_repeated_change_of_a_setting_is_not_compared_again(
        self, repository: Repository
    ) -> None:
        change = PutSettings({"retention": "1"}, {"retention": None})
        for _ in range(2):
            assert repository.submit(change, request_id="set-1") == {"retention": None}

    def test_the_configuration_has_format_and_creation_time(self, repository: Repository) -> None:
        config = repository.config()
        assert config.format
        assert config.created is None or config.created.tzinfo is not None
        assert not any(name.startswith(".") for name in config.settings)
