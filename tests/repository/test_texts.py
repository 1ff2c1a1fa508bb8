"""Searching by what is kept of the texts of commits finds what a walk finds, in its order, whatever has been kept before."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random
from zlib import crc32

from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack

from nessie_cli.kernel.forms import NO_COMMIT, Commit, Id
from nessie_cli.kernel.lineage import Lineages
from nessie_cli.repository import texts
from nessie_cli.repository.base import Sieve
from nessie_cli.repository.texts import KeptTexts, Passed, Search, joined, nothing_about
from tests.kernel.test_history import PICKS, Graph, laws
from tests.repository.test_surveying import LINE, Pad

SIEVES = (
    Sieve(message=re.compile("[135]$")),
    Sieve(message=re.compile("no such")),
    Sieve(message=re.compile("2")),
    Sieve(message=re.compile("9commit")),
    *(Sieve(message=re.compile(text, re.IGNORECASE)) for text in ("MIT 3", "(Com|Dim)+mIt 1", "\u017f|2")),
    *(
        Sieve(message=re.compile(text))
        for text in (
            "m+it? 1*2",
            "x*commit .3?$",
            "(2|3)",
            "[12]1",
            "co(x|mm(i|o)t) 2|1",
            "(commit 1)?2",
            "3|",
            "[cx]ommit? [^13-9]*[]1]$",
            "t\\s1",
            "\\w+it[\\s\\d]1\\b",
            "t\\x20[\\]2]",
            "co(m){2}it .1",
            "",
        )
    ),
    Sieve(message=re.compile("^commit ")),
    Sieve(authors=(re.compile("1"), re.compile("^x")), message=re.compile("2")),
    Sieve(committers=(re.compile("nobody"),)),
)


class Searched:
    """A graph that is searched by one process after the other, all with one pad."""

    def __init__(self, picks: Sequence[tuple[int, int | None, int]]) -> None:
        self.graph = Graph(picks)
        self.pad = Pad()
        self.room = texts.ROOM

    def search(self, *starts: Id) -> Search:
        """That of a new process."""
        objects = self.graph.objects()
        return Search(objects, Lineages(objects, self.graph.heap.find_marked, 1).is_ancestor, self.pad, starts, room=self.room)

    def wanted(self, starts: Sequence[Id], sieve: Sieve, until: int | None, *, on_line: bool) -> list[Id]:
        """What a walk finds."""
        graph = self.graph
        ids = graph.line(*starts) if on_line else frozenset().union(*map(graph.ancestors, starts))
        commits = [(id_, graph.commit(id_)) for id_ in ids if id_ != NO_COMMIT]
        passing = [(-c.time, id_) for id_, c in commits if passes(sieve, c.message, c.authors, c.committer) and (until is None or c.time <= until)]
        return [id_ for _, id_ in sorted(passing)]

    def check(self, *starts: Id, sieve: Sieve, until: int | None = None, most: int | None = None, on_line: bool = False) -> None:
        """Search for the first `most`, and find those."""
        search = self.search(*starts)
        found = search.found_on_line(sieve, until) if on_line else search.found(sieve, until, worth=1)
        passing: Iterator[Id] = (id_ for id_, c in found if passes(sieve, c.message, c.authors, c.committer) and (until is None or c.time <= until))
        assert list(islice(passing, most)) == self.wanted(starts, sieve, until, on_line=on_line)[:most]


def commit_saying(text: str, number: int) -> Commit:
    return Commit((), number, number, b"", b"", b"", 0, 2**62 - number, 0, text, text, (text,), (), ())


def passes(sieve: Sieve, message: str, authors: Sequence[str], committer: str) -> bool:
    return (
        (sieve.message is None or bool(sieve.message.search(message)))
        and (not sieve.authors or any(p.search(name) for p in sieve.authors for name in authors))
        and (not sieve.committers or any(p.search(committer) for p in sieve.committers))
    )


@laws
@given(PICKS, st.randoms(use_true_random=False))
def test_what_is_kept_changes_no_answer(picks: list[tuple[int, int | None, int]], random: Random) -> None:
    searched = Searched(picks)
    ids = searched.graph.ids[1:]
    line = searched.graph.line(ids[-1])[-2::-1]
    starts = [*line[:: max(1, len(line) // 4)], *random.choices(ids, k=4), ids[-1], ids[-1]]
    for start in starts:
        until = random.choice([None, None, searched.graph.commit(random.choice(ids)).time])
        searched.check(start, sieve=random.choice(SIEVES), until=until, most=random.choice([None, 0, 1, 3]), on_line=random.random() < 0.2)
    tips = random.sample(ids, min(len(ids), 4))
    for _ in range(5):
        searched.check(*tips, sieve=random.choice(SIEVES), most=random.choice([None, 1, 3]))
        # Branches go on, or go away, or somewhere else.
        tips = [random.choice([tip, tip, *(id_ for id_ in ids if tip in searched.graph.parents[id_])]) for tip in tips]
        tips = [*set(tips), random.choice(ids)][-4:]


LONG = [*LINE, *((number, None, number) for number in range(40, 300))]


def test_the_second_search_reads_what_it_finds() -> None:
    searched = Searched(LONG)
    main = searched.graph.ids[-1]
    searched.check(main, sieve=SIEVES[1])
    rare = Sieve(message=re.compile("^commit 17$"))
    for search, reads in ((searched.search(main), 2), (searched.search(searched.graph.ids[-2]), 30)):
        searched.graph.heap.reads = 0
        assert [c.message for _, c in search.found(rare, None, 1000)] == ["commit 17"]
        assert searched.graph.heap.reads <= reads
    by_two = [c.authors for _, c in searched.search(main).found(Sieve(authors=(re.compile("[12]$"),)), None, 1000)]
    assert len(by_two) == 200
    assert set(by_two) == {("writer 1",), ("writer 2",)}


def test_a_search_goes_on_where_the_last_one_stopped() -> None:
    searched = Searched(LONG)
    main = searched.graph.ids[-1]
    searched.check(main, sieve=Sieve(message=re.compile("^commit 150$")), most=1)
    first = KeptTexts(searched.pad).known()
    assert first is not None
    assert len(first) == 150
    assert first.messages.startswith("commit 299")
    assert main in first
    assert searched.graph.ids[3] not in first
    searched.check(main, sieve=SIEVES[1])
    second = KeptTexts(searched.pad).known()
    assert second is not None
    assert (len(second), second.rest, second.messages[: len(first.messages)]) == (300, [], first.messages)


def test_few_new_commits_are_not_kept() -> None:
    searched = Searched([*LONG, (100, None, 500), (301, None, 501), (300, None, 502), (303, None, 503)])
    main, side, later = searched.graph.ids[300], searched.graph.ids[302], searched.graph.ids[304]
    for start, worth, kept in ((main, 301, 0), (main, 300, 1), (main, 1, 1), (side, 1, 1), (later, 3, 1), (later, 2, 2)):
        list(searched.search(start).found(SIEVES[1], None, worth))
        assert searched.pad.times_kept == kept


def test_a_list_gets_no_gaps() -> None:
    """By a search that ends among the commits that are not known yet, or by more of those than there is room for."""
    for most, room in ((1, texts.ROOM), (None, 64 * 30)):
        searched = Searched(LONG)
        searched.check(searched.graph.ids[100], sieve=SIEVES[1])
        searched.room = room
        for some in (most, None, None):
            searched.check(searched.graph.ids[-1], sieve=SIEVES[0], most=some)


def test_a_list_that_ends_too_soon_is_of_no_use_along_first_parents() -> None:
    searched = Searched(LONG)
    main = searched.graph.ids[-1]
    searched.check(main, sieve=SIEVES[0], most=3)
    searched.check(main, sieve=SIEVES[0], on_line=True)


def test_a_list_that_ends_too_soon_is_not_given_up_for_a_much_shorter_one() -> None:
    searched = Searched(LONG)
    main, other = searched.graph.ids[-1], searched.graph.ids[200]
    searched.check(main, sieve=SIEVES[0], most=20)
    known = KeptTexts(searched.pad).known()
    assert known is not None
    for room, about in ((len(known) // 2 - 1, main), (len(known) // 2, other)):
        searched.room = (texts.EACH + len("commit 200")) * (room - 1) + 3 * (texts.EACH + len("writer 0")) + 1
        searched.check(other, sieve=SIEVES[1])
        found = KeptTexts(searched.pad).known()
        assert found is not None
        assert found.starts == [about]


def test_what_is_too_much_is_walked() -> None:
    searched = Searched(LONG)
    searched.room = 64 * 20
    for _ in range(3):
        searched.check(searched.graph.ids[-1], sieve=SIEVES[0])
        known = KeptTexts(searched.pad).known()
        assert known is not None
        assert 10 < len(known) < 60
        assert len(known.rest) == 1


def test_a_full_list_is_begun_anew_when_much_has_been_committed_since() -> None:
    searched = Searched(LONG)
    searched.room = 64 * 50
    for start, kept in ((150, 150), (299, None), (299, 299)):
        searched.check(searched.graph.ids[start], sieve=SIEVES[1])
        known = KeptTexts(searched.pad).known()
        assert (known and known.starts) == (kept and [searched.graph.ids[kept]])


def test_what_is_the_same_but_for_capitals_is_what_expressions_mean_by_it() -> None:
    said = ["Stop", "\u017ftop", "STOP \u212a", "k", "stoop", ""]
    for messages in (said, [text for text in said if text.isascii()]):
        rows = [(-number, bytes([number]) * 32, ((), ""), text) for number, text in enumerate(messages)]
        known = joined(nothing_about([]), rows, [], [])
        for text in ("stop", "S(T|x)OP", "k", "\u212a", "o+p", "none", "", "^$"):
            pattern = re.compile(text, re.IGNORECASE)
            found = {id_[0] for id_ in known.saying(Sieve(message=pattern), None)}
            assert found == {number for number, message in enumerate(messages) if pattern.search(message)}, text


def test_no_more_is_kept_than_there_is_room_for() -> None:
    """Also of texts that take many bytes for a character, and of many people."""
    for text in ("x", "\u00e9\U0001f600" * 50):
        pad = Pad()
        notes = KeptTexts(pad)
        commits = [(bytes(31) + bytes([n]), commit_saying(f"{text} {n}", n)) for n in range(200)]
        passed = Passed([], 10_000)
        list(passed.noting(commits))
        notes.keep(joined(nothing_about([]), passed.said, [], []))
        assert 3_000 < len(pad.read("texts")) <= 10_000


def test_the_history_of_all_branches_is_kept_beside_that_of_one() -> None:
    searched = Searched([*LONG, *((parent, None, 400) for parent in range(100, 120)), (301, None, 401), (300, None, 402)])
    graph, rare = searched.graph, Sieve(message=re.compile("^commit 17$"))
    branches, gone_on = graph.ids[300:321], [*graph.ids[302:323]]
    searched.check(graph.ids[300], sieve=SIEVES[1])
    searched.check(*branches, sieve=SIEVES[1])
    assert {name: len(KeptTexts(searched.pad, many=name != "texts").known() or ()) for name in searched.pad.kept} == {"texts": 300, "texts-many": 320}
    # The head of each branch that has moved, some to see that it has only gone on, and what is found.
    for starts, reads in ((branches, 2), (gone_on, 60), (graph.ids[300:301], 2)):
        search = searched.search(*starts)
        graph.heap.reads = 0
        assert [c.message for _, c in search.found(rare, None, 1000) if c.message == "commit 17"] == ["commit 17"]
        assert graph.heap.reads <= reads


def test_what_is_damaged_or_of_another_version_is_no_hindrance() -> None:
    searched = Searched([*LINE, (20, None, 41), (40, 41, 43)])
    main = searched.graph.ids[-1]
    searched.check(main, sieve=SIEVES[1])
    random = Random(7)
    data = searched.pad.kept["texts"]
    places = random.sample(range(len(data)), 60)
    wrecks = [data[:place] + bytes([data[place] ^ 1 << random.randrange(8)]) + data[place + 1 :] for place in places]
    other = [msgpack.encode(some) for some in (("0", KeptTexts(searched.pad).known()), (texts.VERSION, 1), "text")]
    for wreck in (*wrecks, *(data[:place] for place in places), b"", bytes(len(data)), *(crc32(some).to_bytes(4, "big") + some for some in other)):
        searched.pad.kept["texts"] = wreck
        assert KeptTexts(searched.pad).known() is None
        searched.check(main, sieve=SIEVES[0])


def test_texts_of_another_store_are_no_hindrance() -> None:
    one, other = Searched([*LINE, (20, None, 41)]), Searched([(number, None, 1000 + number) for number in range(30)])
    other.pad = one.pad
    for searched in (one, other, one):
        searched.check(searched.graph.ids[-1], sieve=SIEVES[0])


def test_an_id_is_only_found_where_one_begins() -> None:
    a, b = bytes(range(32)), bytes(range(100, 132))
    both = joined(nothing_about([a]), [(-2, a, ((), ""), ""), (-1, b, ((), ""), "")], [a], [])
    assert a in both
    assert b in both
    assert a[1:] + b[:1] not in both
