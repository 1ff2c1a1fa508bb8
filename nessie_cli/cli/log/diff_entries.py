"""The entries of a diff in JSON."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

from nessie_cli.model import Content, ContentKey
from nessie_cli.render.changes import ContentChange, Fact
from nessie_cli.wire.documents import MetadataFact
from nessie_cli.wire.record import OPTIONAL, Record


class DiffEntry(Record, frozen=True, kw_only=True):
    """A key whose content differs. The two entries of a rename contain each other's key.

    `metadata` compares the metadata files (`--deep`). `metadataProblems` are those that could not
    be read.
    """

    key: ContentKey
    from_: Content | None
    to: Content | None
    renamed_to: Annotated[ContentKey | None, OPTIONAL] = None
    renamed_from: Annotated[ContentKey | None, OPTIONAL] = None
    metadata: Annotated[Sequence[Fact] | None, list[MetadataFact] | None, OPTIONAL] = None
    metadata_problems: Annotated[Sequence[str] | None, OPTIONAL] = None


def diff_entries(changes: Iterable[ContentChange]) -> Iterator[DiffEntry]:
    """Yields the entries of changes: two for a rename, with the comparison at the new key."""
    for change in changes:
        before = change.before
        if change.old_key is not None:
            yield DiffEntry(key=change.old_key, from_=before, to=None, renamed_to=change.key)
            before = None
        inside = change.inside
        yield DiffEntry(
            key=change.key,
            from_=before,
            to=change.after,
            renamed_from=change.old_key,
            metadata=inside.facts if inside else None,
            metadata_problems=inside.problems if inside else None,
        )
