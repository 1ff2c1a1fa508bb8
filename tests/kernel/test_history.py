"""Ancestry compared with a naive walk, on random graphs with merges and wrong clocks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from nessie_cli.kernel import history, tree
from nessie_cli.kernel.commits import Stamp, draft_commit
from nessie_cli.kernel.forms import NO_COMMIT, Id, StoredCommit, jump_height
from nessie_cli.kernel.objects import Objects
from nessie_cli.model import CommitMeta
from tests.kernel.heap import Heap

LARGE = 1 << 20
"""The size of a large commit, of which few are in a cache."""
laws = settings(deadline=None, max_examples=120, print_blob=True)

PICKS = st.lists(
    st.tuples(st.integers(0, 200), st.none() | st.integers(0, 200), st.integers(-50, 50)),
    min_size=1,
    max_size=60,
)
"""For each commit: its first parent, perhaps a merge parent (both are earlier commits), and
the time of the clock."""


class Graph:
    """A random history, with naive answers about it."""

    def __init__(self, picks: Sequence[tuple[int, int | None, int]]) -> None:
        self.heap = Heap()
        objects = self.heap.objects()
        self.ids: list[Id] = [NO_COMMIT]
        self.parents: dict[Id, list[Id]] = {NO_COMMIT: []}
        for number, (first, merged, clock) in enumerate(picks):
            parents = [self.ids[first % len(self.ids)]]
            if merged is not None and self.ids[merged % len(self.ids)] not in (
                NO_COMMIT,
                parents[0],
            ):
                parents.append(self.ids[merged % len(self.ids)])
            meta = CommitMeta(f"commit {number}", authors=(f"writer {number % 3}",))
            new = draft_commit(objects, parents, tree.EMPTY, {}, meta=meta, stamp=Stamp("", clock))
            self.ids.append(new)
            self.parents[new] = parents
        self.heap.keep(objects)
        self.line = cache(self._line)
        self.ancestors = cache(self._ancestors)

    def objects(self) -> Objects:
        return self.heap.objects()

    def commit(self, id_: Id) -> StoredCommit:
        return self.objects().commit(id_)

    def _line(self, id_: Id) -> list[Id]:
        """Returns the commit and its first parents, newest first, the empty history last."""
        return [id_, *self.line(self.parents[id_][0])] if self.parents[id_] else [id_]

    def _ancestors(self, id_: Id) -> frozenset[Id]:
        """Returns everything reachable over all parents, including the commit."""
        return frozenset({id_}).union(*(self.ancestors(p) for p in self.parents[id_]))


@laws
@given(PICKS)
def test_heights_generations_and_times(picks: list[tuple[int, int | None, int]]) -> None:
    graph = Graph(picks)
    for id_ in graph.ids[1:]:
        commit = graph.commit(id_)
        known = [graph.commit(p) for p in graph.parents[id_] if p != NO_COMMIT]
        assert commit.height == len(graph.line(id_)) - 1
        assert commit.generation == 1 + max((p.generation for p in known), default=0)
        assert all(commit.time > p.time for p in known)
        assert commit.jump in graph.line(id_)[1:]
        jump = graph.line(id_).index(commit.jump)
        assert commit.height - jump == jump_height(commit.height)


@laws
@given(PICKS)
def test_going_back_by_number_and_by_time(picks: list[tuple[int, int | None, int]]) -> None:
    graph = Graph(picks)
    objects = graph.objects()
    for id_ in graph.ids[1:]:
        line = graph.line(id_)
        for height in range(len(line) + 1):
            expected = line[max(len(line) - 1 - height, 0)]
            assert history.ancestor_at(objects, id_, height) == expected
        times = {graph.commit(c).time for c in line[:-1]}
        for when in times | {t - 1 for t in times} | {-1000, 10_000}:
            newest = next((c for c in line[:-1] if graph.commit(c).time <= when), NO_COMMIT)
            assert history.at_time(objects, id_, when) == newest


@laws
@given(PICKS)
def test_ancestors_and_merge_bases(picks: list[tuple[int, int | None, int]]) -> None:
    graph = Graph(picks[:24])
    objects = graph.objects()
    for a in graph.ids:
        for b in graph.ids:
            assert history.on_first_parents(objects, a, b) == (a in graph.line(b))
            common = graph.ancestors(a) & graph.ancestors(b)
            best = {
                base
                for base in common
                if not any(base != other and base in graph.ancestors(other) for other in common)
            }
            bases = history.merge_bases(objects, [a], [b])
            assert bases == history.merge_bases(objects, [b], [a])
            assert set(bases) == best
            assert len(bases) == len(best)
            assert history.merge_base(objects, a, b) == bases[0]
            shared = [c for c in graph.line(a) if c in graph.line(b)]
            assert history.common_first_parent(objects, a, b) == shared[0]


@laws
@given(
    PICKS, st.lists(st.lists(st.integers(0, 200), min_size=1, max_size=3), min_size=1, max_size=3)
)
def test_merge_bases_of_sets_of_commits(
    picks: list[tuple[int, int | None, int]], sides: list[list[int]]
) -> None:
    graph = Graph(picks)
    commits = [[graph.ids[place % len(graph.ids)] for place in side] for side in sides]
    common = frozenset.intersection(
        *(frozenset().union(*map(graph.ancestors, side)) for side in commits)
    )
    assert set(history.merge_bases(graph.objects(), *commits)) == {
        base
        for base in common
        if not any(base != other and base in graph.ancestors(other) for other in common)
    }


@laws
@given(PICKS, st.lists(st.integers(0, 200), max_size=3), st.lists(st.integers(0, 200), max_size=3))
def test_commits_in_one_and_not_in_another(
    picks: list[tuple[int, int | None, int]], starts: list[int], excluded: list[int]
) -> None:
    graph = Graph(picks)
    wanted = [graph.ids[n % len(graph.ids)] for n in starts]
    without = [graph.ids[n % len(graph.ids)] for n in excluded]
    expected = (
        frozenset().union(*map(graph.ancestors, wanted))
        - frozenset().union(*map(graph.ancestors, without))
        - {NO_COMMIT}
    )
    found = [id_ for id_, _ in history.reachable(graph.objects(), wanted, without)]
    assert sorted(found) == sorted(expected)
    for position, id_ in enumerate(found):
        assert not any(later in found[:position] for later in graph.parents[id_])


def test_the_jump_of_a_height_depends_on_nothing_else() -> None:
    # The skew-binary numbers 1, 3, 7, 15 jump to the beginning; one above a sum of two numbers
    # loses its last summand.
    assert [jump_height(h) for h in range(1, 17)] == [
        0,
        1,
        0,
        3,
        4,
        3,
        0,
        7,
        8,
        7,
        10,
        11,
        10,
        7,
        0,
        15,
    ]


@laws
@given(PICKS, st.lists(st.integers(-1, 70)))
def test_many_ancestors_at_once(
    picks: list[tuple[int, int | None, int]], heights: list[int]
) -> None:
    graph = Graph(picks)
    for id_ in graph.ids[1:]:
        line = graph.line(id_)
        expected = {height: line[max(len(line) - 1 - max(height, 0), 0)] for height in heights}
        assert history.ancestors_at(graph.objects(), id_, heights) == expected


@laws
@given(PICKS)
def test_many_common_first_parents_at_once(picks: list[tuple[int, int | None, int]]) -> None:
    graph = Graph(picks)
    lengths = {id_: len(graph.line(id_)) for id_ in graph.ids}
    pairs = [(a, b) for a in graph.ids for b in graph.ids if lengths[a] == lengths[b]]
    expected = [next(id_ for id_ in graph.line(a) if id_ in set(graph.line(b))) for a, b in pairs]
    assert history.common_first_parents(graph.objects(), pairs) == expected


@laws
@given(PICKS)
def test_which_of_many_commits_descend_from_one(picks: list[tuple[int, int | None, int]]) -> None:
    graph = Graph(picks)
    for ancestor in graph.ids[1:]:
        expected = {id_ for id_ in graph.ids if ancestor in graph.line(id_)}
        assert (
            history.descendants_on_first_parents(graph.objects(), graph.ids[1:], ancestor)
            == expected
        )


def test_a_walk_over_large_commits_reads_each_of_them_once_or_twice() -> None:
    """With batches as long as for small commits, it read 128 of them for each one."""
    heap = Heap()
    objects = heap.objects()
    head, meta = NO_COMMIT, CommitMeta("m" * LARGE)
    for number in range(100):
        head = draft_commit(objects, [head], tree.EMPTY, {}, meta=meta, stamp=Stamp("", number))
    heap.keep(objects)
    reader = heap.objects()
    assert len(list(history.first_parents(reader, head))) == 100
    assert heap.reads < 200
