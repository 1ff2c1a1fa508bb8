"""Pages for callers with few rights."""

from __future__ import annotations

from pathlib import Path

import pytest

from nessie_cli.model import CommitMeta, ContentKey, IcebergTable, Put, ReferenceType
from tests.server.guarding import guarded
from tests.server.web.browser import Browser
from tests.server.web.catalogs import put

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


@pytest.mark.parametrize("side", ["", "ours", "theirs"])
def test_a_hidden_side_of_a_conflict_is_called_hidden(tmp_path: Path, side: str) -> None:
    hidden = "ref == 'main' && path == 't' && op in ['READ_CONTENT_KEY', 'READ_ENTITY_VALUE']"
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
        page = browser.get(f"/ui/merge?source=dev&into=main&decide.{id_}={side}")
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
