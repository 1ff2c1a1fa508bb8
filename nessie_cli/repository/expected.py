"""The error for keys that a branch has changed since the commit that a caller expects."""

from __future__ import annotations

from collections.abc import Iterable

from nessie_cli.errors import ReferenceMoved
from nessie_cli.model import Conflict, ConflictType, ContentKey

_MOST_NAMES = 3
"""The most keys that the message names."""


def changed_since(
    branch: str, expected_hash: str, head: str, keys: Iterable[ContentKey], *, hint: str = ""
) -> ReferenceMoved:
    """Returns the error for keys that a branch has changed between two of its commits."""
    keys = tuple(keys)
    names = sorted(key.plain for key in keys)
    others = f" and {len(names) - _MOST_NAMES} others" if len(names) > _MOST_NAMES else ""
    listed = ", ".join(names[:_MOST_NAMES]) + others
    changed = f"changed {listed}" if listed else "changed"
    message = f"'{branch}' has {changed} since {expected_hash[:12]}"
    error = ReferenceMoved(
        message,
        [Conflict(ConflictType.UNEXPECTED_HASH, None, message)],
        reference=branch,
        head=head,
        expected_hash=expected_hash,
        hint=hint,
    )
    error.keys = keys
    return error
