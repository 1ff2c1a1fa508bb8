"""The locations that a server with warehouses must allow, so that it serves imported tables."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from nessie_cli.iceberg.locations import Allowed, LocationRefused, LocationSet, parse
from nessie_cli.importing.metadata_files import normal_place
from nessie_cli.importing.source import Name
from nessie_cli.model import ImportedTable

_ROOT = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+:)?(//[^/]*)?/?")
_MANY = 10
"""From so many folders in one folder on, that one stands for all of them."""


def locations_to_allow(
    tables: Iterable[ImportedTable], others: Iterable[str] = (), allowed: Sequence[str] = ()
) -> list[str]:
    """Returns the fewest folders around tables and other places, sorted.

    For a table `db.t` in `.../db.db/t` it is the folder above both, because new tables come there,
    too. It is never a whole bucket or file system. Those inside `allowed` locations are left out.
    """
    places = {_folder_of_names(table.location, table.name) for table in tables}
    places.update(place.rstrip("/") for place in others)
    permitted = Allowed(allowed)
    by_normal = {normal_place(place): place for place in sorted(places) if _is_location(place)}
    outermost = LocationSet(
        normal for normal, place in by_normal.items() if not permitted.holds(place)
    ).outermost
    return sorted(_with_siblings([by_normal[normal] for normal in outermost]))


def _folder_of_names(location: str, name: Name) -> str:
    """Returns the folder above those folders of a location that stand for parts of a name."""
    place = location.rstrip("/")
    for element in reversed(name):
        parent, _, last = place.rpartition("/")
        if not _stands_for(last, element) or _ROOT.fullmatch(parent):
            break
        place = parent
    return place


def _stands_for(folder: str, element: str) -> bool:
    folder, element = folder.lower(), element.lower()
    rest = folder.removeprefix(element)
    return folder.startswith(element) and (rest in ("", ".db") or rest[0] in "-_")


def _with_siblings(places: Iterable[str]) -> list[str]:
    """Returns the places, with one folder for many of them in it."""
    by_parent = defaultdict(list)
    for place in places:
        by_parent[place.rpartition("/")[0]].append(place)
    merged = []
    for parent, folders in by_parent.items():
        if len(folders) >= _MANY and not _ROOT.fullmatch(parent):
            merged.append(parent)
        else:
            merged += folders
    by_normal = {normal_place(place): place for place in merged}
    return [by_normal[normal] for normal in LocationSet(by_normal).outermost]


def _is_location(place: str) -> bool:
    """Whether a warehouse can allow a place at all."""
    try:
        parse(place)
    except LocationRefused:
        return False
    return not _ROOT.fullmatch(place)
