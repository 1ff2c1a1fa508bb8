"""The commits that the arguments of a merge or transplant mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nessie_cli.errors import InvalidInput
from nessie_cli.inspection.text import short_hash
from nessie_cli.model import Reference
from nessie_cli.repository.log_filter import ALL_COMMITS, Walk
from nessie_cli.revisions import Revision, RevisionRange

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation


def commits_to_transplant(app: Invocation, revisions: Sequence[str]) -> list[str]:
    """Returns the hashes of revisions and ranges, in the order given.

    A range is read oldest first, along first parents. Raises `InvalidInput` if there is no commit.
    """
    repository = app.repository()
    hashes: list[str] = []
    for revision in revisions:
        meant = app.revision_range(revision)
        if isinstance(meant, Revision):
            hashes.append(repository.resolve(meant).hash)
            continue
        if meant.symmetric:
            raise InvalidInput(f"{revision}: a transplant takes ranges A..B, not A...B")
        log = repository.filtered_log(Walk.of(meant, first_parent=True), ALL_COMMITS)
        hashes += reversed([entry.hash for entry in log if entry is not None])
    if not hashes:
        raise InvalidInput("nothing to transplant: the range is empty")
    return hashes


def pinned_commits(app: Invocation, revisions: Sequence[str]) -> dict[str, str]:
    """Returns each revision and range by its hashes: it means the same after a branch has moved."""
    repository = app.repository()

    def pinned(revision: Revision) -> str:
        return short_hash(repository.resolve(revision).hash)

    def by_hashes(meant: Revision | RevisionRange) -> str:
        if isinstance(meant, Revision):
            return pinned(meant)
        return f"{pinned(meant.start)}..{pinned(meant.end)}"

    return {revision: by_hashes(app.revision_range(revision)) for revision in revisions}


def pinned_source(source: Revision, commit: Reference) -> Revision:
    """Returns the source of a merge with its present hash, which a branch keeps beside its name."""
    is_named = commit.name and source.name == commit.name and not source.steps
    return Revision(commit.name if is_named else None, commit.hash)


def pinned_word(source: Revision) -> str:
    """Returns the text of a pinned source."""
    hash_ = short_hash(source.hash or "")
    return f"{source.name}@{hash_}" if source.name else hash_
