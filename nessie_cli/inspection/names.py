"""A search for names on branches: the keys that contain a text."""

# No postponed annotations: those of a NamedTuple's fields would be compiled at each start.
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from nessie_cli.errors import NotAllowed
from nessie_cli.model import ContentKey, Reference
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


def search_branches(
    repository: ReadableRepository,
    branches: Iterable[Reference],
    text: str,
    most: int,
    is_late: Callable[[], bool],
) -> Matches:
    """Returns the first `most` keys on any of the branches that contain a text.

    Branches at the same commit are searched once. `is_late` ends the search, but not before the
    first commit. Branches whose keys the caller may not read are left out.
    """
    names: dict[str, list[str]] = {}
    for branch in branches:
        names.setdefault(branch.hash, []).append(branch.name)
    find = repository.key_finder(text)
    types: dict[ContentKey, str] = {}
    places: dict[ContentKey, list[str]] = {}
    total, searched, is_cut = sum(map(len, names.values())), 0, False
    for number, here in enumerate(names.values()):
        if number and is_late():
            break
        try:
            # By the name, a caller sees what he may see on this branch.
            entries = list(islice(find(Revision(here[0])), most + 1))
        except NotAllowed:
            total -= len(here)
            continue
        # The first keys of all branches are among the first ones of each that has them.
        is_cut = is_cut or len(entries) > most
        for entry in entries:
            types[entry.key] = entry.type
            places.setdefault(entry.key, []).extend(here)
        searched += len(here)
    rows = [
        Match(key, types[key], places[key][:NAMED], len(places[key]))
        for key in sorted(places)[:most]
    ]
    return Matches(rows, is_cut or len(places) > most, searched, total)
