"""Conflicts of several transplanted commits, and namespaces of commits with dropped keys."""

from __future__ import annotations

import pytest

from nessie_cli.errors import MergeConflict, ReferenceConflict
from nessie_cli.model import ContentPlace, KeyBehavior, MergeBehavior
from tests.repository.vocabulary import (
    NS,
    Catalog,
    behave,
    delete,
    found,
    key,
    namespace,
    number_of,
    put,
    table,
    types_and_keys,
)

DROP = MergeBehavior.DROP


class TransplantConflicts:
    def test_a_conflict_after_a_decision_names_no_commit_of_a_draft(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1, "c": 1})
        catalog.branch("dev")
        catalog.recreate("main", "a", table(9))
        commits = [catalog.write("dev", {"b": 1})]
        first, second = catalog.content("dev", "a"), catalog.content("dev", "b")
        commits += [
            catalog.commit("dev", delete("a"), put("z", first)),
            catalog.commit("dev", delete("b"), put("a", second)),
            catalog.commit("dev", delete("z"), put("b", first)),
            catalog.write("dev", {"a": 3}),
        ]
        decision = KeyBehavior(key("a"), DROP, content_id=first.id, commit=commits[1])
        for behaviors in ([], [decision]):
            with pytest.raises(ReferenceConflict):
                catalog.transplant_contents(commits, behaviors=behaviors)

    def test_a_kept_key_before_a_conflict_names_no_commit_of_a_draft(
        self, catalog: Catalog
    ) -> None:
        catalog.write("main", {"a": 1, "q": 1})
        catalog.branch("dev")
        catalog.write("main", {"a": 2, "q": 2})
        commits = [catalog.rename("dev", "a", "b")]
        commits += [catalog.write("dev", state) for state in ({"b": 3}, {"q": 3})]
        content_id = catalog.id("main", "a")
        decision = KeyBehavior(key("b"), DROP, content_id=content_id, commit=commits[1])
        with pytest.raises(MergeConflict) as refused:
            catalog.transplant_contents(commits, behaviors=[decision])
        assert types_and_keys(refused.value.conflicts) == [("VALUE_DIFFERS", "q")]
        details = {each.key.plain: each for each in refused.value.result.details}
        assert number_of(details["b"].result) == 2
        at_main = ContentPlace(catalog.head("main"), key("a"))
        assert details["b"].result_at == at_main

    def test_ours_is_what_earlier_commits_made_of_it(self, catalog: Catalog) -> None:
        """They renamed the content that the branch has changed."""
        catalog.write("main", {"a": 1})
        catalog.branch("dev")
        ours = catalog.write("main", {"a": 2})
        commits = [catalog.rename("dev", "a", "b"), catalog.write("dev", {"b": 3})]
        with pytest.raises(MergeConflict) as refused:
            catalog.transplant_contents(commits)
        (conflict,) = refused.value.conflicts
        assert (conflict.key, conflict.commit) == (key("b"), commits[1])
        states = conflict.expected, conflict.actual, conflict.proposed
        assert list(map(number_of, states)) == [1, 2, 3]
        assert conflict.changed_by is not None
        assert conflict.changed_by.hash == ours

    def test_ours_is_the_value_that_was_given_for_an_earlier_commit(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": 1})
        catalog.branch("dev")
        ours = catalog.write("main", {"a": 2})
        commits = [catalog.write("dev", {"a": 3}), catalog.rename("dev", "a", "b")]
        commits.append(catalog.write("dev", {"b": 4}))
        present = catalog.content("main", "a")
        given = KeyBehavior(
            key("a"),
            expected_target=present,
            resolved=table(9, present.id),
            content_id=present.id,
            commit=commits[0],
        )
        with pytest.raises(MergeConflict) as refused:
            catalog.transplant_contents(commits, behaviors=[given])
        (conflict,) = refused.value.conflicts
        states = conflict.expected, conflict.actual, conflict.proposed
        assert list(map(number_of, states)) == [3, 9, 4]
        assert conflict.changed_by is not None
        assert conflict.changed_by.hash == ours

    def test_a_transplant_stops_at_the_first_namespace_conflict(self, catalog: Catalog) -> None:
        catalog.write("main", {"a": NS, "b": NS})
        catalog.branch("dev")
        catalog.write("main", {"a": None, "b": None})
        commits = [catalog.write("dev", {"a.t": 1}), catalog.write("dev", {"b.t": 1})]
        with pytest.raises(ReferenceConflict) as refused:
            catalog.transplant(commits)
        assert found(refused) == [("NAMESPACE_ABSENT", "a")]

    def test_the_last_of_two_conflicts_on_a_key_is_reported(self, catalog: Catalog) -> None:
        catalog.write("main", {"k": 1})
        catalog.branch("dev")
        catalog.write("main", {"k": 9})
        commits = [catalog.write("dev", {"k": 2}), catalog.recreate("dev", "k", table(3))]
        with pytest.raises(MergeConflict) as refused:
            catalog.transplant(commits)
        assert types_and_keys(refused.value.result.conflicts) == [("CONTENT_ID_DIFFERS", "k")]

    def test_a_later_clean_change_does_not_remove_a_conflict(self, catalog: Catalog) -> None:
        catalog.write("main", {"k": 1})
        catalog.branch("dev")
        catalog.write("main", {"k": 9})
        commits = [catalog.write("dev", {"k": 2}), catalog.write("dev", {"k": 3})]
        with pytest.raises(MergeConflict) as refused:
            catalog.transplant(commits)
        assert types_and_keys(refused.value.result.conflicts) == [("VALUE_DIFFERS", "k")]

    def test_the_namespace_of_a_dropped_key_must_exist(self, catalog: Catalog) -> None:
        catalog.write("main", {"ns": NS, "ns.t": 1})
        catalog.branch("dev")
        changed = catalog.write("dev", {"ns.t": 2})
        catalog.write("main", {"ns.t": None, "ns": None})
        with pytest.raises(ReferenceConflict) as refused:
            catalog.transplant([changed], default_behavior=DROP)
        assert found(refused) == [("NAMESPACE_ABSENT", "ns")]
        with pytest.raises(ReferenceConflict):
            catalog.transplant([changed], behaviors=[behave("ns.t", "DROP")], dry_run=True)

    def test_a_dropped_deletion_requires_an_empty_namespace(self, catalog: Catalog) -> None:
        catalog.write("main", {"ns": NS})
        catalog.branch("dev")
        gone = catalog.commit("dev", delete("ns"))
        changed = catalog.content("main", "ns")
        catalog.commit("main", put("ns", namespace("ns", changed.id, owner="x")))
        catalog.write("main", {"ns.t": 1})
        with pytest.raises(ReferenceConflict) as refused:
            catalog.transplant([gone], default_behavior=DROP)
        assert found(refused) == [("NAMESPACE_NOT_EMPTY", "ns")]

    def test_a_dropped_namespace_does_not_exist_for_its_keys(self, catalog: Catalog) -> None:
        catalog.write("main", {"ns": NS})
        catalog.branch("dev")
        old = catalog.content("dev", "ns")
        below = put("ns.t", table(1))
        changed = catalog.commit("dev", put("ns", namespace("ns", old.id, owner="x")), below)
        catalog.write("main", {"ns": None})
        with pytest.raises(ReferenceConflict) as refused:
            catalog.transplant([changed], default_behavior=DROP)
        assert found(refused) == [("NAMESPACE_ABSENT", "ns")]

    def test_an_existing_key_may_be_dropped(self, catalog: Catalog) -> None:
        catalog.write("main", {"ns": NS, "ns.t": 1})
        catalog.branch("dev")
        changed = catalog.write("dev", {"ns.t": 2})
        catalog.write("main", {"ns.t": 3})
        assert catalog.transplant([changed], default_behavior=DROP).successful
        assert number_of(catalog.content("main", "ns.t")) == 3
