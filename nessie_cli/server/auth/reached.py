"""The commits that one request makes reachable, which are checked once over all its drafts.

The first check of a long history takes longer than other writers should wait. So the writing thread
checks few commits, and another thread checks the others before. The writing thread then decides on
the state that is written: it checks again whatever the earlier check does not cover. If that is
long each time, because branches are reset meanwhile, the request fails.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from nessie_cli.errors import ReferenceMoved
from nessie_cli.model import ContentKey
from nessie_cli.repository.draft import Draft, PastChange

MOST_CHECKED = 200
"""The most commits and changes that the writing thread checks: they take about 50 ms."""
_VISITED = 0.1
"""How much a visited commit counts. A search also visits those that are reachable already."""
_READ = 0.2
"""How much a commit counts that is read to follow a restored content."""

EARLY_DRAFTS = 3
"""How often a write that takes long is drafted beside other writers, if its branch moves."""
NewKeys = Mapping[bytes, Sequence[ContentKey]]
"""The keys of contents, by their ids."""


class LongHistory(ReferenceMoved):
    """More commits must be checked than the writing thread checks.

    Clients get this error if all early drafts were in vain.
    """

    def __init__(self) -> None:
        super().__init__(
            "What would become reachable kept changing while it was checked; nothing was written"
        )


class _Checked(NamedTuple):
    """Checked commits: those that `sources` have and `heads` did not have.

    They were checked for `new_keys`. The caller must be allowed to read `rows` at the source.
    """

    sources: tuple[str, ...]
    heads: tuple[str, ...]
    new_keys: NewKeys
    rows: Collection[PastChange]


class ReachedHistory:
    """The commits that a request has checked by its rules, and how many it may still check.

    `most` is the limit, None within `unlimited`. `source` is the reference through which the caller
    sees the source of the change.
    """

    def __init__(self) -> None:
        self.most: int | None = MOST_CHECKED
        self.source = ""
        self.last_keys: dict[str, dict[tuple[str, ContentKey], ContentKey]] = {}
        """The last keys of restored contents, by the HEAD of the branch, their ids and a key."""
        self._checked: dict[str, _Checked] = {}
        self._count = 0.0

    @contextmanager
    def unlimited(self) -> Iterator[None]:
        """Checks without a limit within the block, which other writers do not wait for."""
        before, self.most = self.most, None
        try:
            yield
        finally:
            self.most = before

    def begin(self) -> None:
        """Begins the check of a draft."""
        self._count = 0.0

    def visit(self) -> bool:
        """Counts a commit that a search visits. Raises `LongHistory`; the search is never over."""
        self.count(_VISITED)
        return False

    def read(self, number: int) -> None:
        """Counts commits that are read to follow a restored content. Raises `LongHistory`."""
        self.count(_READ * number)

    def count(self, number: float) -> None:
        """Counts commits and changes that are checked. Raises `LongHistory` beyond the limit."""
        self._count += number
        if self.most is not None and self._count > self.most:
            raise LongHistory

    @property
    def enough(self) -> int | None:
        """The number of changes that is certainly beyond the limit; None without a limit."""
        return None if self.most is None else max(0, int(self.most - self._count)) + 1

    def is_new(self, through: str) -> bool:
        """Returns whether no commits were checked that the caller sees through a reference."""
        return through not in self._checked

    def checked(
        self, through: str, draft: Draft[Any], new_keys: NewKeys
    ) -> Collection[PastChange] | None:
        """Returns the tables whose rows must be readable if all else was checked, otherwise None.

        It was if the targets of a draft have only gained commits since.
        """
        checked = self._checked.get(through)
        if (
            checked is None
            or checked.sources != draft.sources
            or checked.new_keys != new_keys
            or not draft.targets_contain(checked.heads, self.visit)
        ):
            return None
        return checked.rows

    def remember(
        self, through: str, draft: Draft[Any], new_keys: NewKeys, rows: Collection[PastChange]
    ) -> None:
        """Remembers that all commits that a draft makes reachable were checked."""
        heads = tuple(target.before for target in draft.targets if target.before is not None)
        self._checked[through] = _Checked(draft.sources, heads, new_keys, rows)
