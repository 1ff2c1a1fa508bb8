"""Former positions of a reference, from the reflog of the repository."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice

from nessie_cli.model import Reference
from nessie_cli.repository.reader import ReadableRepository

MOST = 20
AGE = timedelta(minutes=5)
"""The limits of the original server: the number of former HEADs, and their age."""


def former_heads(repository: ReadableRepository, reference: Reference) -> list[str]:
    """Returns the former hashes of a reference, newest first, each move once.

    A reference that was deleted and created again has no former positions.
    """
    return list(islice(_heads(repository, reference.name, datetime.now(UTC) - AGE), MOST))


def _heads(repository: ReadableRepository, name: str, since: datetime) -> Iterator[str]:
    for entry in repository.reflog(name, limit=10 * MOST):
        if entry.before is None or entry.after is None or entry.time < since:
            return
        if entry.before != entry.after:
            yield entry.before
