"""`python -m documents.screenshots` takes the pictures of the web interface.

The store, its clock and the texts of the pages are those of a documents session, and the fonts
those of Debian's package `fonts-dejavu-core`. Another release of Chromium draws other pixels, so
no test compares the pictures: look at each one after a change.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from playwright.sync_api import FloatRect, Page, Route, sync_playwright

from documents.console import DOCS
from documents.session import Session

FOLDER = DOCS / "pictures"
WIDE, NARROW = (1120, 760), (390, 760)
_LAKE = (
    "nessie demo lake . --conflict",
    "nessie branch reports",
    "nessie content put reports --type namespace --ref reports -m 'create namespace reports'",
    "nessie merge reports --into main",
    "nessie tag february -m 'the figures of February'",
)
_COMPARISON = "compare?from=main&to=nightly&base=merge"
_MERGE = "merge?source=nightly&into=main"


class Screenshot(NamedTuple):
    """A picture of a page from `top` pixels on, after some steps of a reader."""

    name: str
    page: str
    size: tuple[int, int] = WIDE
    top: int = 0
    steps: Callable[[Page], object] = lambda _: None


def _decide(page: Page) -> None:
    # The server does not have the commits that the page shows instead of its own.
    page.evaluate("for (const each of document.querySelectorAll('[name$=_hash]')) each.remove()")
    page.get_by_label("Take the state of nightly").check()
    page.get_by_role("button", name="Show the result").click()
    page.get_by_role("columnheader", name="Result").wait_for()
    # Without the ring of the focus.
    page.evaluate("document.activeElement.blur()")


SCREENSHOTS = (
    Screenshot("web-branches", "branches", (1120, 420)),
    Screenshot("web-compare", _COMPARISON),
    Screenshot("web-rows", f"{_COMPARISON}&rows=sales.customers", (1120, 660)),
    Screenshot("web-merge", _MERGE, (1120, 740), 200, _decide),
    Screenshot("web-merge-narrow", _MERGE, NARROW),
    Screenshot("web-history", "history?ref=main", (1120, 520)),
)


def main() -> None:
    """Take all screenshots."""
    with Session() as session, sync_playwright() as driver:
        session.run(_LAKE)
        with (
            _served(session) as url,
            driver.chromium.launch(executable_path=shutil.which("chromium")) as browser,
        ):
            for shot in SCREENSHOTS:
                page = browser.new_page(
                    viewport={"width": shot.size[0], "height": shot.size[1]},
                    color_scheme="light",
                    reduced_motion="reduce",
                    locale="en-GB",
                    timezone_id="UTC",
                )
                page.route("**/ui/*", lambda route: _answer(session, route))
                page.goto(f"{url}/ui/{shot.page}")
                shot.steps(page)
                width, height = shot.size
                clip: FloatRect = {"x": 0, "y": shot.top, "width": width, "height": height}
                path = FOLDER / f"{shot.name}.png"
                page.screenshot(path=path, clip=clip, full_page=True, animations="disabled")
                print(f"{path.name}: {path.stat().st_size // 1000} kB")
                page.close()


def _answer(session: Session, route: Route) -> None:
    """Answers with a page whose folder and hashes are those of every run."""
    reply = route.fetch()
    route.fulfill(response=reply, body=session.shown(reply.text()))


@contextmanager
def _served(session: Session) -> Iterator[str]:
    """Yields the address of a server of the session's lake."""
    command = [sys.executable, "-m", "nessie_cli", "-C", str(session.folder), "serve"]
    options = ["--port", "0", "--warehouse", "warehouse"]
    with subprocess.Popen(  # noqa: S603
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        try:
            yield line.partition(" at ")[2].partition("/api/")[0]
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
