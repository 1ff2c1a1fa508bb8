"""What a source of a history has to give: references, commits, and states to compare with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from nessie_cli.model import Entry, LogEntry, Reference
from nessie_cli.model.progress import Progress


class SourceReferences(Struct, frozen=True):
    """The branches and tags of a source, its default branch ("" if unknown), messages of tags."""

    references: Sequence[Reference]
    default_branch: str = ""
    messages: Mapping[str, str] = {}


class HistorySource(Protocol):
    """A server or an export whose history is imported.

    Raises `StoreUnavailable` if the source does not answer, and `InvalidInput` for one that
    cannot be read.
    """

    @property
    def label(self) -> str:
        """The source in messages, without secrets."""

    def references(self) -> SourceReferences:
        """Reads all branches and tags."""

    def commits(self, references: Sequence[Reference], progress: Progress) -> Iterator[LogEntry]:
        """Yields all commits that the references reach over any parents, each once, in any order.

        It may yield others, too. A commit without parents in the source has no parents, or the
        no-ancestor hash as the only one.
        """

    def state(self, hash_: str) -> Iterator[Entry] | None:
        """Yields the keys of a commit's state with their contents.

        None if the source has only the changes of each commit.
        """

    def left_out(self) -> Mapping[str, int]:
        """Returns the numbers of objects that are not imported, by type, after `commits`."""
