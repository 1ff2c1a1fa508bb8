"""The states of tables that are staged in a workspace: in its batch, or in a stash."""

from __future__ import annotations

from collections.abc import Iterator

from nessie_cli.gc.history import TableState, states_of
from nessie_cli.model import Put
from nessie_cli.workspace.batch import Batch, BatchFile
from nessie_cli.workspace.folder import Workspace
from nessie_cli.workspace.stash import StashFile


def staged_states(workspace: Workspace) -> Iterator[TableState]:
    """The states that the staged batch and the stashes of a workspace put, all of them live.

    Raises `InvalidInput` if one of the files cannot be understood.
    """
    yield from _stashed(workspace)
    batch = BatchFile(workspace).read()
    if batch is not None:
        yield from _put_by(batch, "the staged batch")
    # A batch that was stashed after the first look and before the second one.
    yield from _stashed(workspace)


def _stashed(workspace: Workspace) -> Iterator[TableState]:
    for number, stashed in enumerate(StashFile(workspace).read()):
        yield from _put_by(stashed.batch, f"stash {number}")


def _put_by(batch: Batch, place: str) -> Iterator[TableState]:
    for operation in batch.operations:
        if isinstance(operation, Put):
            yield from states_of(operation.key, operation.content, place, batch.begun_at, live=True)
