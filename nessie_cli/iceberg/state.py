"""The contents of a catalog at one commit. Listings pass over nested keys."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

from nessie_cli.errors import InvalidInput, NotAllowed
from nessie_cli.model import NO_ANCESTOR, Content, ContentKey, Entry, KeyRange, Reference
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.revisions import Revision

_PATIENCE = 100
"""A listing reads past this many deeper keys before it jumps over the rest."""

_SHORT = 12
"""Digits of a hash in messages."""


class State:
    """The contents at a commit.

    `reference` is the branch or tag through which it is seen, and its hash.
    """

    def __init__(self, repository: ReadableRepository, reference: Reference) -> None:
        self.reference = reference
        self._repository = repository
        self._at = Revision(reference.name or None, reference.hash)

    def content(self, key: ContentKey) -> Content | None:
        """Returns the content of a key, None if there is none."""
        return self.contents([key]).get(key)

    def contents(self, keys: Sequence[ContentKey]) -> dict[ContentKey, Content]:
        """Returns the contents of those keys that exist."""
        return dict(self._repository.each_content(self._at, keys))

    def inside(
        self, namespace: ContentKey | None, after: ContentKey | None = None
    ) -> Iterator[Entry]:
        """Yields the entries directly in a namespace, ascending, behind a key; None is the root.

        Costs little more than those entries, however many keys lie deeper.
        """
        start = after or namespace
        more = True
        while more:
            beyond = yield from self._inside(namespace, start)
            more, start = beyond is not None, beyond

    def _inside(
        self, namespace: ContentKey | None, start: ContentKey | None
    ) -> Generator[Entry, None, ContentKey | None]:
        """Yields entries behind a key; returns where to go on behind many keys that lie deeper."""
        depth = len(namespace.elements) + 1 if namespace else 1
        passed = 0
        for entry in self._entries(KeyRange(minimum=start)):
            if namespace and not entry.key.starts_with(namespace):
                return None
            if len(entry.key.elements) > depth:
                passed += 1
                if passed == _PATIENCE and (beyond := _beyond(entry.key.elements[:depth])):
                    return beyond
            elif len(entry.key.elements) == depth and entry.key != start:
                passed = 0
                yield entry
        return None

    def _entries(self, keys: KeyRange) -> Iterator[Entry]:
        return self._repository.entries(self._at, keys)

    def is_empty(self, namespace: ContentKey) -> bool:
        """Whether nothing lies in a namespace."""
        return next(self.inside(namespace), None) is None

    def last_change(self, key: ContentKey) -> str:
        """Returns the commit that changed a key last, in words for a message.

        Empty if the caller may not list commits.
        """
        try:
            commit = self._repository.last_change(self._at, key)
        except NotAllowed:
            return ""
        if commit is None or commit.hash is None:
            return ""
        who = commit.author or commit.committer
        return f"commit {commit.hash[:_SHORT]}{f' of {who}' if who else ''}: {commit.subject}"

    def before(self) -> State:
        """Returns the state of the parent commit."""
        parent = self._repository.commit_at(self._at).parent
        return State(
            self._repository,
            Reference(
                self.reference.type, self.reference.name if parent != NO_ANCESTOR else "", parent
            ),
        )


def _beyond(elements: tuple[str, ...]) -> ContentKey | None:
    """Returns a key behind everything below another one, None if it would be too long for a key."""
    try:
        # No element holds a character before the space.
        return ContentKey((*elements[:-1], f"{elements[-1]} "))
    except InvalidInput:
        return None
