"""The page of a catalog at a revision."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from nessie_cli.inspection.levels import children, count_contents
from nessie_cli.model import CommitMeta, ContentKey, ReferenceType
from nessie_cli.repository.base import Repository
from tests.server.guarding import guarded
from tests.server.web.browser import Browser
from tests.server.web.catalogs import keys_in, namespace, put
from tests.server.web.hostile import HOSTILE, check_shown_as_text


@pytest.fixture
def filled(repository: Repository) -> Repository:
    operations = [
        namespace("a"),
        *(put("a", f"t{number:03}") for number in range(120)),
        namespace("a", "deep"),
        put("a", "deep", "x"),
        *(namespace(name) for name in ("a ", "a!")),
        put("a ", "y"),
        put("a!", "z"),
        *(namespace(f"n{number:02}") for number in range(60)),
        *(put(f"n{number:02}", "t") for number in range(60)),
        put("top"),
        put("ab"),
    ]
    repository.commit("main", operations, CommitMeta("load", authors=("ann",)))
    return repository


def test_a_level_is_folded(browser: Browser, filled: Repository) -> None:
    page = browser.get("/ui/catalog?ref=main")
    assert "Catalog of main" in page.text
    assert keys_in(page, "/ui/catalog")[:4] == ["a", "a ", "a!", "n00"]
    assert keys_in(page, "/ui/content") == ["ab"]
    assert "a namespace 121" in page.text
    assert "n00 namespace 1" in page.text
    inner = browser.get("/ui/catalog?ref=main&key=a.deep")
    assert keys_in(inner, "/ui/content") == ["a.deep", "a.deep.x"]
    assert "1 content besides namespaces in this namespace" in inner.text


@pytest.mark.parametrize(("key", "expected"), [("", 65), ("a", 121)])
def test_the_pages_of_a_level_have_every_child_once(
    browser: Browser, filled: Repository, key: str, expected: int
) -> None:
    url, listed = f"/ui/catalog?ref=main&key={key}", 0
    while url:
        page = browser.get(url)
        rows = [each for each in page.elements if each.attributes.get("scope") == "row"]
        assert len(rows) <= 50
        listed += len(rows)
        url = page.next
    assert listed == expected


def test_children_are_those_of_all_keys(filled: Repository) -> None:
    at = filled.reference("main").hash
    keys = [entry.key for entry in filled.entries("main")]
    for parent in ((), ("a",), ("a", "deep"), ("a", "t001"), ("nothing",), ("n00",)):
        depth = len(parent)
        below = [
            k.elements for k in keys if k.elements[:depth] == parent and len(k.elements) > depth
        ]
        expected = sorted({elements[: depth + 1] for elements in below})
        parents = {elements[: depth + 1] for elements in below if len(elements) > depth + 1}
        listed = list(children(filled, at, ContentKey(parent)))
        assert [child.key.elements for child in listed] == expected
        assert {child.key.elements for child in listed if child.is_parent} == parents
        for number, child in enumerate(listed):
            rest = children(filled, at, ContentKey(parent), child.key)
            assert [each.key for each in rest] == [each.key for each in listed[number + 1 :]]


def test_counts_end_at_a_limit(filled: Repository) -> None:
    at, key = filled.reference("main").hash, ContentKey(("a",))
    assert count_contents(filled, at, key, 123) == (121, False)
    assert count_contents(filled, at, key, 50).is_least


def test_the_longest_key_is_listed(repository: Repository) -> None:
    operations = [put("x" * 500), namespace("y" * 498), put("y" * 498, "z"), put("z")]
    repository.commit("main", operations, CommitMeta("long"))
    listed = list(children(repository, repository.reference("main").hash, ContentKey(())))
    assert [len(child.name) for child in listed] == [500, 498, 1]


def test_last_changes_are_shown_on_request(browser: Browser, filled: Repository) -> None:
    filled.commit("main", [put("top2")], CommitMeta("later", authors=("bob",)))
    url = "/ui/catalog?ref=main&after=n59"
    assert "later" not in browser.get(url).text
    page = browser.get(f"{url}&changes=1")
    assert "later" in page.text
    assert "bob" in page.text
    assert "load" in page.text


def test_an_empty_catalog_has_nothing(browser: Browser) -> None:
    page = browser.get("/ui/catalog")
    assert "0 contents" in page.text
    assert "Nothing here" in page.text


def test_a_count_says_that_it_leaves_out_namespaces(
    browser: Browser, repository: Repository
) -> None:
    repository.commit("main", [namespace("n"), namespace("n", "m")], CommitMeta("m"))
    page = browser.get("/ui/catalog?ref=main&key=n")
    assert "0 contents besides namespaces in this namespace. About this namespace" in page.text
    assert "n.m" in keys_in(page, "/ui/catalog")


def test_a_missing_namespace_is_no_empty_one(browser: Browser) -> None:
    page = browser.get("/ui/catalog?ref=main&key=nope")
    assert "No content is at or below nope at this revision" in page.text
    assert "0 contents" not in page.text
    assert not keys_in(page, "/ui/content")


def test_the_key_of_a_table_leads_to_the_table(browser: Browser, repository: Repository) -> None:
    repository.commit("main", [put("t")], CommitMeta("m"))
    page = browser.get("/ui/catalog?ref=main&key=t")
    assert browser.url == "/ui/content?ref=main&key=t"
    assert "iceberg-table" in page.text


def test_hostile_names_are_text(browser: Browser, repository: Repository) -> None:
    repository.commit("main", [namespace(HOSTILE), put(HOSTILE, HOSTILE)], CommitMeta(HOSTILE))
    page = check_shown_as_text(browser, "/ui/catalog?ref=main&changes=1")
    [link] = [link for link in page.links if "key=" in link]
    inner = check_shown_as_text(browser, link)
    for link in inner.links:
        if link.startswith("/ui/content"):
            check_shown_as_text(browser, link)


def test_hidden_keys_and_branches_do_not_exist(tmp_path: Path) -> None:
    rules = (
        "op in ['VIEW_REFERENCE', 'READ_ENTRIES'] && ref == 'main'",
        "op in ['READ_CONTENT_KEY', 'READ_ENTITY_VALUE'] && path.startsWith('open')",
    )
    with guarded(tmp_path, *rules) as server:
        repository = server.repository
        operations = [
            *(namespace(name) for name in ("open", "closed")),
            *(put(name, "t") for name in ("open", "closed")),
            put("top"),
        ]
        repository.commit("main", operations, CommitMeta("m"))
        head = repository.reference("main").hash
        repository.create_reference(ReferenceType.BRANCH, "secret", head)
        browser = Browser(server.as_("eve"))
        page = browser.get("/ui/catalog?ref=main")
        assert keys_in(page, "/ui/catalog") == ["open"]
        assert "1 content besides namespaces at" in page.text
        assert "Nothing here" in browser.get("/ui/catalog?ref=main&key=closed").text
        hidden, missing = (browser.get(f"/ui/catalog?ref={name}") for name in ("secret", "none"))
        assert hidden.status == missing.status == 403
        assert hidden.text == missing.text.replace("none", "secret")


@pytest.mark.parametrize("query", ["after=" + quote("\x01"), "key=" + "x" * 501])
def test_an_invalid_key_is_refused(browser: Browser, query: str) -> None:
    assert browser.get(f"/ui/catalog?{query}").status == 400
