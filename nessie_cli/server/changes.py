"""Where a reference has been lately, from the repository's reflog (reference 12.7)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice

from nessie_cli.model import Reference
from nessie_cli.repository.base import Repository

MOST = 20
AGE = timedelta(minutes=5)
"""What the original remembers: that many former HEADs, and none that is older."""


def former_heads(repository: Repository, reference: Reference) -> list[str]:
    """The hashes at which a reference was before, newest first, each move once; a reference that was deleted and made again begins anew."""
    return list(islice(_heads(repository, reference.name, datetime.now(UTC) - AGE), MOST))


def _heads(repository: Repository, name: str, since: datetime) -> Iterator[str]:
    for entry in repository.reflog(name, limit=10 * MOST):
        if entry.before is None or entry.after is None or entry.time < since:
            return
        if entry.before != entry.after:
            yield entry.before
