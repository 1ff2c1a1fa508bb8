"""Chromium, driven by Playwright: pages under the server's real Content-Security-Policy.

Playwright downloads no browser: the machine has one (Debian's package `chromium`), or the tests are
skipped. Nothing is added to a page, except by the debugger, so the policy applies as for a reader.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import expect, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 60_000
"""Milliseconds to wait for a page on a busy machine."""
expect.set_options(timeout=PATIENCE)


@contextmanager
def chromium() -> Iterator[Any]:
    """Yields a running Chromium. Skips the test if the machine has none."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"no Chromium is installed ({', '.join(NAMES)})")
    with sync_playwright() as driver:
        # Its shared memory is not in /dev/shm, which is small in containers.
        started = driver.chromium.launch(
            executable_path=program, args=["--disable-dev-shm-usage", "--disable-gpu"]
        )
        yield started
        started.close()


class Visitor:
    """A person at a browser: one window, which may have several tabs.

    `faults` are the messages of all consoles: errors of scripts and violations of the policy.
    """

    def __init__(self, browser: Any, url: str, **options: Any) -> None:
        settings = {"viewport": {"width": 1280, "height": 900}, "timezone_id": "Europe/Rome"}
        self.context = browser.new_context(
            base_url=url, locale="en-GB", reduced_motion="reduce", **settings | options
        )
        self.context.set_default_timeout(PATIENCE)
        self.has_scripts = options.get("java_script_enabled", True)
        self.faults: list[str] = []
        self.context.on("console", self._note)
        self.context.on("weberror", lambda error: self.faults.append(str(error.error)))
        self._refused: set[int] = set()

    def open(self, url: str = "/") -> Any:
        """Returns a new tab with a page."""
        tab = self.context.new_page()
        tab.goto(url)
        return tab

    def expect_status(self, *statuses: int) -> None:
        """Allows pages with these statuses, which a browser also prints on its console."""
        self._refused.update(statuses)

    def _note(self, message: Any) -> None:
        is_expected = message.text.startswith("Failed to load resource") and any(
            f"status of {status}" in message.text for status in self._refused
        )
        if message.type in ("error", "warning") and not is_expected:
            self.faults.append(f"{message.type}: {message.text}")

    def close(self) -> None:
        self.context.close()
