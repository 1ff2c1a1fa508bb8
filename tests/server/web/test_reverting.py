"""The page of a revert."""

import pytest

from nessie_cli.model import CommitMeta, ContentKey, Delete, IcebergTable, Namespace, Put
from tests.server.web.catalogs import decisions_of

TABLE = ContentKey(("t",))


def put(repository, number, like=None):
    table = IcebergTable(id=like, metadata_location=f"file:/t{number}.json", snapshot_id=number)
    repository.commit("main", [Put(TABLE, table)], CommitMeta(f"t is {number}\n\nA load."))
    return repository.reference("main").hash


def number_of(repository):
    return repository.content("main", TABLE).snapshot_id


@pytest.fixture
def loads(repository):
    """The hashes of three commits of table `t`."""
    first = put(repository, 1)
    id_ = repository.content("main", TABLE).id
    return first, put(repository, 2, id_), put(repository, 3, id_)


def test_the_newest_commit_is_reverted(browser, repository, loads):
    url = next(link for link in browser.get("/ui/commit?ref=main").links if "/ui/revert" in link)
    page = browser.get(url)
    assert "would change on main" in page.text
    assert "1 updated" in page.text
    assert number_of(repository) == 3
    page = browser.post("/ui/revert", **page.form("/ui/revert"))
    assert "Revert" in page.text
    assert number_of(repository) == 2
    message = repository.commit_at("main").meta.message
    assert message.splitlines() == [
        'Revert "t is 3"',
        "",
        f"This reverts commit {loads[2]}.",
    ]


@pytest.mark.parametrize(("side", "number"), [("ours", 3), ("theirs", 1)])
def test_an_earlier_commit_needs_a_decision(browser, repository, loads, side, number):
    url = f"/ui/revert?ref={loads[1]}&into=main"
    page = browser.get(url)
    assert "1 conflict" in page.text
    fields = page.form("/ui/revert")
    assert "left to decide" in browser.post("/ui/revert", **fields).text
    [decision] = decisions_of(page)
    page = browser.get(f"{url}&{decision}={side}")
    assert "left to decide" not in page.text
    fields = page.form("/ui/revert")
    reply = browser.post("/ui/revert", **(fields | {decision: side}))
    assert number_of(repository) == number
    assert reply.status == (200 if side == "theirs" else 400)


def test_a_branch_that_moved_is_not_reverted(browser, repository, loads):
    fields = browser.get("/ui/revert?ref=main").form("/ui/revert")
    put(repository, 4, repository.content("main", TABLE).id)
    page = browser.post("/ui/revert", **fields)
    assert page.status == 409
    assert "main has moved" in page.text
    assert number_of(repository) == 4


def test_a_form_that_is_sent_twice_reverts_once(browser, repository, loads):
    fields = browser.get("/ui/revert?ref=main").form("/ui/revert")
    browser.post("/ui/revert", **fields)
    head = repository.reference("main").hash
    assert browser.post("/ui/revert", **fields).status == 200
    assert repository.reference("main").hash == head


def test_a_namespace_that_was_created_again_is_not_listed(browser, repository):
    key = ContentKey(("ns",))
    namespace = Put(key, Namespace(id=None, elements=("ns",)))
    repository.commit("main", [namespace], CommitMeta("create ns"))
    repository.commit("main", [Delete(key)], CommitMeta("drop ns"))
    dropped = repository.reference("main").hash
    repository.commit("main", [namespace], CommitMeta("create ns again"))
    page = browser.get(f"/ui/revert?ref={dropped}&into=main")
    assert page.status == 200
    assert "No content changes." in page.text
