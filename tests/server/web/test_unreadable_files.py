"""Files that cannot be read for the page of a merge, but when its form is sent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyiceberg", reason="the tables are written by PyIceberg")

from nessie_cli.model import ContentKey
from tests.server.client import Client
from tests.server.iceberg_rest.appends import ids, two_appends
from tests.server.iceberg_rest.lake import Lake
from tests.server.web.browser import Browser
from tests.server.web.catalogs import decisions_of

MERGE = "/ui/merge?source=dev&into=main"


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Lake]:
    with two_appends(tmp_path / "warehouse") as served:
        yield served


def test_a_decision_is_not_replaced_by_a_combination(two: Lake) -> None:
    theirs = two.repository.content("dev", ContentKey(("db", "t"))).metadata_location
    file = Path(theirs.removeprefix("file://"))
    aside = file.rename(file.with_suffix(".aside"))
    browser = Browser(Client(two.url))
    page = browser.get(MERGE)
    [decision] = decisions_of(page)
    aside.rename(file)
    head = two.repository.reference("main").hash
    fields = page.form("/ui/merge") | {decision: "ours"}
    refused = browser.post(MERGE, **fields)
    assert refused.status == 409
    assert "Nothing was merged. 1 decision no longer applies" in refused.text
    assert two.repository.reference("main").hash == head
    # The page shows the combination, and its form merges that.
    assert not decisions_of(refused)
    browser.post(MERGE, **refused.form("/ui/merge"))
    assert ids(two.url, "main") == [1, 2, 3, 10, 20]
