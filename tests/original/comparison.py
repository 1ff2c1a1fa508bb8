"""Compares two servers' answers to one request: hashes and content ids are paired; instants,
page tokens and texts are ignored."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

NAME = re.compile(r"[0-9a-f]{64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
UNORDERED = ("details", "conflicts", "contents", "addedContents")
"""Lists that the original takes from hash tables."""
TEXTS = ("message", "commitTime", "authorTime", "serverStackTrace", "reason")


class Pairs:
    """Pairs hashes and ids of the original with ours; a pair never changes, in either direction."""

    def __init__(self) -> None:
        self._ours: dict[str, str] = {}
        self._theirs: dict[str, str] = {}

    def agree(self, theirs: str, ours: str) -> bool:
        return (
            self._ours.setdefault(theirs, ours) == ours
            and self._theirs.setdefault(ours, theirs) == theirs
        )

    def ours(self, theirs: str) -> str:
        """Returns our name for one of the original's; an unknown name is unchanged."""
        return self._ours.get(theirs, theirs)

    def translated(self, value: Any) -> Any:
        """Converts a request for the original to one for our server."""
        if isinstance(value, str):
            return NAME.sub(lambda match: self.ours(match[0]), value)
        if isinstance(value, dict):
            return {name: self.translated(item) for name, item in value.items()}
        return [self.translated(item) for item in value] if isinstance(value, list) else value


def differences(theirs: Any, ours: Any, pairs: Pairs, path: str = "$") -> Iterator[str]:
    """Yields the differences of two JSON values, one line each."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for name in sorted(theirs.keys() | ours.keys()):
            if name in TEXTS:
                continue
            where = f"{path}.{name}"
            if name == "token":
                if (theirs.get(name) is None) != (ours.get(name) is None):
                    yield f"{where}: {theirs.get(name)!r} and {ours.get(name)!r}"
            elif name in theirs and name in ours:
                yield from differences(
                    ordered(name, theirs[name]), ordered(name, ours[name]), pairs, where
                )
            else:
                yield f"{where}: only in the {'original' if name in theirs else 'answer of ours'}"
    elif isinstance(theirs, list) and isinstance(ours, list):
        if len(theirs) != len(ours):
            yield f"{path}: {len(theirs)} and {len(ours)} elements"
        for number, (theirs_item, ours_item) in enumerate(zip(theirs, ours, strict=False)):
            yield from differences(theirs_item, ours_item, pairs, f"{path}[{number}]")
    elif (
        isinstance(theirs, str)
        and isinstance(ours, str)
        and NAME.fullmatch(theirs)
        and NAME.fullmatch(ours)
    ):
        if not pairs.agree(theirs, ours):
            yield f"{path}: another hash or id than before"
    elif type(theirs) is not type(ours) or theirs != ours:
        yield f"{path}: {theirs!r} and {ours!r}"


def ordered(name: str, value: Any) -> Any:
    """Returns an unordered list, sorted by its keys."""
    if name not in UNORDERED or not isinstance(value, list):
        return value
    return sorted(
        value,
        key=lambda item: (str(item.get("key", {}).get("elements")), str(item.get("conflictType"))),
    )
