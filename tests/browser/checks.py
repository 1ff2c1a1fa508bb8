"""Checks of a page for people: contrast, structure and names (axe-core), and its width."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from tests.browser.chromium import expect

AXE = files("axe_playwright_python").joinpath("axe.min.js")


def axe(tab: Any, *rules: str) -> list[str]:
    """Returns the serious faults of a page, by all rules or by some."""
    result = tab.evaluate(
        "rules => axe.run({resultTypes: ['violations'], ...(rules.length && {runOnly: rules})})",
        rules,
    )
    return [
        f"{fault['id']}: {node['html']} {node['failureSummary']}"
        for fault in result["violations"]
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    ]


def overflow(tab: Any) -> int:
    """Returns the pixels by which the page is wider than the window."""
    return tab.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )


def check_width(tab: Any, name: str) -> None:
    """Checks that only tables and plots are scrolled sideways.

    640 pixels are those of a window of 1,280 at a zoom of 200 %.
    """
    for width in (360, 640, 2560):
        tab.set_viewport_size({"width": width, "height": 900})
        assert overflow(tab) <= 0, (name, width)


def check_page(tab: Any, name: str) -> None:
    """Checks the page that a tab shows."""
    # The policy refuses script elements, but not the debugger's scripts.
    tab.evaluate(AXE.read_text())
    tab.emulate_media(color_scheme="light")
    assert not axe(tab), name
    tab.emulate_media(color_scheme="dark")
    assert not axe(tab, "color-contrast"), f"{name}, dark"
    expect(tab.get_by_role("heading", level=1)).to_have_count(1)
    check_width(tab, name)
