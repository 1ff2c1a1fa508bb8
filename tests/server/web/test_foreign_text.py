"""Pages of a hostile catalog have the elements and attributes of those of a harmless one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nessie_cli import connect
from nessie_cli.iceberg.warehouses.warehouse import Warehouse, Warehouses
from nessie_cli.server.pipeline.pipeline import Parts
from nessie_cli.server.running import application
from tests.server.client import Client
from tests.server.serving import serving
from tests.server.web.browser import Browser, Page
from tests.server.web.catalogs import decisions_of
from tests.server.web.foreign_text import ForeignText

MARKUP = (
    "<script>alert(1)</script>\"'><img src=x onerror=alert(2)> onload=x --> ]]> </title></textarea>"
    " javascript:alert(3) {{ 7 * 7 }} {% raw %} &lt;b&gt; &#60;i&#62; \x1b[31m\x1b]8;;x\x07 \u202e\u2066"
)
HOSTILE = {
    "markup": MARKUP,
    "scheme": "javascript:alert(1)//",
    "lines": "a\n<h1>b</h1>\r\n\u2028c",
    "long": f"{MARKUP}{'<b>' * 500}"[:500],
}

_WITHOUT = ("server", "no such page", "no such branch")
"""Pages that show no text of users."""


@contextmanager
def filled(folder: Path, text: str) -> Iterator[tuple[Browser, ForeignText]]:
    """A browser of a server with a warehouse, whose catalog has the text everywhere."""
    place = f"file://{folder}"
    warehouses = Warehouses([Warehouse(name="w", location=place, allowed=(place,))])
    with connect("memory:") as repository:
        catalog = ForeignText(repository, text, "dev")
        with serving(app=application(repository, Parts(warehouses=warehouses))) as url:
            client = Client(url)
            yield Browser(client), catalog
            client.close()


def shape(page: Page) -> Counter[tuple[str, tuple[str, ...]]]:
    """Returns the elements of a page with the names of their attributes."""
    return Counter((each.tag, tuple(each.attributes)) for each in page.elements)


def pages(browser: Browser, catalog: ForeignText) -> dict[str, Page]:
    read = {}
    addresses = dict(catalog.pages())
    [decision] = decisions_of(browser.get(addresses["merge"]))
    addresses["decided merge"] = f"{addresses['merge']}&{decision}=theirs"
    for name, url in addresses.items():
        page = browser.get(url)
        assert page.status == (404 if name.startswith("no such") else 200), (name, page.text)
        read[name] = page
    return read


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_makes_no_elements(tmp_path: Path, name: str) -> None:
    # As many lines, and as many characters.
    with filled(tmp_path, re.sub(r"[^\n]", "x", HOSTILE[name])) as (browser, catalog):
        harmless = {page: shape(read) for page, read in pages(browser, catalog).items()}
    with filled(tmp_path, HOSTILE[name]) as (browser, catalog):
        for title, page in pages(browser, catalog).items():
            assert shape(page) == harmless[title], title
            if name == "markup" and title not in _WITHOUT:
                assert MARKUP[:40] in page.text, title
            assert all(ord(each) >= 32 or each.isspace() for each in page.text), title
            assert not re.search("[\u202a-\u202e\u2066-\u2069]", "".join(page.texts)), title
            for element in page.elements:
                for attribute in {
                    "href",
                    "src",
                    "action",
                    "formaction",
                } & element.attributes.keys():
                    assert re.match("/ui/|#main$|/api/docs$", element.attributes[attribute])
