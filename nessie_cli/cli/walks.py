"""The commits that only some references reach."""

from __future__ import annotations

from collections.abc import Collection

from nessie_cli.model import NO_ANCESTOR
from nessie_cli.repository.base import Repository


def only_references_to(repository: Repository, hash_: str, names: Collection[str]) -> bool:
    """Whether no other reference than these reaches a commit: losing them would lose commits from sight."""
    if hash_ == NO_ANCESTOR:
        return False
    others = (reference.hash for reference in repository.references() if reference.name not in names)
    return not repository.descendants_among(set(others), hash_)
