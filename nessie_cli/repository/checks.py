"""Checks: functions that decide on a draft before it is committed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from nessie_cli.repository.draft import Draft

Check = Callable[[Draft[Any]], None]
"""A function that decides on a draft and raises an error to prevent it."""


class Guard(Protocol):
    """Decides on each change of `submit` before the commit, and is notified afterwards."""

    def check(self, draft: Draft[Any]) -> None:
        """Raise an error to prevent a draft. Called again if the change is drafted again."""

    def done(self, draft: Draft[Any], answer: Any) -> None:
        """React to a committed draft; `answer` is the result for the caller."""
