"""A colleague's change: found from the first page, compared, resolved, merged, and undone."""

import re

from nessie_cli.model import CommitMeta, ContentKey, IcebergTable, Put, ReferenceType
from nessie_cli.server.pages.previews import MOST_PREVIEWED
from tests.browser.chromium import expect

CONFLICT = "sales.customers"


def heading(tab, text):
    """Waits for the page with a heading."""
    expect(tab.get_by_role("heading", level=1)).to_contain_text(text)


def button(tab, text):
    return tab.get_by_role("button", name=text, exact=True)


def link(tab, text):
    return tab.get_by_role("link", name=text, exact=True)


def preview(tab):
    """Opens the merge of nightly from the first page."""
    tab.goto("/")
    link(tab, "nightly").click()
    heading(tab, "History of nightly")
    link(tab, "Merge into main").click()
    heading(tab, "Merge nightly into main")


def merge(tab):
    """Resolves the conflict of the preview and merges."""
    tab.get_by_label("Take the state of nightly").check()
    button(tab, "Merge into main").click()


def test_a_change_is_found_and_its_rows_are_seen(visitor):
    tab = visitor.open()
    heading(tab, "Branches")
    row = tab.get_by_role("row").filter(has=link(tab, "nightly"))
    expect(row).to_contain_text("create table sales.totals")
    row.get_by_role("link", name="Compare").click()
    heading(tab, "What merging nightly into main would change")
    expect(tab.locator("p.numbers").first).to_contain_text("1 created")
    table = tab.locator("section").filter(has_text="sales.orders")
    table.get_by_role("link", name="Changed rows").click()
    expect(tab.get_by_role("heading", name="Changed rows of sales.orders")).to_be_visible()
    rows = tab.locator("table.rows tbody tr")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("eve")
    expect(rows.locator("ins")).to_have_count(4)


def test_a_conflict_is_resolved_merged_and_undone(visitor, repository):
    before = repository.reference("main").hash
    tab = visitor.open()
    preview(tab)
    heading(tab, "Merge nightly into main")
    expect(tab.get_by_role("heading", name="1 conflict")).to_be_visible()
    expect(tab.get_by_text("1 conflict is left to decide")).to_be_visible()
    tab.get_by_role("link", name="Changed rows on nightly").click()
    expect(tab.locator("table.rows")).to_contain_text("Hamburg")
    tab.go_back()
    tab.get_by_label("Take the state of nightly").check()
    button(tab, "Show the result").click()
    expect(tab.get_by_role("columnheader", name="Result")).to_be_visible()
    expect(tab.get_by_label("Take the state of nightly")).to_be_checked()
    expect(tab.get_by_text("left to decide")).to_have_count(0)
    button(tab, "Merge into main").click()
    heading(tab, "History of main")
    expect(tab.locator("tbody tr").first).to_contain_text("Merge branch 'nightly' into main")
    merged = repository.reference("main").hash
    assert merged != before
    tab.get_by_role("status").get_by_role("link", name="reflog of main").click()
    heading(tab, "Reflog of main")
    button(tab, "Undo merge of main").click()
    expect(button(tab, "Redo merge of main")).to_be_visible()
    assert repository.reference("main").hash == before
    button(tab, "Redo merge of main").click()
    expect(tab.locator("tbody tr")).to_have_count(len(list(repository.reflog())))
    assert repository.reference("main").hash == merged


def test_the_second_of_two_tabs_is_told_what_moved(visitor, repository):
    visitor.expect_status(409)
    first, second = visitor.open(), visitor.open()
    preview(first)
    preview(second)
    merge(first)
    heading(first, "History of main")
    merged = repository.reference("main").hash
    merge(second)
    alert = second.get_by_role("alert")
    expect(alert).to_contain_text("Nothing was merged. main has moved from")
    expect(alert).to_contain_text(merged[:12])
    expect(second.get_by_text("nightly is merged into main already")).to_be_visible()
    assert repository.reference("main").hash == merged


def test_a_refused_merge_is_a_page_that_can_be_reloaded(visit, server, repository):
    visitor = visit(server)
    visitor.expect_status(409)
    tab = visitor.open()
    preview(tab)
    commit = repository.commit_at("nightly")
    repository.assign_reference("nightly", commit.meta.parents[0], expected_hash=commit.hash)
    merge(tab)
    expect(tab.get_by_role("alert")).to_contain_text("nightly has moved")
    tab.reload()
    heading(tab, "Merge nightly into main")


def test_back_forward_and_reload_show_the_page_of_their_address(visitor):
    tab = visitor.open()
    link(tab, "nightly").click()
    heading(tab, "History of nightly")
    history = tab.url
    tab.locator("tbody tr").first.locator("a.hash").click()
    heading(tab, "Commit ")
    tab.reload()
    heading(tab, "Commit ")
    tab.go_back()
    heading(tab, "History of nightly")
    assert tab.url == history
    tab.go_back()
    heading(tab, "Branches")
    tab.go_forward()
    heading(tab, "History of nightly")
    assert re.search(r"^History of nightly", tab.title())


def test_back_and_reload_keep_choices_that_are_not_sent_yet(visitor):
    tab = visitor.open()
    preview(tab)
    tab.get_by_label("Take the state of nightly").check()
    tab.get_by_label("Message").fill("my words\nand more")
    tab.get_by_role("link", name="Changed rows on nightly").click()
    heading(tab, "What merging")
    tab.go_back()
    heading(tab, "Merge nightly into main")
    expect(tab.get_by_label("Take the state of nightly")).to_be_checked()
    expect(tab.get_by_label("Message")).to_have_value("my words\nand more")
    if visitor.has_scripts:
        tab.reload()
        expect(tab.get_by_label("Take the state of nightly")).to_be_checked()
        expect(tab.get_by_label("Message")).to_have_value("my words\nand more")
    # A choice that is undone leaves the address.
    tab.get_by_label("Decide later").check()
    tab.get_by_role("link", name="Changed rows on nightly").click()
    heading(tab, "What merging")
    tab.go_back()
    expect(tab.get_by_label("Decide later")).to_be_checked()


def test_back_leads_from_a_refused_form_to_its_page(visitor):
    visitor.expect_status(400)
    tab = visitor.open("/ui/tags")
    link(tab, "Branches").click()
    heading(tab, "Branches")
    form = tab.locator("form").filter(has=button(tab, "Create"))
    form.get_by_label("Name").fill("no such..name")
    button(tab, "Create").click()
    heading(tab, "Bad Request")
    tab.go_back()
    heading(tab, "Branches")


def test_the_page_that_was_asked_for_last_stays(visit, server):
    tab = visit(server).open()
    late = []

    def delay(route):
        late.append(route)

    tab.route("**/ui/tags", delay)
    with tab.expect_request("**/ui/tags"):
        link(tab, "Tags").click()
    link(tab, "Reflog").click()
    heading(tab, "Reflog")
    for route in late:
        route.continue_()
    # Long enough for the late answer.
    tab.wait_for_timeout(1_000)
    heading(tab, "Reflog")
    assert tab.url.endswith("/ui/reflog")
    tab.go_back()
    heading(tab, "Branches")


def test_a_form_that_is_clicked_twice_is_sent_once(visitor, repository):
    tab = visitor.open()
    form = tab.locator("form").filter(has=button(tab, "Create"))
    form.get_by_label("Name").fill("dev")
    button(tab, "Create").dblclick()
    heading(tab, "History of dev")
    tab.goto("/ui/reflog?ref=dev")
    undo = button(tab, "Undo create of dev")
    # Without scripts, the second form is sent, and the page says that the first one has landed.
    undo.dblclick() if visitor.has_scripts else undo.click()
    expect(button(tab, "Undo delete of dev")).to_be_visible()
    assert [each.operation for each in repository.reflog("dev")] == ["delete", "create"]


def test_a_load_is_reverted(visitor, repository):
    head = repository.reference("main").hash
    tab = visitor.open()
    link(tab, "main").click()
    tab.locator("tbody tr").first.locator("a.hash").click()
    link(tab, "Revert on main").click()
    heading(tab, "Revert")
    button(tab, "Revert on main").click()
    heading(tab, "History of main")
    assert repository.commit_at("main").meta.parents[0] == head


def test_a_branch_is_created_renamed_and_deleted(visitor, repository):
    tab = visitor.open()
    form = tab.locator("form").filter(has=button(tab, "Create"))
    form.get_by_label("Name").fill("dev")
    button(tab, "Create").click()
    heading(tab, "History of dev")
    link(tab, "Branches").click()
    row = tab.get_by_role("row").filter(has=link(tab, "dev"))
    row.get_by_text("Rename or delete").click()
    row.get_by_label("New name").fill("feature")
    row.get_by_role("button", name="Rename").click()
    row = tab.get_by_role("row").filter(has=link(tab, "feature"))
    row.get_by_text("Rename or delete").click()
    row.get_by_role("button", name="Delete feature").click()
    expect(link(tab, "feature")).to_have_count(0)
    assert [each.name for each in repository.references()] == ["main", "nightly"]


def test_times_are_those_of_the_reader(visit, server):
    tab = visit(server).open()
    time = tab.locator("time").first
    expect(time).to_have_attribute("title", re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$"))
    assert "UTC" not in time.inner_text()
    link(tab, "nightly").click()
    heading(tab, "History of nightly")
    expect(tab.locator("time").first).to_have_attribute("title", re.compile("UTC$"))


def test_a_large_merge_is_previewed_after_its_first_page(visitor, repository):
    head = repository.reference("nightly").hash
    repository.create_reference(ReferenceType.BRANCH, "bulk", head)
    keys = [ContentKey(("sales", f"n{number:04}")) for number in range(MOST_PREVIEWED + 1)]
    puts = [Put(key, IcebergTable(metadata_location=f"file:/{key}.json")) for key in keys]
    repository.commit("bulk", puts, CommitMeta("many tables"))
    tab = visitor.open()
    tab.get_by_role("row").filter(has=link(tab, "bulk")).get_by_role("link", name="Merge").click()
    heading(tab, "Merge bulk into main")
    if not visitor.has_scripts:
        expect(tab.get_by_text(f"More than {MOST_PREVIEWED} contents change")).to_be_visible()
        link(tab, "Show the preview").click()
    expect(tab.get_by_role("heading", name="1 conflict")).to_be_visible()
    expect(tab.locator("p.numbers")).to_contain_text(f"{MOST_PREVIEWED + 2} created")
    tab.go_back()
    if not visitor.has_scripts:
        expect(link(tab, "Show the preview")).to_be_visible()
        tab.go_back()
    heading(tab, "Branches")
