"""Commits: permission to commit, content ids, lists of operations, metadata, request ids."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from uuid import UUID

import pytest

from nessie_cli.errors import (
    CommitNotFound,
    InvalidInput,
    NessieError,
    ReferenceConflict,
    ReferenceNotFound,
)
from nessie_cli.model import (
    UDF,
    CommitMeta,
    ConflictType,
    Content,
    ContentKey,
    Delete,
    DeltaLakeTable,
    IcebergTable,
    IcebergView,
    Namespace,
    Operation,
    Put,
    UnknownContent,
)
from nessie_cli.repository.base import Repository
from tests.repository.vocabulary import (
    EMPTY,
    NOBODY,
    NS,
    Catalog,
    delete,
    found,
    key,
    namespace,
    put,
    table,
    unchanged,
    view,
)

SOME_ID = "6e0c39c3-8f2a-4d53-9d7a-0d9f2b3c4d5e"


class Commits:
    # -- the effect of a commit --

    def test_a_commit_moves_the_branch_and_returns_the_new_ids(self, catalog: Catalog) -> None:
        result = catalog.repository.commit(
            "main", [put("a", table(1)), put("n", namespace("n"))], CommitMeta("first")
        )
        assert result.applied
        assert result.reference == catalog.repository.reference("main")
        assert set(result.added) == {key("a"), key("n")}
        for k, content_id in result.added.items():
            assert str(UUID(content_id)) == content_id
            assert catalog.repository.content("main", k).id == content_id
        assert catalog.top().parent == EMPTY
        assert catalog.top().meta.parents == (EMPTY,)

    def test_an_update_returns_no_new_ids(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1, "b": 1})
        result = catalog.repository.commit(
            "main", [put("a", table(2, catalog.id("main", "a"))), delete("b")], CommitMeta("m")
        )
        assert result.added == {}
        assert catalog.numbers() == {"a": 2}

    def test_all_operations_are_committed_or_none(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        before = catalog.everything()
        with pytest.raises(ReferenceConflict):
            catalog.commit("main", put("b", table(1)), delete("nosuch"))
        assert catalog.everything() == before
        assert catalog.numbers() == {"a": 1}

    def test_the_parent_is_the_head_for_any_expected_hash(self, catalog: Catalog) -> None:
        one = catalog.write("main", {"a": 1})
        two = catalog.write("main", {"b": 1})
        catalog.commit("main", put("c", table(1)), at=one)
        assert catalog.top().parent == two
        assert catalog.numbers() == {"a": 1, "b": 1, "c": 1}

    def test_the_expected_hash_may_be_the_empty_history(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        catalog.commit("main", put("b", table(1)), at=EMPTY)
        assert catalog.numbers() == {"a": 1, "b": 1}

    def test_an_identical_put_creates_a_commit(self, catalog: Catalog) -> None:
        one = catalog.write("main", {"a": 1})
        two = catalog.write("main", {"a": 1})
        assert one != two
        assert catalog.hashes() == [two, one]
        assert catalog.top().operations == (put("a", table(1, catalog.id("main", "a"))),)

    def test_only_unchanged_operations_create_an_empty_commit(self, catalog: Catalog) -> None:
        one = catalog.write("main", {"a": 1})
        two = catalog.commit("main", unchanged("a"))
        assert catalog.hashes() == [two, one]
        assert catalog.top().operations == ()

    def test_unchanged_is_never_stored(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1, "b": 1})
        catalog.commit("main", unchanged("a"), put("b", table(2, catalog.id("main", "b"))))
        assert catalog.top().operations == (put("b", table(2, catalog.id("main", "b"))),)

    def test_operations_are_logged_deletes_first_each_kind_by_key(self, catalog: Catalog) -> None:
        catalog.write("main", {"d": 1, "b": 1, "n": NS})
        catalog.commit(
            "main",
            put("z", table(9)),
            delete("d"),
            put("n.x", table(8)),
            put("a", table(7)),
            delete("b"),
        )
        operations = catalog.top().operations
        assert operations is not None
        assert [(type(o), o.key.plain) for o in operations] == [
            (Delete, "b"),
            (Delete, "d"),
            (Put, "a"),
            (Put, "n.x"),
            (Put, "z"),
        ]
        assert catalog.log(operations=True)[0].operations == operations
        assert [o.content for o in operations if isinstance(o, Put)] == [
            catalog.content("main", k) for k in ("a", "n.x", "z")
        ]
        assert catalog.log()[0].operations is None

    def test_the_metadata_of_a_commit_is_limited(self, catalog: Catalog) -> None:
        many = [str(number) for number in range(10_001)]
        for meta in (
            CommitMeta("m", authors=tuple(many)),
            CommitMeta("m", properties=dict.fromkeys(many, ("",))),
        ):
            with pytest.raises(InvalidInput, match="has more than 10,000"):
                catalog.repository.commit("main", [put("a", table(1))], meta)
        for meta in (
            CommitMeta("é" * (1 << 19) + "!"),
            CommitMeta("m", authors=("a" * (1 << 20),)),
            CommitMeta("m", properties={"a": ("b" * (1 << 19), "c" * (1 << 19))}),
        ):
            with pytest.raises(InvalidInput, match="has more than 1,048,576 bytes of text"):
                catalog.repository.commit("main", [put("a", table(1))], meta)
        assert catalog.numbers() == {}

    def test_the_properties_of_a_namespace_are_limited(self, catalog: Catalog) -> None:
        properties = {str(number): "" for number in range(100_001)}
        content = Namespace(elements=("n",), properties=properties)
        with pytest.raises(InvalidInput, match=r"100,000 (properties|items)"):
            catalog.repository.commit("main", [Put(key("n"), content)], CommitMeta("m"))

    def test_a_thousand_operations_in_one_commit(self, catalog: Catalog) -> None:
        catalog.commit("main", *(put(f"t{n:04}", table(n)) for n in range(1000)))
        assert catalog.numbers() == {f"t{n:04}": n for n in range(1000)}
        state = catalog.repository.contents("main", [key(f"t{n:04}") for n in range(1000)])
        catalog.commit(
            "main", *(delete(k.plain) if number_is_even(c) else Put(k, c) for k, c in state.items())
        )
        assert catalog.numbers() == {f"t{n:04}": n for n in range(1, 1000, 2)}
        operations = catalog.top().operations
        assert operations is not None
        assert len(operations) == 1000

    def test_operations_may_come_from_a_generator(self, catalog: Catalog) -> None:
        catalog.repository.commit(
            "main", (put(f"t{n}", table(n)) for n in range(5)), CommitMeta("m")
        )
        assert len(catalog.numbers()) == 5

    def test_a_failing_generator_writes_nothing(self, catalog: Catalog) -> None:
        def broken() -> object:
            yield put("a", table(1))
            raise RuntimeError("the source broke")

        before = catalog.everything()
        with pytest.raises(RuntimeError, match="the source broke"):
            catalog.repository.commit("main", broken(), CommitMeta("m"))  # type: ignore[arg-type]
        assert catalog.everything() == before

    def test_equal_commits_on_two_branches_are_different(self, catalog: Catalog) -> None:
        catalog.branch("dev", EMPTY)
        one = catalog.commit("main", put("a", table(1)))
        two = catalog.commit("dev", put("a", table(1)))
        assert one != two
        assert catalog.id("main", "a") != catalog.id("dev", "a")

    # -- branches and expected hashes --

    def test_an_unknown_branch_is_not_found(self, catalog: Catalog) -> None:
        with pytest.raises(ReferenceNotFound):
            catalog.commit("nosuch", put("a", table(1)))

    def test_a_commit_to_a_tag_is_refused(self, catalog: Catalog) -> None:
        catalog.tag("v1", EMPTY)
        with pytest.raises(InvalidInput, match="must be a branch"):
            catalog.commit("v1", put("a", table(1)))

    def test_the_expected_hash_must_be_on_the_branch(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        catalog.branch("dev")
        aside = catalog.write("dev", {"b": 1})
        for hash_ in (aside, NOBODY):
            with pytest.raises(
                CommitNotFound, match=f"Could not find commit '{hash_}' in reference 'main'"
            ):
                catalog.commit("main", put("c", table(1)), at=hash_)

    def test_a_merged_commit_is_not_an_expected_hash_of_the_target(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        catalog.branch("dev")
        aside = catalog.write("dev", {"b": 1})
        catalog.write("main", {"c": 1})
        catalog.merge("dev")
        with pytest.raises(CommitNotFound):
            catalog.commit("main", put("d", table(1)), at=aside)

    def test_a_malformed_expected_hash_is_refused(self, catalog: Catalog) -> None:
        for hash_ in ("xyz", "main", ""):
            with pytest.raises(NessieError) as refused:
                catalog.commit("main", put("a", table(1)), at=hash_)
            assert refused.value.status in (400, 404)
        assert catalog.head() == EMPTY

    # -- content ids --

    @pytest.mark.parametrize(
        "content", [table(1, SOME_ID), namespace("a", SOME_ID), view(1, SOME_ID)]
    )
    def test_a_new_content_has_no_id(self, catalog: Catalog, content: Content) -> None:
        with pytest.raises(InvalidInput, match="New value for key 'a' must not have a content ID"):
            catalog.commit("main", put("a", content))

    def test_an_id_of_zeros_is_valid(self, catalog: Catalog) -> None:
        zeros = "00000000-0000-0000-0000-000000000000"
        with pytest.raises(InvalidInput, match="must not have a content ID"):
            catalog.commit("main", put("a", table(1, zeros)))
        catalog.write("main", {"a": 1})
        with pytest.raises(InvalidInput, match="already exists with content ID"):
            catalog.commit("main", put("a", table(1, zeros)))

    def test_an_update_needs_the_content_id(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        content_id = catalog.id("main", "a")
        catalog.commit("main", put("a", table(2, content_id)))
        assert catalog.content("main", "a") == table(2, content_id)

    def test_an_update_without_id_is_refused(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        with pytest.raises(
            InvalidInput, match="New value to update existing key 'a' has no content ID"
        ):
            catalog.commit("main", put("a", table(2)))

    def test_an_update_with_another_id_is_refused(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1, "b": 1})
        for other in (SOME_ID, catalog.id("main", "b")):
            with pytest.raises(
                InvalidInput,
                match=r"Key 'a' already exists with content ID .* which is different from the content ID",
            ):
                catalog.commit("main", put("a", table(2, other)))

    def test_ids_are_checked_at_the_expected_hash(self, catalog: Catalog) -> None:
        one = catalog.write("main", {"b": 1})
        catalog.write("main", {"a": 1})
        with pytest.raises(InvalidInput, match="must not have a content ID"):
            catalog.commit("main", put("a", table(2, catalog.id("main", "a"))), at=one)

    @pytest.mark.parametrize(
        "content_id", ["", "not-a-uuid", "123", "6e0c39c3-8f2a-4d53-9d7a-0d9f2b3c4d5"]
    )
    def test_an_id_that_is_not_a_uuid_is_refused(self, catalog: Catalog, content_id: str) -> None:
        with pytest.raises(InvalidInput):
            catalog.commit("main", put("a", table(1, content_id)))

    @pytest.mark.parametrize("put_first", [False, True])
    def test_a_rename_keeps_the_id(self, catalog: Catalog, put_first: bool) -> None:
        catalog.write("main", {"a": 1})
        content_id = catalog.id("main", "a")
        operations: list[Operation] = [delete("a"), put("b", table(1, content_id))]
        result = catalog.repository.commit(
            "main", operations[:: -1 if put_first else 1], CommitMeta("rename")
        )
        assert result.added == {}
        assert catalog.numbers() == {"b": 1}
        assert catalog.id("main", "b") == content_id

    def test_a_rename_may_also_change_the_content(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1, "n": NS})
        content_id = catalog.id("main", "a")
        catalog.commit("main", delete("a"), put("n.b", table(2, content_id)))
        assert catalog.content("main", "n.b") == table(2, content_id)

    def test_a_new_key_with_the_id_of_an_existing_content_is_refused(
        self, catalog: Catalog
    ) -> None:
        catalog.write("main", {"a": 1, "c": 1})
        with pytest.raises(InvalidInput, match="New value for key 'b' must not have a content ID"):
            catalog.commit("main", put("b", table(1, catalog.id("main", "a"))))
        with pytest.raises(InvalidInput):
            catalog.commit("main", delete("c"), put("b", table(1, catalog.id("main", "a"))))

    def test_a_rename_onto_an_existing_key_is_refused(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1, "b": 2})
        with pytest.raises(InvalidInput):
            catalog.commit("main", delete("a"), put("b", table(1, catalog.id("main", "a"))))

    def test_one_content_cannot_move_to_two_keys(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        content_id = catalog.id("main", "a")
        with pytest.raises(InvalidInput):
            catalog.commit(
                "main", delete("a"), put("b", table(1, content_id)), put("c", table(1, content_id))
            )

    def test_a_rename_cannot_change_the_type(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        with pytest.raises((InvalidInput, ReferenceConflict)):
            catalog.commit("main", delete("a"), put("b", view(1, catalog.id("main", "a"))))

    def test_an_update_cannot_change_the_type(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1, "n": NS})
        for operation in (
            put("a", view(1, catalog.id("main", "a"))),
            put("n", table(1, catalog.id("main", "n"))),
        ):
            with pytest.raises((InvalidInput, ReferenceConflict)) as refused:
                catalog.commit("main", operation)
            if isinstance(refused.value, ReferenceConflict):
                assert [c.type for c in refused.value.conflicts] == [ConflictType.PAYLOAD_DIFFERS]

    # -- drop and re-create --

    @pytest.mark.parametrize("content", [table(2), view(2), namespace("a")])
    def test_a_delete_and_a_put_without_id_recreate_a_content(
        self, catalog: Catalog, content: Content
    ) -> None:
        catalog.write("main", {"a": 1})
        old = catalog.id("main", "a")
        result = catalog.repository.commit(
            "main", [delete("a"), put("a", content)], CommitMeta("again")
        )
        new = catalog.id("main", "a")
        assert new != old
        assert result.added == {key("a"): new}
        assert catalog.content("main", "a") == content.with_id(new)

    def test_an_expected_content_never_lets_an_id_in_that_leaves_no_key(
        self, catalog: Catalog
    ) -> None:
        catalog.write("main", {"a": 1, "b": 1, "c": 1})
        there = catalog.content("main", "a")
        everything = catalog.everything()
        for other in (SOME_ID, catalog.id("main", "b")):
            for expected in (there, there.with_id(None), table(7, other), view(1)):
                for more in ([], [unchanged("b")], [delete("c")], [put("b", table(2, SOME_ID))]):
                    with pytest.raises(InvalidInput, match=r"content (ID|id)"):
                        catalog.commit("main", put("a", table(2, other), expected), *more)
        assert catalog.everything() == everything

    @pytest.mark.parametrize("moves", ["ab ba", "ab bc ca", "ab bc", "ab bc cd da", "ab"])
    def test_contents_change_places_in_one_commit(self, catalog: Catalog, moves: str) -> None:
        """Each Put names the content that it displaces; the last one of a chain is dropped."""
        catalog.write("main", {"a": 1, "b": 2, "c": 3, "d": 4})
        before = {name: catalog.content("main", name) for name in "abcd"}
        pairs = [(pair[0], pair[1]) for pair in moves.split()]
        left = {old for old, _ in pairs} - {new for _, new in pairs}
        result = catalog.repository.commit(
            "main",
            [
                *(put(new, before[old], before[new]) for old, new in pairs),
                *(delete(old) for old in left),
            ],
            CommitMeta("trade"),
        )
        assert result.added == {}
        expected = {n: c for n, c in before.items() if n not in left} | {
            new: before[old] for old, new in pairs
        }
        assert {entry.key.plain for entry in catalog.repository.entries("main")} == set(expected)
        assert {name: catalog.content("main", name) for name in expected} == expected

    def test_an_id_that_moved_since_the_expected_hash_is_not_put_back(
        self, catalog: Catalog
    ) -> None:
        """The content of `a` is `b` now, and `a` has another one."""
        old = catalog.write("main", {"a": 1})
        moved = catalog.id("main", "a")
        catalog.rename("main", "a", "b")
        catalog.write("main", {"a": 5})
        there = catalog.content("main", "a")
        for expected in (there, there.with_id(None)):
            with pytest.raises(ReferenceConflict) as refused:
                catalog.commit("main", put("a", table(6, moved), expected), at=old)
            assert found(refused) == [("CONTENT_ID_DIFFERS", "a")]
        for operation in (delete("a"), put("a", table(6, moved), there)):
            with pytest.raises((ReferenceConflict, InvalidInput)):
                catalog.commit("main", operation, put("c", table(6, moved)), at=old)
        assert catalog.numbers() == {"a": 5, "b": 1}

    # -- lists of operations --

    def test_a_commit_requires_an_operation(self, catalog: Catalog) -> None:
        with pytest.raises(InvalidInput):
            catalog.commit("main")

    @pytest.mark.parametrize(
        "order",
        [
            "put put",
            "delete delete",
            "unchanged put",
            "put unchanged",
            "put delete",
            "delete unchanged",
            "unchanged unchanged",
        ],
    )
    def test_a_key_may_occur_once(self, catalog: Catalog, order: str) -> None:
        catalog.write("main", {"a": 1})
        words: dict[str, Operation] = {
            "put": put("a", table(2, catalog.id("main", "a"))),
            "delete": delete("a"),
            "unchanged": unchanged("a"),
        }
        with pytest.raises(InvalidInput, match="Duplicate key in commit operations: a"):
            catalog.commit("main", *(words[w] for w in order.split()))

    def test_only_a_delete_and_a_put_may_share_a_key(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1, "b": 1})
        same = table(2, catalog.id("main", "a"))
        attempts: list[list[Operation]] = [
            [put("a", table(2)), delete("a")],
            [delete("a"), put("a", same)],
            [delete("a"), put("a", table(2)), put("a", table(3))],
            [delete("a"), delete("a"), put("a", table(2))],
            [delete("b"), put("b", table(2, catalog.id("main", "a"))), delete("a")],
        ]
        for operations in attempts:
            with pytest.raises(InvalidInput):
                catalog.commit("main", *operations)
        assert catalog.numbers() == {"a": 1, "b": 1}

    def test_an_empty_key_is_refused(self, catalog: Catalog) -> None:
        for operation in (Put(ContentKey(()), table(1)), Delete(ContentKey(()))):
            with pytest.raises(InvalidInput):
                catalog.commit("main", operation)

    # -- metadata --

    def test_metadata_is_stored_unchanged(self, catalog: Catalog) -> None:
        when = datetime(2021, 3, 4, 5, 6, 7, 500_000, UTC)
        meta = CommitMeta(
            "subject\n\nbody ünï 漢字 🧊\n",
            authors=("ann <ann@example.org>", "bob"),
            signed_off_by=("carol", "dave"),
            author_time=when,
            properties={"k": ("v", "w"), "z": ("",), "a": ("1",)},
        )
        catalog.repository.commit("main", [put("a", table(1))], meta)
        kept = catalog.top().meta
        assert (kept.message, kept.authors, kept.signed_off_by, kept.author_time) == (
            meta.message,
            meta.authors,
            meta.signed_off_by,
            when,
        )
        assert {k: tuple(v) for k, v in kept.properties.items()} == meta.properties
        assert (kept.subject, kept.author) == ("subject", "ann <ann@example.org>")

    def test_missing_metadata_is_filled_in(self, catalog: Catalog) -> None:
        head = catalog.write("main", {"a": 1})
        meta = catalog.top().meta
        assert meta.hash == head
        assert meta.committer is not None
        assert meta.authors == (meta.committer,)
        assert meta.signed_off_by == ()
        assert meta.commit_time is not None
        assert meta.commit_time.utcoffset().total_seconds() == 0  # type: ignore[union-attr]
        assert meta.author_time == meta.commit_time
        assert dict(meta.properties) == {}

    @pytest.mark.parametrize("message", ["", " ", "\n\n", "x" * 100_000])
    def test_any_message_is_stored(self, catalog: Catalog, message: str) -> None:
        catalog.repository.commit("main", [put("a", table(1))], CommitMeta(message))
        assert catalog.top().meta.message == message

    @pytest.mark.parametrize(
        "given",
        [
            {"committer": "me"},
            {"hash": NOBODY},
            {"commit_time": datetime(2020, 1, 1, tzinfo=UTC)},
            {"parents": (EMPTY,)},
        ],
        ids=str,
    )
    def test_metadata_that_the_repository_sets_is_refused(
        self, catalog: Catalog, given: dict[str, object]
    ) -> None:
        with pytest.raises(InvalidInput):
            catalog.repository.commit("main", [put("a", table(1))], CommitMeta("m", **given))  # type: ignore[arg-type]
        assert catalog.head() == EMPTY

    def test_text_that_cannot_be_stored_is_refused(self, catalog: Catalog) -> None:
        bad = "a\ud800b"
        for meta in (
            CommitMeta(bad),
            CommitMeta("m", authors=(bad,)),
            CommitMeta("m", signed_off_by=(bad,)),
            CommitMeta("m", properties={bad: ("x",)}),
        ):
            with pytest.raises(InvalidInput):
                catalog.repository.commit("main", [put("a", table(1))], meta)
        assert catalog.head() == EMPTY

    def test_commit_times_grow_along_first_parents(self, catalog: Catalog) -> None:
        for n in range(50):
            catalog.write("main", {"a": n})
        catalog.branch("dev")
        catalog.write("dev", {"b": 1})
        catalog.merge("dev")
        catalog.transplant([catalog.write("dev", {"c": 1})])
        times = [e.meta.commit_time for e in catalog.log()]
        assert all(later > earlier for later, earlier in pairwise(times))  # type: ignore[operator]

    def test_heights_count_first_parents(self, catalog: Catalog) -> None:
        for n in (1, 2, 3):
            catalog.write("main", {"a": n})
        catalog.branch("dev")
        catalog.write("dev", {"b": 1})
        catalog.write("dev", {"b": 2})
        catalog.merge("dev")
        assert [e.height for e in catalog.log()] == [4, 3, 2, 1]

    # -- dry run and request ids --

    def test_a_dry_run_changes_nothing(self, catalog: Catalog) -> None:
        head = catalog.write("main", {"a": 1})
        before = catalog.everything()
        result = catalog.repository.commit(
            "main", [put("b", table(1))], CommitMeta("m"), dry_run=True
        )
        assert not result.applied
        assert result.reference.name == "main"
        assert catalog.everything() == before
        assert catalog.hashes() == [head]

    def test_a_dry_run_reports_conflicts(self, catalog: Catalog) -> None:
        one = catalog.write("main", {"a": 1})
        catalog.write("main", {"a": 2})
        before = catalog.everything()
        with pytest.raises(ReferenceConflict) as refused:
            catalog.repository.commit(
                "main", [delete("a")], CommitMeta("m"), expected_hash=one, dry_run=True
            )
        assert found(refused) == [("VALUE_DIFFERS", "a")]
        with pytest.raises(InvalidInput):
            catalog.repository.commit("main", [put("a", table(3))], CommitMeta("m"), dry_run=True)
        assert catalog.everything() == before

    def test_a_request_id_commits_once_and_returns_the_same_result(self, catalog: Catalog) -> None:
        def submit() -> object:
            return catalog.repository.commit(
                "main", [put("a", table(1))], CommitMeta("m"), request_id="r-1"
            )

        first = submit()
        assert submit() == first
        assert len(catalog.log()) == 1
        assert catalog.repository.find_request("r-1") == first

    def test_a_request_id_returns_its_recorded_result(self, catalog: Catalog) -> None:
        operations = [put("a", table(1)), put("b", table(1))]
        first = catalog.repository.commit(
            "main", operations, CommitMeta("m"), expected_hash=EMPTY, request_id="r-1"
        )
        catalog.write("main", {"a": 2, "b": None})
        head = catalog.write("main", {"c": 1})
        again = catalog.repository.commit(
            "main", operations, CommitMeta("m"), expected_hash=EMPTY, request_id="r-1"
        )
        assert again == first
        assert catalog.head() == head
        assert catalog.repository.find_request("r-1") == first

    def test_a_refused_request_may_be_sent_again(self, catalog: Catalog) -> None:
        with pytest.raises(ReferenceConflict):
            catalog.commit("main", delete("nosuch"), request_id="r-1")
        assert catalog.repository.find_request("r-1") is None
        catalog.commit("main", put("a", table(1)), request_id="r-1")
        assert catalog.repository.find_request("r-1") is not None

    def test_a_dry_run_does_not_use_its_request_id(self, catalog: Catalog) -> None:
        catalog.repository.commit(
            "main", [put("a", table(1))], CommitMeta("m"), request_id="r-1", dry_run=True
        )
        assert catalog.repository.find_request("r-1") is None
        assert catalog.commit("main", put("a", table(1)), request_id="r-1") == catalog.head()
        assert catalog.numbers() == {"a": 1}

    def test_different_request_ids_are_different_commits(self, catalog: Catalog) -> None:
        catalog.commit("main", put("a", table(1)), request_id="r-1")
        with pytest.raises(InvalidInput):
            catalog.commit("main", put("a", table(1)), request_id="r-2")
        assert catalog.repository.find_request("nosuch") is None

    # -- stored values --

    @pytest.mark.parametrize(
        "content",
        [
            IcebergTable(
                metadata_location="s3://ü/漢 字.json",
                snapshot_id=-(2**63),
                schema_id=-(2**31),
                spec_id=2**31 - 1,
                sort_order_id=0,
            ),
            IcebergTable(metadata_location="x", snapshot_id=2**63 - 1),
            IcebergView(
                metadata_location="x",
                version_id=2**40,
                schema_id=3,
                sql_text="select '🧊'\n",
                dialect="-",
            ),
            IcebergView(metadata_location="x", version_id=-1, schema_id=0),
            DeltaLakeTable(
                metadata_location_history=("a", "", "c"),
                checkpoint_location_history=("d",),
                last_checkpoint="d",
            ),
            DeltaLakeTable(),
            Namespace(elements=("a",), properties={"ü": "", "": "x", "a.b": "🧊"}),
            Namespace(elements=("something", "else")),
            UDF(sql_text="x", dialect="", version_id="1", signature_id="s", metadata_location="m"),
            UDF(),
            UnknownContent(
                foreign_type="PAIMON_TABLE",
                foreign_attributes={
                    "z": [1, {"y": None}],
                    "a": 1.5,
                    "t": True,
                    "ü": "🧊",
                    "big": 2**70,
                },
            ),
            UnknownContent(foreign_type="iceberg_table"),
        ],
        ids=lambda c: c.type_name,
    )
    def test_every_content_is_stored_exactly(self, catalog: Catalog, content: Content) -> None:
        catalog.commit("main", put("a", content))
        kept = catalog.content("main", "a")
        assert kept == content.with_id(kept.id)
        (entry,) = catalog.repository.entries("main", content=True)
        assert (entry.type, entry.content_id, entry.content) == (content.type_name, kept.id, kept)
        (operation,) = catalog.top().operations or ()
        assert operation == Put(key("a"), kept)
        catalog.commit("main", delete("a"))
        assert catalog.numbers() == {}

    def test_unusual_keys_are_stored(self, catalog: Catalog) -> None:
        elements = [
            ("a.b",),
            ('"',),
            (" ",),
            ("ü",),
            ("漢字",),
            ("🧊",),
            ("/",),
            ("\\",),
            ("%2E",),
            ("*",),
            ("x" * 250, "y" * 250),
            ("e",) * 20,
        ]
        keys = [ContentKey(e) for e in elements]
        spaces = {ContentKey(k.elements[:n]) for k in keys for n in range(1, len(k.elements))}
        catalog.commit("main", *(Put(k, Namespace(elements=k.elements)) for k in spaces))
        catalog.commit("main", *(Put(k, table(n)) for n, k in enumerate(keys)))
        assert [e.key for e in catalog.repository.entries("main")] == sorted([*keys, *spaces])
        assert len(catalog.repository.contents("main", keys)) == len(keys)
        operations = catalog.top().operations
        assert operations is not None
        assert [o.key for o in operations] == sorted(keys)

    # -- expected contents --

    def test_a_matching_expected_content_commits(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        old = catalog.content("main", "a")
        catalog.commit("main", put("a", table(2, old.id), expected=old))
        assert catalog.numbers() == {"a": 2}

    def test_a_different_expected_content_conflicts_even_at_head(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        stale = catalog.content("main", "a")
        changed = catalog.write("main", {"a": 2})
        proposed = table(3, stale.id)
        for at in (None, changed):
            with pytest.raises(ReferenceConflict) as refused:
                catalog.commit("main", put("a", proposed, expected=stale), at=at)
            (conflict,) = refused.value.conflicts
            assert (conflict.type, conflict.key) == (ConflictType.VALUE_DIFFERS, key("a"))
            assert (conflict.expected, conflict.actual, conflict.proposed) == (
                stale,
                catalog.content("main", "a"),
                proposed,
            )
            assert conflict.changed_by is not None
            assert conflict.changed_by.hash == changed

    def test_expected_content_is_compared_with_head_and_not_with_the_expected_hash(
        self, catalog: Catalog
    ) -> None:
        one = catalog.write("main", {"a": 1})
        catalog.write("main", {"a": 2})
        now = catalog.content("main", "a")
        catalog.commit("main", put("a", table(3, now.id), expected=now), at=one)
        assert catalog.numbers() == {"a": 3}

    def test_expected_content_of_a_deleted_key_conflicts(self, catalog: Catalog) -> None:
        one = catalog.write("main", {"a": 1})
        old = catalog.content("main", "a")
        catalog.write("main", {"a": None})
        with pytest.raises(ReferenceConflict) as refused:
            catalog.commit("main", put("a", table(2, old.id), expected=old), at=one)
        assert found(refused) in ([("KEY_DOES_NOT_EXIST", "a")], [("VALUE_DIFFERS", "a")])

    @pytest.mark.parametrize(
        "field", ["metadata_location", "snapshot_id", "schema_id", "spec_id", "sort_order_id"]
    )
    def test_every_field_of_the_expected_content_is_compared(
        self, catalog: Catalog, field: str
    ) -> None:
        catalog.write("main", {"a": 1})
        old = catalog.content("main", "a")
        assert isinstance(old, IcebergTable)
        values = {
            "id": old.id,
            **{
                f: getattr(old, f)
                for f in (
                    "metadata_location",
                    "snapshot_id",
                    "schema_id",
                    "spec_id",
                    "sort_order_id",
                )
            },
        }
        values[field] = "s3://elsewhere" if field == "metadata_location" else 77
        with pytest.raises(ReferenceConflict) as refused:
            catalog.commit("main", put("a", table(2, old.id), expected=IcebergTable(**values)))
        assert found(refused) == [("VALUE_DIFFERS", "a")]

    def test_the_setting_makes_expected_content_mandatory_for_updates(
        self, catalog: Catalog
    ) -> None:
        catalog.write("main", {"a": 1})
        catalog.repository.put_setting("require-expected-content", "true")
        old = catalog.content("main", "a")
        with pytest.raises(InvalidInput, match="a"):
            catalog.commit("main", put("a", table(2, old.id)))
        catalog.commit("main", put("b", table(1)))
        catalog.commit("main", put("a", table(2, old.id), expected=old))
        catalog.commit("main", delete("b"))
        assert catalog.numbers() == {"a": 2}

    def test_a_repository_setting_can_be_reverted(
        self, catalog: Catalog, repository: Repository
    ) -> None:
        catalog.write("main", {"a": 1})
        repository.put_setting("require-expected-content", "true")
        repository.put_setting("require-expected-content", None)
        catalog.write("main", {"a": 2})
        assert catalog.numbers() == {"a": 2}


def number_is_even(content: Content) -> bool:
    assert isinstance(content, IcebergTable)
    return content.snapshot_id % 2 == 0
