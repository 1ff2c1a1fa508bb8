"""Names that look like HTML, and the check that pages show them as text."""

from __future__ import annotations

from tests.server.web.browser import Browser, Page

HOSTILE = "<script>alert(1)</script>\"' onload=x & \u202e{{ 7 * 7 }}.*%/\\"
SHOWN = "<script>alert(1)</script>\"' onload=x & \\u202e{{ 7 * 7 }}.*%/\\"


def check_shown_as_text(browser: Browser, url: str) -> Page:
    """Returns a page that contains the hostile name, as text only."""
    answer = browser.answer("GET", url)
    assert answer.status == 200, answer.raw.decode()
    assert b"<script>alert" not in answer.raw
    assert "\u202e".encode() not in answer.raw
    page = browser.get(url)
    assert SHOWN in page.text
    assert all(set(each.attributes).isdisjoint({"onload", "style"}) for each in page.elements)
    return page
