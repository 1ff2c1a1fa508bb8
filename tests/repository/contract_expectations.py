"""The content that a merge or transplant expects on its target, under every behavior.

The source's content must have the type and id of the target's; only its value may differ, and the
target's content must equal the expected one. FORCE and DROP do not override that.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from nessie_cli.errors import MergeConflict
from nessie_cli.model import Content, MergeResult, Operation
from tests.repository.vocabulary import (
    Catalog,
    behave,
    delete,
    namespace,
    put,
    table,
    touched,
    types_and_keys,
    view,
)

STRANGER = "11111111-2222-3333-4444-555555555555"
VERBS = ("merge", "transplant")


def given(catalog: Catalog, target: Sequence[Operation], source: Sequence[Operation]) -> None:
    """Creates commits on `main` and `dev`, on top of a commit without the key `k`."""
    catalog.write("main", {"aside": 1})
    catalog.branch("dev")
    catalog.commit("main", *target)
    catalog.commit("dev", *source)


def bring(catalog: Catalog, verb: str, behavior: str, expected: Content) -> MergeResult:
    behaviors = [behave("k", behavior, expected)]
    if verb == "merge":
        return catalog.merge("dev", behaviors=behaviors)
    return catalog.transplant([catalog.head("dev")], behaviors=behaviors)


def refusal(catalog: Catalog, verb: str, behavior: str, expected: Content) -> str:
    """Returns the type of the only conflict."""
    head = catalog.head()
    with pytest.raises(MergeConflict) as refused:
        bring(catalog, verb, behavior, expected)
    assert touched(refused.value.result) == {"k": behavior}
    assert catalog.head() == head
    ((type_, name),) = types_and_keys(refused.value.result.conflicts)
    assert name == "k"
    return type_


def behaviors_of(verb: str) -> tuple[str, ...]:
    return ("NORMAL", "FORCE", *(["DROP"] if verb == "transplant" else []))


class Expectations:
    @pytest.mark.parametrize("verb", VERBS)
    @pytest.mark.parametrize(
        ("target", "source", "type_"),
        [
            (table(1), table(2), "CONTENT_ID_DIFFERS"),
            (view(1), table(2), "PAYLOAD_DIFFERS"),
            (namespace("k"), table(2), "PAYLOAD_DIFFERS"),
            (namespace("k", owner="main"), namespace("k"), "CONTENT_ID_DIFFERS"),
        ],
    )
    def test_an_expectation_never_allows_another_content_id_or_type(
        self,
        catalog: Catalog,
        verb: str,
        target: Content,
        source: Content,
        type_: str,
    ) -> None:
        given(catalog, [put("k", target)], [put("k", source)])
        there = catalog.content("main", "k")
        for behavior in behaviors_of(verb):
            assert refusal(catalog, verb, behavior, there) == type_
            # The types and ids of both sides decide first, for any other expectation.
            assert refusal(catalog, verb, behavior, table(77, STRANGER)) == type_
            assert refusal(catalog, verb, behavior, view(77, there.id)) == type_

    @pytest.mark.parametrize("verb", VERBS)
    def test_an_expected_content_of_another_type_or_id_conflicts(
        self,
        catalog: Catalog,
        verb: str,
    ) -> None:
        catalog.write("main", {"k": 1})
        catalog.branch("dev")
        catalog.write("dev", {"k": 2})
        there = catalog.content("main", "k")
        for behavior in behaviors_of(verb):
            for expected in (view(1, there.id), table(1, STRANGER), table(77, there.id)):
                assert refusal(catalog, verb, behavior, expected) == "VALUE_DIFFERS"
        assert bring(catalog, verb, "FORCE", there).applied
        assert catalog.numbers()["k"] == 2

    @pytest.mark.parametrize("verb", VERBS)
    def test_expectations_for_a_key_that_one_side_deleted(
        self, catalog: Catalog, verb: str
    ) -> None:
        catalog.write("main", {"k": 1})
        catalog.branch("dev")
        catalog.write("dev", {"k": None})
        catalog.recreate("main", "k", table(3))
        there = catalog.content("main", "k")
        for behavior in behaviors_of(verb):
            assert refusal(catalog, verb, behavior, there) == "CONTENT_ID_DIFFERS"
        catalog.commit("main", delete("k"))
        for behavior in behaviors_of(verb):
            assert refusal(catalog, verb, behavior, there) == "KEY_DOES_NOT_EXIST"

    @pytest.mark.parametrize("verb", VERBS)
    @pytest.mark.parametrize("behavior", ["NORMAL", "FORCE"])
    def test_an_expected_namespace_that_both_sides_have_is_reported(
        self,
        catalog: Catalog,
        verb: str,
        behavior: str,
    ) -> None:
        catalog.write("main", {"aside": 1})
        catalog.branch("dev")
        catalog.transplant([catalog.commit("dev", put("k", namespace("k")))])
        there = catalog.content("main", "k")
        assert touched(bring(catalog, verb, behavior, there)) == {"k": behavior}
        assert catalog.content("main", "k") == there

    def test_a_dropped_key_is_not_compared_with_its_expected_content(
        self, catalog: Catalog
    ) -> None:
        given(catalog, [put("k", view(1))], [put("k", table(2))])
        assert touched(bring(catalog, "merge", "DROP", table(77, STRANGER))) == {"k": "DROP"}
