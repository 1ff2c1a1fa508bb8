"""Addresses of the pages.

Names of references and keys are in the query, because proxies change slashes in paths.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

ROOT = "/ui"
"""The folder of all pages."""
HOME = f"{ROOT}/branches"
"""The first page."""


def page_url(page: str, /, **query: Any) -> str:
    """Returns the address of a page; query fields without a value are left out.

    >>> page_url("commit", hash="2e1c", after=None)
    '/ui/commit?hash=2e1c'
    """
    fields = {name: str(value) for name, value in query.items() if value not in (None, "", False)}
    return f"{ROOT}/{page}" + (f"?{urlencode(fields)}" if fields else "")
