"""The states of tables in the staged batch and the stashes of a workspace."""

from __future__ import annotations

from collections.abc import Iterator

from nessie_cli.gc.history import TableState, states_of
from nessie_cli.model import Put
from nessie_cli.workspace.batch import BatchFile, StagedBatch
from nessie_cli.workspace.folder import Workspace
from nessie_cli.workspace.stash import StashFile


def staged_states(workspace: Workspace) -> Iterator[TableState]:
    """Returns the states in the staged batch and the stashes. All of them are live.

    Raises `InvalidInput` if a file is damaged.
    """
    yield from _stashed(workspace)
    batch = BatchFile(workspace).read()
    if batch is not None:
        yield from _put_by(batch, "the staged batch")
    # A batch may be stashed between the first and the second read.
    yield from _stashed(workspace)


def _stashed(workspace: Workspace) -> Iterator[TableState]:
    for number, stashed in enumerate(StashFile(workspace).read()):
        yield from _put_by(stashed.batch, f"stash {number}")


def _put_by(batch: StagedBatch, place: str) -> Iterator[TableState]:
    for operation in batch.operations:
        if isinstance(operation, Put):
            yield from states_of(operation.key, operation.content, place, batch.begun_at, live=True)
