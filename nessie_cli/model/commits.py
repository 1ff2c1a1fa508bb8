"""Commits as callers see them: metadata, hash, parents and operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from nessie_cli.model.operations import Operation

NO_ANCESTOR = "2e1cfa82b035c26cbbbdae632cea070514eb8b773f616aaeaf668e2f0be8f10d"
"""The hash of the empty history, the parent of first commits: SHA-256 of the text `empty`."""


class CommitMeta(Struct, frozen=True):
    """The metadata of a commit.

    A client sets `message`, `authors`, `signed_off_by`, `author_time` and `properties`; the rest is
    None or empty until the repository has written the commit. The author defaults to the committer,
    and `author_time` to the commit time. Times are aware datetimes in UTC with microseconds. Each
    property holds a list of strings; its name is stored in lower case.
    """

    message: str
    authors: tuple[str, ...] = ()
    signed_off_by: tuple[str, ...] = ()
    author_time: datetime | None = None
    properties: Mapping[str, tuple[str, ...]] = {}
    committer: str | None = None
    commit_time: datetime | None = None
    hash: str | None = None
    parents: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        """The first line of the message."""
        return self.message.partition("\n")[0]

    @property
    def texts(self) -> list[str]:
        """The texts that a client sets: message, people, names and values of properties."""
        texts = [self.message, *self.authors, *self.signed_off_by]
        for name, values in self.properties.items():
            texts += name, *values
        return texts

    @property
    def author(self) -> str:
        """The first author, or an empty text."""
        return self.authors[0] if self.authors else ""


def lower_names(properties: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Returns properties as a commit stores them: names that differ only in case are merged."""
    merged: dict[str, tuple[str, ...]] = {}
    for name, values in properties.items():
        merged[name.lower()] = (*merged.get(name.lower(), ()), *values)
    return merged


class LogEntry(Struct, frozen=True):
    """A commit of a log.

    `operations` is None if it was not requested; otherwise Deletes sorted by key, then Puts sorted
    by key. `height` counts the commits along first parents, including this one; it is 0 on a server
    other than `nessie serve`.
    """

    meta: CommitMeta
    height: int
    operations: tuple[Operation, ...] | None = None

    @property
    def hash(self) -> str:
        """The hash of the commit."""
        return self.meta.hash or NO_ANCESTOR

    @property
    def parent(self) -> str:
        """The hash of the first parent; the no-ancestor hash for a first commit."""
        return self.meta.parents[0] if self.meta.parents else NO_ANCESTOR
