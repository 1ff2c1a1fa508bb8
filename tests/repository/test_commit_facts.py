"""What was found out about commits before, told again: never anything else than what is found out
anew, on random graphs with merges."""

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


class Pad:
    """FactCache in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.times_kept = 0

    def read(self, name: str) -> bytes:
        return self.kept.get(name, b"")

    def write(self, name: str, data: bytes) -> None:
        self.kept[name] = data
        self.times_kept += 1


class Asked:
    """A graph that is surveyed by one process after the other, all with one pad."""

    def __init__(self, picks: Sequence[tuple[int, int | None, int]]) -> None:
        self.graph = Graph(picks)
        self.pad = Pad()

    def survey(self) -> CommitFacts:
        """That of a new process: it has read nothing yet."""
        objects = self.graph.objects()
        return CommitFacts(
            objects, lambda: AncestryIndex(objects, self.graph.heap.find_indexed), self.pad
        )

    def check(self, ids: Sequence[Id], other: Id) -> None:
        """Every question about these commits and another one has the plain answer."""
        graph, survey, objects = self.graph, self.survey(), self.graph.objects()
        told = {id_: reading.ahead_behind(objects, id_, other) for id_ in ids}
        assert survey.distances(ids, other) == {
            id_: (found.ahead, found.behind, bytes.fromhex(found.common_ancestor))
            for id_, found in told.items()
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
def test_what_is_kept_changes_no_answer(
    picks: list[tuple[int, int | None, int]], random: Random
) -> None:
    asked = Asked(picks)
    ids = asked.graph.ids
    # Mostly the other commit goes on along its line, as a branch does that is committed to.
    on_a_line = asked.graph.line(ids[-1])[::-1]
    others = [*on_a_line[:: max(1, len(on_a_line) // 5)], *random.choices(ids, k=4), ids[-1]]
    for other in others:
        asked.check(random.sample(ids, random.randint(0, len(ids))), other)


def test_a_second_process_reads_nothing() -> None:
    asked = Asked([*LINE, (20, None, 41), (41, None, 42), (20, None, 43), (40, 43, 44)])
    main, *tips = asked.graph.ids[-1], asked.graph.ids[42], asked.graph.ids[43], asked.graph.ids[10]
    asked.check(tips, main)
    kept = asked.pad.times_kept
    asked.check(tips, main)
    assert asked.pad.times_kept == kept
    for ask in (
        lambda s: s.distances(tips, main),
        lambda s: s.ancestors_among(tips, main),
        lambda s: s.tips(tips),
    ):
        survey = asked.survey()
        ask(survey)
        assert asked.graph.heap.reads == 0


def test_what_is_damaged_or_of_another_version_is_found_out_anew() -> None:
    asked = Asked([*LINE, (20, None, 41), (30, None, 42), (40, 41, 43)])
    ids, main = asked.graph.ids, asked.graph.ids[-1]
    asked.check(ids, main)
    random = Random(7)
    for name, data in list(asked.pad.kept.items()):
        places = random.sample(range(len(data)), 60)
        wrecks = [
            data[:place] + bytes([data[place] ^ 1 << random.randrange(8)]) + data[place + 1 :]
            for place in places
        ]
        wrecks += [data[:place] for place in places] + [b"", bytes(len(data)), data + b"\x00"]
        for wreck in wrecks:
            asked.pad.kept[name] = wreck
            asked.check(ids[30:], main)


def test_facts_of_another_version_or_shape_are_ignored() -> None:
    pad = Pad()
    about, commit = bytes([1]) * 32, bytes([2]) * 32
    facts = fact_cache.Facts(pad, "tips", tuple[int, int])
    facts.write(about, {commit: (3, 4)}, [commit])
    assert fact_cache.Facts(pad, "tips", tuple[int, int]).known() == (about, {commit: (3, 4)})
    assert fact_cache.Facts(pad, "tips", bool).known() == (NO_COMMIT, {})
    for other in (
        (fact_cache.VERSION + 1, about, {commit: (3, 4)}),
        (fact_cache.VERSION, about),
        "text",
    ):
        data = msgpack.encode(other)
        pad.write("tips", crc32(data).to_bytes(4, "big") + data)
        assert fact_cache.Facts(pad, "tips", tuple[int, int]).known() == (NO_COMMIT, {})


def test_facts_of_another_store_are_no_hindrance() -> None:
    """Stores may share cache files; the facts of one are then about commits unknown to the other."""
    one, other = (
        Asked([*LINE, (20, None, 41)]),
        Asked([(number, None, 1000 + number) for number in range(30)]),
    )
    other.pad = one.pad
    for asked in (one, other, one):
        asked.check(asked.graph.ids, asked.graph.ids[-1])


def test_of_very_many_facts_those_asked_for_are_kept() -> None:
    pad = Pad()
    many = {number.to_bytes(32, "big"): (number, number) for number in range(fact_cache.FEW + 1)}
    asked = list(many)[:10]
    fact_cache.Facts(pad, "tips", tuple[int, int]).write(NO_COMMIT, many, asked)
    assert list(fact_cache.Facts(pad, "tips", tuple[int, int]).known()[1]) == asked
    fact_cache.Facts(pad, "tips", tuple[int, int]).write(NO_COMMIT, many, list(many))
    assert len(fact_cache.Facts(pad, "tips", tuple[int, int]).known()[1]) == len(many)
