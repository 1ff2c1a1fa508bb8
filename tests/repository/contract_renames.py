"""Merges with renames, which are recognised by the content id."""

from __future__ import annotations

import pytest

from nessie_cli.errors import MergeConflict, ReferenceConflict
from nessie_cli.model import Conflict, MergeBehavior
from tests.repository.vocabulary import NS, Catalog, delete, key, put, table, types_and_keys


def begin(catalog: Catalog) -> str:
    catalog.write("main", {"old": 1, "aside": 1})
    catalog.branch("dev")
    return catalog.id("main", "old")


def only_conflict(refused: pytest.ExceptionInfo[MergeConflict]) -> Conflict:
    conflicts: tuple[Conflict, ...] = refused.value.result.conflicts
    (conflict,) = conflicts
    return conflict


class Renames:
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

    def test_source_renamed_and_target_changed_is_one_conflict(self, catalog: Catalog) -> None:
        content_id = begin(catalog)
        moved = catalog.rename("dev", "old", "new")
        changed = catalog.write("main", {"old": 2})
        with pytest.raises(MergeConflict) as refused:
            catalog.merge_contents("dev")
        conflict = only_conflict(refused)
        assert conflict.key in (key("old"), key("new"))
        assert conflict.target_rename is None
        assert conflict.source_rename is not None
        assert (conflict.source_rename.old, conflict.source_rename.new) == (key("old"), key("new"))
        assert conflict.source_rename.by is not None
        assert conflict.source_rename.by.hash == moved
        assert conflict.changed_by is not None
        assert conflict.changed_by.hash == changed
        assert (conflict.expected, conflict.actual) == (table(1, content_id), table(2, content_id))
        assert catalog.numbers() == {"aside": 1, "old": 2}

    def test_source_renamed_and_target_changed_combine(self, catalog: Catalog) -> None:
        content_id = begin(catalog)
        catalog.rename("dev", "old", "new")
        catalog.write("main", {"old": 2})
        assert catalog.merge_contents("dev").applied
        assert catalog.numbers() == {"aside": 1, "new": 2}
        assert catalog.id("main", "new") == content_id

    def test_target_renamed_and_source_changed_is_one_conflict(self, catalog: Catalog) -> None:
        content_id = begin(catalog)
        changed = catalog.write("dev", {"old": 2})
        moved = catalog.rename("main", "old", "new")
        with pytest.raises(MergeConflict) as refused:
            catalog.merge_contents("dev")
        conflict = only_conflict(refused)
        assert conflict.source_rename is None
        assert conflict.target_rename is not None
        assert (conflict.target_rename.old, conflict.target_rename.new) == (key("old"), key("new"))
        assert conflict.target_rename.by is not None
        assert conflict.target_rename.by.hash == moved
        assert conflict.proposed == table(2, content_id)
        assert changed
        assert catalog.numbers() == {"aside": 1, "new": 1}

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
        conflicts = refused.value.result.conflicts
        assert any(c.source_rename and c.target_rename for c in conflicts)
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
        with pytest.raises(MergeConflict) as refused:
            catalog.merge_contents("dev")
        assert len(refused.value.result.conflicts) == 10
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
