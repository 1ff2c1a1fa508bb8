"""Conflicts of commits: every combination of operation and states, and the facts in
conflicts."""

from __future__ import annotations

import pytest

from nessie_cli.errors import ReferenceConflict
from nessie_cli.model import ConflictType, Content, Operation
from nessie_cli.model.conflicts import MOST_REPORTED
from tests.repository.vocabulary import (
    EMPTY,
    NS,
    Catalog,
    delete,
    found,
    namespace,
    put,
    table,
    types_and_keys,
    unchanged,
    view,
)

ABSENT, SAME, VALUE, ID, TYPE, CREATED = "absent", "same", "value", "id", "type", "created"

CASES = [
    # operation, state of the key at the expected hash and at HEAD, conflict
    ("put", ABSENT, ABSENT, None),
    ("put", ABSENT, CREATED, "KEY_EXISTS"),
    ("put", SAME, SAME, None),
    ("put", SAME, ABSENT, "KEY_DOES_NOT_EXIST"),
    ("put", SAME, TYPE, "PAYLOAD_DIFFERS"),
    ("put", SAME, ID, "CONTENT_ID_DIFFERS"),
    ("put", SAME, VALUE, "VALUE_DIFFERS"),
    ("delete", SAME, SAME, None),
    ("delete", SAME, ABSENT, "KEY_DOES_NOT_EXIST"),
    ("delete", SAME, TYPE, "PAYLOAD_DIFFERS"),
    ("delete", SAME, ID, "CONTENT_ID_DIFFERS"),
    ("delete", SAME, VALUE, "VALUE_DIFFERS"),
    ("delete", ABSENT, ABSENT, "KEY_DOES_NOT_EXIST"),
    ("delete", ABSENT, CREATED, "PAYLOAD_DIFFERS"),
    ("unchanged", SAME, SAME, None),
    ("unchanged", SAME, ABSENT, "KEY_DOES_NOT_EXIST"),
    ("unchanged", SAME, TYPE, "PAYLOAD_DIFFERS"),
    ("unchanged", SAME, ID, "CONTENT_ID_DIFFERS"),
    ("unchanged", SAME, VALUE, "VALUE_DIFFERS"),
    ("unchanged", ABSENT, ABSENT, "KEY_DOES_NOT_EXIST"),
    ("unchanged", ABSENT, CREATED, "PAYLOAD_DIFFERS"),
    ("recreate", SAME, SAME, None),
    ("recreate", SAME, ABSENT, "KEY_DOES_NOT_EXIST"),
    ("recreate", SAME, TYPE, "PAYLOAD_DIFFERS"),
    ("recreate", SAME, ID, "CONTENT_ID_DIFFERS"),
    ("recreate", SAME, VALUE, "VALUE_DIFFERS"),
    ("recreate", ABSENT, ABSENT, "KEY_DOES_NOT_EXIST"),
    ("recreate", ABSENT, CREATED, "PAYLOAD_DIFFERS"),
    ("move", SAME, SAME, None),
    ("move", SAME, ABSENT, "KEY_DOES_NOT_EXIST"),
    ("move", SAME, TYPE, "PAYLOAD_DIFFERS"),
    ("move", SAME, ID, "CONTENT_ID_DIFFERS"),
    ("move", SAME, VALUE, "VALUE_DIFFERS"),
]

MESSAGES = {
    "KEY_EXISTS": "key 'k' already exists",
    "KEY_DOES_NOT_EXIST": "key 'k' does not exist",
    "PAYLOAD_DIFFERS": "payload of existing and expected content for key 'k' are different",
    "CONTENT_ID_DIFFERS": "content IDs of existing and expected content for key 'k' are different",
    "VALUE_DIFFERS": "values of existing and expected content for key 'k' are different",
}


def set_up(catalog: Catalog, before: str, now: str, name: str = "k") -> tuple[str, str | None]:
    """Puts a key into its two states. Returns the expected hash and the changing commit."""
    catalog.write("main", {f"aside-{name}": 1})
    if before != ABSENT:
        catalog.write("main", {name: 1})
    expected = catalog.head()
    changed = None
    if before != ABSENT and now == ABSENT:
        changed = catalog.write("main", {name: None})
    elif now == TYPE:
        changed = catalog.recreate("main", name, view(2))
    elif now == ID:
        changed = catalog.recreate("main", name, table(1))
    elif now in (VALUE, CREATED):
        changed = catalog.write("main", {name: 2})
    catalog.write("main", {f"aside-{name}": 2})
    return expected, changed


def operations(catalog: Catalog, word: str, expected: str, name: str = "k") -> list[Operation]:
    there = catalog.repository.contents(expected, [delete(name).key]).get(delete(name).key)
    content_id = there.id if there else None
    attempts: dict[str, list[Operation]] = {
        "put": [put(name, table(9, content_id))],
        "delete": [delete(name)],
        "unchanged": [unchanged(name)],
        "recreate": [delete(name), put(name, table(9))],
        "move": [delete(name), put(f"new-{name}", table(9, content_id))],
    }
    return attempts[word]


def actual(catalog: Catalog, at: str, name: str) -> Content | None:
    return catalog.repository.contents(at, [delete(name).key]).get(delete(name).key)


class Conflicts:
    @pytest.mark.parametrize(("word", "before", "now", "conflict"), CASES)
    def test_every_combination_of_operation_and_states(
        self, catalog: Catalog, word: str, before: str, now: str, conflict: str | None
    ) -> None:
        expected, changed = set_up(catalog, before, now)
        attempt = operations(catalog, word, expected)
        if conflict is None:
            catalog.commit("main", *attempt, at=expected)
            return
        everything = catalog.everything()
        with pytest.raises(ReferenceConflict) as refused:
            catalog.commit("main", *attempt, at=expected)
        assert found(refused) == [(conflict, "k")]
        (fact,) = refused.value.conflicts
        assert fact.message == MESSAGES[conflict]
        assert fact.expected == actual(catalog, expected, "k")
        assert fact.actual == actual(catalog, "main", "k")
        if word in ("delete", "unchanged"):
            assert fact.proposed is None or word == "unchanged"
        elif word == "put":
            assert fact.proposed == attempt[0].content  # type: ignore[union-attr]
        assert (fact.changed_by.hash if fact.changed_by else None) == changed
        assert catalog.everything() == everything

    def test_the_error_names_branch_and_hashes(self, catalog: Catalog) -> None:
        expected, _ = set_up(catalog, SAME, VALUE)
        with pytest.raises(ReferenceConflict) as refused:
            catalog.commit("main", delete("k"), at=expected)
        error = refused.value
        assert (error.reference, error.head, error.expected_hash) == (
            "main",
            catalog.head(),
            expected,
        )
        assert (error.code, error.status) == ("REFERENCE_CONFLICT", 409)
        assert "\n" not in error.message

    def test_all_conflicts_are_reported_at_once(self, catalog: Catalog) -> None:
        catalog.write(
            "main", dict.fromkeys(("removed", "recreated", "retyped", "changed", "fine"), 1)
        )
        expected = catalog.head()
        catalog.write("main", {"removed": None})
        catalog.recreate("main", "recreated", table(2))
        catalog.recreate("main", "retyped", view(2))
        catalog.write("main", {"changed": 2, "created": 1})
        attempt = [
            o
            for name in ("removed", "recreated", "retyped", "changed", "fine", "created")
            for o in operations(catalog, "put", expected, name)
        ]
        for order in (attempt, attempt[::-1]):
            with pytest.raises(ReferenceConflict) as refused:
                catalog.commit("main", *order, delete("never"), at=expected)
            assert found(refused) == sorted(
                [
                    ("KEY_DOES_NOT_EXIST", "removed"),
                    ("CONTENT_ID_DIFFERS", "recreated"),
                    ("PAYLOAD_DIFFERS", "retyped"),
                    ("VALUE_DIFFERS", "changed"),
                    ("KEY_EXISTS", "created"),
                    ("KEY_DOES_NOT_EXIST", "never"),
                ]
            )
            puts = [c.key for c in refused.value.conflicts if c.key != delete("never").key]
            assert puts == [o.key for o in order if o.key.plain != "fine"]

    @pytest.mark.parametrize("at", ["head", None])
    @pytest.mark.parametrize("word", ["delete", "unchanged", "recreate"])
    def test_a_missing_key_conflicts_at_head_too(
        self, catalog: Catalog, word: str, at: str | None
    ) -> None:
        head = catalog.write("main", {"a": 1})
        with pytest.raises(ReferenceConflict) as refused:
            catalog.commit("main", *operations(catalog, word, head), at=head if at else None)
        assert found(refused) == [("KEY_DOES_NOT_EXIST", "k")]

    def test_unchanged_is_strict_in_an_empty_repository(self, catalog: Catalog) -> None:
        with pytest.raises(ReferenceConflict) as refused:
            catalog.commit("main", unchanged("k"))
        assert found(refused) == [("KEY_DOES_NOT_EXIST", "k")]
        assert catalog.head() == EMPTY

    def test_other_keys_do_not_conflict(self, catalog: Catalog) -> None:
        one = catalog.write("main", {"a": 1, "b": 1, "n": NS, "n.x": 1})
        catalog.write("main", {"a": 2, "n.x": 2, "c": 1})
        catalog.commit(
            "main",
            put("b", table(2, catalog.id("main", "b"))),
            put("n.y", table(1)),
            unchanged("n"),
            at=one,
        )
        assert catalog.numbers() == {"a": 2, "b": 2, "c": 1, "n": NS, "n.x": 2, "n.y": 1}

    def test_a_reverted_change_does_not_conflict(self, catalog: Catalog) -> None:
        one = catalog.write("main", {"a": 1})
        catalog.write("main", {"a": 2})
        catalog.write("main", {"a": 1})
        catalog.commit("main", put("a", table(3, catalog.id("main", "a"))), at=one)
        assert catalog.numbers() == {"a": 3}

    def test_a_conflict_names_the_last_commit_that_changed_the_key(self, catalog: Catalog) -> None:
        one = catalog.write("main", {"a": 1})
        catalog.write("main", {"a": 2}, "second")
        last = catalog.write("main", {"a": 3}, "third")
        catalog.write("main", {"b": 1})
        with pytest.raises(ReferenceConflict) as refused:
            catalog.commit("main", delete("a"), at=one)
        by = refused.value.conflicts[0].changed_by
        assert by is not None
        assert (by.hash, by.message) == (last, "third")
        assert by.commit_time is not None

    def test_a_conflict_names_the_merge_that_changed_the_key(self, catalog: Catalog) -> None:
        one = catalog.write("main", {"a": 1})
        catalog.branch("dev")
        catalog.write("dev", {"a": 2})
        merged = catalog.merge("dev").resultant_hash
        with pytest.raises(ReferenceConflict) as refused:
            catalog.commit("main", delete("a"), at=one)
        by = refused.value.conflicts[0].changed_by
        assert by is not None
        assert by.hash == merged

    def test_the_first_conflicts_of_many_are_reported(self, catalog: Catalog) -> None:
        catalog.write("main", {"there": 1})
        names = [f"t{number:04}" for number in range(MOST_REPORTED + 5)]
        with pytest.raises(ReferenceConflict) as refused:
            catalog.commit("main", *map(delete, names))
        assert [key for _, key in found(refused)] == names[:MOST_REPORTED]
        assert refused.value.message.endswith("key 't0999' does not exist, and 5 more.")

    def test_a_refused_commit_may_be_retried_on_head(self, catalog: Catalog) -> None:
        one = catalog.write("main", {"a": 1})
        catalog.write("main", {"a": 2})
        attempt = put("a", table(3, catalog.id("main", "a")))
        with pytest.raises(ReferenceConflict):
            catalog.commit("main", attempt, at=one)
        catalog.commit("main", attempt, at=catalog.head())
        assert catalog.numbers() == {"a": 3}


class Namespaces:
    @pytest.mark.parametrize(
        ("new", "missing"),
        [
            ("a.t", ["a"]),
            ("a.b.t", ["a.b", "a"]),
            ("a.b.c.t", ["a.b.c", "a.b", "a"]),
            ("there.b.t", ["there.b"]),
            ("there.b.c.t", ["there.b.c", "there.b"]),
        ],
    )
    def test_all_missing_namespaces_are_named_deepest_first(
        self, catalog: Catalog, new: str, missing: list[str]
    ) -> None:
        catalog.write("main", {"there": NS})
        for content in (table(1), namespace(new)):
            with pytest.raises(ReferenceConflict) as refused:
                catalog.commit("main", put(new, content))
            facts = [
                (c.type.value, c.key.plain, c.message) for c in refused.value.conflicts if c.key
            ]
            assert facts == [
                ("NAMESPACE_ABSENT", name, f"namespace '{name}' must exist") for name in missing
            ]

    def test_each_missing_namespace_of_several_tables_is_named_once(self, catalog: Catalog) -> None:
        with pytest.raises(ReferenceConflict) as refused:
            catalog.commit("main", put("a.t", table(1)), put("a.u", table(2)), put("b.t", table(3)))
        assert found(refused) == [("NAMESPACE_ABSENT", "a"), ("NAMESPACE_ABSENT", "b")]

    def test_a_key_of_one_element_needs_no_namespace(self, catalog: Catalog) -> None:
        assert catalog.write("main", {"t": 1})

    @pytest.mark.parametrize("order", [1, -1])
    def test_a_commit_may_create_namespaces_in_any_order(
        self, catalog: Catalog, order: int
    ) -> None:
        operations = [
            put("a", namespace("a")),
            put("a.b", namespace("a.b")),
            put("a.b.t", table(1)),
            put("a.t", table(2)),
        ]
        catalog.commit("main", *operations[::order])
        assert catalog.numbers() == {"a": NS, "a.b": NS, "a.b.t": 1, "a.t": 2}

    def test_an_inner_namespace_does_not_imply_the_outer_one(self, catalog: Catalog) -> None:
        with pytest.raises(ReferenceConflict) as refused:
            catalog.commit("main", put("a.b", namespace("a.b")), put("a.b.t", table(1)))
        assert found(refused) == [("NAMESPACE_ABSENT", "a")]

    def test_an_outer_namespace_does_not_imply_the_inner_one(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": NS})
        with pytest.raises(ReferenceConflict) as refused:
            catalog.commit("main", put("a.b.t", table(1)))
        assert found(refused) == [("NAMESPACE_ABSENT", "a.b")]

    def test_a_namespace_with_a_similar_prefix_is_not_a_parent(self, catalog: Catalog) -> None:
        catalog.write("main", {"sin": NS, "singular": NS})
        with pytest.raises(ReferenceConflict) as refused:
            catalog.commit("main", put("sing.t", table(1)))
        assert found(refused) == [("NAMESPACE_ABSENT", "sing")]

    def test_a_table_cannot_contain_keys(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": NS, "a.t": 1})
        for content in (table(2), namespace("a.t.x")):
            with pytest.raises(ReferenceConflict) as refused:
                catalog.commit("main", put("a.t.x", content))
            (conflict,) = refused.value.conflicts
            assert (conflict.type, conflict.key.plain if conflict.key else "") == (
                ConflictType.NOT_A_NAMESPACE,
                "a.t",
            )
            assert conflict.message == (
                "expecting the key 'a.t' to be a namespace, but is not a namespace "
                "(using a content object that is not a namespace as a namespace is forbidden)"
            )

    def test_a_table_cannot_contain_deeper_keys(self, catalog: Catalog) -> None:
        catalog.write("main", {"t": 1})
        with pytest.raises(ReferenceConflict) as refused:
            catalog.commit("main", put("t.u.v", table(2)))
        assert [(c.type.value, c.key.plain if c.key else "") for c in refused.value.conflicts] == [
            ("NAMESPACE_ABSENT", "t.u"),
            ("NOT_A_NAMESPACE", "t"),
        ]

    def test_a_table_of_the_same_commit_is_not_a_namespace(self, catalog: Catalog) -> None:
        with pytest.raises(ReferenceConflict) as refused:
            catalog.commit("main", put("q", table(1)), put("q.t", table(2)))
        assert found(refused) in ([("NAMESPACE_ABSENT", "q")], [("NOT_A_NAMESPACE", "q")])

    def test_updates_deletes_and_unchanged_need_no_namespace_check(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": NS, "a.t": 1, "a.u": 1})
        catalog.write("main", {"a.t": 2, "a.u": None})
        catalog.commit("main", unchanged("a.t"))
        assert catalog.numbers() == {"a": NS, "a.t": 2}

    @pytest.mark.parametrize("child", [1, NS])
    def test_a_namespace_with_contents_cannot_be_deleted(
        self, catalog: Catalog, child: int | str
    ) -> None:
        catalog.write("main", {"a": NS, "a.x": child, "a.y": 2, "ab": NS})
        with pytest.raises(ReferenceConflict) as refused:
            catalog.commit("main", delete("a"), delete("a.y"))
        (conflict,) = refused.value.conflicts
        assert (conflict.type, conflict.key.plain if conflict.key else "") == (
            ConflictType.NAMESPACE_NOT_EMPTY,
            "a",
        )
        assert conflict.message == "namespace 'a' is not empty"

    def test_a_namespace_is_recreated_only_with_its_children(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": NS, "a.t": 1})
        with pytest.raises(ReferenceConflict) as refused:
            catalog.commit("main", delete("a"), put("a", namespace("a")))
        assert found(refused) == [("NAMESPACE_NOT_EMPTY", "a")]
        catalog.commit(
            "main", delete("a"), put("a", namespace("a")), delete("a.t"), put("a.t", table(2))
        )
        assert catalog.numbers() == {"a": NS, "a.t": 2}

    def test_changing_the_children_of_a_namespace_does_not_empty_it(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": NS, "a.x": 1, "b": NS, "b.x": 1})
        attempts: list[list[Operation]] = [
            [delete("a"), put("a.x", table(2, catalog.id("main", "a.x")))],
            [delete("a"), unchanged("a.x")],
            [delete("b"), delete("b.x"), put("b.x", table(2))],
        ]
        for attempt in attempts:
            with pytest.raises(ReferenceConflict) as refused:
                catalog.commit("main", *attempt)
            assert {type_ for type_, _ in found(refused)} <= {
                "NAMESPACE_NOT_EMPTY",
                "NAMESPACE_ABSENT",
            }
        assert catalog.numbers() == {"a": NS, "a.x": 1, "b": NS, "b.x": 1}

    def test_every_namespace_with_contents_is_named(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": NS, "a.x": 1, "b": NS, "b.c": NS, "b.c.x": 1})
        with pytest.raises(ReferenceConflict) as refused:
            catalog.commit("main", delete("a"), delete("b.c"))
        assert found(refused) == [("NAMESPACE_NOT_EMPTY", "a"), ("NAMESPACE_NOT_EMPTY", "b.c")]

    def test_an_empty_namespace_with_a_similar_neighbour_can_be_deleted(
        self, catalog: Catalog
    ) -> None:
        catalog.write("main", {"a": NS, "ab": NS, "ab.x": 1})
        catalog.write("main", {"a": None})
        assert catalog.numbers() == {"ab": NS, "ab.x": 1}

    @pytest.mark.parametrize("order", [1, -1])
    def test_a_hierarchy_can_be_deleted_in_one_commit(self, catalog: Catalog, order: int) -> None:
        catalog.write("main", {"a": NS, "a.b": NS, "a.b.t": 1, "a.t": 1})
        catalog.commit("main", *[delete(k) for k in ("a", "a.b", "a.b.t", "a.t")][::order])
        assert catalog.numbers() == {}

    def test_a_commit_cannot_delete_a_namespace_and_add_keys_to_it(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": NS, "b": NS, "b.t": 1})
        with pytest.raises(ReferenceConflict) as refused:
            catalog.commit("main", delete("a"), put("a.t", table(1)))
        assert ("NAMESPACE_ABSENT", "a") in found(refused)
        with pytest.raises(ReferenceConflict) as refused:
            catalog.commit("main", delete("b"), delete("b.t"), put("b.u", table(1)))
        assert ("NAMESPACE_ABSENT", "b") in found(refused)

    def test_a_namespace_may_be_recreated_with_its_contents(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": NS, "a.t": 1})
        old = catalog.id("main", "a")
        catalog.commit(
            "main", delete("a.t"), delete("a"), put("a", namespace("a")), put("a.t", table(2))
        )
        assert catalog.numbers() == {"a": NS, "a.t": 2}
        assert catalog.id("main", "a") != old

    def test_a_rename_into_a_missing_namespace_is_refused(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": NS, "a.t": 1})
        with pytest.raises(ReferenceConflict) as refused:
            catalog.rename("main", "a.t", "b.t")
        assert found(refused) == [("NAMESPACE_ABSENT", "b")]

    def test_namespaces_are_looked_up_at_head(self, catalog: Catalog) -> None:
        one = catalog.write("main", {"x": 1})
        two = catalog.write("main", {"a": NS})
        catalog.commit("main", put("a.t", table(1)), at=one)
        catalog.write("main", {"a.t": None})
        catalog.write("main", {"a": None})
        with pytest.raises(ReferenceConflict) as refused:
            catalog.commit("main", put("a.t", table(1)), at=two)
        assert ("NAMESPACE_ABSENT", "a") in found(refused)

    def test_a_namespace_with_a_later_child_cannot_be_deleted(self, catalog: Catalog) -> None:
        one = catalog.write("main", {"a": NS})
        catalog.write("main", {"a.t": 1})
        with pytest.raises(ReferenceConflict) as refused:
            catalog.commit("main", delete("a"), at=one)
        assert found(refused) == [("NAMESPACE_NOT_EMPTY", "a")]

    def test_properties_of_a_namespace_can_be_changed(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": NS, "a.t": 1})
        content_id = catalog.id("main", "a")
        catalog.commit("main", put("a", namespace("a", content_id, owner="ann")))
        assert catalog.content("main", "a") == namespace("a", content_id, owner="ann")
        catalog.commit("main", put("a", namespace("a", content_id)))
        assert catalog.content("main", "a") == namespace("a", content_id)

    def test_all_namespace_conflicts_are_reported_together(self, catalog: Catalog) -> None:
        catalog.write("main", {"full": NS, "full.x": 1, "t": 1})
        with pytest.raises(ReferenceConflict) as refused:
            catalog.commit("main", put("no.t", table(1)), delete("full"), put("t.x", table(1)))
        assert found(refused) == [
            ("NAMESPACE_ABSENT", "no"),
            ("NAMESPACE_NOT_EMPTY", "full"),
            ("NOT_A_NAMESPACE", "t"),
        ]
        assert types_and_keys(refused.value.conflicts) == found(refused)
