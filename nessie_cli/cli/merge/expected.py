"""The state of the branch that decisions are about: `--expected-hash`."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from nessie_cli.errors import CommitNotFound
from nessie_cli.model import ContentKey, Reference
from nessie_cli.repository.expected import changed_since
from nessie_cli.revisions import Revision

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation
    from nessie_cli.repository.base import Repository


def expected_commit(app: Invocation, text: str | None) -> str | None:
    """Returns the hash that `--expected-hash` means; None without the option."""
    return app.repository().resolve(app.revision(text)).hash if text else None


def refuse_changed(
    repository: Repository,
    branch: Reference,
    expected: str,
    keys: Collection[ContentKey],
    *,
    ids: Collection[str] = (),
    hint: str = "",
) -> None:
    """Raises `ReferenceMoved` if a branch has changed keys or contents since a commit.

    `ids` are the ids of the contents, whatever their keys. Raises `CommitNotFound` unless the
    commit is in its history.
    """
    then, now = Revision(None, expected), Revision(None, branch.hash)
    if not repository.is_ancestor(then, now):
        raise CommitNotFound(
            f"Could not find commit '{expected}' in reference '{branch.name}'.", expected
        )
    before, after = (repository.contents(at, list(keys)) for at in (then, now))
    changed = [key for key in keys if before.get(key) != after.get(key)]
    for entry in repository.diff(then, now) if ids else ():
        is_decided = any(side and side.id in ids for side in (entry.before, entry.after))
        if is_decided and entry.key not in changed:
            changed.append(entry.key)
    if changed:
        raise changed_since(branch.name, expected, branch.hash, changed, hint=hint)
