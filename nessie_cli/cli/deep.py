"""`--deep`: what the metadata files of Iceberg contents say about changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING

from nessie_cli.iceberg.comparison import compare
from nessie_cli.render.changes import Change, Fact, Inside

if TYPE_CHECKING:
    from nessie_cli.cli.context import Invocation

FEW = 10_000
"""So many changes, or fewer, are looked at together first, so that it can be told how many there are."""


def deepened(call: Invocation, changes: Iterable[Change]) -> Iterator[Change]:
    """The changes with what is inside, as they are read; a metadata file that cannot be read is told with its content and stops nothing."""
    rest = iter(changes)
    first = list(islice(rest, FEW))
    total = len(first) if len(first) < FEW else None
    work = call.at_work("reading metadata files")
    for number, change in enumerate(chain(first, rest)):
        with work as tell:
            tell(number, total)
            found = change._replace(inside=_inside(change))
        yield found


def _inside(change: Change) -> Inside:
    found = compare(change.before, change.after)
    return Inside([Fact(fact.what, fact.name, fact.before, fact.after) for fact in found.facts], found.problems)
