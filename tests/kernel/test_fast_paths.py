"""Fast paths through history give the same results as a walk, on random graphs with merges."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nessie_cli.kernel import fast_paths, history
from nessie_cli.kernel.ancestry import AncestryIndex
from nessie_cli.kernel.forms import NO_COMMIT
from tests.kernel.test_history import PICKS, Graph, laws

FOREVER = 10**9
Picks = list[tuple[int, int | None, int]]


@laws
@given(PICKS)
def test_merges_in_the_order_of_a_walk(picks: Picks) -> None:
    graph = Graph(picks)
    objects = graph.objects()
    merges = fast_paths.merges_of_store(objects, graph.heap.find_indexed, FOREVER)
    assert merges is not None
    assert {id_ for id_, _ in merges} == {
        id_ for id_, parents in graph.parents.items() if len(parents) > 1
    }
    ancestry = AncestryIndex(objects, graph.heap.find_indexed, 1)
    for start in graph.ids[1:]:
        walked = [
            id_ for id_, commit in history.reachable(objects, [start]) if len(commit.parents) > 1
        ]
        assert [
            id_
            for id_, _ in fast_paths.reachable_among(objects, ancestry.is_ancestor, start, merges)
        ] == walked


@laws
@given(PICKS)
def test_the_commit_at_a_time(picks: Picks) -> None:
    graph = Graph(picks)
    objects = graph.objects()
    merges = fast_paths.merges_of_store(objects, graph.heap.find_indexed, FOREVER) or []
    ancestry = AncestryIndex(objects, graph.heap.find_indexed, 1)
    times = sorted({graph.commit(id_).time for id_ in graph.ids[1:]})
    for start in graph.ids:
        for time in [times[0] - 1, *times]:
            heads = fast_paths.heads_at(objects, ancestry.is_ancestor, start, merges, time)
            wanted = [
                id_ for id_, commit in history.reachable(objects, [start]) if commit.time <= time
            ]
            assert [id_ for id_, _ in history.reachable(objects, heads)] == wanted


@laws
@given(PICKS)
def test_the_near_merge_base_is_the_only_merge_base(picks: Picks) -> None:
    graph = Graph(picks[:30])
    objects = graph.objects()
    for a in graph.ids:
        for b in graph.ids:
            bases = history.merge_bases(objects, [a], [b])
            assert history.merge_base(objects, a, b) == bases[0]
            for short in (0, 1):
                near = fast_paths.near_merge_base(
                    objects, graph.heap.find_indexed, a, b, short=short
                )
                assert near is None or [near] == bases


def test_the_merge_base_of_a_short_branch_is_its_start() -> None:
    # A line of 12 commits with a merge in it, and a branch of two commits that leaves its fourth.
    graph = Graph(
        [*((n, None, 0) for n in range(8)), (4, None, 0), (9, None, 0), (8, None, 0), (11, 7, 0)]
    )
    ids = graph.ids
    objects = graph.objects()
    assert (
        fast_paths.near_merge_base(objects, graph.heap.find_indexed, ids[10], ids[12], short=3)
        == ids[4]
    )
    merged = Graph([*((n, None, 0) for n in range(8)), (4, None, 0), (9, None, 0), (8, 9, 0)])
    assert (
        fast_paths.near_merge_base(
            merged.objects(), merged.heap.find_indexed, merged.ids[10], merged.ids[11], short=3
        )
        is None
    )


@laws
@given(PICKS, st.integers(0, 200), st.integers(0, 200))
def test_commits_of_only_one_side(picks: Picks, a: int, b: int) -> None:
    graph = Graph(picks)
    left, right = graph.ids[a % len(graph.ids)], graph.ids[b % len(graph.ids)]
    found = [id_ for id_, _ in history.symmetric_difference(graph.objects(), left, right)]
    assert sorted(found) == sorted((graph.ancestors(left) ^ graph.ancestors(right)) - {NO_COMMIT})
    times = [graph.commit(id_).time for id_ in found]
    assert times == sorted(times, reverse=True)


@laws
@given(PICKS, st.lists(st.integers(0, 200), min_size=1, max_size=4))
def test_first_parents_of_several(picks: Picks, starts: list[int]) -> None:
    graph = Graph(picks)
    tips = [graph.ids[n % len(graph.ids)] for n in starts]
    found = [id_ for id_, _ in history.reachable(graph.objects(), tips, most=1)]
    assert sorted(found) == sorted(set().union(*map(graph.line, tips)) - {NO_COMMIT})


@laws
@given(PICKS, st.integers(0, 80))
def test_many_ancestors_at_one_height(picks: Picks, height: int) -> None:
    graph = Graph(picks)
    objects = graph.objects()
    high = [id_ for id_ in graph.ids[1:] if graph.commit(id_).height >= max(height, 1)]
    found = fast_paths.at_height(objects, high, max(height, 1))
    assert found == {id_: history.ancestor_at(objects, id_, max(height, 1)) for id_ in high}


def test_a_long_line_is_read_in_few_round_trips() -> None:
    graph = Graph([(n, None, 0) for n in range(2000)])
    objects = graph.objects()
    assert len(list(history.first_parents(objects, graph.ids[-1]))) == 2000
    assert graph.heap.reads == 2000
    assert graph.heap.trips < 400
    objects = graph.objects()
    history.read_ahead(objects, graph.ids[-1], 100)
    assert graph.heap.reads <= 102
    assert graph.heap.trips <= 16
