"""Which commits a revision, a range or `--all` means, newest first, read as they are consumed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from nessie_cli.commitspec import CommitRange, CommitSpec
from nessie_cli.errors import InvalidInput
from nessie_cli.model import NO_ANCESTOR, KeyRange, LogEntry
from nessie_cli.repository.base import ALL_KEYS, Repository
from nessie_cli.repository.log_filter import ALL_COMMITS, Walk

if TYPE_CHECKING:
    from nessie_cli.render.changes import Change


def walk_of(meant: CommitRange | CommitSpec | None, *, first_parent: bool = False) -> Walk:
    """The walk over the history of a revision, over a range, or for None over all branches and tags."""
    if isinstance(meant, CommitRange):
        return Walk(meant.end, meant.start, symmetric=meant.symmetric, first_parent=first_parent)
    return Walk(meant, first_parent=first_parent)


def changes_in(repository: Repository, entry: LogEntry, keys: KeyRange = ALL_KEYS) -> list[Change]:
    """What a commit changed: the difference to its first parent. Cost O(changes · log keys)."""
    from nessie_cli.render.changes import changes_of

    # As texts they would be looked for among the names first.
    return changes_of(repository.diff(CommitSpec(None, entry.parent), CommitSpec(None, entry.hash), keys))


def counted_changes_in(repository: Repository, entry: LogEntry) -> list[Change]:
    """The kinds and keys of what a commit changed, without contents."""
    from nessie_cli.render.changes import outlined

    return outlined(repository.changed_keys(entry))


def commits_to_transplant(repository: Repository, meant: Sequence[CommitRange | CommitSpec]) -> list[str]:
    """The hashes that revisions and ranges name, oldest first within a range; merges count along first parents. Raises `InvalidInput` for none."""
    hashes: list[str] = []
    for item in meant:
        if isinstance(item, CommitSpec):
            hashes.append(repository.resolve(item).hash)
        else:
            found = repository.filtered_log(walk_of(item, first_parent=True), ALL_COMMITS)
            hashes += reversed([entry.hash for entry in found if entry is not None])
    if not hashes:
        raise InvalidInput("nothing to transplant: the range names no commit")
    return hashes


def only_references_to(repository: Repository, hash_: str, names: Collection[str]) -> bool:
    """Whether no other reference than these reaches a commit: losing them would lose commits from sight."""
    if hash_ == NO_ANCESTOR:
        return False
    others = (reference.hash for reference in repository.references() if reference.name not in names)
    return not repository.descendants_among(set(others), hash_)
