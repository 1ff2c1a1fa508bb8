"""Facts about many commits are those of single commits, on random graphs with merges."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from nessie_cli.kernel.ancestry import AncestryIndex
from nessie_cli.kernel.forms import NO_COMMIT, Id
from nessie_cli.repository import reading
from nessie_cli.repository.commit_facts import CommitFacts
from tests.kernel.test_history import PICKS, Graph, laws


def check(graph: Graph, ids: Sequence[Id], other: Id) -> None:
    """Checks that every question about these commits and another one has the plain answer."""
    objects = graph.objects()
    facts = CommitFacts(objects, lambda: AncestryIndex(objects, graph.heap.find_indexed))
    counts = {id_: reading.ahead_behind(objects, id_, other) for id_ in ids}
    assert facts.distances(ids, other) == {
        id_: (found.ahead, found.behind, bytes.fromhex(found.common_ancestor))
        for id_, found in counts.items()
    }
    assert facts.ancestors_among(ids, other) == set(ids) & graph.ancestors(other)
    assert facts.descendants_among(ids, other) == {
        id_ for id_ in ids if other in graph.ancestors(id_)
    }
    commits = {id_: graph.commit(id_) for id_ in ids if id_ != NO_COMMIT}
    assert facts.tips(ids) == {
        id_: (commits[id_].time, commits[id_].generation) if id_ in commits else (0, 0)
        for id_ in ids
    }


@laws
@given(PICKS, st.randoms(use_true_random=False))
def test_facts_of_many_commits_are_those_of_each(
    picks: list[tuple[int, int | None, int]], random: Random
) -> None:
    graph = Graph(picks)
    others = random.choices(graph.ids, k=4)
    for other in [*others, graph.ids[-1], NO_COMMIT]:
        check(graph, random.sample(graph.ids, random.randint(0, len(graph.ids))), other)
