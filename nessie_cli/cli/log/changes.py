"""The changes of one commit: the difference to its first parent."""

from __future__ import annotations

from nessie_cli.model import KeyRange, LogEntry
from nessie_cli.render.changes import ContentChange, changes_of, outlined
from nessie_cli.repository.base import ALL_KEYS, Repository
from nessie_cli.revisions import Revision


def changes_in(
    repository: Repository, entry: LogEntry, keys: KeyRange = ALL_KEYS
) -> list[ContentChange]:
    """Returns the changes of a commit with contents. Costs O(changes · log keys)."""
    # As a text, a hash would be looked up among the names of references first.
    return changes_of(
        repository.diff(Revision(None, entry.parent), Revision(None, entry.hash), keys)
    )


def changed_keys_in(repository: Repository, entry: LogEntry) -> list[ContentChange]:
    """Returns the changes of a commit without contents: their kinds and keys."""
    return outlined(repository.changed_keys(entry))
