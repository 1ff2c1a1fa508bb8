"""The state of the branch that decisions are about: `--expected-hash`."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from nessie_cli.errors import ReferenceMoved
from nessie_cli.model import Conflict, ConflictType, ContentKey
from nessie_cli.render.text import short_hash, visible
from nessie_cli.revisions import Revision

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation
    from nessie_cli.repository.base import Repository

_MOST_NAMES = 3
"""The most keys that a message names."""


def expected_commit(app: Invocation, text: str | None) -> str | None:
    """Returns the hash that `--expected-hash` means; None without the option."""
    return app.repository().resolve(app.revision(text)).hash if text else None


def refuse_changed(
    repository: Repository,
    branch: str,
    expected: str,
    keys: Collection[ContentKey],
    *,
    hint: str = "",
) -> None:
    """Raises `ReferenceMoved` if a branch has changed any of these keys since a commit."""
    if not keys:
        return
    head = repository.reference(branch).hash
    before = repository.contents(Revision(None, expected), list(keys))
    after = repository.contents(Revision(None, head), list(keys))
    changed = sorted(visible(str(key)) for key in keys if before.get(key) != after.get(key))
    if not changed:
        return
    others = f" and {len(changed) - _MOST_NAMES} others" if len(changed) > _MOST_NAMES else ""
    message = (
        f"'{visible(branch)}' has changed {', '.join(changed[:_MOST_NAMES])}{others} since"
        f" {short_hash(expected)}"
    )
    raise ReferenceMoved(
        f"{message}. Hint: {hint}" if hint else message,
        [Conflict(ConflictType.UNEXPECTED_HASH, None, message)],
        reference=branch,
        head=head,
        expected_hash=expected,
    )
