"""Merges and transplants per content: a table is one thing, whatever its key is."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from msgspec import structs

from nessie_cli.errors import InvalidInput, MergeConflict, ReferenceConflict, ReferenceMoved
from nessie_cli.kernel.restored import MOST_COMPARED
from nessie_cli.model import (
    Conflict,
    ConflictType,
    Content,
    KeyBehavior,
    MergeBehavior,
    MergeOption,
    MergeResult,
    Put,
    RestoredFrom,
)
from tests.kernel.content_states import History, Item
from tests.repository.vocabulary import (
    NS,
    Catalog,
    behave,
    delete,
    key,
    namespace,
    number_of,
    put,
    table,
    types_and_keys,
    view,
)


def begin(catalog: Catalog) -> str:
    catalog.write("main", {"old": 1, "aside": 1})
    catalog.branch("dev")
    return catalog.id("main", "old")


def create_again(catalog: Catalog, content: Content) -> None:
    """Creates a namespace again on main, with this content, and changes it on dev."""
    catalog.write("main", {"n": NS})
    catalog.branch("dev")
    catalog.recreate("main", "n", content)
    catalog.commit("dev", put("n", namespace("n", catalog.id("dev", "n"), p="1")))


def only_conflict(refused: pytest.ExceptionInfo[MergeConflict]) -> Conflict:
    conflicts: tuple[Conflict, ...] = refused.value.result.conflicts
    (conflict,) = conflicts
    return conflict


class Contents:
    def test_a_deleted_content_comes_back_under_its_id(self, catalog: Catalog) -> None:
        """It has one key: where it is already, it does not come back a second time."""
        id_ = begin(catalog)
        origin = RestoredFrom(catalog.head("main"), key("old"))
        back = Put(key("back"), table(2, id_), restored_from=origin)
        with pytest.raises(ReferenceConflict) as refused:
            catalog.commit("main", back)
        assert refused.value.conflicts[0].other_key == key("old")
        catalog.write("main", {"old": None})
        deleted = catalog.head("main")
        catalog.commit("main", back)
        assert (catalog.id("main", "back"), catalog.numbers()["back"]) == (id_, 2)
        again = structs.replace(back, key=key("again"))
        for expected in (deleted, None):
            with pytest.raises(ReferenceConflict) as refused:
                catalog.commit("main", again, at=expected)
            (conflict,) = refused.value.conflicts
            assert (conflict.type, conflict.key, conflict.other_key) == (
                ConflictType.KEY_EXISTS,
                key("again"),
                key("back"),
            )
        with pytest.raises(InvalidInput, match="has no content of this type with content ID"):
            catalog.commit(
                "main", structs.replace(again, content=table(2, catalog.id("main", "aside")))
            )

    @pytest.mark.parametrize("count", [2, MOST_COMPARED + 4])
    def test_contents_of_many_commits_come_back_at_once(self, catalog: Catalog, count: int) -> None:
        """Each one is looked for at HEAD, in the same way for few commits and for many."""
        names = [f"t{number}" for number in range(count)]
        catalog.write("main", dict.fromkeys(names, 1))
        ids = {name: catalog.id("main", name) for name in names}
        back: list[Put] = []
        for name in names:
            origin = RestoredFrom(catalog.head("main"), key(name))
            back.append(Put(key(f"{name}b"), table(2, ids[name]), restored_from=origin))
            catalog.write("main", {f"other {name}": 1})
        catalog.rename("main", names[-1], "moved")
        catalog.write("main", dict.fromkeys(names[:-1]))
        with pytest.raises(ReferenceConflict) as refused:
            catalog.commit("main", *back)
        assert [(each.key, each.other_key) for each in refused.value.conflicts] == [
            (back[-1].key, key("moved"))
        ]
        catalog.write("main", {"moved": None})
        catalog.commit("main", *back)
        assert {name: catalog.id("main", f"{name}b") for name in names} == ids
        with pytest.raises(ReferenceConflict) as refused:
            catalog.commit(
                "main",
                *(
                    structs.replace(put, key=key(f"{name}c"))
                    for name, put in zip(names, back, strict=True)
                ),
            )
        assert [each.other_key for each in refused.value.conflicts] == [put.key for put in back]

    def test_a_content_that_came_back_merges_as_the_same_one(self, catalog: Catalog) -> None:
        id_ = begin(catalog)
        origin = RestoredFrom(catalog.head("main"), key("old"))
        catalog.write("main", {"old": None})
        catalog.commit("main", Put(key("back"), table(1, id_), restored_from=origin))
        catalog.write("dev", {"old": 7})
        catalog.merge_contents("dev", into="main")
        assert (catalog.id("main", "back"), catalog.numbers()["back"]) == (id_, 7)
        assert "old" not in catalog.numbers()

    @pytest.mark.parametrize(
        "how",
        [
            "change rename",
            "rename change",
            "both at once",
            "rename only",
            "twice",
            "there and change",
        ],
    )
    def test_a_renamed_and_changed_table_merges_if_the_target_did_not_change_it(
        self, catalog: Catalog, how: str
    ) -> None:
        content_id = begin(catalog)
        number = 2
        match how:
            case "change rename":
                catalog.write("dev", {"old": 2})
                catalog.rename("dev", "old", "new")
            case "rename change":
                catalog.rename("dev", "old", "new")
                catalog.write("dev", {"new": 2})
            case "both at once":
                catalog.rename("dev", "old", "new", 2)
            case "rename only":
                catalog.rename("dev", "old", "new")
                number = 1
            case "twice":
                catalog.rename("dev", "old", "middle")
                catalog.rename("dev", "middle", "new", 2)
            case "there and change":
                catalog.write("dev", {"old": 9})
                catalog.rename("dev", "old", "middle")
                catalog.write("dev", {"middle": 2})
                catalog.rename("dev", "middle", "new")
        catalog.write("main", {"aside": 2})
        assert catalog.merge_contents("dev").applied
        assert catalog.numbers() == {"aside": 2, "new": number}
        assert catalog.id("main", "new") == content_id
        operations = catalog.top().operations
        assert operations == (delete("old"), put("new", table(number, content_id)))

    def test_source_renamed_and_target_changed_combine(self, catalog: Catalog) -> None:
        content_id = begin(catalog)
        catalog.rename("dev", "old", "new")
        catalog.write("main", {"old": 2})
        assert catalog.merge_contents("dev").applied
        assert catalog.numbers() == {"aside": 1, "new": 2}
        assert catalog.id("main", "new") == content_id

    def test_target_renamed_and_source_changed_combine(self, catalog: Catalog) -> None:
        content_id = begin(catalog)
        catalog.write("dev", {"old": 2})
        catalog.rename("main", "old", "new")
        assert catalog.merge_contents("dev").applied
        assert catalog.numbers() == {"aside": 1, "new": 2}
        assert catalog.id("main", "new") == content_id

    def test_renames_to_different_keys_conflict(self, catalog: Catalog) -> None:
        begin(catalog)
        catalog.rename("dev", "old", "theirs")
        catalog.rename("main", "old", "ours")
        with pytest.raises(MergeConflict) as refused:
            catalog.merge_contents("dev")
        conflict = only_conflict(refused)
        assert (conflict.type, conflict.key) == (ConflictType.KEY_CONFLICT, key("ours"))
        assert (conflict.base_key, conflict.theirs_key) == (key("old"), key("theirs"))
        assert conflict.source_rename is not None
        assert conflict.target_rename is not None
        assert (conflict.source_rename.new, conflict.target_rename.new) == (
            key("theirs"),
            key("ours"),
        )
        assert catalog.numbers() == {"aside": 1, "ours": 1}

    @pytest.mark.parametrize(
        ("theirs", "ours", "number"),
        [(None, None, 1), (2, None, 2), (None, 3, 3), (2, 3, None)],
        ids=str,
    )
    def test_the_same_rename_on_both_sides_does_not_conflict(
        self,
        catalog: Catalog,
        theirs: int | None,
        ours: int | None,
        number: int | None,
    ) -> None:
        content_id = begin(catalog)
        catalog.rename("dev", "old", "new", theirs)
        catalog.rename("main", "old", "new", ours)
        if number is None:
            with pytest.raises(MergeConflict) as refused:
                catalog.merge_contents("dev")
            assert types_and_keys(refused.value.result.conflicts) == [("VALUE_DIFFERS", "new")]
            return
        assert catalog.merge_contents("dev").successful
        assert catalog.numbers() == {"aside": 1, "new": number}
        assert catalog.id("main", "new") == content_id

    @pytest.mark.parametrize("source", ["change", "rename"])
    def test_forcing_a_rename_keeps_one_content_at_one_key(
        self, catalog: Catalog, source: str
    ) -> None:
        content_id = begin(catalog)
        if source == "change":
            catalog.write("dev", {"old": 2})
        else:
            catalog.rename("dev", "old", "theirs", 2)
        catalog.rename("main", "old", "ours", 3)
        assert catalog.merge_contents("dev", default_behavior=MergeBehavior.FORCE).applied
        holders = [
            e.key.plain for e in catalog.repository.entries("main") if e.content_id == content_id
        ]
        assert holders == ["old" if source == "change" else "theirs"]
        assert catalog.numbers()[holders[0]] == 2

    def test_a_content_never_gets_two_keys(self, catalog: Catalog) -> None:
        content_id = begin(catalog)
        catalog.rename("dev", "old", "theirs", 2)
        catalog.rename("main", "old", "ours", 3)
        with pytest.raises(MergeConflict):
            catalog.merge_contents("dev")
        assert [e.content_id for e in catalog.repository.entries("main")].count(content_id) == 1

    def test_a_rename_and_two_different_changes_conflict(self, catalog: Catalog) -> None:
        begin(catalog)
        catalog.rename("dev", "old", "new", 2)
        catalog.write("main", {"old": 3})
        with pytest.raises(MergeConflict):
            catalog.merge_contents("dev")
        assert catalog.numbers() == {"aside": 1, "old": 3}

    def test_a_target_rename_and_two_different_changes_conflict(self, catalog: Catalog) -> None:
        begin(catalog)
        catalog.write("dev", {"old": 2})
        catalog.rename("main", "old", "new", 3)
        with pytest.raises(MergeConflict):
            catalog.merge_contents("dev")
        assert catalog.numbers() == {"aside": 1, "new": 3}

    def test_renamed_on_target_and_deleted_on_source_conflicts(self, catalog: Catalog) -> None:
        begin(catalog)
        catalog.rename("dev", "old", "new")
        catalog.write("main", {"old": None})
        with pytest.raises(MergeConflict):
            catalog.merge_contents("dev")
        assert catalog.numbers() == {"aside": 1}

    def test_deleted_on_target_and_renamed_on_source_conflicts(self, catalog: Catalog) -> None:
        begin(catalog)
        catalog.write("dev", {"old": None})
        catalog.rename("main", "old", "new")
        with pytest.raises(MergeConflict):
            catalog.merge_contents("dev")
        assert catalog.numbers() == {"aside": 1, "new": 1}

    def test_a_conflict_with_a_deletion_has_no_content_of_ours(self, catalog: Catalog) -> None:
        begin(catalog)
        catalog.write("dev", {"old": 2})
        catalog.recreate("main", "old", table(3))
        with pytest.raises(MergeConflict) as refused:
            catalog.merge_contents("dev")
        conflict = only_conflict(refused)
        assert (conflict.type, conflict.key) == (ConflictType.KEY_DOES_NOT_EXIST, key("old"))
        assert conflict.actual is None
        assert number_of(conflict.proposed) == 2

    def test_a_rename_onto_a_key_that_the_target_created_conflicts(self, catalog: Catalog) -> None:
        begin(catalog)
        catalog.rename("dev", "old", "new")
        catalog.write("main", {"new": 7})
        with pytest.raises(MergeConflict) as refused:
            catalog.merge_contents("dev")
        assert ("KEY_EXISTS", "new") in types_and_keys(refused.value.result.conflicts)
        assert catalog.numbers() == {"aside": 1, "new": 7, "old": 1}

    def test_a_rename_into_a_namespace_that_the_target_dropped_is_refused(
        self, catalog: Catalog
    ) -> None:
        catalog.write("main", {"old": 1, "n": NS})
        catalog.branch("dev")
        catalog.rename("dev", "old", "n.new")
        catalog.write("main", {"n": None})
        with pytest.raises(ReferenceConflict) as refused:
            catalog.merge_contents("dev")
        assert types_and_keys(refused.value.conflicts) == [("NAMESPACE_ABSENT", "n")]

    def test_a_new_content_at_the_old_key_is_not_a_rename(self, catalog: Catalog) -> None:
        content_id = begin(catalog)
        catalog.rename("dev", "old", "new")
        catalog.write("dev", {"old": 5})
        catalog.merge_contents("dev")
        assert catalog.numbers() == {"aside": 1, "new": 1, "old": 5}
        assert catalog.id("main", "new") == content_id
        assert catalog.id("main", "old") == catalog.id("dev", "old") != content_id

    def test_a_reverted_rename_has_no_effect(self, catalog: Catalog) -> None:
        begin(catalog)
        catalog.rename("dev", "old", "new")
        catalog.rename("dev", "new", "old", 2)
        catalog.write("main", {"aside": 2})
        catalog.merge_contents("dev")
        assert catalog.numbers() == {"aside": 2, "old": 2}

    def test_many_renames_combine_with_many_changes(self, catalog: Catalog) -> None:
        catalog.write("main", {f"t{n}": n for n in range(20)})
        catalog.branch("dev")
        ids = {n: catalog.id("main", f"t{n}") for n in range(20)}
        for n in range(0, 20, 2):
            catalog.rename("dev", f"t{n}", f"moved{n}")
        catalog.write("main", {f"t{n}": 100 + n for n in range(0, 20, 4)})
        for n in range(1, 20, 4):
            catalog.rename("main", f"t{n}", f"here{n}")
        catalog.write("dev", {f"t{n}": 200 + n for n in range(1, 20, 4)})
        assert catalog.merge_contents("dev").applied
        expected: dict[str, int | str | None] = {}
        for n in range(20):
            if n % 2 == 0:
                expected[f"moved{n}"] = 100 + n if n % 4 == 0 else n
            else:
                expected[f"here{n}" if n % 4 == 1 else f"t{n}"] = 200 + n if n % 4 == 1 else n
        assert catalog.numbers() == expected
        for name in expected:
            assert catalog.id("main", name) == ids[int(name.lstrip("tmovedhr"))]

    def test_a_conflict_is_under_the_key_on_ours(self, catalog: Catalog) -> None:
        content_id = begin(catalog)
        moved = catalog.rename("dev", "old", "theirs", 2)
        changed = catalog.write("main", {"old": 3})
        with pytest.raises(MergeConflict) as refused:
            catalog.merge_contents("dev")
        conflict = only_conflict(refused)
        assert (conflict.type, conflict.key) == (ConflictType.VALUE_DIFFERS, key("old"))
        assert (conflict.base_key, conflict.theirs_key) == (key("old"), key("theirs"))
        assert conflict.content_id == content_id
        assert [conflict.expected, conflict.actual, conflict.proposed] == [
            table(number, content_id) for number in (1, 3, 2)
        ]
        assert conflict.source_rename is not None
        assert conflict.source_rename.by is not None
        assert conflict.source_rename.by.hash == moved
        assert conflict.changed_by is not None
        assert conflict.changed_by.hash == changed

    def test_a_deletion_of_a_renamed_content_conflicts_under_its_new_key(
        self, catalog: Catalog
    ) -> None:
        content_id = begin(catalog)
        catalog.write("dev", {"old": None})
        catalog.rename("main", "old", "new")
        with pytest.raises(MergeConflict) as refused:
            catalog.merge_contents("dev")
        conflict = only_conflict(refused)
        assert (conflict.key, conflict.base_key, conflict.theirs_key) == (
            key("new"),
            key("old"),
            None,
        )
        assert (conflict.actual, conflict.proposed) == (table(1, content_id), None)
        for name in ("new", "old"):
            result = catalog.merge_contents("dev", behaviors=[behave(name, "FORCE")], dry_run=True)
            assert listed(result) == {"new": ("FORCE", 1, None)}
        catalog.merge_contents("dev", behaviors=[behave("new", "DROP")])
        assert catalog.numbers() == {"aside": 1, "new": 1}

    @pytest.mark.parametrize("behavior", ["DROP", "FORCE"])
    def test_a_merge_without_changes_is_recorded(self, catalog: Catalog, behavior: str) -> None:
        begin(catalog)
        source = catalog.write("dev", {"old": 2})
        catalog.write("main", {"old": 2 if behavior == "FORCE" else 3})
        options = {} if behavior == "FORCE" else {"behaviors": [behave("old", "DROP")]}
        before = catalog.head()
        result = catalog.merge_contents("dev", **options)
        assert result.applied
        assert catalog.top().meta.parents == (before, source)
        assert catalog.top().operations in (None, ())
        again = catalog.merge_contents("dev")
        assert (again.applied, again.resultant_hash) == (False, catalog.head())
        catalog.write("dev", {"aside": 4})
        assert listed(catalog.merge_contents("dev")) == {"aside": ("NORMAL", 1, 4)}

    def test_what_a_merge_changes_is_listed(self, catalog: Catalog) -> None:
        begin(catalog)
        catalog.rename("dev", "old", "new")
        catalog.write("main", {"old": 7})
        dry = catalog.merge_contents("dev", dry_run=True)
        done = catalog.merge_contents("dev")
        assert listed(dry) == listed(done)
        assert listed(done) == {"old": ("NORMAL", 7, None), "new": ("NORMAL", None, 7)}
        assert {d.key.plain: number_of(d.source) for d in done.details} == {"old": None, "new": 1}

    def test_a_rename_and_a_new_content_at_the_old_key_are_two_contents(
        self, catalog: Catalog
    ) -> None:
        content_id = begin(catalog)
        catalog.rename("dev", "old", "new")
        catalog.write("dev", {"old": 5})
        catalog.write("main", {"old": 9})
        catalog.merge_contents("dev")
        assert catalog.numbers() == {"aside": 1, "new": 9, "old": 5}
        assert catalog.id("main", "new") == content_id

    def test_swapped_names_merge_with_changes(self, catalog: Catalog) -> None:
        begin(catalog)
        for old, new in (("old", "t"), ("aside", "old"), ("t", "aside")):
            catalog.rename("main", old, new)
        catalog.write("dev", {"old": 5, "aside": 6})
        catalog.merge_contents("dev")
        assert catalog.numbers() == {"aside": 5, "old": 6}

    def test_a_key_of_two_contents_in_conflict_is_ambiguous(self, catalog: Catalog) -> None:
        first = begin(catalog)
        for old, new in (("old", "t"), ("aside", "old"), ("t", "aside")):
            catalog.rename("main", old, new)
        catalog.write("main", {"old": 3, "aside": 4})
        catalog.write("dev", {"old": 5, "aside": 6})
        with pytest.raises(MergeConflict) as refused:
            catalog.merge_contents("dev")
        conflicts = {c.content_id: c for c in refused.value.result.conflicts}
        second = catalog.id("dev", "aside")
        assert conflicts.keys() == {first, second}
        assert all(c.is_ambiguous for c in conflicts.values())
        with pytest.raises(InvalidInput, match=f"(?s)(?=.*{first})(?=.*{second})"):
            catalog.merge_contents("dev", behaviors=[behave("old", "FORCE")])
        catalog.merge_contents(
            "dev",
            behaviors=[
                KeyBehavior(key("old"), MergeBehavior.FORCE, content_id=first),
                KeyBehavior(key("old"), MergeBehavior.FORCE, content_id=second),
            ],
        )
        assert catalog.numbers() == {"aside": 6, "old": 5}

    @pytest.mark.parametrize("other", ["renamed", "created", "theirs"])
    @pytest.mark.parametrize("theirs", ["deleted", "renamed"])
    @pytest.mark.parametrize("behavior", ["DROP", "FORCE"])
    def test_a_decision_is_not_about_a_content_that_had_the_key_before(
        self, catalog: Catalog, behavior: str, theirs: str, other: str
    ) -> None:
        """The key is that of another content now, which is not in conflict."""
        first = begin(catalog)
        catalog.rename("main", "old", "kept", 3)
        if theirs == "deleted":
            catalog.write("dev", {"old": None})
        else:
            catalog.rename("dev", "old", "moved")
        branch = "dev" if other == "theirs" else "main"
        if other == "created":
            catalog.write("main", {"old": 7})
        else:
            catalog.rename(branch, "aside", "old")
        if other == "renamed":
            catalog.write("dev", {"aside": 5})
        second, before = catalog.id(branch, "old"), catalog.everything()
        with pytest.raises(InvalidInput, match=f"(?s)(?=.*{first})(?=.*{second})"):
            catalog.merge_contents("dev", behaviors=[behave("old", behavior)])
        assert catalog.everything() == before
        decision = KeyBehavior(key("old"), MergeBehavior(behavior), content_id=first)
        by_id = catalog.merge_contents("dev", behaviors=[decision], dry_run=True)
        by_key = catalog.merge_contents("dev", behaviors=[behave("kept", behavior)], dry_run=True)
        assert listed(by_id) == listed(by_key)

    def test_a_former_key_means_the_content_if_no_other_one_has_it(self, catalog: Catalog) -> None:
        begin(catalog)
        catalog.rename("main", "old", "kept", 3)
        catalog.rename("dev", "old", "moved", 4)
        result = catalog.merge_contents("dev", behaviors=[behave("old", "FORCE")], dry_run=True)
        assert listed(result) == {"kept": ("FORCE", 3, None), "moved": ("FORCE", None, 4)}

    def test_decisions_that_give_one_key_to_two_contents_are_refused(
        self, catalog: Catalog
    ) -> None:
        first = begin(catalog)
        for old, new in (("old", "t"), ("aside", "old"), ("t", "aside")):
            catalog.rename("main", old, new)
        catalog.write("dev", {"old": 5, "aside": 6})
        second = catalog.id("dev", "aside")
        with pytest.raises(InvalidInput, match="contradict each other"):
            catalog.merge_contents(
                "dev",
                behaviors=[
                    KeyBehavior(key("old"), MergeBehavior.FORCE, content_id=first),
                    KeyBehavior(key("aside"), MergeBehavior.DROP, content_id=second),
                ],
            )

    def test_two_contents_claim_one_key(self, catalog: Catalog) -> None:
        begin(catalog)
        catalog.rename("dev", "old", "new")
        catalog.write("main", {"new": 7, "old": 2})
        with pytest.raises(MergeConflict) as refused:
            catalog.merge_contents("dev")
        conflict = only_conflict(refused)
        assert (conflict.type, conflict.key) == (ConflictType.KEY_EXISTS, key("new"))
        dry = catalog.merge_contents("dev", behaviors=[behave("new", "FORCE")], dry_run=True)
        assert listed(dry) == {"old": ("FORCE", 2, None), "new": ("FORCE", 7, 2)}
        catalog.merge_contents("dev", behaviors=[behave("new", "DROP")])
        assert catalog.numbers() == {"aside": 1, "new": 7, "old": 2}

    def test_a_content_that_is_left_out_is_listed_beside_the_one_that_stays(
        self, catalog: Catalog
    ) -> None:
        begin(catalog)
        catalog.write("dev", {"new": 5})
        catalog.write("main", {"new": 7})
        for options in (
            {"default_behavior": MergeBehavior.DROP},
            {"behaviors": [behave("new", "DROP")]},
        ):
            result = catalog.merge_contents("dev", dry_run=True, **options)
            assert listed(result) == {"new": ("DROP", 7, 7)}

    def test_options_name_the_contents_that_give_way(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1, "c": 2})
        catalog.branch("dev")
        catalog.rename("main", "c", "k")
        catalog.write("main", {"a": 11, "c": 30})
        catalog.rename("dev", "a", "k", 12)
        with pytest.raises(MergeConflict) as refused:
            catalog.merge_contents("dev")
        assert only_conflict(refused).options == (
            MergeOption(
                MergeBehavior.FORCE,
                deletes=(key("c"),),
                renames=((key("a"), key("k")), (key("k"), key("c"))),
            ),
            MergeOption(MergeBehavior.DROP),
        )
        catalog.merge_contents("dev", behaviors=[behave("a", "FORCE")])
        assert catalog.numbers() == {"c": 2, "k": 12}

    @pytest.mark.parametrize("decided", [[behave("a", "FORCE")], []])
    def test_an_error_says_what_the_given_decisions_do(
        self, catalog: Catalog, decided: list[KeyBehavior]
    ) -> None:
        catalog.write("main", {"a": 1, "b": 1, "gone": 1})
        catalog.branch("dev")
        catalog.write("main", {"a": None, "b": 2})
        catalog.write("main", {"a": 20})
        catalog.write("dev", {"a": 3, "b": 3, "gone": None})
        default = MergeBehavior.NORMAL if decided else MergeBehavior.FORCE
        conflict = behave("b", "NORMAL", catalog.content("dev", "b"))
        with pytest.raises(MergeConflict) as refused:
            catalog.merge_contents("dev", behaviors=[*decided, conflict], default_behavior=default)
        assert refused.value.decided == MergeOption(MergeBehavior.NORMAL, deletes=(key("a"),))
        with pytest.raises(MergeConflict) as refused:
            catalog.merge_contents("dev")
        assert refused.value.decided is None

    def test_a_resolved_content_of_another_type_is_refused(self, catalog: Catalog) -> None:
        content_id = begin(catalog)
        catalog.write("dev", {"old": 2})
        catalog.write("main", {"old": 3})
        resolved = behave("old", "NORMAL", table(3, content_id), view(9, content_id))
        with pytest.raises(InvalidInput, match="has another type"):
            catalog.merge_contents("dev", behaviors=[resolved])

    def test_a_lost_claim_gives_the_content_its_other_key(self, catalog: Catalog) -> None:
        begin(catalog)
        catalog.rename("main", "old", "new", 2)
        catalog.write("dev", {"new": 7})
        catalog.merge_contents("dev", behaviors=[behave("new", "FORCE")])
        assert catalog.numbers() == {"aside": 1, "new": 7, "old": 2}

    def test_a_namespace_of_both_sides_is_that_of_theirs(self, catalog: Catalog) -> None:
        begin(catalog)
        catalog.write("dev", {"n": NS, "n.a": 1})
        catalog.write("main", {"n": NS, "n.b": 2})
        result = catalog.merge_contents("dev")
        assert listed(result) == {"n": ("NORMAL", NS, NS), "n.a": ("NORMAL", None, 1)}
        assert catalog.id("main", "n") == catalog.id("dev", "n")

    @pytest.mark.parametrize(("source", "target"), [("main", "dev"), ("dev", "main")])
    def test_a_namespace_that_was_created_again_gets_the_changes_of_the_other_side(
        self, catalog: Catalog, source: str, target: str
    ) -> None:
        create_again(catalog, namespace("n"))
        changed = catalog.content("dev", "n")
        result = catalog.merge_contents(source, target)
        assert [d.result for d in result.details] == ([changed] if source == "dev" else [])
        assert catalog.content(target, "n") == changed

    @pytest.mark.parametrize(("source", "target"), [("main", "dev"), ("dev", "main")])
    def test_a_namespace_that_was_created_with_other_properties_conflicts(
        self, catalog: Catalog, source: str, target: str
    ) -> None:
        create_again(catalog, namespace("n", p="2"))
        with pytest.raises(MergeConflict) as refused:
            catalog.merge_contents(source, target)
        assert only_conflict(refused).key == key("n")
        for behavior, side in (("DROP", target), ("FORCE", source)):
            kept = catalog.content(side, "n")
            result = catalog.merge_contents(
                source, target, behaviors=[behave("n", behavior)], dry_run=True
            )
            assert [d.result for d in result.details] == [kept]

    @pytest.mark.parametrize(("source", "target"), [("main", "dev"), ("dev", "main")])
    def test_a_namespace_with_the_old_key_of_a_renamed_one_is_another_one(
        self, catalog: Catalog, source: str, target: str
    ) -> None:
        catalog.write("main", {"n": NS})
        catalog.branch("dev")
        catalog.rename("main", "n", "moved")
        catalog.write("main", {"n": NS})
        content_id = catalog.id("dev", "n")
        catalog.commit("dev", put("n", namespace("n", content_id, p="1")))
        catalog.merge_contents(source, target)
        assert catalog.content(target, "moved") == namespace("n", content_id, p="1")
        assert catalog.id(target, "n") == catalog.id("main", "n")

    def test_a_namespace_that_is_still_needed_can_be_kept(self, catalog: Catalog) -> None:
        catalog.write("main", {"n": NS})
        catalog.branch("dev")
        dropped = catalog.write("dev", {"n": None})
        catalog.write("main", {"n.a": 1})
        for merge in (
            lambda **options: catalog.merge_contents("dev", **options),
            lambda **options: catalog.transplant_contents([dropped], **options),
        ):
            with pytest.raises(MergeConflict) as refused:
                merge()
            assert types_and_keys(refused.value.result.conflicts) == [("NAMESPACE_NOT_EMPTY", "n")]
            assert merge(behaviors=[behave("n", "DROP")], dry_run=True).successful

    @pytest.mark.parametrize("is_deleted", [True, False])
    def test_theirs_is_no_option_if_it_removes_a_namespace_with_contents(
        self, catalog: Catalog, is_deleted: bool
    ) -> None:
        """Theirs deleted the namespace, or has a table at its key."""
        catalog.write("main", {"other": 1})
        if is_deleted:
            catalog.write("main", {"n": NS})
        catalog.branch("dev")
        changed = catalog.write("dev", {"n": None if is_deleted else 3})
        if is_deleted:
            content_id = catalog.id("main", "n")
            catalog.commit("main", put("n", namespace("n", content_id, p="1")))
        else:
            catalog.write("main", {"n": NS})
        catalog.write("main", {"n.a": 1})
        for merge in (
            lambda **options: catalog.merge_contents("dev", **options),
            lambda **options: catalog.transplant_contents([changed], **options),
        ):
            with pytest.raises(MergeConflict) as refused:
                merge()
            conflict = only_conflict(refused)
            assert [option.behavior for option in conflict.options] == ["DROP"]
            assert conflict.blocking_namespace == key("n")
            assert merge(behaviors=[behave("n", "DROP")], dry_run=True).successful

    @pytest.mark.parametrize("is_in_conflict", [True, False])
    def test_theirs_is_an_option_if_the_contents_of_a_namespace_go_with_it(
        self, catalog: Catalog, is_in_conflict: bool
    ) -> None:
        catalog.write("main", {"n": NS, "n.a": 1})
        catalog.branch("dev")
        catalog.write("dev", {"n": None, "n.a": None})
        content_id = catalog.id("main", "n")
        catalog.commit("main", put("n", namespace("n", content_id, p="1")))
        if is_in_conflict:
            catalog.write("main", {"n.a": 2})
        with pytest.raises(MergeConflict) as refused:
            catalog.merge_contents("dev")
        conflicts = refused.value.result.conflicts
        for conflict in conflicts:
            assert [option.behavior for option in conflict.options] == ["FORCE", "DROP"]
            assert conflict.blocking_namespace is None
        behaviors = [behave(str(conflict.key), "FORCE") for conflict in conflicts]
        catalog.merge_contents("dev", behaviors=behaviors)
        assert catalog.repository.contents("main", [key("n"), key("n.a")]) == {}

    def test_the_content_that_takes_the_key_of_a_namespace_is_named_by_its_id(
        self, catalog: Catalog
    ) -> None:
        """The table has this key at the base and on theirs, and another one on ours."""
        catalog.write("main", {"m": 1})
        catalog.branch("dev")
        catalog.write("dev", {"m": 2})
        catalog.rename("main", "m", "a")
        catalog.write("main", {"a": 3})
        content_id = catalog.id("main", "a")
        catalog.write("main", {"m": NS, "m.b": 1})
        with pytest.raises(MergeConflict) as refused:
            catalog.merge_contents("dev")
        conflict = only_conflict(refused)
        assert [option.behavior for option in conflict.options] == ["DROP"]
        assert conflict.blocking_namespace == key("m")
        with pytest.raises(MergeConflict) as refused:
            catalog.merge_contents("dev", behaviors=[behave("a", "FORCE")])
        conflict = only_conflict(refused)
        assert (conflict.type, conflict.key) == (ConflictType.NAMESPACE_NOT_EMPTY, key("m"))
        assert (conflict.content_id, conflict.value_key) == (content_id, key("a"))
        assert conflict.is_ambiguous
        by_id = structs.replace(behave("m", "DROP"), content_id=content_id)
        assert catalog.merge_contents("dev", behaviors=[by_id], dry_run=True).successful

    def test_a_replaced_and_a_renamed_content_with_one_metadata_file_conflict(
        self, catalog: Catalog
    ) -> None:
        begin(catalog)
        catalog.rename("main", "old", "new")
        replaced = catalog.commit("dev", delete("old"), put("old", table(1)))
        decided = [behave("new", "DROP")]
        for merge in (
            lambda **options: catalog.merge_contents("dev", **options),
            lambda **options: catalog.transplant_contents([replaced], **options),
        ):
            with pytest.raises(MergeConflict) as refused:
                merge(behaviors=decided)
            conflict = only_conflict(refused)
            assert (conflict.type, conflict.key) == (ConflictType.KEY_EXISTS, key("old"))
            assert conflict.same_file_key == key("new")
            assert conflict.proposed == catalog.content("dev", "old")
            assert conflict.options == (MergeOption(MergeBehavior.DROP, leaves_out=(key("old"),)),)
            for others in (
                [behave("new", "FORCE")],
                [*decided, structs.replace(behave("old", "DROP"), content_id=conflict.content_id)],
            ):
                assert merge(behaviors=others, dry_run=True).successful
        assert catalog.numbers() == {"aside": 1, "new": 1}

    def test_a_decision_about_an_unchanged_content_is_refused(self, catalog: Catalog) -> None:
        begin(catalog)
        catalog.write("dev", {"old": 2})
        for behavior in ("FORCE", "DROP"):
            with pytest.raises(InvalidInput, match="does not change aside"):
                catalog.merge_contents("dev", behaviors=[behave("aside", behavior)])

    def test_a_resolved_content_has_the_merged_key(self, catalog: Catalog) -> None:
        content_id = begin(catalog)
        catalog.rename("dev", "old", "new", 2)
        catalog.write("main", {"old": 3})
        resolved = behave("old", "NORMAL", table(3, content_id), table(9, content_id))
        for options in ({"dry_run": True}, {}):
            result = catalog.merge_contents("dev", behaviors=[resolved], **options)
            assert listed(result) == {"old": ("NORMAL", 3, None), "new": ("NORMAL", None, 9)}
        assert catalog.numbers() == {"aside": 1, "new": 9}

    def test_a_resolved_content_stays_if_theirs_deleted_it(self, catalog: Catalog) -> None:
        content_id = begin(catalog)
        catalog.write("dev", {"old": None})
        catalog.write("main", {"old": 3})
        resolved = behave("old", "NORMAL", table(3, content_id), table(9, content_id))
        assert listed(catalog.merge_contents("dev", behaviors=[resolved])) == {
            "old": ("NORMAL", 3, 9)
        }

    def test_a_resolved_content_is_listed_as_merged(self, catalog: Catalog) -> None:
        content_id = begin(catalog)
        catalog.write("dev", {"old": 2})
        catalog.write("main", {"old": 3})
        resolved = behave("old", "NORMAL", table(3, content_id), table(9, content_id))
        assert listed(catalog.merge_contents("dev", behaviors=[resolved])) == {
            "old": ("NORMAL", 3, 9)
        }


class ContentTransplants:
    def test_a_pick_follows_a_rename(self, catalog: Catalog) -> None:
        begin(catalog)
        picked = catalog.write("dev", {"old": 2})
        catalog.rename("main", "old", "new")
        result = catalog.transplant_contents([picked])
        assert listed(result) == {"new": ("NORMAL", 1, 2)}
        assert catalog.numbers() == {"aside": 1, "new": 2}

    def test_a_creation_and_a_rename_conflict(self, catalog: Catalog) -> None:
        created = catalog.write("main", {"old": 1})
        catalog.branch("dev")
        catalog.rename("dev", "old", "new")
        with pytest.raises(MergeConflict) as refused:
            catalog.transplant_contents([created], onto="dev")
        conflict = only_conflict(refused)
        assert (conflict.type, conflict.key, conflict.theirs_key) == (
            ConflictType.KEY_CONFLICT,
            key("new"),
            key("old"),
        )
        assert conflict.commit == created
        catalog.transplant_contents([created], onto="dev", behaviors=[behave("new", "FORCE")])
        assert catalog.numbers("dev") == {"old": 1}

    @pytest.mark.parametrize("value", [2, None])
    def test_a_change_that_ours_has_is_skipped(self, catalog: Catalog, value: int | None) -> None:
        begin(catalog)
        picked = catalog.write("dev", {"old": value})
        head = catalog.write("main", {"old": value})
        result = catalog.transplant_contents([picked])
        assert (result.applied, result.successful, result.skipped) == (False, True, (picked,))
        assert catalog.head() == head

    def test_decisions_are_for_a_commit_and_a_content(self, catalog: Catalog) -> None:
        content_id = begin(catalog)
        commits = [catalog.write("dev", {"old": 2}), catalog.write("dev", {"old": 3})]
        catalog.write("main", {"old": 9})

        def behavior(commit: str, side: str) -> KeyBehavior:
            return KeyBehavior(
                key("old"), MergeBehavior(side), content_id=content_id, commit=commit
            )

        with pytest.raises(MergeConflict) as refused:
            catalog.transplant_contents(commits, behaviors=[behavior(commits[0], "DROP")])
        assert only_conflict(refused).commit == commits[1]
        result = catalog.transplant_contents(
            commits, behaviors=[behavior(commits[0], "DROP"), behavior(commits[1], "FORCE")]
        )
        assert (listed(result), result.skipped) == ({"old": ("FORCE", 9, 3)}, (commits[0],))

    @pytest.mark.parametrize("name", ["key", "content", "commit"])
    def test_a_decision_keeps_the_namespace_of_the_target(
        self, catalog: Catalog, name: str
    ) -> None:
        begin(catalog)
        created = catalog.write("dev", {"n": NS, "other": 1})
        commits = [created, catalog.write("dev", {"n.a": 1})]
        catalog.commit("main", put("n", namespace("n", keep="1")))
        kept = catalog.content("main", "n")
        content_id = catalog.id("dev", "n")
        decision = {
            "key": behave("n", "DROP"),
            "content": KeyBehavior(key("n"), MergeBehavior.DROP, content_id=content_id),
            "commit": KeyBehavior(
                key("n"), MergeBehavior.DROP, content_id=content_id, commit=created
            ),
        }[name]
        result = catalog.transplant_contents(commits, behaviors=[decision])
        assert listed(result) == {
            "n": ("DROP", NS, NS),
            "other": ("NORMAL", None, 1),
            "n.a": ("NORMAL", None, 1),
        }
        assert catalog.content("main", "n") == kept

    @pytest.mark.parametrize("behavior", ["NORMAL", "FORCE"])
    def test_a_picked_namespace_of_both_sides_is_that_of_theirs(
        self, catalog: Catalog, behavior: str
    ) -> None:
        begin(catalog)
        created = catalog.write("dev", {"n": NS})
        catalog.commit("main", put("n", namespace("n", keep="1")))
        behaviors = [] if behavior == "NORMAL" else [behave("n", behavior)]
        catalog.transplant_contents([created], behaviors=behaviors)
        assert catalog.content("main", "n") == catalog.content("dev", "n")

    def test_a_decision_leaves_a_clean_change_of_a_namespace(self, catalog: Catalog) -> None:
        catalog.write("main", {"n": NS})
        catalog.branch("dev")
        changed = catalog.commit(
            "dev", put("n", namespace("n", catalog.id("dev", "n"), p="1")), put("m", namespace("m"))
        )
        behaviors = [behave("n", "DROP"), behave("m", "DROP")]
        catalog.transplant_contents([changed], behaviors=behaviors)
        assert [catalog.content("main", k) for k in "nm"] == [
            catalog.content("dev", k) for k in "nm"
        ]

    def test_several_commits_are_listed_by_what_they_change_together(
        self, catalog: Catalog
    ) -> None:
        begin(catalog)
        commits = [
            catalog.write("dev", {"old": 2, "aside": 5}),
            catalog.rename("dev", "old", "new"),
            catalog.write("dev", {"aside": 1}),
        ]
        dry = catalog.transplant_contents(commits, dry_run=True)
        assert listed(dry) == {"old": ("NORMAL", 1, None), "new": ("NORMAL", None, 2)}
        assert listed(catalog.transplant_contents(commits)) == listed(dry)


class ShownStates:
    """Conflicts show what decisions do, and decisions are about the state at the expected hash."""

    @pytest.mark.parametrize("verb", ["merge", "transplant"])
    def test_a_claim_shows_the_value_that_theirs_would_give_the_key(
        self, catalog: Catalog, verb: str
    ) -> None:
        catalog.write("main", {"old": 1})
        catalog.branch("dev")
        renamed = catalog.rename("dev", "old", "new")
        catalog.write("main", {"old": 110, "new": 5})

        def combine(**options: Any) -> MergeResult:
            if verb == "merge":
                return catalog.merge_contents("dev", **options)
            return catalog.transplant_contents([renamed], **options)

        with pytest.raises(MergeConflict) as refused:
            combine()
        conflict = only_conflict(refused)
        shown = [number_of(side) for side in (conflict.actual, conflict.proposed)]
        assert (conflict.type, shown) == (ConflictType.KEY_EXISTS, [5, 110])
        combine(behaviors=[behave("new", "FORCE")])
        assert catalog.numbers() == {"new": 110}

    @pytest.mark.parametrize("side", ["FORCE", "DROP"])
    @pytest.mark.parametrize("verb", ["merge", "transplant"])
    @pytest.mark.parametrize("later", ["changed", "created again"])
    def test_a_decided_key_that_changed_since_is_refused(
        self, catalog: Catalog, verb: str, side: str, later: str
    ) -> None:
        catalog.write("main", {"k": 1})
        catalog.branch("dev")
        theirs = catalog.write("dev", {"k": 2})
        shown = catalog.write("main", {"k": 3, "other": 1})

        def combine(expected: str) -> MergeResult:
            options: dict[str, Any] = {
                "behaviors": [behave("k", side)],
                "expected_hash": expected,
            }
            if verb == "merge":
                return catalog.merge_contents("dev", **options)
            return catalog.transplant_contents([theirs], **options)

        if later == "changed":
            catalog.write("main", {"k": 99})
        else:
            catalog.recreate("main", "k", table(60))
        before = catalog.everything()
        with pytest.raises(ReferenceMoved, match="'main' has changed k since"):
            combine(shown)
        assert catalog.everything() == before
        moved = catalog.write("main", {"other": 2})
        catalog.write("main", {"other": 3})
        combine(moved)
        assert catalog.numbers()["k"] == (
            2 if side == "FORCE" else {"changed": 99, "created again": 60}[later]
        )


class KeysOfContents:
    """The rules per key never give a content a second key."""

    @pytest.mark.parametrize("by_key", [False, True])
    @pytest.mark.parametrize("behavior", ["NORMAL", "FORCE", "DROP"])
    @pytest.mark.parametrize("verb", ["merge", "transplant"])
    def test_a_second_key_is_a_conflict(
        self, catalog: Catalog, verb: str, behavior: str, *, by_key: bool
    ) -> None:
        content_id = begin(catalog)
        created = catalog.rename("dev", "old", "theirs", 2)
        catalog.rename("main", "old", "ours", 3)
        before = catalog.numbers()
        side = MergeBehavior(behavior)
        options: dict[str, Any] = {"default_behavior": side}
        if by_key:
            options = {"behaviors": [behave(name, behavior) for name in ("old", "theirs")]}

        def combine() -> None:
            if verb == "merge":
                catalog.merge("dev", **options)
            else:
                catalog.transplant([created], **options)

        if (verb, behavior) == ("merge", "DROP"):
            combine()
            assert catalog.numbers() == before
            return
        with pytest.raises(MergeConflict) as refused:
            combine()
        (message,) = [c.message for c in refused.value.result.conflicts if c.key == key("theirs")]
        assert message.endswith("its content id is that of key 'ours'")
        assert catalog.numbers() == before
        assert [e.content_id for e in catalog.repository.entries("main")].count(content_id) == 1

    @pytest.mark.parametrize("behavior", ["NORMAL", "FORCE"])
    @pytest.mark.parametrize("verb", ["merge", "transplant"])
    def test_a_second_key_of_a_namespace_on_both_sides_is_a_conflict(
        self, catalog: Catalog, verb: str, behavior: str
    ) -> None:
        catalog.write("main", {"old": NS})
        catalog.branch("dev")
        renamed = catalog.rename("dev", "old", "new")
        catalog.rename("main", "old", "other")
        catalog.write("main", {"new": NS})
        before = catalog.numbers()
        side = MergeBehavior(behavior)

        def combine() -> None:
            if verb == "merge":
                catalog.merge("dev", default_behavior=side)
            else:
                catalog.transplant([renamed], default_behavior=side)

        with pytest.raises(MergeConflict) as refused:
            combine()
        (message,) = [c.message for c in refused.value.result.conflicts if c.key == key("new")]
        assert message.endswith("its content id is that of key 'other'")
        assert catalog.numbers() == before

    @pytest.mark.parametrize("verb", ["merge", "transplant"])
    def test_force_edits_only_keys_that_the_source_changed(
        self, catalog: Catalog, verb: str
    ) -> None:
        begin(catalog)
        removed = catalog.write("dev", {"old": None})
        catalog.rename("main", "old", "new")
        if verb == "merge":
            catalog.merge("dev", default_behavior=MergeBehavior.FORCE)
        else:
            catalog.transplant([removed], default_behavior=MergeBehavior.FORCE)
        assert catalog.numbers() == {"aside": 1, "new": 1}

    @pytest.mark.parametrize("seed", range(12))
    def test_random_histories_have_no_second_key(self, catalog: Catalog, seed: int) -> None:
        history = History(seed)
        base = play(catalog, "main", {}, history.base)
        catalog.branch("dev")
        catalog.branch("end")
        play(catalog, "main", base, history.ours)
        play(catalog, "dev", base, history.theirs)
        commits = catalog.hashes("dev")[: len(catalog.hashes("dev")) - len(catalog.hashes("end"))]
        for side in MergeBehavior:
            branches = (f"merged-{side}", f"picked-{side}")
            for branch in branches:
                catalog.branch(branch)
            with suppress(ReferenceConflict):
                catalog.merge("dev", branches[0], default_behavior=side)
            for commit in reversed(commits):
                with suppress(ReferenceConflict):
                    catalog.transplant([commit], branches[1], default_behavior=side)
            for branch in branches:
                ids = [e.content_id for e in catalog.repository.entries(branch)]
                assert len(set(ids)) == len(ids)


class RandomContents:
    @pytest.mark.parametrize("seed", range(12))
    def test_random_histories_merge_as_the_model(self, catalog: Catalog, seed: int) -> None:
        history = History(seed)
        base = play(catalog, "main", {}, history.base)
        catalog.branch("dev")
        play(catalog, "main", base, history.ours)
        play(catalog, "dev", base, history.theirs)
        before = ids_and_numbers(catalog)
        try:
            dry = catalog.merge_contents("dev", dry_run=True)
        except MergeConflict as conflict:
            assert ids_and_numbers(catalog) == before
            behaviors = [
                KeyBehavior(
                    c.key, MergeBehavior.FORCE, content_id=c.content_id if c.is_ambiguous else None
                )
                for c in conflict.result.conflicts
                if c.key
            ]
            dry = catalog.merge_contents("dev", behaviors=behaviors, dry_run=True)
            done = catalog.merge_contents("dev", behaviors=behaviors)
        else:
            done = catalog.merge_contents("dev")
        assert listed(dry) == listed(done)
        after = ids_and_numbers(catalog)
        assert len({id_ for id_, _ in after.values()}) == len(after)
        changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        assert changed == {d.key.plain for d in done.details if d.result != d.target}
        assert catalog.merge_contents("dev").applied is False


def play(
    catalog: Catalog, branch: str, before: Mapping[bytes, Item], after: Mapping[bytes, Item]
) -> Mapping[bytes, Item]:
    """Commits the change from one state of the model to another."""
    ids = {item.id: catalog.id(branch, k.decode()) for k, item in before.items()}
    gone = [k for k, item in before.items() if after.get(k, Item(0, 0)).id != item.id]
    for number, k in enumerate(gone):
        if before[k].id in {item.id for item in after.values()}:
            catalog.rename(branch, k.decode(), f"t{number}")
        else:
            catalog.commit(branch, delete(k.decode()))
    names = {before[k].id: f"t{number}" for number, k in enumerate(gone)}
    for k, item in after.items():
        name, old = k.decode(), before.get(k)
        if old is None or old.id != item.id:
            if item.id in ids:
                catalog.rename(branch, names[item.id], name)
            else:
                catalog.commit(branch, put(name, content_of(name, item)))
                continue
        if catalog.content(branch, name) != content_of(name, item, ids[item.id]):
            catalog.commit(branch, put(name, content_of(name, item, ids[item.id])))
    return after


def content_of(name: str, item: Item, content_id: str | None = None) -> Content:
    if item.is_namespace:
        return namespace("x", content_id, value=str(item.value))
    return table(item.value, content_id)


def ids_and_numbers(catalog: Catalog) -> dict[str, tuple[str, Content | None]]:
    return {
        e.key.plain: (e.content_id, e.content)
        for e in catalog.repository.entries("main", content=True)
    }


def listed(result: MergeResult) -> dict[str, tuple[str, int | str | None, int | str | None]]:
    """Returns the keys of a result: behavior, content before and after."""
    return {
        d.key.plain: (d.behavior.value, number_of(d.target), number_of(d.result))
        for d in result.details
    }
