"""The key that a deleted content had last on a branch, whatever the caller may read."""

from __future__ import annotations

from nessie_cli.errors import NotAllowed
from nessie_cli.model import ContentKey, LogEntry, Put
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.revisions import Revision
from nessie_cli.server.auth.reached import ReachedHistory

_MOST_READ = 20_000
"""The most commits that are read for a request. Ten operations count as another one."""


class Renames:
    """Follows contents through the renames of a branch. Reads a bounded number of commits.

    `history` remembers the last keys of contents at this HEAD, so that they are not read again.
    """

    def __init__(
        self, repository: ReadableRepository, branch: str, history: ReachedHistory
    ) -> None:
        self._repository = repository
        head = repository.reference(branch).hash
        self._head = Revision(None, head)
        self._history = history
        self._last_keys = history.last_keys.setdefault(head, {})
        self._moves: dict[str, dict[str, ContentKey]] = {}
        """The keys of content ids that a commit put, by commit."""
        self._read = 0

    def last_key(self, content_id: str, key: ContentKey) -> ContentKey:
        """Returns the last key of a content that had `key` once, which may be the same.

        Raises `NotAllowed` after too many reads, and `LongHistory` before that on the writing
        thread.
        """
        place = (content_id, key)
        if place not in self._last_keys:
            self._last_keys[place] = self._followed(content_id, key)
        return self._last_keys[place]

    def _followed(self, content_id: str, key: ContentKey) -> ContentKey:
        while (removal := self._removal(content_id, key)) is not None:
            moved = self._moved(removal).get(content_id)
            if moved is None:
                break
            key = moved
        return key

    def _removal(self, content_id: str, key: ContentKey) -> LogEntry | None:
        """Returns the newest commit that took a key from a content, None if there is none."""
        later = None
        for entry in self._repository.log_of_key(self._head, key):
            self._count(1)
            there = self._repository.contents(Revision(None, entry.hash), [key]).get(key)
            if there is not None and there.id == content_id:
                return later
            later = entry
        return None

    def _moved(self, entry: LogEntry) -> dict[str, ContentKey]:
        if entry.hash not in self._moves:
            operations = self._repository.commit_at(Revision(None, entry.hash)).operations or ()
            self._count(len(operations) // 10)
            self._moves[entry.hash] = {
                operation.content.id: operation.key
                for operation in operations
                if isinstance(operation, Put) and operation.content.id is not None
            }
        return self._moves[entry.hash]

    def _count(self, number: int) -> None:
        self._read += number
        self._history.read(number)
        if self._read > _MOST_READ:
            raise NotAllowed("the commit restores contents with too many changes; restore fewer")
