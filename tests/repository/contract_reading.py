"""Reading: log, entries, contents, diff, last change."""

from __future__ import annotations

import re

import pytest

from nessie_cli.errors import CommitNotFound, ContentNotFound, InvalidInput, ReferenceNotFound
from nessie_cli.model import AheadBehind, ContentKey, KeyRange, Namespace, Put
from nessie_cli.repository.base import Repository
from nessie_cli.repository.log_filter import ALL_COMMITS, LogFilter, Walk
from tests.repository.vocabulary import (
    EMPTY,
    NOBODY,
    NS,
    Catalog,
    delete,
    key,
    number_of,
    put,
    table,
)


def diamond(catalog: Catalog) -> dict[str, str]:
    """base - m1 - merge - m2 on main, base - d1 - d2 on dev, d2 merged."""
    at = {"base": catalog.write("main", {"a": 1})}
    catalog.branch("dev")
    at["d1"] = catalog.write("dev", {"d": 1})
    at["m1"] = catalog.write("main", {"m": 1})
    at["d2"] = catalog.write("dev", {"d": 2})
    merged = catalog.merge("dev").resultant_hash
    assert merged is not None
    at["merge"] = merged
    at["m2"] = catalog.write("main", {"m": 2})
    return at


class History:
    def test_the_log_is_newest_first_along_first_parents(self, catalog: Catalog) -> None:
        at = diamond(catalog)
        assert catalog.hashes() == [at["m2"], at["merge"], at["m1"], at["base"]]
        assert catalog.hashes("dev") == [at["d2"], at["d1"], at["base"]]

    def test_the_log_may_start_at_any_commit(self, catalog: Catalog) -> None:
        at = diamond(catalog)
        assert catalog.hashes("main~2") == [at["m1"], at["base"]]
        assert catalog.hashes(f"@{at['d1']}") == [at["d1"], at["base"]]
        assert catalog.hashes(EMPTY) == []
        assert catalog.hashes("main~9") == []

    def test_the_log_ends_at_its_limit(self, catalog: Catalog) -> None:
        at = diamond(catalog)
        assert catalog.hashes(until=at["m1"]) == [at["m2"], at["merge"], at["m1"]]
        assert catalog.hashes(until=at["m2"]) == [at["m2"]]

    def test_an_oldest_commit_that_is_never_reached_has_no_effect(self, catalog: Catalog) -> None:
        at = diamond(catalog)
        assert catalog.hashes(until=at["d1"]) == catalog.hashes()
        assert catalog.hashes("main~1", until=at["m2"]) == catalog.hashes("main~1")

    def test_a_filtered_log_has_the_commits_that_pass(self, catalog: Catalog) -> None:
        at = diamond(catalog)

        def passing(walk: Walk, wanted: LogFilter = ALL_COMMITS) -> list[str]:
            return [
                entry.hash
                for entry in catalog.repository.filtered_log(walk, wanted)
                if entry is not None
            ]

        assert (
            passing(Walk("main"))
            == passing(Walk(None))
            == [at[name] for name in ("m2", "merge", "d2", "m1", "d1", "base")]
        )
        assert passing(Walk("main"), LogFilter(merges=True)) == [at["merge"]]
        assert passing(Walk("main"), LogFilter(keys=(key("m"),), skip=1)) == [at["m1"]]
        assert passing(Walk("main"), LogFilter(message=re.compile("base|write a"))) == [at["base"]]
        assert passing(Walk("main", "dev"), LogFilter(merges=False)) == [at["m2"], at["m1"]]
        assert passing(Walk("main~2", "dev", symmetric=True)) == [at["d2"], at["m1"], at["d1"]]
        assert passing(Walk("main", "dev", first_parent=True)) == [at["m2"], at["merge"], at["m1"]]

    def test_a_filtered_log_has_operations_on_request(self, catalog: Catalog) -> None:
        diamond(catalog)
        for asked in (True, False):
            found = list(
                catalog.repository.filtered_log(
                    Walk("dev"), LogFilter(keys=(key("d"),)), operations=asked
                )
            )
            assert [bool(entry.operations) for entry in found if entry is not None] == [
                asked,
                asked,
            ]

    def test_counts_for_many_commits_equal_those_for_each(self, catalog: Catalog) -> None:
        at = diamond(catalog)
        hashes = [*at.values(), EMPTY]
        for one in at.values():
            ancestors = {
                hash_ for hash_ in hashes if catalog.repository.is_ancestor(f"@{hash_}", f"@{one}")
            }
            assert catalog.repository.ancestors_among(hashes, one) == ancestors
            descendants = {
                hash_ for hash_ in hashes if catalog.repository.is_ancestor(f"@{one}", f"@{hash_}")
            }
            assert catalog.repository.descendants_among(hashes, one) == descendants

    def test_the_changed_keys_of_a_commit_equal_its_diff(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1, "b": 1})
        catalog.commit(
            "main",
            put("a", table(2, catalog.content("main", "a").id)),
            delete("b"),
            put("c", table(3)),
        )
        found = catalog.repository.changed_keys(catalog.repository.commit_at("main"))
        assert [(str(one.key), one.before, one.after) for one in found] == [
            ("a", True, True),
            ("b", True, False),
            ("c", False, True),
        ]
        assert [one.content_id for one in found] == [
            catalog.content(at, name).id
            for at, name in (("main", "a"), ("main~1", "b"), ("main", "c"))
        ]

    def test_entries_of_the_log_have_their_parents(self, catalog: Catalog) -> None:
        at = diamond(catalog)
        parents = {e.hash: (e.parent, e.meta.parents) for e in catalog.log()}
        assert parents[at["base"]] == (EMPTY, (EMPTY,))
        assert parents[at["m1"]] == (at["base"], (at["base"],))
        assert parents[at["merge"]] == (at["m1"], (at["m1"], at["d2"]))

    def test_the_log_over_all_parents_has_every_commit_once_children_first(
        self, catalog: Catalog
    ) -> None:
        at = diamond(catalog)
        entries = catalog.log(all_parents=True)
        hashes = [e.hash for e in entries]
        assert sorted(hashes) == sorted(at.values())
        for entry in entries:
            for parent in entry.meta.parents:
                assert parent == EMPTY or hashes.index(parent) > hashes.index(entry.hash)

    def test_the_log_is_read_lazily(self, catalog: Catalog) -> None:
        for n in range(30):
            catalog.write("main", {"a": n})
        entries = catalog.repository.log("main")
        first = next(entries)
        catalog.write("main", {"a": 99})
        assert first.hash == catalog.hash("main~1")
        assert len(list(entries)) == 29

    def test_an_unknown_start_is_not_found(self, repository: Repository) -> None:
        with pytest.raises(CommitNotFound):
            list(repository.log(f"@{NOBODY}"))
        with pytest.raises(ReferenceNotFound):
            list(repository.log("nosuch"))

    def test_a_range_has_the_commits_of_one_revision_and_not_of_another(
        self, catalog: Catalog
    ) -> None:
        at = diamond(catalog)

        def excluding(start: str, *exclude: str) -> list[str]:
            return [e.hash for e in catalog.repository.log_excluding(start, exclude)]

        assert excluding("main", "dev") == [at["m2"], at["merge"], at["m1"]]
        assert sorted(excluding("main", at["m1"])) == sorted(
            [at["m2"], at["merge"], at["d2"], at["d1"]]
        )
        assert excluding("main", at["m1"])[:2] == [at["m2"], at["merge"]]
        assert excluding("dev", "main") == []
        assert excluding("main", "main") == []
        assert sorted(excluding("main", EMPTY)) == sorted(at.values())
        assert sorted(excluding("main")) == sorted(at.values())
        assert excluding("main", at["d1"], at["m1"]) == [at["m2"], at["merge"], at["d2"]]
        assert excluding(EMPTY, "main") == []

    def test_a_range_is_read_for_a_limited_time(self, catalog: Catalog) -> None:
        at = diamond(catalog)
        log = catalog.repository.log_excluding
        assert len(list(log("main", ["dev"], is_over=lambda: False))) == 3
        with pytest.raises(TimeoutError):
            list(log("main", [at["base"]], is_over=lambda: True))

    def test_a_range_can_show_operations(self, catalog: Catalog) -> None:
        at = diamond(catalog)
        entries = list(catalog.repository.log_excluding("dev", [at["base"]], operations=True))
        assert [e.operations for e in entries] == [
            catalog.repository.commit_at(e.hash).operations for e in entries
        ]

    def test_a_commit_can_be_read_with_its_operations(self, catalog: Catalog) -> None:
        at = diamond(catalog)
        entry = catalog.repository.commit_at("main~2")
        assert (entry.hash, entry.operations) == (
            at["m1"],
            (put("m", table(1, catalog.id("main", "m"))),),
        )
        for revision in (EMPTY, "main~9"):
            with pytest.raises(CommitNotFound):
                catalog.repository.commit_at(revision)

    def test_the_last_change_of_a_key(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1, "b": 1})
        two = catalog.write("main", {"a": 2}, "two")
        three = catalog.write("main", {"b": None}, "three")
        catalog.write("main", {"c": 1})

        def last(at: str, name: str) -> str | None:
            meta = catalog.repository.last_change(at, key(name))
            return meta.hash if meta else None

        assert last("main", "a") == two
        assert last("main~2", "a") == two
        assert last("main~3", "a") == catalog.hash("main~3")
        assert last("main", "b") == three
        assert last("main", "never") is None
        assert last(EMPTY, "a") is None

    def test_the_last_change_of_a_merged_key_is_the_merge(self, catalog: Catalog) -> None:
        at = diamond(catalog)
        meta = catalog.repository.last_change("main", key("d"))
        assert meta is not None
        assert meta.hash == at["merge"]

    def test_ancestors_include_merge_parents(self, catalog: Catalog) -> None:
        at = diamond(catalog)
        above = {
            "base": {"base", "d1", "d2", "m1", "merge", "m2"},
            "d1": {"d1", "d2", "merge", "m2"},
            "d2": {"d2", "merge", "m2"},
            "m1": {"m1", "merge", "m2"},
            "merge": {"merge", "m2"},
            "m2": {"m2"},
        }
        for ancestor, descendants in above.items():
            for other in at:
                assert catalog.repository.is_ancestor(at[ancestor], at[other]) == (
                    other in descendants
                )
        assert catalog.repository.is_ancestor(EMPTY, "main")
        assert not catalog.repository.is_ancestor("main", EMPTY)

    def test_ahead_and_behind_count_first_parents(self, catalog: Catalog) -> None:
        at = diamond(catalog)
        assert catalog.repository.ahead_behind("dev", "main") == AheadBehind(2, 3, at["base"])
        assert catalog.repository.ahead_behind("main", "dev") == AheadBehind(3, 2, at["base"])
        assert catalog.repository.ahead_behind("main", "main") == AheadBehind(0, 0, at["m2"])
        assert catalog.repository.ahead_behind("main~1", "main") == AheadBehind(0, 1, at["merge"])
        catalog.branch("empty", EMPTY)
        assert catalog.repository.ahead_behind("empty", "main") == AheadBehind(0, 4, EMPTY)
        catalog.write("empty", {"x": 1})
        assert catalog.repository.ahead_behind("empty", "main") == AheadBehind(1, 4, EMPTY)


KEYS = ["a", "a.b", "a.b.c", "a.bb", "ab", "b", "b.x", "c"]


def shelf(catalog: Catalog) -> None:
    spaces = {"a", "a.b", "b"}
    catalog.write("main", {k: NS if k in spaces else n for n, k in enumerate(KEYS)})


class Reading:
    def names(self, catalog: Catalog, keys: KeyRange) -> list[str]:
        return [e.key.plain for e in catalog.repository.entries("main", keys)]

    def test_entries_are_ascending_by_key(self, catalog: Catalog) -> None:
        shelf(catalog)
        assert self.names(catalog, KeyRange()) == KEYS

    @pytest.mark.parametrize(
        ("prefix", "expected"),
        [
            ("a", ["a", "a.b", "a.b.c", "a.bb"]),
            ("a.b", ["a.b", "a.b.c"]),
            ("a.b.c", ["a.b.c"]),
            ("ab", ["ab"]),
            ("b.x", ["b.x"]),
            ("x", []),
            ("a.x", []),
        ],
    )
    def test_a_prefix_compares_elements_and_includes_itself(
        self, catalog: Catalog, prefix: str, expected: list[str]
    ) -> None:
        shelf(catalog)
        assert self.names(catalog, KeyRange(prefix=key(prefix))) == expected

    def test_bounds_are_inclusive(self, catalog: Catalog) -> None:
        shelf(catalog)
        for low in [*KEYS, "0", "a.a", "zz"]:
            assert self.names(catalog, KeyRange(minimum=key(low))) == [
                k for k in KEYS if key(k) >= key(low)
            ]
            for high in [*KEYS, "0", "a.b.zz", "zz"]:
                assert self.names(catalog, KeyRange(minimum=key(low), maximum=key(high))) == [
                    k for k in KEYS if key(low) <= key(k) <= key(high)
                ]
                assert self.names(catalog, KeyRange(maximum=key(high))) == [
                    k for k in KEYS if key(k) <= key(high)
                ]

    def test_keys_are_combined_with_the_other_conditions(self, catalog: Catalog) -> None:
        shelf(catalog)
        wanted = tuple(key(k) for k in ("c", "a.b", "nosuch", "b"))
        assert self.names(catalog, KeyRange(keys=wanted)) == ["a.b", "b", "c"]
        assert self.names(catalog, KeyRange(keys=wanted, minimum=key("b"))) == ["b", "c"]
        assert self.names(catalog, KeyRange(keys=wanted, maximum=key("b"))) == ["a.b", "b"]
        assert self.names(catalog, KeyRange(keys=wanted, prefix=key("a"))) == ["a.b"]
        assert self.names(catalog, KeyRange(keys=(key("a"), key("a")))) == ["a"]

    def test_entries_can_be_read_at_any_commit(self, catalog: Catalog) -> None:
        one = catalog.write("main", {"a": 1})
        catalog.write("main", {"a": 2, "b": 1})
        assert catalog.numbers(one) == {"a": 1}
        assert catalog.numbers("main~1") == {"a": 1}
        assert catalog.numbers(EMPTY) == {}

    def test_entries_have_contents_only_on_request(self, catalog: Catalog) -> None:
        shelf(catalog)
        plain = list(catalog.repository.entries("main"))
        full = list(catalog.repository.entries("main", content=True))
        for entry, whole in zip(plain, full, strict=True):
            content = catalog.repository.content("main", entry.key)
            assert entry.content is None
            assert whole.content == content
            assert (entry.type, entry.content_id, entry.value_hash) == (
                content.type_name,
                content.id,
                whole.value_hash,
            )

    def test_the_cache_key_depends_on_id_and_content_only(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1, "b": 1})
        catalog.branch("dev")
        catalog.rename("dev", "a", "moved")
        catalog.write("main", {"c": 1})

        def cache_keys(at: str) -> dict[str, str]:
            return {e.key.plain: e.cache_key for e in catalog.repository.entries(at)}

        main, dev = cache_keys("main"), cache_keys("dev")
        assert main["a"] == dev["moved"] == cache_keys("main~1")["a"]
        assert len(set(main.values())) == 3
        assert main["a"].partition(":")[2] == main["b"].partition(":")[2]
        catalog.write("main", {"a": 2})
        changed = cache_keys("main")["a"]
        assert changed != main["a"]
        catalog.write("main", {"a": 1})
        assert cache_keys("main")["a"] == main["a"]

    def test_a_listing_sees_one_state(self, catalog: Catalog) -> None:
        catalog.commit("main", *(put(f"t{n:03}", table(n)) for n in range(500)))
        entries = catalog.repository.entries("main", content=True)
        first = next(entries)
        catalog.commit("main", *(delete(f"t{n:03}") for n in range(500)))
        assert [number_of(first.content), *(number_of(e.content) for e in entries)] == list(
            range(500)
        )

    def test_contents_of_many_keys_skip_the_missing(self, catalog: Catalog) -> None:
        shelf(catalog)
        wanted = [key(k) for k in ("c", "a", "nosuch", "a.b.c", "c")]
        answer = catalog.repository.contents("main", wanted)
        assert {k.plain: number_of(c) for k, c in answer.items()} == {"c": 7, "a": NS, "a.b.c": 2}
        assert all(c.id for c in answer.values())
        assert catalog.repository.contents("main", []) == {}

    def test_a_missing_content_is_not_found(self, catalog: Catalog) -> None:
        shelf(catalog)
        for name in ("nosuch", "a.nosuch", "a.b.c.d"):
            with pytest.raises(ContentNotFound, match=name) as refused:
                catalog.content("main", name)
            assert refused.value.key == key(name)

    def test_an_unknown_state_is_not_found(self, repository: Repository) -> None:
        for read in (
            lambda at: list(repository.entries(at)),
            lambda at: repository.contents(at, [key("a")]),
            lambda at: repository.content(at, key("a")),
            lambda at: list(repository.diff(at, "main")),
            lambda at: list(repository.diff("main", at)),
        ):
            with pytest.raises(ReferenceNotFound):
                read("nosuch")
            with pytest.raises(CommitNotFound):
                read(f"main@{NOBODY}")
            with pytest.raises(InvalidInput):
                read("main~0")

    # -- diff --

    def differences(
        self, catalog: Catalog, a: str, b: str, keys: KeyRange | None = None
    ) -> dict[str, tuple[object, object]]:
        entries = list(catalog.repository.diff(a, b, keys or KeyRange()))
        assert [e.key for e in entries] == sorted(e.key for e in entries)
        return {e.key.plain: (number_of(e.before), number_of(e.after)) for e in entries}

    def test_a_diff_shows_the_changes_from_one_state_to_another(self, catalog: Catalog) -> None:
        catalog.write("main", {"same": 1, "changed": 1, "gone": 1})
        catalog.branch("dev")
        catalog.write("dev", {"changed": 2, "gone": None, "new": 3})
        assert self.differences(catalog, "main", "dev") == {
            "changed": (1, 2),
            "gone": (1, None),
            "new": (None, 3),
        }
        assert self.differences(catalog, "dev", "main") == {
            "changed": (2, 1),
            "gone": (None, 1),
            "new": (3, None),
        }
        assert self.differences(catalog, "main", "main") == {}
        assert self.differences(catalog, EMPTY, "main") == {
            "same": (None, 1),
            "changed": (None, 1),
            "gone": (None, 1),
        }

    def test_a_diff_compares_values_not_history(self, catalog: Catalog) -> None:
        one = catalog.write("main", {"a": 1})
        catalog.write("main", {"a": 2})
        catalog.write("main", {"a": 1})
        assert self.differences(catalog, one, "main") == {}

    def test_a_recreated_content_is_one_difference_with_both_ids(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        catalog.recreate("main", "a", table(1))
        (entry,) = catalog.repository.diff("main~1", "main")
        assert entry.before is not None
        assert entry.after is not None
        assert entry.before.id != entry.after.id
        assert entry.before.attributes() == entry.after.attributes()

    def test_a_rename_is_a_removal_and_an_addition(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        catalog.rename("main", "a", "b")
        assert self.differences(catalog, "main~1", "main") == {"a": (1, None), "b": (None, 1)}

    def test_a_diff_can_be_limited_to_keys(self, catalog: Catalog) -> None:
        shelf(catalog)
        everything = self.differences(catalog, EMPTY, "main")

        def part(**bounds: object) -> list[str]:
            return list(self.differences(catalog, EMPTY, "main", KeyRange(**bounds)))  # type: ignore[arg-type]

        assert list(everything) == KEYS
        assert part(prefix=key("a")) == ["a", "a.b", "a.b.c", "a.bb"]
        assert part(minimum=key("a.bb"), maximum=key("b")) == ["a.bb", "ab", "b"]
        assert part(keys=(key("c"), key("a"))) == ["a", "c"]
        assert part(keys=(key("c"), key("a")), minimum=key("b")) == ["c"]

    def test_a_large_diff_is_exact(self, catalog: Catalog) -> None:
        catalog.commit("main", *(put(f"t{n:05}", table(n)) for n in range(3000)))
        catalog.branch("dev")
        state = catalog.repository.contents("dev", [key(f"t{n:05}") for n in range(0, 3000, 100)])
        catalog.commit(
            "dev",
            *(Put(k, table(10_000, c.id)) for k, c in state.items()),
            delete("t00001"),
            put("t99999", table(1)),
        )
        expected: dict[str, tuple[object, object]] = {
            f"t{n:05}": (n, 10_000) for n in range(0, 3000, 100)
        }
        assert self.differences(catalog, "main", "dev") == expected | {
            "t00001": (1, None),
            "t99999": (None, 1),
        }

    def test_keys_are_sorted_by_characters_with_prefixes_first(self, catalog: Catalog) -> None:
        names = [
            ("a",),
            ("a", "!"),
            ("a", "b"),
            ("a!",),
            ("a.b",),
            ("ab",),
            ("b",),
            ("é",),
            ("漢",),
            ("🧊",),
        ]
        keys = [ContentKey(n) for n in names]
        catalog.commit("main", *(Put(k, Namespace(elements=k.elements)) for k in reversed(keys)))
        assert [e.key for e in catalog.repository.entries("main")] == keys
        assert [e.key for e in catalog.repository.diff(EMPTY, "main")] == keys
