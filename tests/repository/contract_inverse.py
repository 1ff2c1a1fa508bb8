"""Reverts of commits, which compare contents by the states that a repository returns."""

from __future__ import annotations

from nessie_cli.model import CommitMeta, Delete, KeyBehavior, MergeBehavior, Put
from nessie_cli.repository.edits import operations_for
from nessie_cli.repository.inverse import Inverse, InvertedCommits, invert
from tests.repository.vocabulary import NS, Catalog, key, namespace, table


def inverse_of(catalog: Catalog, hash_: str, *behaviors: KeyBehavior) -> Inverse:
    before = catalog.repository.commit_at(hash_).parent
    return invert(catalog.repository, InvertedCommits(hash_, before), catalog.head(), behaviors)


def revert(catalog: Catalog, hash_: str, *behaviors: KeyBehavior) -> set[str]:
    """Reverts a commit, which must not conflict. Returns the keys of its operations."""
    inverse = inverse_of(catalog, hash_, *behaviors)
    assert not inverse.conflicts
    operations = [
        item.operation for item in operations_for(inverse.edits, inverse.state, inverse.origins)
    ]
    catalog.repository.commit(
        "main", operations, CommitMeta("revert"), expected_hash=catalog.head()
    )
    return {str(operation.key) for operation in operations}


def rename(catalog: Catalog, old: str, new: str) -> str:
    content = catalog.repository.content("main", key(old))
    return catalog.commit("main", Delete(key(old)), Put(key(new), content))


class Inverses:
    def test_a_change_is_reverted_under_the_key_that_a_table_has_now(
        self, catalog: Catalog
    ) -> None:
        catalog.write("main", {"a": 1, "other": 1})
        before = catalog.repository.content("main", key("a"))
        hash_ = catalog.write("main", {"a": 2})
        rename(catalog, "a", "b")
        assert revert(catalog, hash_) == {"b"}
        assert catalog.repository.contents("main", [key("a"), key("b")]) == {key("b"): before}

    def test_a_rename_is_reverted_and_a_later_change_stays(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        content_id = catalog.id("main", "a")
        hash_ = rename(catalog, "a", "b")
        catalog.write("main", {"b": 3})
        assert revert(catalog, hash_) == {"a", "b"}
        contents = catalog.repository.contents("main", [key("a"), key("b")])
        assert contents == {key("a"): table(3, content_id)}

    def test_a_swap_is_reverted_with_both_ids(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1, "b": 2})
        before = catalog.repository.contents("main", [key("a"), key("b")])
        one, two = before[key("a")], before[key("b")]
        hash_ = catalog.commit("main", Put(key("a"), two, one), Put(key("b"), one, two))
        revert(catalog, hash_)
        assert catalog.repository.contents("main", [key("a"), key("b")]) == before

    def test_a_reverted_replacement_or_deletion_has_its_id_back(self, catalog: Catalog) -> None:
        catalog.write("main", {"n": NS, "n.a": 1, "b": 1})
        before = catalog.repository.contents("main", [key("n.a"), key("b")])
        hash_ = catalog.commit(
            "main", Delete(key("b")), Put(key("b"), table(9)), Delete(key("n.a"))
        )
        revert(catalog, hash_)
        after = catalog.repository.contents("main", [key("n.a"), key("b")])
        assert after == before
        assert operations_for(inverse_of(catalog, hash_).edits, after, {}) == []

    def test_a_key_that_another_table_took_is_a_conflict_until_it_is_decided(
        self, catalog: Catalog
    ) -> None:
        catalog.write("main", {"a": 1})
        moved = catalog.repository.content("main", key("a"))
        hash_ = rename(catalog, "a", "b")
        catalog.write("main", {"a": 5})
        (conflict,) = inverse_of(catalog, hash_).conflicts
        assert (conflict.type, conflict.key, conflict.content_id) == (
            "KEY_EXISTS",
            key("a"),
            moved.id,
        )
        assert conflict.actual == catalog.repository.content("main", key("a"))
        kept = inverse_of(catalog, hash_, KeyBehavior(key("a"), MergeBehavior.DROP))
        assert (kept.conflicts, kept.edits) == ((), {})

    def test_a_decision_keeps_a_namespace_that_was_created_again(self, catalog: Catalog) -> None:
        catalog.write("main", {"n": NS})
        hash_ = catalog.write("main", {"n": None, "a": 1})
        catalog.commit("main", Put(key("n"), namespace("n", p="1")))
        kept = catalog.content("main", "n")
        assert revert(catalog, hash_, KeyBehavior(key("n"), MergeBehavior.DROP)) == {"a"}
        assert catalog.repository.contents("main", [key("n"), key("a")]) == {key("n"): kept}

    def test_a_renamed_table_takes_its_key_back_from_another_table(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        moved = catalog.repository.content("main", key("a"))
        hash_ = rename(catalog, "a", "b")
        catalog.write("main", {"a": 5})
        revert(catalog, hash_, KeyBehavior(key("a"), MergeBehavior.FORCE))
        assert catalog.repository.contents("main", [key("a"), key("b")]) == {key("a"): moved}

    def test_the_state_before_is_no_option_if_it_removes_a_namespace_with_contents(
        self, catalog: Catalog
    ) -> None:
        hash_ = catalog.write("main", {"n": NS})
        content_id = catalog.id("main", "n")
        catalog.commit("main", Put(key("n"), namespace("n", content_id, p="1")))
        (conflict,) = inverse_of(catalog, hash_).conflicts
        assert [option.behavior for option in conflict.options] == ["FORCE", "DROP"]
        catalog.write("main", {"n.a": 1, "nn": 1})
        (conflict,) = inverse_of(catalog, hash_).conflicts
        assert [option.behavior for option in conflict.options] == ["DROP"]
        assert conflict.blocking_namespace == key("n")
        catalog.write("main", {"n.a": None})
        (conflict,) = inverse_of(catalog, hash_).conflicts
        assert [option.behavior for option in conflict.options] == ["FORCE", "DROP"]
