"""Names of namespaces in sources: which contain others, and which are above them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nessie_cli.importing.source import Name


def outermost(names: Sequence[Name]) -> list[Name]:
    """Returns the names, sorted, without those inside another one and without repetitions."""
    outer: list[Name] = []
    for name in sorted(names):
        if not outer or name[: len(outer[-1])] != outer[-1]:
            outer.append(name)
    return outer


def parents(names: Iterable[Name]) -> list[Name]:
    """Returns the namespaces above names, sorted, each once."""
    return sorted({name[:end] for name in names for end in range(1, len(name))})
