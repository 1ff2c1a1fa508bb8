"""The commits that one request makes reachable, which are checked once over all its drafts.

The first check of a long history takes longer than other writers should wait. So the writing thread
checks few commits, and another thread checks the others before. The writing thread then decides on
the state that is written: it checks again whatever the earlier check does not cover. If that is
long each time, because branches are reset meanwhile, the request fails.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

from nessie_cli.repository.draft import Draft, PastChange
from nessie_cli.server.auth.rules import NOTHING_READABLE, Readable
from nessie_cli.server.http.failures import Unavailable

MOST_CHECKED = 200
"""The most commits and changes that the writing thread checks: they take about 50 ms."""
_VISITED = 0.1
"""How much a visited commit counts. A search also visits those that are reachable already."""

EARLY_DRAFTS = 3
"""How often a write that takes long is drafted beside other writers, if its branch moves."""


class LongHistory(Unavailable):
    """More commits must be checked than the writing thread checks."""

    def __init__(self) -> None:
        super().__init__("Branches are reset while their history is checked; come again later")


class _Checked(NamedTuple):
    """Checked commits: those that `sources` have and `heads` did not have.

    `without_rows` are the tables and views in them whose rows the caller may not read.
    """

    sources: tuple[str, ...]
    heads: tuple[str, ...]
    without_rows: Collection[PastChange]


class ReachedHistory:
    """The commits that a request has checked by its rules, and how many it may still check.

    `most` is the limit, None for no limit. `source` is the reference through which the caller sees
    the source of the change.
    """

    def __init__(self) -> None:
        self.most: int | None = None
        self.source = ""
        self._checked: dict[str, _Checked] = {}
        self._count = 0.0

    def begin(self) -> None:
        """Begins the check of a draft."""
        self._count = 0.0

    def visit(self) -> bool:
        """Counts a commit that a search visits. Raises `LongHistory`; the search is never over."""
        self.count(_VISITED)
        return False

    def count(self, number: float) -> None:
        """Counts commits and changes that are checked. Raises `LongHistory` beyond the limit."""
        self._count += number
        if self.most is not None and self._count > self.most:
            raise LongHistory

    def checked(self, through: str, draft: Draft[Any]) -> Readable:
        """Returns the sources of a draft if all commits that it makes reachable were checked.

        They were if its targets have only gained commits since.
        """
        checked = self._checked.get(through)
        if (
            checked is None
            or checked.sources != draft.sources
            or not draft.targets_contain(checked.heads, self.visit)
        ):
            return NOTHING_READABLE
        return Readable(checked.sources, checked.without_rows)

    def remember(
        self, through: str, draft: Draft[Any], without_rows: Collection[PastChange]
    ) -> None:
        """Remembers that all commits that a draft makes reachable were checked."""
        heads = tuple(target.before for target in draft.targets if target.before is not None)
        self._checked[through] = _Checked(draft.sources, heads, without_rows)
