"""The page of a merge: preview, decisions, and the merge that was shown."""

import gc
from itertools import count
from threading import Event, Thread, current_thread
from urllib.parse import urlencode

import pytest

from nessie_cli.inspection.changes import tally
from nessie_cli.model import (
    CommitMeta,
    ContentKey,
    Delete,
    IcebergTable,
    Namespace,
    Put,
    ReferenceType,
)
from nessie_cli.server.pages import merging, previews, reverting
from nessie_cli.server.pages.conflicts import CONFLICTS
from nessie_cli.server.pages.previews import MOST_PREVIEWED
from tests.server.row_server import DIFF, guarded_rows, row_server
from tests.server.web import catalogs
from tests.server.web.browser import Browser
from tests.server.web.catalogs import decisions_of

MERGE = "/ui/merge?source=dev&into=main"


def put(repository, branch, name, number, like=None):
    table = IcebergTable(
        id=like, metadata_location=f"file:/{name}{number}.json", snapshot_id=number
    )
    repository.commit(
        branch,
        [Put(ContentKey((name,)), table)],
        CommitMeta(f"{name} is {number}", authors=(branch,)),
    )


def content(repository, branch, name):
    return repository.contents(branch, [ContentKey((name,))]).get(ContentKey((name,)))


@pytest.fixture
def sides(repository):
    """Branches `main` and `dev`, which both changed table `t`; `dev` has a new table `n`."""
    put(repository, "main", "t", 1)
    repository.create_reference(ReferenceType.BRANCH, "dev", repository.reference("main").hash)
    id_ = content(repository, "main", "t").id
    put(repository, "main", "t", 2, id_)
    put(repository, "dev", "t", 3, id_)
    put(repository, "dev", "n", 1)
    return repository


def test_a_merge_without_conflicts_is_shown_and_made(browser, repository):
    put(repository, "main", "t", 1)
    repository.create_reference(ReferenceType.BRANCH, "dev", repository.reference("main").hash)
    put(repository, "dev", "n", 1)
    before = repository.reference("main").hash
    page = browser.get(MERGE)
    assert "What merging dev" in page.text
    assert "1 created" in page.text
    assert repository.reference("main").hash == before
    after = browser.post("/ui/merge", **page.form("/ui/merge"))
    assert "Merge branch 'dev' into main" in after.text
    assert content(repository, "main", "n").snapshot_id == 1
    assert "is merged into main already" in browser.get(MERGE).text


def test_a_form_that_is_sent_twice_merges_once(browser, sides):
    page = browser.get(MERGE)
    fields = {**page.form("/ui/merge"), decision(page): "ours"}
    browser.post("/ui/merge", **fields)
    head = sides.reference("main").hash
    assert browser.post("/ui/merge", **fields).status == 200
    assert sides.reference("main").hash == head


def decision(page):
    """Returns the name of the field with the only decision of a page."""
    [name] = decisions_of(page)
    return name


@pytest.mark.parametrize(("side", "number"), [("ours", 2), ("theirs", 3)])
def test_a_decision_shows_its_result_and_is_merged(browser, sides, side, number):
    page = browser.get(MERGE)
    assert "1 conflict" in page.text
    assert "is left to decide" in page.text
    page = browser.get(f"{MERGE}&{decision(page)}={side}")
    assert "left to decide" not in page.text
    fields = {**page.form("/ui/merge"), decision(page): side}
    assert browser.post("/ui/merge", **fields).status == 200
    assert content(sides, "main", "t").snapshot_id == number
    assert content(sides, "main", "n").snapshot_id == 1


@pytest.mark.parametrize(("side", "number"), [("ours", 1), ("theirs", 2)])
def test_a_key_that_both_sides_created_is_decided(browser, repository, side, number):
    put(repository, "main", "other", 1)
    repository.create_reference(ReferenceType.BRANCH, "dev", repository.reference("main").hash)
    put(repository, "main", "z", 1)
    put(repository, "dev", "z", 2)
    page = browser.get(MERGE)
    decision = next(
        each.attributes["name"]
        for each in page.elements
        if each.attributes.get("name", "").startswith("decide.")
    )
    page = browser.get(f"{MERGE}&{decision}={side}")
    assert "left to decide" not in page.text
    assert "absent" not in page.text
    fields = {**page.form("/ui/merge"), decision: side}
    assert browser.post("/ui/merge", **fields).status == 200
    assert content(repository, "main", "z").snapshot_id == number


def test_an_undecided_conflict_merges_nothing(browser, sides):
    head = sides.reference("main").hash
    page = browser.post("/ui/merge", **browser.get(MERGE).form("/ui/merge"))
    assert "is left to decide" in page.text
    assert sides.reference("main").hash == head


@pytest.mark.parametrize("branch", ["main", "dev"])
def test_what_moved_since_the_page_was_shown_is_said(browser, sides, branch):
    page = browser.get(MERGE)
    fields = {**page.form("/ui/merge"), decision(page): "theirs"}
    put(sides, branch, "late", 1)
    head = sides.reference("main").hash
    page = browser.post("/ui/merge", **fields)
    assert page.status == 409
    assert f"{branch} has moved" in page.text
    assert sides.reference("main").hash == head
    again = {**page.form("/ui/merge"), decision(page): "theirs"}
    assert browser.post("/ui/merge", **again).status == 200
    assert content(sides, "main", "t").snapshot_id == 3


def test_a_deleted_table_is_named(browser, sides):
    sides.commit("dev", [Delete(ContentKey(("t",)))], CommitMeta("drop t"))
    page = browser.get(f"{MERGE}&{decision(browser.get(MERGE))}=theirs")
    assert "On dev : deleted" in page.text or "On dev: deleted" in page.text
    assert "1 deleted" in page.text


def test_a_side_that_a_namespace_with_contents_blocks_is_not_offered(browser, repository):
    name, below = ContentKey(("n",)), ContentKey(("n", "a"))
    put(repository, "main", "t", 1)
    repository.create_reference(ReferenceType.BRANCH, "dev", repository.reference("main").hash)
    put(repository, "dev", "n", 1)
    repository.commit("main", [Put(name, Namespace(elements=("n",)))], CommitMeta("n"))
    table = IcebergTable(metadata_location="file:/a.json", snapshot_id=1)
    repository.commit("main", [Put(below, table)], CommitMeta("n.a"))
    page = browser.get(MERGE)
    assert "Keep the state of main" in page.text
    assert "Take the state of dev" not in page.text
    assert "The state of dev cannot be taken: namespace n is not empty." in page.text


def test_a_page_is_fixed_to_the_commit_of_its_source(browser, sides):
    head = sides.reference("dev").hash
    fixed = next(
        each.attributes["href"]
        for each in browser.get(MERGE).elements
        if each.attributes.get("class") == "fixed"
    )
    put(sides, "dev", "late", 1)
    page = browser.get(fixed)
    assert head[:12] in page.text
    assert "1 created" in page.text


@pytest.mark.parametrize("revision", ["dev~1", "dev@{}"])
def test_an_earlier_commit_of_a_branch_is_merged(browser, sides, revision):
    earlier = sides.commit_at("dev~1").hash
    page = browser.get(f"/ui/merge?source={revision.format(earlier)}&into=main")
    assert f"Merge commit '{earlier[:12]}' into main" in page.form("/ui/merge")["message"]
    fields = {**page.form("/ui/merge"), decision(page): "theirs"}
    assert browser.post("/ui/merge", **fields).status == 200
    assert content(sides, "main", "t").snapshot_id == 3
    assert content(sides, "main", "n") is None


def test_a_namespace_that_is_gone_is_a_conflict_of_the_page(browser, repository):
    namespace = Put(ContentKey(("ns",)), Namespace(id=None, elements=("ns",)))
    repository.commit("main", [namespace], CommitMeta("ns"))
    repository.create_reference(ReferenceType.BRANCH, "dev", repository.reference("main").hash)
    table = IcebergTable(id=None, metadata_location="file:/x.json")
    repository.commit("dev", [Put(ContentKey(("ns", "x")), table)], CommitMeta("x"))
    repository.commit("main", [Delete(ContentKey(("ns",)))], CommitMeta("drop ns"))
    page = browser.get(MERGE)
    assert page.status == 200
    assert "amespace 'ns' must exist" in page.text


def test_both_authors_of_a_conflict_are_named(browser, sides):
    page = browser.get(MERGE)
    text = page.text.replace(" ", "")
    for author, number, commit in (("main", 2, "main"), ("dev", 3, "dev~1")):
        short = sides.commit_at(commit).hash[:12]
        assert f"On{author}:changedby{author},“tis{number}”({short})." in text


def conflicting(repository, number):
    """Makes `main` and `dev` with different states of this many tables."""
    keys = [ContentKey((f"t{n:04}",)) for n in range(number)]

    def puts(version):
        ids = {key: found.id for key, found in repository.contents("main", keys).items()}
        return [
            Put(
                key,
                IcebergTable(
                    id=ids.get(key), metadata_location=f"file:/{key}{version}.json", snapshot_id=1
                ),
            )
            for key in keys
        ]

    repository.commit("main", puts(1), CommitMeta("1"))
    repository.create_reference(ReferenceType.BRANCH, "dev", repository.reference("main").hash)
    repository.commit("dev", puts(2), CommitMeta("2"))
    repository.commit("main", puts(3), CommitMeta("3"))
    return keys


def test_many_conflicts_are_decided_page_by_page(browser, repository):
    keys = conflicting(repository, CONFLICTS + 5)
    page = browser.get(MERGE)
    assert f"1 to {CONFLICTS} of {CONFLICTS + 5} conflicts" in page.text
    decided = dict.fromkeys(decisions_of(page), "theirs")
    assert len(decided) == CONFLICTS
    page = browser.get(f"{MERGE}&{urlencode(decided)}&conflicts=2")
    assert "5 conflicts are left to decide" in page.text
    fields = page.form("/ui/merge")
    assert decided.items() <= fields.items()
    rest = {each: "ours" for each in decisions_of(page) if each not in decided}
    assert len(rest) == 5
    assert browser.post("/ui/merge", **fields | rest).status == 200
    after = repository.contents("main", keys)
    assert [after[key].metadata_location[-6] for key in keys] == ["2"] * CONFLICTS + ["3"] * 5


def test_a_large_merge_is_previewed_if_that_is_asked_for(browser, repository):
    put(repository, "main", "t", 1)
    repository.create_reference(ReferenceType.BRANCH, "dev", repository.reference("main").hash)
    keys = [ContentKey((f"n{n:04}",)) for n in range(MOST_PREVIEWED + 1)]
    tables = [IcebergTable(metadata_location=f"file:/{key}.json") for key in keys]
    repository.commit("dev", list(map(Put, keys, tables)), CommitMeta("load"))
    page = browser.get(MERGE)
    assert f"More than {MOST_PREVIEWED} contents change" in page.text
    assert not page.forms
    [full] = [link for link in page.links if "full=1" in link]
    page = browser.get(full)
    assert f"{MOST_PREVIEWED + 1} created" in page.text
    assert f"1 to 50 of {MOST_PREVIEWED + 1}" in page.text
    assert browser.post("/ui/merge", **page.form("/ui/merge")).status == 200
    assert len(list(repository.entries("main"))) == MOST_PREVIEWED + 2
    # A revert of as many changes.
    url = f"/ui/revert?ref={repository.reference('dev').hash}&into=dev"
    page = browser.get(url)
    assert f"More than {MOST_PREVIEWED} contents change" in page.text
    page = browser.get(f"{url}&full=1")
    assert f"{MOST_PREVIEWED + 1} deleted" in page.text


def large_sides(repository, changes):
    """Makes a branch `dev` with so many tables; returns the address of the revert of its commit."""
    put(repository, "main", "t", 1)
    repository.create_reference(ReferenceType.BRANCH, "dev", repository.reference("main").hash)
    keys = [ContentKey((f"n{n:04}",)) for n in range(changes)]
    tables = [IcebergTable(metadata_location=f"file:/{key}.json") for key in keys]
    repository.commit("dev", list(map(Put, keys, tables)), CommitMeta("load"))
    return f"/ui/revert?ref={repository.reference('dev').hash}&into=dev"


def test_large_previews_are_made_one_after_the_other(browser, repository, monkeypatch):
    """Many at once would share the time of all other requests, and need memory each."""
    threads = set()

    def tally_of(changes):
        threads.add(current_thread().name.partition("-")[0])
        return tally(changes)

    for module in (merging, reverting):
        monkeypatch.setattr(module, "tally", tally_of)
    revert = large_sides(repository, MOST_PREVIEWED + 1)
    for url in (MERGE, revert):
        page = browser.get(f"{url}&full=1")
        assert threads == {"previewer"}
        form = page.form(url.partition("?")[0])
        threads.clear()
        # The target moves, so a form is answered with the page.
        put(repository, "main" if url == MERGE else "dev", "other", 1)
        assert browser.post(url.partition("?")[0], **form).status == 409
        assert threads == {"previewer"}
        threads.clear()


@pytest.mark.parametrize("is_revert", [False, True])
def test_a_preview_leaves_no_garbage(browser, client, repository, is_revert):
    """A server collects all garbage once an hour, so it would pile up: 35 MB for each preview."""
    keys = [ContentKey((f"n{n:04}",)) for n in range(60)]
    ids = {}
    for branch, number in (("main", 1), ("main", 2), ("dev", 3)):
        if number == 2:
            ids = {key: each.id for key, each in repository.contents("main", keys).items()}
            at = repository.reference("main").hash
            repository.create_reference(ReferenceType.BRANCH, "dev", at)
        tables = [
            IcebergTable(id=ids.get(key), metadata_location=f"file:/{number}", snapshot_id=number)
            for key in keys
        ]
        repository.commit(branch, list(map(Put, keys, tables)), CommitMeta("load"))
    url = f"/ui/revert?ref={repository.commit_at('main~1').hash}&into=dev" if is_revert else MERGE
    head = repository.reference("main").hash
    request = {"fromRefName": "dev", "fromHash": repository.reference("dev").hash}
    options = {"isDryRun": True, "isReturnConflictAsResult": True, "perContent": True}
    for _ in range(2):
        assert "60 conflicts" in browser.get(f"{url}&full=1").text
        gc.collect()
        gc.disable()
        try:
            browser.answer("GET", f"{url}&full=1")
            client.send(
                "POST",
                f"/api/v2/trees/main@{head}/history/merge",
                request | options,
                headers={"Nessie-Cli": "1"},
            )
            garbage = gc.collect()
        finally:
            gc.enable()
    # Each conflict had about 40 objects.
    assert garbage < 300


def test_merges_and_reverts_of_too_many_changes_are_for_the_command_line(
    browser, repository, monkeypatch
):
    monkeypatch.setattr(previews, "MOST_SHOWN", MOST_PREVIEWED + 1)
    revert = large_sides(repository, MOST_PREVIEWED + 2)
    heads = [repository.reference(name).hash for name in ("main", "dev")]
    shown = {"source_hash": heads[1], "target_hash": heads[0]}
    fields = {"source": "dev", "into": "main", **shown}
    commit = {"ref": heads[1], "into": "dev", "target_hash": heads[1]}
    for page in (
        browser.get(f"{MERGE}&full=1"),
        browser.get(f"{revert}&full=1"),
        browser.post("/ui/merge", **fields),
        browser.post("/ui/revert", **commit),
    ):
        assert page.status == 400
        assert f"more than {MOST_PREVIEWED + 1} contents change" in page.text
        assert "on the command line" in page.text
    assert [repository.reference(name).hash for name in ("main", "dev")] == heads


def test_the_first_merge_of_a_catalog(browser, repository):
    repository.create_reference(ReferenceType.BRANCH, "dev", repository.reference("main").hash)
    put(repository, "dev", "n", 1)
    page = browser.get(MERGE)
    assert page.status == 200
    browser.post("/ui/merge", **page.form("/ui/merge"))
    assert content(repository, "main", "n").snapshot_id == 1


def test_a_conflict_has_the_rows_of_all_states(tmp_path):
    with row_server(tmp_path) as server:
        # dev deletes row 2 and adds 7 and 8; main deletes rows 1 and 2 of the same file.
        server.lake.delete("main", 1)
        server.lake.delete("main", 2)
        page = Browser(server.client).get(MERGE)
        assert "rows 3 1 4" in page.text
        location = server.table("dev").metadata_location
        name = location.rpartition("/")[2]
        assert f"…/{name[:17]}…{name[-14:]} {location}" in page.text
        [decision] = decisions_of(page)
        page = Browser(server.client).get(f"{MERGE}&{decision}=theirs")
        assert "rows 3 1 4 4" in page.text
        page = Browser(server.client).get(f"{MERGE}&{decision}=ours")
        assert "rows 3 1 4 1" in page.text


def test_the_rows_of_a_conflict_need_the_right_to_read_them(tmp_path):
    changes = "['LIST_COMMIT_LOG', 'COMMIT_CHANGE_AGAINST_REFERENCE', 'UPDATE_ENTITY']"
    rights = f"user == 'eve' && ({DIFF} || op in {changes})"
    with guarded_rows(tmp_path, rights) as (guarded_server, server):
        server.lake.delete("main", 1)
        server.lake.delete("main", 2)
        browser = Browser(guarded_server.as_("eve"))
        page = browser.get(MERGE)
        assert "1 conflict" in page.text
        assert "The metadata is not readable here: 'READ_ROWS' is not allowed" in page.text
        assert "rows 3 1 4" not in page.text
        for part in ("ref == 'main'", "ref == 'dev'"):
            guarded_server.rule(rights, f"op == 'READ_ROWS' && {part}")
            assert "rows 3 1 4" not in browser.get(MERGE).text
        guarded_server.rule(rights, "op == 'READ_ROWS'")
        assert "rows 3 1 4" in browser.get(MERGE).text


def test_a_target_that_moves_all_the_time_is_no_error(browser, repository):
    repository.commit("main", [catalogs.put("t")], CommitMeta("first"))
    repository.create_reference(ReferenceType.BRANCH, "dev", repository.reference("main").hash)
    id_ = repository.content("main", ContentKey(("t",))).id
    for branch, snapshot in (("dev", 2), ("main", 3)):
        table = catalogs.put("t", snapshot=snapshot, content_id=id_)
        repository.commit(branch, [table], CommitMeta(branch))
    is_over = Event()

    def write():
        for number in count(4):
            if is_over.wait(0.01):
                return
            table = catalogs.put("t", snapshot=number, content_id=id_)
            repository.commit("main", [table], CommitMeta(f"main {number}"))

    writer = Thread(target=write)
    writer.start()
    try:
        for _ in range(100):
            page = browser.get(MERGE)
            assert page.status == 200, page.text
            [decision] = decisions_of(page)
            fields = page.form("/ui/merge") | {decision: "theirs"}
            answer = browser.post("/ui/merge", **fields)
            if "The merge is done" in answer.text:
                break
            assert answer.status == 409
            assert "main has moved" in answer.text, answer.text
    finally:
        is_over.set()
        writer.join()
