"""Pages for callers with few rights."""

from __future__ import annotations

from pathlib import Path

import pytest

from nessie_cli.model import CommitMeta, ReferenceType
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
