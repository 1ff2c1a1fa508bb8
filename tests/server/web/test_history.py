"""The pages of histories and commits."""

import itertools
import re
import time

import pytest

from nessie_cli.model import CommitMeta, ContentKey, IcebergTable, Put, ReferenceType
from nessie_cli.server.pages import history_search
from tests.server.web.browser import Browser


def append(repository, branch, name, message="m", author="ann"):
    operation = Put(
        ContentKey((name,)),
        IcebergTable(id=None, metadata_location=f"file:/{name}.json", snapshot_id=1),
    )
    repository.commit(branch, [operation], CommitMeta(message, authors=(author,)))


@pytest.fixture
def merged(repository):
    """A history of 130 commits with merges."""
    append(repository, "main", "t0", "commit 0")
    for round_ in range(13):
        head = repository.reference("main").hash
        repository.create_reference(ReferenceType.BRANCH, f"dev{round_}", head)
        for number in range(4):
            append(repository, "main", f"m{round_}_{number}", f"main {round_}.{number}")
            append(
                repository, f"dev{round_}", f"d{round_}_{number}", f"dev {round_}.{number}", "bob"
            )
        repository.merge("main", f"dev{round_}")
    return repository


def hashes_of(page) -> list[str]:
    return [link for link in page.links if link.startswith("/ui/commit?ref=")]


def test_the_pages_of_a_history_have_every_commit_once(browser: Browser, merged):
    url, listed = "/ui/history?ref=main", []
    while url:
        page = browser.get(url)
        listed += hashes_of(page)
        url = page.next
    expected = [entry.hash for entry in merged.log("main", all_parents=True)]
    assert sorted(listed) == sorted(f"/ui/commit?ref={hash_}" for hash_ in expected)


@pytest.fixture
def wide(repository):
    """A history of 201 commits, with as many lines at once as commits of two pages open."""
    append(repository, "main", "t")
    head = repository.reference("main").hash
    for number in range(100):
        repository.create_reference(ReferenceType.BRANCH, f"dev{number}", head)
        append(repository, f"dev{number}", f"d{number}")
    for number in range(100):
        repository.merge("main", f"dev{number}")
    return repository


def test_a_page_names_the_histories_that_the_next_page_leaves_out(browser: Browser, wide):
    url, listed, ended = "/ui/history?ref=main", [], []
    while url:
        page = browser.get(url)
        listed += hashes_of(page)
        if "too many lines for the next page" in page.text:
            ended += re.findall(r"/ui/history\?ref=([0-9a-f]{64})", " ".join(page.links))
        url = page.next
    # Every page also has a link to its own commit.
    ended = sorted({*ended} - {wide.reference("main").hash})
    assert len(ended) == 100 + 1 - 64
    for hash_ in ended:
        listed += hashes_of(browser.get(f"/ui/history?ref={hash_}"))
    expected = [entry.hash for entry in wide.log("main", all_parents=True)]
    assert set(listed) == {f"/ui/commit?ref={hash_}" for hash_ in expected}


def test_a_filter_finds_commits(browser: Browser, merged):
    page = browser.get("/ui/history?ref=main&author=bob&message=3.")
    assert len(hashes_of(page)) == 4
    assert "dev 3.0" in page.text
    assert len(hashes_of(browser.get("/ui/history?ref=main&key=m3_1"))) == 1


def test_a_filter_takes_linear_time(browser: Browser, repository):
    """No other thread runs while one text is searched. A pattern would take ten seconds here."""
    append(repository, "main", "t", "a" * 1_000_000, "Straße")
    begun = time.process_time()
    assert not hashes_of(browser.get(f"/ui/history?ref=main&message={'a' * 2_000}b"))
    assert time.process_time() - begun < 1
    assert len(hashes_of(browser.get("/ui/history?ref=main&message=AAA&author=sTRA%C3%9Fe"))) == 1


@pytest.mark.parametrize(("seconds", "pages"), [(0, 118), (60, 2)])
def test_a_filter_goes_on_behind_the_commits_that_one_page_searches(
    browser: Browser, merged, monkeypatch, seconds, pages
):
    monkeypatch.setattr(history_search, "SEARCH_SECONDS", seconds)
    url, listed, number = "/ui/history?ref=main&author=bob", [], 0
    entries = list(merged.log("main", all_parents=True))
    while url:
        page = browser.get(url)
        searched = entries[number].meta.commit_time
        is_cut = f"1 commit was searched, back to {searched:%Y-%m-%d %H:%M:%S} UTC" in page.text
        assert is_cut == (seconds == 0 and bool(page.next)), url
        listed += hashes_of(page)
        url, number = page.next, number + 1
    expected = [entry.hash for entry in entries if entry.meta.authors == ("bob",)]
    assert listed == [f"/ui/commit?ref={hash_}" for hash_ in expected]
    assert number == pages


def test_a_filter_that_no_commit_passes_says_how_far_it_has_searched(
    browser: Browser, merged, monkeypatch
):
    monkeypatch.setattr(history_search, "SEARCH_SECONDS", 0)
    page = browser.get("/ui/history?ref=main&message=none")
    assert "No commits in this part of the history." in page.text
    assert "Search older commits" in page.text


def test_a_commit_shows_its_changes(browser: Browser, merged):
    page = browser.get("/ui/commit?ref=main")
    assert "4 created" in page.text
    assert "d12_3" in page.text
    assert "file:/d12_3.json" in page.text
    assert re.search(r"Parents [0-9a-f]{12} [0-9a-f]{12}", page.text)


@pytest.mark.parametrize("after", ["x", "0" * 63, ".".join(["0" * 64] * 65)])
@pytest.mark.parametrize("filter_", ["", "&author=bob"])
def test_a_damaged_token_is_refused(browser: Browser, after, filter_):
    assert browser.get(f"/ui/history?ref=main{filter_}&after={after}").status == 400


def test_a_search_does_not_go_on_from_an_unknown_commit(browser: Browser, merged):
    token = ".".join(["1", "0" * 64, "1" * 64])
    assert browser.get(f"/ui/history?ref=main&author=bob&after={token}").status == 404


def lanes_of(page) -> list[str]:
    """The lane of each commit, by the place of its circle."""
    return [each.attributes["cx"] for each in page.elements if each.tag == "circle"]


def test_the_default_branch_has_the_first_lane(browser: Browser, repository):
    append(repository, "main", "a")
    repository.create_reference(ReferenceType.BRANCH, "dev", repository.reference("main").hash)
    append(repository, "main", "b")
    append(repository, "dev", "c")
    append(repository, "dev", "d")
    page = browser.get("/ui/history?ref=dev")
    first, second = sorted(set(lanes_of(page)), key=int)
    assert lanes_of(page) == [second, second, first]
    # The lane of the default branch has no line above its first commit.
    lines = [each.attributes for each in page.elements if each.tag == "line"]
    assert not any(line["x1"] == line["x2"] == first for line in lines)


def test_every_line_goes_on_in_the_next_row(browser: Browser, merged):
    rows = browser.get("/ui/history?ref=main").graph_rows
    assert rows
    for above, below in itertools.pairwise(rows):
        ends = {line["x2"] for line in above if line["y2"] == "100%"}
        assert ends == {line["x1"] for line in below if line["y1"] == "0%"}


def test_a_commit_names_some_of_its_references(browser, repository):
    append(repository, "main", "t")
    head = repository.reference("main").hash
    for number in range(50):
        repository.create_reference(ReferenceType.TAG, f"v{number}", head)
    page = browser.get("/ui/history")
    assert len([link for link in page.links if link.startswith("/ui/history?ref=v")]) == 19
    assert "and 31 more" in page.text
