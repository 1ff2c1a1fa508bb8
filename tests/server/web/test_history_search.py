"""A search in pages finds what a search of the whole history finds."""

import re

import pytest
from msgspec import structs

from nessie_cli.model import CommitMeta, ContentKey, Delete, ReferenceType
from nessie_cli.repository.log_filter import LogFilter, Walk
from nessie_cli.repository.opening import create
from nessie_cli.server.pages import history_search
from nessie_cli.server.pages.history_search import HistorySearch, Place, place_of
from tests.server.web.catalogs import put

BRANCHES = 6


@pytest.fixture(scope="module")
def branched():
    """A history of branches that are open at once, whose commits have the same times."""
    with create("memory:", clock=lambda: 1_700_000_000_000_000) as repository:
        repository.commit("main", [put("rare")], CommitMeta("rare", authors=("ann",)))
        head = repository.reference("main").hash
        names = [f"dev{number}" for number in range(BRANCHES)]
        for name in names:
            repository.create_reference(ReferenceType.BRANCH, name, head)
        for number in range(5):
            for name in names:
                meta = CommitMeta(f"{name} {number}", authors=("bob" if number % 2 else "ann",))
                key = ContentKey((name,))
                repository.commit(name, [Delete(key) if number % 2 else put(name)], meta)
        for name in names:
            repository.merge("main", name)
        repository.commit("main", [put("rare2")], CommitMeta("last", authors=("bob",)))
        yield repository


FILTERS = [
    LogFilter(authors=(re.compile("bob"),)),
    LogFilter(message=re.compile("dev[24]")),
    LogFilter(message=re.compile("nothing")),
    LogFilter(keys=(ContentKey(("rare",)),)),
    LogFilter(keys=(ContentKey(("dev1",)),)),
    LogFilter(keys=(ContentKey(("dev1",)), ContentKey(("rare",))), authors=(re.compile("ann"),)),
]


@pytest.mark.parametrize("most_heads", [1, 64])
@pytest.mark.parametrize(("seconds", "most"), [(0, 50), (60, 1), (60, 4)])
def test_pages_have_the_commits_of_the_whole_search(
    branched, monkeypatch, seconds, most, most_heads
) -> None:
    monkeypatch.setattr(history_search, "SEARCH_SECONDS", seconds)
    monkeypatch.setattr(history_search, "MOST_HEADS", most_heads)
    for conditions in FILTERS:
        place, hashes, has_more = Place((branched.reference("main").hash,)), [], True
        while has_more:
            search = HistorySearch(place, most)
            walk = Walk("main", heads=tuple(place.heads))
            search.read(branched.search_log(walk, structs.replace(conditions, until=place.time)))
            assert seconds or search.searched <= 1
            hashes += [entry.hash for entry in search.entries]
            has_more = search.has_more
            if has_more:
                before, place = place, place_of(search.place.token)
                assert place is not None
                assert place != before
        log = branched.filtered_log(Walk("main"), conditions)
        assert hashes == [entry.hash for entry in log if entry is not None], conditions


def test_the_next_page_does_not_read_the_commits_before(branched) -> None:
    whole = list(branched.search_log(Walk("main"), LogFilter()))
    search = HistorySearch(Place((branched.reference("main").hash,)), 20)
    search.read(iter(whole))
    rest = branched.search_log(Walk("main", heads=tuple(search.place.heads)), LogFilter())
    assert [commit.hash for commit in rest] == [commit.hash for commit in whole[20:]]


def test_the_way_to_a_place_is_limited_in_time(branched, monkeypatch) -> None:
    """A client can send a place far behind its heads."""
    monkeypatch.setattr(history_search, "SEARCH_SECONDS", 0)
    whole = [commit.hash for commit in branched.search_log(Walk("main"), LogFilter())]
    place = place_of(".".join(["1", "0" * 64, *whole]))
    assert place is not None
    walk = Walk("main", heads=tuple(place.heads))
    commits = branched.search_log(walk, LogFilter())
    search = HistorySearch(place, 20)
    search.read(commits)
    assert (search.searched, search.is_cut, search.has_more) == (0, True, True)
    assert len(list(commits)) == len(whole) - 2
    assert sorted(search.place.heads) == sorted(whole[1:])
