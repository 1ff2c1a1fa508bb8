"""Pages for callers with few rights."""

from __future__ import annotations

from pathlib import Path

import pytest

from nessie_cli.model import CommitMeta, ContentKey, IcebergTable, Put, ReferenceType
from nessie_cli.server.pages import previews
from nessie_cli.server.pages.previews import MOST_PREVIEWED
from tests.server.guarding import guarded
from tests.server.web.browser import Browser
from tests.server.web.catalogs import decisions_of, put

READING = "['VIEW_REFERENCE','LIST_COMMIT_LOG','READ_ENTRIES','READ_CONTENT_KEY']"


@pytest.mark.parametrize("page", ["branches", "tags"])
def test_a_list_leaves_out_commits_that_the_caller_may_not_read(tmp_path: Path, page: str) -> None:
    with guarded(tmp_path, "user == 'eve' && op == 'VIEW_REFERENCE'") as server:
        repository = server.repository
        repository.commit("main", [put("t")], CommitMeta("secret message"))
        head = repository.reference("main").hash
        repository.create_reference(ReferenceType.BRANCH, "dev", head)
        repository.create_reference(ReferenceType.TAG, "v1", head)
        listed = Browser(server.as_("eve")).get(f"/ui/{page}")
        assert listed.status == 200
        assert ("v1" if page == "tags" else "dev") in listed.text
        assert "secret message" not in listed.text


def test_a_caller_without_the_default_branch_has_pages(tmp_path: Path) -> None:
    rule = f"user == 'eve' && ref == 'dev' && op in {READING}"
    with guarded(tmp_path, rule) as server:
        repository = server.repository
        repository.commit("main", [put("t")], CommitMeta("first"))
        repository.create_reference(ReferenceType.BRANCH, "dev", repository.reference("main").hash)
        repository.commit("main", [put("u")], CommitMeta("of main"))
        repository.commit("dev", [put("v")], CommitMeta("of dev"))
        browser = Browser(server.as_("eve"))
        branches = browser.get("/ui/branches")
        assert branches.status == 200
        assert "of dev" in branches.text
        assert "of main" not in branches.text
        history = browser.get("/ui/history?ref=dev")
        assert history.status == 200
        assert "of dev" in history.text


def test_commits_of_a_log_that_is_hidden_are_hidden(tmp_path: Path) -> None:
    rule = "user == 'eve' && (ref == 'main' || !op.startsWith('LIST_COMMIT'))"
    with guarded(tmp_path, rule) as server:
        repository = server.repository
        repository.commit("main", [put("t")], CommitMeta("first"))
        repository.create_reference(ReferenceType.BRANCH, "dev", repository.reference("main").hash)
        repository.commit("dev", [put("u")], CommitMeta("secret one"))
        repository.commit("dev", [put("v")], CommitMeta("secret two"))
        hash_ = repository.commit_at("dev~1").hash
        browser = Browser(server.as_("eve"))
        for url in (
            "/ui/commit?ref=dev~1",
            f"/ui/commit?ref={hash_}",
            "/ui/revert?ref=dev~1&into=dev",
            "/ui/revert?ref=dev~1&into=main",
        ):
            page = browser.get(url)
            assert page.status == 403, url
            assert "secret" not in page.text


@pytest.mark.parametrize("known", ["", "op != 'READ_CONTENT_KEY' && "], ids=["key", ""])
@pytest.mark.parametrize("side", ["", "ours", "theirs"])
def test_a_hidden_side_of_a_conflict_is_called_hidden(
    tmp_path: Path, side: str, known: str
) -> None:
    """Also a value that the caller may not read, under a key that the caller may know."""
    reads = "op in ['READ_CONTENT_KEY', 'READ_ENTITY_VALUE']"
    hidden = f"{known}ref == 'main' && path == 't' && {reads}"
    with guarded(tmp_path, f"user == 'eve' && !({hidden})") as server:
        repository = server.repository
        key = ContentKey(("t",))
        repository.commit("main", [put("t")], CommitMeta("first"))
        repository.create_reference(ReferenceType.BRANCH, "dev", repository.reference("main").hash)
        id_ = repository.content("main", key).id
        for branch in ("main", "dev"):
            table = IcebergTable(id=id_, metadata_location=f"file:/of-{branch}.json")
            repository.commit(branch, [Put(key, table)], CommitMeta(f"on {branch}"))
        browser = Browser(server.as_("eve"))
        [decision] = decisions_of(browser.get("/ui/merge?source=dev&into=main"))
        page = browser.get(f"/ui/merge?source=dev&into=main&{decision}={side}")
        assert page.status == 200
        assert "On main : not visible to you" in page.text
        assert "of-main" not in page.text
        assert "of-dev" in page.text


def test_an_undo_needs_the_right_to_view_the_reflog(tmp_path: Path) -> None:
    with guarded(tmp_path, "user == 'eve' && op != 'VIEW_REFLOG'") as server:
        server.repository.commit("main", [put("t")], CommitMeta("m"))
        page = Browser(server.as_("eve")).post("/ui/undo", name="main", number="2")
        assert page.status == 403
        assert "VIEW_REFLOG" in page.text


LOG = "op in ['LIST_COMMIT_LOG', 'LIST_COMMITLOG', 'VIEW_REFLOG']"


@pytest.mark.parametrize("page", ["merge", "revert"])
def test_a_conflict_names_no_commit_of_a_log_that_is_hidden(tmp_path: Path, page: str) -> None:
    rule = f"user == 'eve' && ref != 'DETACHED' && !({LOG} && ref == 'main')"
    with guarded(tmp_path, rule) as server:
        repository = server.repository
        key = ContentKey(("t",))
        repository.commit("main", [put("t")], CommitMeta("first"))
        repository.create_reference(ReferenceType.BRANCH, "dev", repository.reference("main").hash)
        id_ = repository.content("main", key).id
        for branch, message in (("main", "secret"), ("main", "later"), ("dev", "of the dev")):
            name = "u" if message == "later" else "t"
            table = put(name, snapshot=len(message), content_id=id_ if name == "t" else None)
            repository.commit(branch, [table], CommitMeta(message, authors=("ann",)))
        url = (
            "/ui/merge?source=dev&into=main"
            if page == "merge"
            else f"/ui/revert?ref={repository.reference('dev').hash}&into=main"
        )
        shown = Browser(server.as_("eve")).get(url)
        assert shown.status == 200, shown.text
        assert "On main : changed" in shown.text
        assert "secret" not in shown.text
        assert repository.commit_at("main~1").hash[:12] not in shown.text
        # Others may know it.
        assert "secret" in Browser(server.as_("boss", "admin")).get(url).text


@pytest.mark.parametrize("query", ["ref=dev", "ref=dev&message=of", "ref=dev~1"])
def test_a_history_needs_no_log_of_the_default_branch(tmp_path: Path, query: str) -> None:
    rule = f"user == 'eve' && ref != 'DETACHED' && !({LOG} && ref == 'main')"
    with guarded(tmp_path, rule) as server:
        repository = server.repository
        repository.commit("main", [put("t")], CommitMeta("first"))
        repository.create_reference(ReferenceType.BRANCH, "dev", repository.reference("main").hash)
        for name in "uv":
            repository.commit("dev", [put(name)], CommitMeta(f"of dev: {name}"))
        browser = Browser(server.as_("eve"))
        history = browser.get(f"/ui/history?{query}")
        assert history.status == 200, history.text
        assert "of dev: u" in history.text
        repository.commit("main", [put("w")], CommitMeta("secret"))
        history = browser.get(f"/ui/history?{query}")
        assert history.status == 200, history.text
        assert "secret" not in history.text


def test_hidden_changes_are_not_counted_before_a_preview(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = "['READ_CONTENT_KEY', 'READ_ENTITY_VALUE']"
    rule = f"user == 'eve' && !(ref == 'dev' && path.startsWith('h') && op in {hidden})"
    with guarded(tmp_path, rule) as server:
        repository = server.repository
        repository.commit("main", [put("t")], CommitMeta("first"))
        repository.create_reference(ReferenceType.BRANCH, "dev", repository.reference("main").hash)
        tables = [put(f"h{number}") for number in range(MOST_PREVIEWED + 2)]
        repository.commit("dev", tables, CommitMeta("load"))
        url = "/ui/merge?source=dev&into=main"
        for most in (MOST_PREVIEWED + 2, MOST_PREVIEWED + 1):
            monkeypatch.setattr(previews, "MOST_SHOWN", most)
            page = Browser(server.as_("eve")).get(url)
            assert page.status == 403
            assert "contents change" not in page.text
        assert "contents change" in Browser(server.as_("boss", "admin")).get(url).text


@pytest.mark.parametrize("of_tables", [False, True])
def test_a_filter_by_a_key_does_not_show_that_it_is_hidden(tmp_path: Path, of_tables: bool) -> None:
    hidden = "path == 'secret' && op == 'READ_CONTENT_KEY'"
    if of_tables:
        hidden += " && contentType == 'ICEBERG_TABLE'"
    with guarded(tmp_path, f"user == 'eve' && !({hidden})") as server:
        for number in range(40):
            name = "secret" if number == 20 else f"other{number}"
            server.repository.commit("main", [put(name)], CommitMeta(f"load {number}"))
        browser = Browser(server.as_("eve"))
        pages = [browser.get(f"/ui/history?ref=main&key={key}") for key in ("secret", "absent")]
        assert "load" not in pages[0].text
        assert pages[0].text == pages[1].text
        assert "load 20" in browser.get("/ui/history?ref=main&message=load+20").text
        assert "load 30" in browser.get("/ui/history?ref=main&key=other30").text


def test_a_search_does_not_go_on_from_a_commit_of_a_hidden_branch(tmp_path: Path) -> None:
    rule = "user == 'eve' && (ref == 'main' || ref == '')"
    with guarded(tmp_path, rule) as server:
        repository = server.repository
        repository.commit("main", [put("t")], CommitMeta("first"))
        repository.create_reference(ReferenceType.BRANCH, "dev", repository.reference("main").hash)
        repository.commit("dev", [put("u")], CommitMeta("hidden one"))
        token = ".".join(["9" * 17, "0" * 64, repository.reference("dev").hash])
        page = Browser(server.as_("eve")).get(f"/ui/history?ref=main&message=one&after={token}")
        assert page.status == 404
        assert "hidden one" not in page.text
