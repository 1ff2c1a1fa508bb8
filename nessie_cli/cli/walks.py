"""The commits that transplants name, and those that only some references reach."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from nessie_cli.cli.log.selection import walk_of
from nessie_cli.commitspec import CommitRange, CommitSpec
from nessie_cli.errors import InvalidInput
from nessie_cli.model import NO_ANCESTOR
from nessie_cli.repository.base import Repository
from nessie_cli.repository.log_filter import ALL_COMMITS


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
