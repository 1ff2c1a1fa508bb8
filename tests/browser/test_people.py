"""Pages for people: contrast and structure (axe), keyboard, widths, long and foreign names."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import pytest

from nessie_cli.repository.opening import create
from tests.browser.checks import check_page, check_width
from tests.browser.chromium import expect
from tests.server.guarding import guarded
from tests.server.serving import serving
from tests.server.web.foreign_text import ForeignText

LAKE = {
    "branches": ("branches", {}),
    "tags": ("tags", {}),
    "reflog": ("reflog", {}),
    "server": ("server", {}),
    "history": ("history", {"ref": "nightly"}),
    "commit": ("commit", {"ref": "nightly~1"}),
    "revert": ("revert", {"ref": "nightly", "into": "nightly"}),
    "catalog": ("catalog", {"ref": "nightly", "changes": 1}),
    "table": ("content", {"ref": "nightly", "key": "sales.customers"}),
    "search": ("search", {"ref": "nightly", "q": "o", "all": 1}),
    "compare": ("compare", {"from": "main", "to": "nightly", "base": "merge"}),
    "rows": ("compare", {"from": "main", "to": "nightly", "rows": "sales.customers"}),
    "merge": ("merge", {"source": "nightly", "into": "main"}),
}
TITLES = {"trunk": "^History of trunk", "Catalog": "^Catalog of trunk", "Compare": "^What merging"}
LONG = {
    "500 characters": "".join(chr(ord("a") + number % 26) for number in range(500)),
    "right to left": "جدول الطلبات שולחן הזמנות " * 6,
    "hostile": "<img src=x onerror=alert(1)>\"'{{ 7 * 7 }}</title><script>alert(2)</script>\u202e"
    * 5,
}


def test_the_pages_of_a_lake(visit, server):
    tab = visit(server).open()
    for name, (path, query) in LAKE.items():
        tab.goto(f"/ui/{path}?{urlencode(query)}")
        check_page(tab, name)


@pytest.fixture(params=LONG)
def foreign(request, tmp_path):
    """A catalog with a text in every place, and branches with long names."""
    store = str(tmp_path / "store.sqlite")
    with create(store, default_branch="trunk") as repository:
        text = LONG[request.param]
        yield ForeignText(
            repository, text, "b" * 500 if request.param == "500 characters" else "dev"
        )


def test_long_and_foreign_names(visit, foreign):
    with serving(foreign.repository) as url:
        visitor = visit(url)
        visitor.expect_status(404)
        tab = visitor.open()
        assert "trunk" in tab.get_by_role("row").nth(1).inner_text()
        for name, address in foreign.pages():
            tab.goto(address)
            check_width(tab, name)
            if name == "merge":
                tab.get_by_label("Take the state of").check()
                tab.get_by_role("button", name="Show the result").click()
                expect(tab.get_by_role("columnheader", name="Result")).to_be_visible()
                check_width(tab, "decided merge")


def test_an_empty_store(visit, tmp_path):
    store = create(str(tmp_path / "store.sqlite"), default_branch="trunk")
    with store as repository, serving(repository) as url:
        tab = visit(url).open()
        expect(tab.get_by_role("heading", level=1)).to_have_text("Branches")
        check_page(tab, "branches")
        for page in ("Tags", "Reflog", "Server", "Branches", "trunk", "Catalog", "Compare"):
            tab.get_by_role("link", name=page, exact=True).first.click()
            expect(tab).to_have_title(re.compile(TITLES.get(page, page)))
            assert tab.locator(".error").count() == 0, page
            check_width(tab, page)


def test_what_a_caller_may_not_see(visit, tmp_path):
    with guarded(tmp_path, "op == 'VIEW_REFERENCE' && ref == 'main'", anonymous=True) as server:
        visitor = visit(server.url)
        visitor.expect_status(403)
        tab = visitor.open("/ui/catalog?ref=main")
        expect(tab.get_by_role("heading", level=1)).to_have_text("Forbidden")
        expect(tab.get_by_role("alert")).to_contain_text("not allowed")
        check_page(tab, "forbidden")


def test_a_server_that_is_gone_is_said(visit, tmp_path):
    with create(str(tmp_path / "store.sqlite")) as repository:
        with serving(repository) as url:
            visitor = visit(url)
            tab = visitor.open()
        tab.get_by_role("link", name="Tags").click()
        expect(tab.get_by_role("alert")).to_contain_text("The server does not answer")
        assert tab.url.endswith("/ui/branches")
        visitor.faults.clear()


def test_the_keyboard(visit, server):
    tab = visit(server).open()
    tab.keyboard.press("Tab")
    skip = tab.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    tab.keyboard.press("Enter")
    focused = tab.locator("main")
    expect(focused).to_be_focused()
    tab.keyboard.press("Tab")
    expect(tab.get_by_label("Name contains")).to_be_focused()
    tab.get_by_role("link", name="nightly", exact=True).focus()
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("heading", level=1)).to_have_text("History of nightly")
    expect(focused).to_be_focused()


def test_the_order_of_the_controls(visit, server):
    tab = visit(server).open("/ui/merge?source=nightly&into=main")
    tab.get_by_role("link", name="Swap").focus()
    visited = []
    for _ in range(11):
        tab.keyboard.press("Tab")
        visited.append(
            tab.evaluate(
                "(e => e.className || e.innerText.trim())"
                "(document.activeElement.closest('a, label, button, details'))"
            )
        )
    assert visited == [
        *["hash"] * 2,
        "Changed rows on main",
        "Changed rows on nightly",
        *["location"] * 3,
        "Decide later",
        "Show the result",
        "grow",
        "main",
    ]
    tab.get_by_label("Decide later").focus()
    tab.keyboard.press("ArrowUp")
    expect(tab.get_by_label("Take the state of nightly")).to_be_checked()


def test_controls_are_large_enough(visit, server):
    """WCAG 2.5.8: 24 pixels, except for links in a text."""
    tab = visit(server).open("/ui/merge?source=nightly&into=main")
    for control in tab.locator("button, input:not([type=hidden]), summary").all():
        box = control.bounding_box()
        assert min(box["width"], box["height"]) >= 24, control
