"""References: selected by commits, sorted, and with their last commit."""

# No postponed annotations: those of a NamedTuple's fields would be compiled at each start.
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, islice
from typing import NamedTuple

from nessie_cli.model import NO_ANCESTOR, Reference, Tag
from nessie_cli.repository.reader import ReadableRepository

_PAGE = 64


class LastCommit(NamedTuple):
    """The last commit of a reference: its time, its author or committer, and its subject.

    The subject of a tag with a message is that of the message.
    """

    time: datetime | None
    author: str
    subject: str


def last_commit(reference: Reference) -> LastCommit:
    """Returns the last commit of a reference, which has been read with its metadata."""
    head = reference.metadata.head if reference.metadata else None
    message = reference.message if isinstance(reference, Tag) else None
    subject = message.partition("\n")[0] if message else ""
    if head is None:
        return LastCommit(None, "", subject)
    return LastCommit(
        head.commit_time, head.author or head.committer or "", subject or head.subject
    )


def merged(
    repository: ReadableRepository,
    references: Iterable[Reference],
    commit: str,
    *,
    are_merged: bool = True,
) -> Iterator[Reference]:
    """Yields the references that a commit contains, or all others."""
    listed = list(references)
    ancestors = repository.ancestors_among({reference.hash for reference in listed}, commit)
    return (reference for reference in listed if (reference.hash in ancestors) == are_merged)


def containing(
    repository: ReadableRepository,
    references: Iterable[Reference],
    commit: str,
    *,
    do_contain: bool = True,
) -> Iterator[Reference]:
    """Yields the references that contain a commit, or all others."""

    def selected(batch: Sequence[Reference]) -> list[Reference]:
        hashes = {reference.hash for reference in batch}
        descendants = repository.descendants_among(hashes, commit)
        return [reference for reference in batch if (reference.hash in descendants) == do_contain]

    rest = iter(references)
    # A small first page makes the output start early. The rest is looked up in one request.
    return chain.from_iterable(selected(list(batch)) for batch in (islice(rest, _PAGE), rest))


def is_only_way_to(repository: ReadableRepository, hash_: str, names: Collection[str]) -> bool:
    """Whether a commit becomes unreachable without these references."""
    if hash_ == NO_ANCESTOR:
        return False
    others = {other.hash for other in repository.references() if other.name not in names}
    return not repository.descendants_among(others, hash_)


def _time(reference: Reference) -> float:
    """Returns the time of the last commit. References without a commit sort first."""
    head = reference.metadata.head if reference.metadata else None
    return head.commit_time.timestamp() if head and head.commit_time else 0.0


SORTS: Mapping[str, Callable[[Reference], str | float]] = {
    "name": lambda reference: reference.name,
    "time": _time,
    "ahead": lambda reference: (reference.metadata and reference.metadata.ahead) or 0,
    "behind": lambda reference: (reference.metadata and reference.metadata.behind) or 0,
}
"""The keys by which references are sorted. All but the name need the metadata."""


def sort_references(
    references: Iterable[Reference], key: str, *, descending: bool = False
) -> list[Reference]:
    """Returns references sorted by one of the keys `SORTS`."""
    return sorted(references, key=SORTS[key], reverse=descending)
