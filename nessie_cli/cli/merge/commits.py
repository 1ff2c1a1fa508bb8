"""The commits of a transplant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nessie_cli.cli.log.selection import walk_of
from nessie_cli.errors import InvalidInput
from nessie_cli.repository.log_filter import ALL_COMMITS
from nessie_cli.revisions import Revision

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation


def commits_to_transplant(app: Invocation, words: Sequence[str]) -> list[str]:
    """Returns the hashes of revisions and ranges, in the order given.

    A range is read oldest first, along first parents. Raises `InvalidInput` if there is no commit.
    """
    repository = app.repository()
    hashes: list[str] = []
    for word in words:
        meant = app.revision_range(word)
        if isinstance(meant, Revision):
            hashes.append(repository.resolve(meant).hash)
            continue
        if meant.symmetric:
            raise InvalidInput(f"{word}: a transplant takes ranges A..B, not A...B")
        found = repository.filtered_log(walk_of(meant, first_parent=True), ALL_COMMITS)
        hashes += reversed([entry.hash for entry in found if entry is not None])
    if not hashes:
        raise InvalidInput("nothing to transplant: the range is empty")
    return hashes
