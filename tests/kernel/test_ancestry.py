"""Ancestors over lines of first parents, compared with a naive walk on random graphs with
merges."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nessie_cli.errors import DamagedObject
from nessie_cli.kernel import history
from nessie_cli.kernel.ancestry import AncestryIndex
from nessie_cli.kernel.commits import MERGE_COMMIT
from nessie_cli.kernel.forms import NO_COMMIT, Id
from nessie_cli.kernel.objects import Cache, Objects
from tests.kernel.test_history import PICKS, Graph, laws


@laws
@given(PICKS, st.sampled_from([1, 4, 64]))
def test_ancestors_over_any_parents(picks: list[tuple[int, int | None, int]], near: int) -> None:
    graph = Graph(picks)
    ancestry = AncestryIndex(graph.objects(), graph.heap.find_indexed, near)
    for commit in graph.ids:
        for ancestor in graph.ids:
            assert ancestry.is_ancestor(ancestor, commit) == (ancestor in graph.ancestors(commit))


@pytest.mark.slow
@laws
@given(PICKS, st.sampled_from([1, 4, 64]), st.randoms(use_true_random=False))
def test_many_ancestor_tests_at_once(
    picks: list[tuple[int, int | None, int]], near: int, random: Random
) -> None:
    graph = Graph(picks)
    ancestry = AncestryIndex(graph.objects(), graph.heap.find_indexed, near)
    for commit in random.sample(graph.ids, min(len(graph.ids), 6)):
        asked = random.sample(graph.ids, random.randint(0, len(graph.ids)))
        assert ancestry.ancestors_among(asked, commit) == set(asked) & graph.ancestors(commit)
        assert all(
            ancestry.is_ancestor(one, commit) == (one in graph.ancestors(commit))
            for one in graph.ids
        )


@pytest.mark.slow
@laws
@given(PICKS, st.sampled_from([0, 1, 4, 64]), st.randoms(use_true_random=False))
def test_many_descendants_at_once(
    picks: list[tuple[int, int | None, int]], near: int, random: Random
) -> None:
    graph = Graph(picks)
    ancestry = AncestryIndex(graph.objects(), graph.heap.find_indexed, near)
    for ancestor in random.sample(graph.ids, min(len(graph.ids), 6)):
        asked = random.sample(graph.ids, random.randint(0, len(graph.ids)))
        expected = {one for one in asked if ancestor in graph.ancestors(one)}
        assert ancestry.descendants_among(asked, ancestor) == expected


@laws
@given(PICKS, st.integers(0, 40))
def test_a_limited_walk_answers_or_reports_its_limit(
    picks: list[tuple[int, int | None, int]], most: int
) -> None:
    graph = Graph(picks[:30])
    objects = graph.objects()
    for commit in graph.ids[1:]:
        for ancestor in graph.ids[1:]:
            found = history.is_near_ancestor(objects, ancestor, commit, most)
            assert found in (ancestor in graph.ancestors(commit), None) or ancestor == commit
            assert found is not None or most <= len(graph.ids)


def test_rolled_back_merges_are_forgotten() -> None:
    """A failed write leaves no merge behind, and its number is given to another object."""
    graph = Graph([(0, None, 0), (1, None, 1), (1, None, 2), (2, 3, 3), (1, None, 4), (4, 5, 5)])
    _, a, _, side, merge, late, last = graph.ids
    marks = list(graph.heap.marks)
    undone = [(MERGE_COMMIT, a) if pair == (MERGE_COMMIT, last) else pair for pair in marks]
    ancestry = AncestryIndex(graph.objects(), graph.heap.find_indexed, near=0)
    graph.heap.marks = undone
    assert ancestry.is_ancestor(side, merge)
    graph.heap.marks = marks
    assert ancestry.is_ancestor(late, last)


@pytest.mark.parametrize("mark_of_all", [True, False])
def test_marks_are_hints(mark_of_all: bool) -> None:
    graph = Graph([(n, n // 2 if n % 3 == 2 else None, n) for n in range(40)])
    if mark_of_all:
        graph.heap.marks = [
            (MERGE_COMMIT, id_) for id_ in [*graph.ids[1:10], bytes(32), *graph.ids[10:]]
        ]
    ancestry = AncestryIndex(graph.objects(), graph.heap.find_indexed, near=1)
    pairs: list[tuple[Id, Id]] = [
        (a, b) for a in graph.ids for b in graph.ids if NO_COMMIT not in (a, b)
    ]
    assert all(ancestry.is_ancestor(a, b) == (a in graph.ancestors(b)) for a, b in pairs)


@pytest.mark.slow
@laws
@given(PICKS, st.sampled_from([1, 64]), st.randoms(use_true_random=False))
def test_only_damage_that_matters_prevents_an_answer(
    picks: list[tuple[int, int | None, int]], near: int, random: Random
) -> None:
    graph = Graph(picks)
    commits = [id_ for id_ in graph.ids if id_ != NO_COMMIT]
    damaged = set(random.sample(commits, min(2, len(commits))))

    def fetch(ids: Sequence[Id]) -> dict[Id, bytes]:
        for id_ in damaged.intersection(ids):
            raise DamagedObject("damaged", id_.hex())
        return {id_: graph.heap.data[id_] for id_ in ids if id_ in graph.heap.data}

    ancestry = AncestryIndex(Objects(fetch, Cache()), graph.heap.find_indexed, near)
    for commit in commits:
        asked = random.sample(commits, random.randint(0, len(commits)))
        matters = damaged & ({commit, *asked} | graph.ancestors(commit))
        for ask in (
            lambda: ancestry.ancestors_among(asked, commit),  # noqa: B023
            lambda: {one for one in asked if ancestry.is_ancestor(one, commit)},  # noqa: B023
        ):
            try:
                assert ask() == set(asked) & graph.ancestors(commit)
            except DamagedObject:
                assert matters
