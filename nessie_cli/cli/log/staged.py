"""The staged batch as differences from the head of its branch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from nessie_cli.cli.staging.submission import refuse_elsewhere
from nessie_cli.model import DiffEntry, Reference, Unchanged
from nessie_cli.revisions import Revision
from nessie_cli.workspace.staging import effective

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation


def staged_differences(app: Invocation) -> tuple[Reference, list[DiffEntry]]:
    """Returns the current branch, and the differences of the staged batch, ascending by key.

    Raises `InvalidInput` if the batch is for another branch or another store.
    """
    batch = app.batch_file().read()
    name = app.reference_name()
    if batch is not None:
        refuse_elsewhere(app, batch, name)
    repository = app.repository()
    reference = repository.reference(name)
    if batch is None:
        return reference, []
    staged = [item for item in batch.staged if not isinstance(item.operation, Unchanged)]
    there = repository.contents(Revision(None, reference.hash), batch.keys)

    def differences() -> Iterator[DiffEntry]:
        for key in sorted(batch.keys):
            before, after = there.get(key), effective(staged, key, there.get)
            if before != after:
                yield DiffEntry(key, before, after)

    return reference, list(differences())
