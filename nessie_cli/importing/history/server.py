"""The history of a Nessie server, or of any other repository, as a source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from nessie_cli.errors import CommitNotFound
from nessie_cli.importing.history.source import SourceReferences
from nessie_cli.model import NO_ANCESTOR, Entry, LogEntry, Reference, ReferenceType
from nessie_cli.model.progress import Progress
from nessie_cli.repository.reader import ALL_KEYS, ReadableRepository

_ONE_BY_ONE = 8
"""The most commits of a line that are read by a request for each."""


class ServerHistory:
    """The references and commits of a repository, read along first parents.

    Second parents of merges are often on no reference. They are read by their hashes. Costs a
    request for each page of commits, and a few for each line of first parents.
    """

    def __init__(self, repository: ReadableRepository, label: str) -> None:
        self._repository = repository
        self.label = label
        """The URL of the server."""

    def references(self) -> SourceReferences:
        """Reads all branches and tags."""
        references = tuple(self._repository.references())
        tags = [tag.name for tag in references if tag.type is ReferenceType.TAG]
        return SourceReferences(
            references,
            self._repository.config().default_branch,
            self._repository.messages(tags),
        )

    def commits(self, references: Sequence[Reference], progress: Progress) -> Iterator[LogEntry]:
        """Yields all commits that the references reach over any parents, each once."""
        seen: set[bytes] = set()
        waiting = [reference.hash for reference in reversed(references)]
        while waiting:
            start = waiting.pop()
            if start == NO_ANCESTOR or bytes.fromhex(start) in seen:
                continue
            for entry in self._line(start, seen):
                id_ = bytes.fromhex(entry.hash)
                if id_ in seen:
                    break
                seen.add(id_)
                progress(len(seen), None)
                waiting += entry.meta.parents[1:]
                yield entry

    def _line(self, start: str, seen: AbstractSet[bytes]) -> Iterator[LogEntry]:
        """Yields the commits of a line, none if the server no longer has the commit.

        Most branches have few commits of their own, so the first ones are read one by one: a page
        would have hundreds that were read before.
        """
        try:
            for _ in range(_ONE_BY_ONE if seen else 0):
                entry = self._repository.commit_at(start)
                yield entry
                start = entry.parent
                if start == NO_ANCESTOR or bytes.fromhex(start) in seen:
                    return
            yield from self._repository.log(start, operations=True)
        except CommitNotFound:
            return

    def state(self, hash_: str) -> Iterator[Entry] | None:
        """Yields the keys of a commit's state with their contents."""
        return self._repository.entries(hash_, ALL_KEYS, content=True)

    def left_out(self) -> Mapping[str, int]:
        """Returns nothing: REST has no other objects."""
        return {}
