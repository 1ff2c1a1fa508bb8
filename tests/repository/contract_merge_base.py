"""Merge bases over first parents and merge parents: simple, double, multiple, crossed,
nested."""

from __future__ import annotations

import pytest

from tests.repository.vocabulary import EMPTY, Catalog


class MergeBases:
    def base(self, catalog: Catalog, a: str, b: str) -> str:
        """Returns the merge base; it must not depend on the order of the sides."""
        found = catalog.repository.merge_base(a, b)
        assert catalog.repository.merge_base(b, a) == found
        assert found == EMPTY or (
            catalog.repository.is_ancestor(found, a) and catalog.repository.is_ancestor(found, b)
        )
        return found

    def test_the_merge_base_of_a_branch_is_its_start(self, catalog: Catalog) -> None:
        start = catalog.write("main", {"a": 1})
        catalog.branch("dev")
        assert self.base(catalog, "main", "dev") == start
        catalog.write("main", {"m": 1})
        assert self.base(catalog, "main", "dev") == start
        catalog.write("dev", {"d": 1})
        assert self.base(catalog, "main", "dev") == start
        assert catalog.merge("dev").common_ancestor == start

    def test_an_ancestor_is_the_merge_base(self, catalog: Catalog) -> None:
        one = catalog.write("main", {"a": 1})
        two = catalog.write("main", {"a": 2})
        assert self.base(catalog, "main", "main") == two
        assert self.base(catalog, "main~1", "main") == one

    def test_unrelated_histories_have_no_merge_base(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        catalog.branch("other", EMPTY)
        assert self.base(catalog, "main", "other") == EMPTY
        catalog.write("other", {"b": 1})
        assert self.base(catalog, "main", "other") == EMPTY

    def test_a_merged_commit_is_the_next_merge_base(self, catalog: Catalog) -> None:
        start = catalog.write("main", {"a": 1})
        catalog.branch("dev")
        for n in range(5):
            previous = start if n == 0 else catalog.head("dev")
            catalog.write("dev", {f"d{n}": 1})
            catalog.write("main", {f"m{n}": 1})
            result = catalog.merge("dev")
            assert result.common_ancestor == previous
            assert result.applied
            assert self.base(catalog, "main", "dev") == catalog.head("dev")

    def test_crossed_merges(self, catalog: Catalog) -> None:
        start = catalog.write("main", {"a": 1})
        catalog.branch("b1")
        first = catalog.write("b1", {"b11": 1})
        catalog.write("main", {"main2": 1})
        assert catalog.merge("b1").common_ancestor == start
        catalog.write("b1", {"b13": 1})
        catalog.write("main", {"main4": 1})
        fifth = catalog.write("b1", {"b15": 1})
        assert catalog.merge("b1").common_ancestor == first
        assert catalog.merge("b1").common_ancestor == fifth
        catalog.write("b1", {"b16": 1})
        merged = catalog.head("main")
        assert catalog.merge("main", into="b1").common_ancestor == fifth
        result = catalog.merge("b1")
        assert result.common_ancestor == merged
        assert {d.key.plain for d in result.details} == {"b16"}
        assert catalog.numbers("main") == catalog.numbers("b1")

    def test_merging_each_into_the_other_in_turn(self, catalog: Catalog) -> None:
        start = catalog.write("main", {"a": 1})
        catalog.branch("b2")
        catalog.branch("b3")
        two = catalog.write("b2", {"b27": 1})
        catalog.write("b3", {"b38": 1})
        result = catalog.merge("b2", into="b3")
        assert (result.common_ancestor, result.successful) == (start, True)
        catalog.write("b2", {"b29": 1})
        result = catalog.merge("b3", into="b2")
        assert result.common_ancestor == two
        assert {d.key.plain for d in result.details} == {"b38"}
        merged = catalog.hash("b3")
        catalog.write("b2", {"b210": 1})
        catalog.write("b3", {"b311": 1})
        result = catalog.merge("b2", into="b3")
        assert result.common_ancestor == merged
        result = catalog.merge("b3", into="b2")
        assert {d.key.plain for d in result.details} == {"b311"}
        assert catalog.numbers("b2") == catalog.numbers("b3")

    def test_nested_branches(self, catalog: Catalog) -> None:
        start = catalog.write("main", {"a": 1})
        catalog.branch("b4")
        on_b4 = catalog.write("b4", {"b412": 1})
        catalog.branch("x", "b4")
        on_x = catalog.write("x", {"x13": 1})
        catalog.write("b4", {"b414": 1})
        catalog.branch("y", "x")
        first_y = catalog.write("y", {"y15": 1})
        catalog.write("x", {"x16": 1})
        assert catalog.merge("y", into="x").common_ancestor == on_x
        assert catalog.merge("x", into="b4").common_ancestor == on_b4
        last_y = catalog.write("y", {"y17": 1})
        result = catalog.merge("y", into="b4")
        assert result.common_ancestor == first_y
        assert {d.key.plain for d in result.details} == {"y17"}
        assert catalog.merge("b4").common_ancestor == start
        again = catalog.merge("y")
        assert (again.common_ancestor, again.applied, again.details) == (last_y, False, ())
        back = catalog.merge("main", into="y")
        assert back.common_ancestor == last_y
        assert {d.key.plain for d in back.details} == {"b414", "x16"}

    def test_a_crossed_pair_of_merges_has_one_stable_base(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        catalog.branch("dev")
        on_main = catalog.write("main", {"m": 1})
        on_dev = catalog.write("dev", {"d": 1})
        catalog.merge(f"@{on_dev}", into="main")
        catalog.merge(f"@{on_main}", into="dev")
        base = self.base(catalog, "main", "dev")
        assert base in (on_main, on_dev)
        catalog.write("main", {"m": 2})
        catalog.write("dev", {"d": 2})
        assert self.base(catalog, "main", "dev") == base

    def test_a_long_detour_is_not_preferred_to_a_near_merge(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        catalog.branch("long")
        catalog.branch("short")
        for n in range(20):
            catalog.write("long", {"l": n})
        near = catalog.write("short", {"s": 1})
        far = catalog.head("long")
        for branch in ("left", "right"):
            catalog.branch(branch, "main")
            catalog.merge("long", into=branch)
            catalog.merge("short", into=branch)
        assert self.base(catalog, "left", "right") in (near, far)

    def test_the_merge_base_is_not_an_ancestor_of_another_common_ancestor(
        self, catalog: Catalog
    ) -> None:
        old = catalog.write("main", {"a": 1})
        catalog.branch("release", old)
        new = catalog.write("main", {"a": 2})
        catalog.branch("feature", new)
        catalog.write("feature", {"f": 1})
        catalog.write("release", {"r": 1})
        catalog.merge("main", into="release")
        catalog.write("release", {"r": 2})
        assert self.base(catalog, "release", "feature") == new

    @pytest.mark.slow
    def test_a_chain_of_hundreds_of_merges(self, catalog: Catalog) -> None:
        for n in range(150):
            catalog.write("main", {"a": n})
        fork = catalog.head()
        catalog.branch("dev")
        for n in range(150):
            catalog.write("main", {"m": n})
            catalog.write("dev", {"d": n})
        assert self.base(catalog, "main", "dev") == fork
        assert self.base(catalog, "main~75", "dev~20") == fork
        assert self.base(catalog, "main~200", "dev") == catalog.hash("main~200")
