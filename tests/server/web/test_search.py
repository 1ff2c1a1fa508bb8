"""The page that finds names."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from nessie_cli.inspection.names import search_branches
from nessie_cli.model import CommitMeta, ContentKey, Delete, ReferenceType
from nessie_cli.repository.base import Repository
from nessie_cli.server.pages import search
from tests.server.guarding import guarded
from tests.server.web.browser import Browser
from tests.server.web.catalogs import keys_in, namespace, put
from tests.server.web.hostile import HOSTILE, check_shown_as_text


def branch(repository: Repository, name: str) -> None:
    head = repository.reference("main").hash
    repository.create_reference(ReferenceType.BRANCH, name, head)


@pytest.fixture
def branches(repository: Repository) -> Repository:
    """main and five branches: two are as main, two have a key more, one lacks one."""
    operations = [namespace("db"), put("db", "Orders"), put("db", "old"), put("other")]
    repository.commit("main", operations, CommitMeta("m"))
    for name in ("same1", "same2", "new1", "new2", "without"):
        branch(repository, name)
    for name in ("new1", "new2"):
        repository.commit(name, [put("db", "new_orders")], CommitMeta("n"))
    repository.commit("without", [Delete(ContentKey(("db", "Orders")))], CommitMeta("d"))
    return repository


def test_a_part_of_the_key_is_found(browser: Browser, branches: Repository) -> None:
    page = browser.get("/ui/search?q=ORD&ref=main")
    assert keys_in(page, "/ui/content") == ["db.Orders"]
    assert "1 name contains" in page.text
    assert keys_in(browser.get("/ui/search?q=b.o&ref=new1"), "/ui/content") == [
        "db.Orders",
        "db.old",
    ]
    assert "0 names contain" in browser.get("/ui/search?q=nothing").text


def test_all_branches_are_searched(browser: Browser, branches: Repository) -> None:
    page = browser.get("/ui/search?q=orders&all=1")
    assert "2 names contain “ orders ” on all 6 branches" in page.text
    assert "db.Orders iceberg-table main same1 same2 and 2 more" in page.text
    assert "db.new_orders iceberg-table new1 new2" in page.text
    from_branch = browser.get("/ui/search?q=orders&all=1&ref=without")
    assert "db.Orders iceberg-table main same1 same2 and 2 more" in from_branch.text


def test_matches_are_those_of_every_branch(branches: Repository) -> None:
    listed = list(branches.references(ReferenceType.BRANCH))
    for text in ("orders", "O", "b.", "x", "b", ""):
        for most in (1, 2, 100):
            result = search_branches(branches, listed, text, most, lambda: False)
            expected: dict[ContentKey, list[str]] = {}
            for each in listed:
                for entry in branches.entries(each.name):
                    if text.lower() in entry.key.plain.lower():
                        expected.setdefault(entry.key, []).append(each.name)
            first = sorted(expected)[:most]
            assert {row.key: row.total for row in result.rows} == {
                key: len(expected[key]) for key in first
            }
            assert all(set(row.branches) <= set(expected[row.key]) for row in result.rows)
            assert result.is_cut == (len(expected) > most)
            assert result.searched == result.total == 6


def test_a_late_search_says_so(branches: Repository) -> None:
    listed = branches.references(ReferenceType.BRANCH)
    result = search_branches(branches, listed, "o", 100, lambda: True)
    assert (result.searched, result.total) == (3, 6)


def test_a_long_search_continues_after_its_first_page(
    browser: Browser, branches: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "FIRST_SECONDS", 0.0)
    page = browser.get("/ui/search?q=orders&all=1")
    assert (
        "1 name contains “ orders ” on 3 branches. 3 of 6 branches were not searched." in page.text
    )
    [rest] = [link for link in page.links if "full=1" in link]
    page = browser.get(rest)
    assert "2 names contain “ orders ” on all 6 branches" in page.text
    assert "not searched" not in page.text


def test_a_cut_result_says_so(browser: Browser, repository: Repository) -> None:
    repository.commit("main", [put(f"t{n:03}") for n in range(150)], CommitMeta("m"))
    for more in ("", "&all=1"):
        page = browser.get(f"/ui/search?q=t{more}")
        assert "More than 100 names contain" in page.text
        assert len(keys_in(page, "/ui/content")) >= 100
        assert "More than" not in browser.get(f"/ui/search?q=t01{more}").text


def test_hostile_names_are_text(browser: Browser, repository: Repository) -> None:
    repository.commit("main", [put(HOSTILE)], CommitMeta("m"))
    for more in ("", "&all=1"):
        page = check_shown_as_text(browser, f"/ui/search?q={quote(HOSTILE)}{more}")
        [link] = {link for link in page.links if link.startswith("/ui/content")}
        check_shown_as_text(browser, link)


def test_hidden_keys_and_branches_are_not_found(tmp_path: Path) -> None:
    rules = (
        "op in ['VIEW_REFERENCE', 'READ_ENTRIES'] && ref != 'secret'",
        "op == 'READ_CONTENT_KEY' && (path != 'db.orders' || ref == 'new')",
    )
    with guarded(tmp_path, *rules) as server:
        operations = [namespace("db"), put("db", "orders"), put("db", "order")]
        server.repository.commit("main", operations, CommitMeta("m"))
        for name in ("new", "secret"):
            branch(server.repository, name)
        server.repository.commit("new", [put("x")], CommitMeta("m"))
        server.repository.commit("secret", [put("db", "order_secret")], CommitMeta("m"))
        browser = Browser(server.as_("eve"))
        page = browser.get("/ui/search?q=order&all=1")
        assert "2 names contain “ order ” on all 2 branches" in page.text
        # On main, the caller may not know this key.
        assert "db.orders iceberg-table new" in page.text
        assert "secret" not in page.text
        assert keys_in(browser.get("/ui/search?q=orders"), "/ui/content") == []
