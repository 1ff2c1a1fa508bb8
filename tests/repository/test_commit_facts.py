"""Cached facts about commits always equal newly computed ones, on random graphs with merges."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from zlib import crc32

from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack

from nessie_cli.kernel.ancestry import AncestryIndex
from nessie_cli.kernel.forms import NO_COMMIT, Id
from nessie_cli.repository import fact_cache, reading
from nessie_cli.repository.commit_facts import CommitFacts
from tests.kernel.test_history import PICKS, Graph, laws

LINE = [(number, None, number) for number in range(40)]
"""A history without branches."""


class MemoryCache:
    """A `FactCache` in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.times_kept = 0

    def read(self, name: str) -> bytes:
        return self.kept.get(name, b"")

    def write(self, name: str, data: bytes) -> None:
        self.kept[name] = data
        self.times_kept += 1


class SurveyedGraph:
    """A graph that is surveyed by one process after another, all with one cache."""

    def __init__(self, picks: Sequence[tuple[int, int | None, int]]) -> None:
        self.graph = Graph(picks)
        self.cache = MemoryCache()

    def survey(self) -> CommitFacts:
        """Returns the survey of a new process, which has read nothing yet."""
        objects = self.graph.objects()
        return CommitFacts(
            objects, lambda: AncestryIndex(objects, self.graph.heap.find_indexed), self.cache
        )

    def check(self, ids: Sequence[Id], other: Id) -> None:
        """Checks that every question about these commits and another one has the plain answer."""
        graph, survey, objects = self.graph, self.survey(), self.graph.objects()
        counts = {id_: reading.ahead_behind(objects, id_, other) for id_ in ids}
        assert survey.distances(ids, other) == {
            id_: (found.ahead, found.behind, bytes.fromhex(found.common_ancestor))
            for id_, found in counts.items()
        }
        assert survey.ancestors_among(ids, other) == set(ids) & graph.ancestors(other)
        assert survey.descendants_among(ids, other) == {
            id_ for id_ in ids if other in graph.ancestors(id_)
        }
        commits = {id_: graph.commit(id_) for id_ in ids if id_ != NO_COMMIT}
        expected = {
            id_: (commits[id_].time, commits[id_].generation) if id_ in commits else (0, 0)
            for id_ in ids
        }
        assert survey.tips(ids) == expected


@laws
@given(PICKS, st.randoms(use_true_random=False))
def test_cached_facts_change_no_answer(
    picks: list[tuple[int, int | None, int]], random: Random
) -> None:
    asked = SurveyedGraph(picks)
    ids = asked.graph.ids
    # In most cases, the other commit continues its line, as a branch with new commits does.
    on_a_line = asked.graph.line(ids[-1])[::-1]
    others = [*on_a_line[:: max(1, len(on_a_line) // 5)], *random.choices(ids, k=4), ids[-1]]
    for other in others:
        asked.check(random.sample(ids, random.randint(0, len(ids))), other)


def test_a_second_process_reads_nothing() -> None:
    asked = SurveyedGraph([*LINE, (20, None, 41), (41, None, 42), (20, None, 43), (40, 43, 44)])
    main, *tips = asked.graph.ids[-1], asked.graph.ids[42], asked.graph.ids[43], asked.graph.ids[10]
    asked.check(tips, main)
    kept = asked.cache.times_kept
    asked.check(tips, main)
    assert asked.cache.times_kept == kept
    for ask in (
        lambda s: s.distances(tips, main),
        lambda s: s.ancestors_among(tips, main),
        lambda s: s.tips(tips),
    ):
        survey = asked.survey()
        ask(survey)
        assert asked.graph.heap.reads == 0


def test_damaged_facts_and_other_versions_are_computed_again() -> None:
    asked = SurveyedGraph([*LINE, (20, None, 41), (30, None, 42), (40, 41, 43)])
    ids, main = asked.graph.ids, asked.graph.ids[-1]
    asked.check(ids, main)
    random = Random(7)
    for name, data in list(asked.cache.kept.items()):
        places = random.sample(range(len(data)), 60)
        wrecks = [
            data[:place] + bytes([data[place] ^ 1 << random.randrange(8)]) + data[place + 1 :]
            for place in places
        ]
        wrecks += [data[:place] for place in places] + [b"", bytes(len(data)), data + b"\x00"]
        for wreck in wrecks:
            asked.cache.kept[name] = wreck
            asked.check(ids[30:], main)


def test_facts_of_another_version_or_shape_are_ignored() -> None:
    cache = MemoryCache()
    about, commit = bytes([1]) * 32, bytes([2]) * 32
    facts = fact_cache.Facts(cache, "tips", tuple[int, int])
    facts.write(about, {commit: (3, 4)}, [commit])
    assert fact_cache.Facts(cache, "tips", tuple[int, int]).known() == (about, {commit: (3, 4)})
    assert fact_cache.Facts(cache, "tips", bool).known() == (NO_COMMIT, {})
    for other in (
        (fact_cache.VERSION + 1, about, {commit: (3, 4)}),
        (fact_cache.VERSION, about),
        "text",
    ):
        data = msgpack.encode(other)
        cache.write("tips", crc32(data).to_bytes(4, "big") + data)
        assert fact_cache.Facts(cache, "tips", tuple[int, int]).known() == (NO_COMMIT, {})


def test_facts_of_another_store_do_no_harm() -> None:
    """Stores may share cache files, so facts may be about unknown commits."""
    one, other = (
        SurveyedGraph([*LINE, (20, None, 41)]),
        SurveyedGraph([(number, None, 1000 + number) for number in range(30)]),
    )
    other.cache = one.cache
    for asked in (one, other, one):
        asked.check(asked.graph.ids, asked.graph.ids[-1])


def test_requested_facts_are_kept_when_there_are_too_many() -> None:
    cache = MemoryCache()
    many = {number.to_bytes(32, "big"): (number, number) for number in range(fact_cache.FEW + 1)}
    asked = list(many)[:10]
    fact_cache.Facts(cache, "tips", tuple[int, int]).write(NO_COMMIT, many, asked)
    assert list(fact_cache.Facts(cache, "tips", tuple[int, int]).known()[1]) == asked
    fact_cache.Facts(cache, "tips", tuple[int, int]).write(NO_COMMIT, many, list(many))
    assert len(fact_cache.Facts(cache, "tips", tuple[int, int]).known()[1]) == len(many)
