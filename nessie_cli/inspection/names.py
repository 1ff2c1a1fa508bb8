"""A search for names: the keys of one state, or of all branches, that contain a text."""

# No postponed annotations: those of a NamedTuple's fields would be compiled at each start.
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from nessie_cli.model import ContentKey, Entry, Reference
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.revisions import Revision

NAMED = 3
"""The most branches that a match names."""


class Match(NamedTuple):
    """A key that contains the text: its type, some branches that have it, and their number."""

    key: ContentKey
    type: str
    branches: Sequence[str]
    total: int


class Matches(NamedTuple):
    """The result of a search, ascending by key.

    `is_cut` is whether there were too many. `searched` of the `total` branches were searched.
    """

    rows: Sequence[Match]
    is_cut: bool
    searched: int
    total: int


def contains(text: str) -> Callable[[ContentKey], bool]:
    """Returns the test whether a key contains a text, in any case of letters."""
    lower = text.lower()
    return lambda key: lower in key.plain.lower()


def names_at(
    repository: ReadableRepository, at: str, test: Callable[[ContentKey], bool]
) -> Iterator[Entry]:
    """Yields the entries at a commit whose key passes a test. Costs a scan of its keys."""
    return (entry for entry in repository.entries(Revision(None, at)) if test(entry.key))


class BranchSearch:
    """A search over branches, each distinct state once. The first one is scanned.

    Of the other ones, only the difference to it is read. If `each_whole`, they are scanned, too:
    then a caller may see other keys on each of them. `is_late` ends the search.
    """

    def __init__(
        self,
        repository: ReadableRepository,
        branches: Iterable[Reference],
        test: Callable[[ContentKey], bool],
        *,
        each_whole: bool,
    ) -> None:
        self._repository = repository
        self._test = test
        self._each_whole = each_whole
        self._total = 0
        self._states: dict[str, list[str]] = {}
        for branch in branches:
            self._total += 1
            self._states.setdefault(branch.hash, []).append(branch.name)
        self._types: dict[ContentKey, str] = {}
        self._places: dict[ContentKey, dict[str, list[str]]] = {}
        self._is_cut = False

    def run(self, most: int, is_late: Callable[[], bool]) -> Matches:
        """Returns at most `most` matches; those of the first branch come first."""
        searched = 0
        first = next(iter(self._states), None)
        base: set[ContentKey] = set()
        for state, names in self._states.items():
            if searched and is_late():
                break
            if state == first or self._each_whole:
                present = self._scanned(state, names[0], most)
                base = base or present
            else:
                present = self._differing(first or "", state, base, most)
            for key in present:
                self._places[key][state] = names
            searched += len(names)
        rows = [self._match(key) for key in sorted(self._places) if self._places[key]]
        return Matches(rows, self._is_cut, searched, self._total)

    def _scanned(self, state: str, name: str, most: int) -> set[ContentKey]:
        # By the name, a caller sees what he may see on this branch.
        where = Revision(name) if self._each_whole else Revision(None, state)
        matching = (entry for entry in self._repository.entries(where) if self._test(entry.key))
        present = set()
        for entry in islice(matching, most + 1):
            if self._add(entry.key, entry.type, most):
                present.add(entry.key)
        return present

    def _differing(
        self, first: str, state: str, base: set[ContentKey], most: int
    ) -> set[ContentKey]:
        present = set(base)
        for entry in self._repository.diff(Revision(None, first), Revision(None, state)):
            if not self._test(entry.key):
                continue
            if entry.after is None:
                present.discard(entry.key)
            elif entry.before is None and self._add(entry.key, entry.after.type_name, most):
                present.add(entry.key)
        return present

    def _add(self, key: ContentKey, type_: str, most: int) -> bool:
        """Returns whether a key is among the first `most` ones."""
        if key in self._places:
            return True
        if len(self._places) == most:
            self._is_cut = True
            return False
        self._types[key] = type_
        self._places[key] = {}
        return True

    def _match(self, key: ContentKey) -> Match:
        names = [name for branches in self._places[key].values() for name in branches]
        return Match(key, self._types[key], names[:NAMED], len(names))
