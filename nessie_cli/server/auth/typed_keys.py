"""The keys that a caller may know, also by rules that depend on the types of contents.

The operation that deletes a content does not name its type, and neither does a key in a conflict.
So the type is looked up, but only if the rights to the key depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nessie_cli.model import ContentKey, KeyRange, LogEntry, Put
from nessie_cli.repository.changes import AnyRevision
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.revisions import Revision
from nessie_cli.server.auth.rights import Rights
from nessie_cli.server.auth.rules import READ_CONTENT_KEY


class TypedKeys:
    """The keys of a repository that a caller may know through a reference."""

    def __init__(self, repository: ReadableRepository, rights: Rights) -> None:
        self._repository = repository
        self._rights = rights

    def depend_on_type(self, through: str, key: ContentKey) -> bool:
        """Returns whether the type of a content decides if the caller may know its key."""
        needed = READ_CONTENT_KEY, through, key
        return self._rights.may_somehow(*needed) and not self._rights.may_always(*needed)

    def may_know(self, through: str, states: Sequence[AnyRevision], key: ContentKey) -> bool:
        """Returns whether the caller may know a key through a reference.

        If that depends on the type, it is that of the first of some states which has the key. The
        caller may not know a key that none of them has.
        """
        if not self.depend_on_type(through, key):
            return self._rights.may_somehow(READ_CONTENT_KEY, through, key)
        keys = KeyRange(keys=(key,))
        there = (entry for at in states for entry in self._repository.entries(at, keys))
        type_ = next((entry.type for entry in there), None)
        return type_ is not None and self._rights.may(READ_CONTENT_KEY, through, key, type_)

    def visible(self, through: str, at: AnyRevision, keys: Iterable[ContentKey]) -> set[ContentKey]:
        """Returns those keys of contents of a state that the caller may know.

        Costs a read of the state if types decide.
        """
        needed = READ_CONTENT_KEY, through
        possible = [key for key in keys if self._rights.may_somehow(*needed, key)]
        typed = tuple(key for key in possible if not self._rights.may_always(*needed, key))
        if not typed:
            return set(possible)
        contents = self._repository.entries(at, KeyRange(keys=typed))
        shown = {each.key for each in contents if self._rights.may(*needed, each.key, each.type)}
        return shown | (set(possible) - set(typed))

    def may_know_change(self, through: str, entry: LogEntry, key: ContentKey) -> bool:
        """Returns whether the caller may know that a commit changed a key."""
        changes = [each for each in entry.operations or () if each.key == key]
        puts = [each.content.type_name for each in changes if isinstance(each, Put)]
        if any(self._rights.may(READ_CONTENT_KEY, through, key, type_) for type_ in puts):
            return True
        before = Revision(None, entry.parent)
        return len(puts) < len(changes) and self.may_know(through, [before], key)
