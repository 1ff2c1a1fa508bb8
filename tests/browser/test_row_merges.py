"""Rows in conflict, decided in Chromium, and merged."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.checks import check_page
from tests.browser.chromium import expect
from tests.browser.test_review import button, heading
from tests.cli.rows import read, write
from tests.server.row_server import RowServer, lake_server


@pytest.fixture
def served(tmp_path: Path) -> Iterator[RowServer]:
    """Both sides changed a cell of row 1, and row 2 is deleted on one side."""
    with lake_server(tmp_path, key=["id"]) as server:
        write(server.lake, "main", {1: ("<b>ours</b>" * 20, 1), 2: ("ours", 1), 3: ("x", 1)})
        write(server.lake, "dev", {1: ("theirs", 2), 3: ("theirs", 1), 4: ("new", 1)})
        yield server


def test_rows_in_conflict_are_decided_and_merged(visit, served):
    tab = visit(served.url).open("/ui/merge?source=dev&into=main")
    tab.get_by_label("Merge the rows: reads").check()
    button(tab, "Show the result").click()
    rows = tab.locator("table.rows tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("<b>ours</b>")
    expect(tab.get_by_text("1 conflict is left to decide")).to_be_visible()
    check_page(tab, "rows in conflict")
    tab.set_viewport_size({"width": 1280, "height": 900})
    rows.first.get_by_label("dev").check()
    tab.get_by_label("Keep the values of main").check()
    # Choices that are not sent yet are in the address.
    tab.reload()
    expect(rows.first.get_by_label("dev")).to_be_checked()
    expect(tab.get_by_label("Keep the values of main")).to_be_checked()
    expect(
        tab.get_by_role("cell", name="rows were merged by their keys: 1 inserted, 2 updated")
    ).to_be_visible()
    expect(tab.get_by_text("left to decide")).to_have_count(0)
    button(tab, "Merge into main").click()
    heading(tab, "History of main")
    merged = {1: ("theirs", 2), 2: ("ours", 1), 3: ("theirs", 1), 4: ("new", 1)}
    assert read(served.lake, "main") == merged
