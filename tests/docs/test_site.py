"""The site of the documents is built without a warning, and every link inside of it leads
somewhere."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

ROOT = Path(__file__).parents[2]
SECTIONS = ("get-started", "guides", "concepts", "reference")


class Page(HTMLParser):
    """The links and the anchors of one page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors.update(found[name] or "" for name in ("id", "name") if name in found)
        if tag in ("a", "img", "link", "script"):
            self.links += [found[name] or "" for name in ("href", "src") if name in found]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a fresh site."""
    folder = tmp_path_factory.mktemp("site")
    command = [
        "-m",
        "sphinx",
        "--builder",
        "html",
        "--fail-on-warning",
        "--keep-going",
        "--nitpicky",
        "--quiet",
    ]
    doctrees = ["--doctree-dir", str(tmp_path_factory.mktemp("doctrees"))]
    done = subprocess.run(
        [sys.executable, *command, *doctrees, str(ROOT / "docs"), str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {file.resolve(): Page(file) for file in site.rglob("*.html")}


def _dead(pages: dict[Path, Page], site: Path) -> Iterator[tuple[str, str]]:
    for file, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            path, anchor = urldefrag(link)
            target = (file.parent / unquote(urlsplit(path).path)).resolve() if path else file
            known = target.exists() and (
                not anchor or target not in pages or unquote(anchor) in pages[target].anchors
            )
            if not known:
                yield str(file.relative_to(site.resolve())), link


def test_no_link_inside_of_the_site_is_dead(site: Path, pages: dict[Path, Page]) -> None:
    assert len(pages) > 80
    assert list(_dead(pages, site)) == []


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="#here"></a><a href="#gone"></a><a href="b.html"></a>'
    )
    file = (tmp_path / "a.html").resolve()

    assert list(_dead({file: Page(file)}, tmp_path)) == [("a.html", "#gone"), ("a.html", "b.html")]


def test_links_to_the_outside_are_well_formed(pages: dict[Path, Page]) -> None:
    outside = {link for page in pages.values() for link in page.links if urlsplit(link).scheme}

    assert [
        link
        for link in outside
        if urlsplit(link).scheme not in ("https", "mailto", "data") or " " in link
    ] == []
    assert len(outside) > 5


def test_every_page_belongs_to_one_of_the_four_sections(
    site: Path, pages: dict[Path, Page]
) -> None:
    places = {file.relative_to(site.resolve()).parts[0] for file in pages}

    assert places - {*SECTIONS, "index.html", "search.html", "genindex.html"} == set()
