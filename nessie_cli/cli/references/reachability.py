"""Checks before a reference is moved or deleted."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from nessie_cli.model import NO_ANCESTOR, Reference

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation
    from nessie_cli.cli.references.options import ReferenceOptions
    from nessie_cli.repository.base import Repository


def expected_hash(options: ReferenceOptions, app: Invocation, reference: Reference) -> str:
    """Returns the hash of `--expected-hash`, or the current hash of the reference."""
    if options.expected_hash is None:
        return reference.hash
    return app.repository().resolve(app.revision(options.expected_hash)).hash


def is_only_way_to(repository: Repository, hash_: str, names: Collection[str]) -> bool:
    """Whether a commit becomes unreachable without these references."""
    if hash_ == NO_ANCESTOR:
        return False
    others = {one.hash for one in repository.references() if one.name not in names}
    return not repository.descendants_among(others, hash_)
