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

_MOST_NAMES = 3
"""The most keys that a message names."""


def expected_commit(app: Invocation, text: str | None) -> str | None:
    """Returns the hash that `--expected-hash` means; None without the option."""
    return app.repository().resolve(app.revision(text)).hash if text else None


def refuse_changed(
    app: Invocation, branch: str, expected: str | None, keys: Collection[ContentKey]
) -> None:
    """Raises `ReferenceMoved` if a branch has changed any of these staged keys since a commit."""
    if expected is None or not keys:
        return
    repository = app.repository()
    before = repository.contents(Revision(None, expected), list(keys))
    after = repository.contents(branch, list(keys))
    if changed := [key for key in keys if before.get(key) != after.get(key)]:
        hint = "`nessie commit` reports the conflicts with the present state"
        raise changed_since(branch, expected, changed, hint=hint)


def changed_since(
    branch: str,
    expected: str,
    keys: Collection[ContentKey],
    head: str | None = None,
    *,
    hint: str = "",
) -> ReferenceMoved:
    """Returns the error for keys that a branch has changed since a commit."""
    named = sorted(visible(str(key)) for key in keys)
    others = f" and {len(named) - _MOST_NAMES} others" if len(named) > _MOST_NAMES else ""
    message = (
        f"'{visible(branch)}' has changed {', '.join(named[:_MOST_NAMES])}{others} since"
        f" {short_hash(expected)}"
    )
    return ReferenceMoved(
        f"{message}. Hint: {hint}" if hint else message,
        [Conflict(ConflictType.UNEXPECTED_HASH, None, message)],
        reference=branch,
        head=head,
        expected_hash=expected,
    )
