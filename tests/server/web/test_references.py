"""The pages of branches, tags and the reflog, and their forms."""

import tracemalloc

from nessie_cli.inspection import undo
from nessie_cli.model import CommitMeta, ContentKey, IcebergTable, Put, ReferenceType


def commit(repository, branch="main", name="t"):
    table = IcebergTable(id=None, metadata_location=f"file:/{name}.json")
    repository.commit(branch, [Put(ContentKey((name,)), table)], CommitMeta(f"add {name}"))
    return repository.reference(branch).hash


def names(repository):
    return [each.name for each in repository.references()]


def test_branches_have_the_newest_first_and_the_default_one_before_all(browser, repository):
    head = commit(repository)
    for name in ("a", "b", "c"):
        repository.create_reference(ReferenceType.BRANCH, name, head)
    commit(repository, "b", "u")
    page = browser.get("/ui/branches")
    listed = [each for each in page.links if each.startswith("/ui/history?ref=")]
    assert listed == [f"/ui/history?ref={name}" for name in ("main", "b", "a", "c")]
    assert "1 0" in page.text


def test_long_lists_of_branches_are_paged(browser, repository):
    head = commit(repository)
    for number in range(120):
        repository.create_reference(ReferenceType.BRANCH, f"b{number:03}", head)
    listed, url = [], "/ui/branches"
    while url:
        page = browser.get(url)
        assert "of 121" in page.text
        listed += [each for each in page.links if each.startswith("/ui/history?ref=")]
        url = page.next
    assert len(listed) == len(set(listed)) == 121
    assert len(browser.get("/ui/branches?q=B00").forms) > 10


def test_only_the_subjects_of_one_page_are_in_memory(browser, repository):
    table = Put(ContentKey(("t",)), IcebergTable(id=None, metadata_location="file:/t.json"))
    repository.commit("main", [table], CommitMeta(f"{'x' * 200_000}\nbody"))
    head = repository.reference("main").hash
    for number in range(150):
        repository.create_reference(ReferenceType.BRANCH, f"b{number:03}", head)
    browser.get("/ui/branches")
    tracemalloc.start()
    try:
        assert "of 151" in browser.get("/ui/branches").text
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 18_000_000


def test_a_branch_is_created_renamed_and_deleted(browser, repository):
    head = commit(repository)
    browser.post("/ui/references/create", type="branch", name="dev", at="main")
    assert repository.reference("dev").hash == head
    browser.post("/ui/references/rename", name="dev", new="feature", hash=head)
    assert names(repository) == ["feature", "main"]
    page = browser.post("/ui/references/delete", name="feature", hash=head)
    assert page.status == 200
    assert "feature is deleted. The reflog of feature can restore it." in page.text
    assert names(repository) == ["main"]
    browser.post("/ui/undo", **browser.get("/ui/reflog?ref=feature").form("/ui/undo"))
    for name in ("feature", "main", "nothing"):
        assert "is deleted" not in browser.get(f"/ui/branches?deleted={name}").text


def test_a_tag_is_renamed_and_deleted(browser, repository):
    head = commit(repository)
    repository.create_reference(ReferenceType.TAG, "v1", head)
    form = browser.get("/ui/tags").form("/ui/references/rename")
    browser.post("/ui/references/rename", **form | {"new": "v2"})
    assert names(repository) == ["main", "v2"]
    page = browser.post("/ui/references/delete", **browser.get("/ui/tags").form("/ui/references/d"))
    assert "v2 is deleted" in page.text
    assert names(repository) == ["main"]


def test_the_default_branch_is_not_offered_for_deletion(browser):
    forms = [form["action"] for form in browser.get("/ui/branches").forms]
    assert "/ui/references/create" in forms
    assert "/ui/references/delete" not in forms


def test_a_page_behind_the_last_one_is_the_last_one(browser, repository):
    head = commit(repository)
    for number in range(60):
        repository.create_reference(ReferenceType.BRANCH, f"b{number:02}", head)
    page = browser.get("/ui/branches?page=9")
    assert "51 to 61 of 61" in page.text
    assert "/ui/branches?page=1" in page.links
    assert not page.next


def test_a_long_reflog_is_read_from_the_end_of_the_page_before(browser, repository):
    head = commit(repository)
    for number in range(60):
        repository.create_reference(ReferenceType.BRANCH, f"b{number:02}", head)
    newest = browser.get("/ui/reflog")
    oldest = browser.get(newest.next)
    assert "Newest operations" in oldest.text
    assert not oldest.next
    numbers = [
        [form["fields"]["number"] for form in page.forms if form["action"] == "/ui/undo"]
        for page in (newest, oldest)
    ]
    # Every branch has one operation, and main a commit before its creation.
    assert [len(each) for each in numbers] == [50, 11]
    repository.delete_reference("b00", expected_hash=head)
    again = browser.get(newest.next)
    assert "b00" in again.text
    assert len([form for form in again.forms if form["action"] == "/ui/undo"]) == 10


def test_a_branch_that_moved_is_not_deleted(browser, repository):
    head = commit(repository)
    repository.create_reference(ReferenceType.BRANCH, "dev", head)
    commit(repository, "dev", "u")
    page = browser.post("/ui/references/delete", name="dev", hash=head)
    assert page.status == 409
    assert "dev" in names(repository)


def test_a_tag_has_a_message(browser, repository):
    commit(repository)
    page = browser.post(
        "/ui/references/create", type="tag", name="v1", at="main", message="first release"
    )
    assert "first release" in page.text


def test_a_bad_name_is_refused_with_its_reason(browser):
    page = browser.post("/ui/references/create", type="branch", name="a b", at="main")
    assert page.status == 400
    assert "Reference name must start with a letter" in page.text


def test_an_operation_is_undone_and_redone(browser, repository):
    first, second = commit(repository), commit(repository, name="u")
    page = browser.get("/ui/reflog")
    fields = page.form("/ui/undo")
    assert fields["name"] == "main"
    browser.post("/ui/undo", **fields)
    assert repository.reference("main").hash == first
    page = browser.get("/ui/reflog")
    assert "undo of commit" in page.text
    browser.post("/ui/undo", **page.form("/ui/undo"))
    assert repository.reference("main").hash == second
    page = browser.get("/ui/reflog")
    assert "redo of commit" in page.text
    browser.post("/ui/undo", **page.form("/ui/undo"))
    assert browser.get("/ui/reflog").text.count("undo of commit") == 2


def test_long_values_of_a_setting_with_the_same_beginning_are_different(repository, browser):
    values = [ending.rjust(20_000, "x") for ending in "abca"]
    for value in values:
        repository.put_setting("s", value)
    page = browser.get("/ui/reflog")
    assert "undo of" not in page.text
    repository.put_setting("s", values[-2])
    assert "undo of" in browser.get("/ui/reflog").text


def test_a_move_to_another_commit_is_no_undo(browser, repository):
    first = commit(repository)
    commit(repository, name="u")
    commit(repository, name="v")
    head = repository.reference("main").hash
    repository.assign_reference("main", first, expected_hash=head)
    page = browser.get("/ui/reflog")
    assert "assign" in page.text
    assert "undo of" not in page.text


def test_a_restored_branch_is_an_undo(browser, repository):
    head = commit(repository)
    repository.create_reference(ReferenceType.BRANCH, "dev", head)
    repository.delete_reference("dev", expected_hash=head)
    browser.post("/ui/undo", **browser.get("/ui/reflog?ref=dev").form("/ui/undo"))
    assert "undo of delete" in browser.get("/ui/reflog").text


def test_a_deleted_branch_is_restored(browser, repository):
    head = commit(repository)
    repository.create_reference(ReferenceType.BRANCH, "dev", head)
    repository.delete_reference("dev", expected_hash=head)
    browser.post("/ui/undo", **browser.get("/ui/reflog?ref=dev").form("/ui/undo"))
    assert repository.reference("dev").hash == head


def test_only_the_operation_that_was_shown_is_undone(browser, repository):
    commit(repository)
    fields = browser.get("/ui/reflog").form("/ui/undo")
    head = commit(repository, name="u")
    page = browser.post("/ui/undo", **fields)
    assert page.status == 409
    assert "nothing was undone" in page.text
    assert repository.reference("main").hash == head


def test_the_page_of_the_server(browser, repository):
    repository.put_setting("merge.tables", "conflict")
    page = browser.get("/ui/server")
    assert "you may do everything" in page.text
    assert "merge.tables conflict" in page.text


def test_the_creation_of_the_default_branch_is_not_undone(browser):
    page = browser.get("/ui/reflog")
    assert "create" in page.text
    assert not any(form["action"] == "/ui/undo" for form in page.forms)


def test_a_form_that_is_sent_twice_creates_one_branch(browser, repository):
    head = commit(repository)
    fields = {**browser.get("/ui/branches").form("/ui/references/create"), "name": "dev"}
    for _ in range(2):
        assert browser.post("/ui/references/create", **fields).status == 200
    assert repository.reference("dev").hash == head
    again = {**browser.get("/ui/branches").form("/ui/references/create"), "name": "dev"}
    assert browser.post("/ui/references/create", **again).status == 409


def test_a_reference_of_another_type_is_refused(browser, repository):
    page = browser.post("/ui/references/create", type="stash", name="x", at="main")
    assert page.status == 400
    assert names(repository) == ["main"]


def test_an_empty_history_has_no_older_commits(browser):
    page = browser.get("/ui/history?ref=main")
    assert "No commits" in page.text
    assert not page.next


def test_the_pages_of_an_empty_store_link_to_no_commit(browser, repository):
    head = repository.reference("main").hash
    repository.create_reference(ReferenceType.BRANCH, "dev", head)
    for page in ("branches", "reflog", "merge?source=dev&into=main", "compare?from=main&to=dev"):
        shown = browser.get(f"/ui/{page}")
        assert shown.status == 200
        links = [link for link in shown.links if link.startswith("/ui/commit")]
        assert [link for link in links if browser.get(link).status != 200] == [], page


def test_undoing_a_rename_does_not_read_the_operations_after_it(repository, monkeypatch):
    head = commit(repository)
    repository.create_reference(ReferenceType.BRANCH, "old", head)
    repository.rename_reference("old", "new", expected_hash=head)
    for number in range(30):
        commit(repository, "main", f"t{number}")
    numbers, read = [], type(repository).reflog

    def counted(self, *arguments, **options):
        for entry in read(self, *arguments, **options):
            numbers.append(entry.number)
            yield entry

    monkeypatch.setattr(type(repository), "reflog", counted)
    for name in ("old", "new"):
        numbers.clear()
        assert undo.plan(repository, name).verb == "renamed"
        assert len(numbers) < 6
