"""The entries of a diff in JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Self

from msgspec import UNSET, Struct, UnsetType, field

from nessie_cli.inspection.changes import ContentChange
from nessie_cli.wire.contents import AnyContent, Key, optional_content

if TYPE_CHECKING:
    from nessie_cli.iceberg.comparison import MetadataDifference


class MetadataFact(Struct):
    """A difference between two metadata files: its kind, its name, and the text on each side."""

    what: str
    name: str | None
    before: str | None = field(name="from")
    after: str | None = field(name="to")

    @classmethod
    def of(cls, fact: MetadataDifference) -> Self:
        """Returns the struct of a difference."""
        return cls(fact.what, fact.name or None, fact.before, fact.after)


class DiffEntry(Struct, rename="camel"):
    """A key whose content differs. The two entries of a rename contain each other's key.

    `metadata` compares the metadata files (`--deep`). `metadataProblems` are those that could not
    be read.
    """

    key: Key
    before: AnyContent | None = field(name="from")
    after: AnyContent | None = field(name="to")
    renamed_to: Key | UnsetType = UNSET
    renamed_from: Key | UnsetType = UNSET
    metadata: list[MetadataFact] | UnsetType = UNSET
    metadata_problems: list[str] | UnsetType = UNSET


def diff_entries(changes: Iterable[ContentChange]) -> Iterator[DiffEntry]:
    """Yields the entries of changes: two for a rename, with the comparison at the new key."""
    for change in changes:
        key, before, old_key = Key.of(change.key), optional_content(change.before), change.old_key
        entry = DiffEntry(key, before, optional_content(change.after))
        if old_key is not None:
            yield DiffEntry(Key.of(old_key), before, None, renamed_to=key)
            entry.before, entry.renamed_from = None, Key.of(old_key)
        if change.metadata:
            entry.metadata = list(map(MetadataFact.of, change.metadata.facts))
            entry.metadata_problems = list(change.metadata.problems)
        yield entry
