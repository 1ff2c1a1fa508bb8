"""Which contents of a source an import takes, and the keys that they get."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

from msgspec import Struct
from msgspec.structs import replace

from nessie_cli.errors import InvalidInput, NotFound
from nessie_cli.importing.source import Listing, Name, SourceNamespace
from nessie_cli.model import ContentKey
from nessie_cli.model.key_patterns import KeyPattern

_SHOWN = 3
"""The number of names that a message lists."""


class NamePattern(NamedTuple):
    """A name or a glob. It matches a content or namespace and everything below it."""

    text: str
    elements: Name
    glob: KeyPattern | None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses a name or glob in the form of keys. Raises `InvalidInput`."""
        return cls(text, ContentKey.parse(text).elements, KeyPattern.parse(text))

    def matches(self, name: Sequence[str]) -> bool:
        """Whether the pattern matches a name, or a namespace above it."""
        if self.glob is not None:
            return self.glob.matches_name(name)
        return tuple(name[: len(self.elements)]) == self.elements


def matches_any(patterns: Sequence[NamePattern], name: Sequence[str]) -> bool:
    """Whether one of the patterns matches a name."""
    return any(pattern.matches(name) for pattern in patterns)


def dotted(name: Name) -> str:
    """Returns a name of a source as text: as a key, if it can be one."""
    try:
        return str(ContentKey(name))
    except InvalidInput:
        return ".".join(name)


def some(texts: Sequence[str]) -> str:
    """Returns the first texts for a message, and the number of the others."""
    more = len(texts) - _SHOWN
    shown = ", ".join(texts[:_SHOWN])
    return f"{shown} and {more:,} more" if more > 0 else shown


class Selection(Struct, frozen=True):
    """The contents that an import takes: those of `include`, if given, without `exclude`.

    Their keys are their names after the `prefix`.
    """

    include: tuple[NamePattern, ...] = ()
    exclude: tuple[NamePattern, ...] = ()
    prefix: tuple[str, ...] = ()

    @classmethod
    def parse(
        cls, include: Sequence[str] = (), exclude: Sequence[str] = (), prefix: str | None = None
    ) -> Self:
        """Parses the texts of names, globs and a key. Raises `InvalidInput`."""
        return cls(
            tuple(map(NamePattern.parse, include)),
            tuple(map(NamePattern.parse, exclude)),
            ContentKey.parse(prefix).elements if prefix is not None else (),
        )

    def key_of(self, name: Name) -> ContentKey:
        """Returns the key of a name. Raises `InvalidInput` if no key can have these elements."""
        return ContentKey((*self.prefix, *name))

    def of(self, listing: Listing, label: str) -> Listing:
        """Returns the selected part of a listing, with the namespaces above each content.

        `label` is the source in messages. Raises `NotFound` if a pattern of `include` matches
        nothing, or if neither a table nor a view nor a problem is selected.
        """
        names = [
            *(each.name for each in listing.contents),
            *(each.name for each in listing.namespaces),
            *(each.name for each in listing.problems if each.name),
            *(each.name for each in listing.left_out if each.name),
        ]
        for pattern in self.include:
            if not any(map(pattern.matches, names)):
                raise NotFound(f"nothing in {label} matches '{pattern.text}'", pattern.text)
        contents = [each for each in listing.contents if self._takes(each.name)]
        problems = [each for each in listing.problems if not each.name or self._takes(each.name)]
        if not contents and not problems:
            raise NotFound(_nothing(listing, label), label)
        selected = replace(
            listing,
            contents=contents,
            problems=problems,
            left_out=[each for each in listing.left_out if not each.name or self._takes(each.name)],
        )
        return replace(selected, namespaces=self._namespaces(listing, selected))

    def _takes(self, name: Name) -> bool:
        is_included = not self.include or matches_any(self.include, name)
        return is_included and not matches_any(self.exclude, name)

    def _namespaces(self, listing: Listing, selected: Listing) -> list[SourceNamespace]:
        listed = {each.name: each for each in listing.namespaces}
        names = {name for name in listed if self._takes(name)}
        for name in [each.name for each in selected.contents] + list(names):
            names.update(name[:length] for length in range(1, len(name)))
        return [listed.get(name) or SourceNamespace(name) for name in sorted(names)]


def _nothing(listing: Listing, label: str) -> str:
    if listing.contents:
        return f"the options select no table and no view of {label}"
    return f"{label} has no tables and no views"
