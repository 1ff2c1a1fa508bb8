"""The result of a revert."""

from typing import Annotated

from nessie_cli.cli.app.output import Output
from nessie_cli.cli.staging.batch import StagedOther, StagedPut, changes_of, json_of, print_changes
from nessie_cli.cli.staging.committed import Committed, print_committed
from nessie_cli.model import CommitResult
from nessie_cli.wire.record import NOT_JSON
from nessie_cli.workspace.staging import StagedList


class Revert(Committed, frozen=True):
    """The result of a revert: the commit, and its operations with the contents that they expect."""

    operations: tuple[StagedPut | StagedOther, ...]
    staged: Annotated[StagedList, NOT_JSON]

    @classmethod
    def of_operations(cls, result: CommitResult, staged: StagedList) -> "Revert":
        """Returns the result of a commit with these operations."""
        keys = len({item.key for item in staged})
        return cls(result, False, keys, tuple(map(json_of, staged)), staged)


def print_revert(revert: Revert, output: Output) -> None:
    """Prints each change of a revert, then its commit."""
    print_changes(output, changes_of(revert.staged))
    print_committed(revert, output)
