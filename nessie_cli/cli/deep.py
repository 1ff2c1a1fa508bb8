"""`--deep`: what the metadata files of Iceberg contents say about changes."""

from __future__ import annotations

from collections.abc import Iterable

from nessie_cli.iceberg.comparison import compare
from nessie_cli.render.changes import Change, Fact, Inside


def deepened(changes: Iterable[Change]) -> list[Change]:
    """The changes with what is inside; a metadata file that cannot be read is told with its content and stops nothing."""
    return [change._replace(inside=_inside(change)) for change in changes]


def _inside(change: Change) -> Inside:
    found = compare(change.before, change.after)
    return Inside([Fact(fact.what, fact.name, fact.before, fact.after) for fact in found.facts], found.problems)
