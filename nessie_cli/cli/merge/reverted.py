"""The result of a revert."""

from nessie_cli.cli.app.output import Output
from nessie_cli.cli.staging.batch import StagedOperation, changes_of, json_of, print_changes
from nessie_cli.cli.staging.committed import Committed, CommittedResult, print_committed
from nessie_cli.model import CommitResult
from nessie_cli.render.spans import Span
from nessie_cli.workspace.staging import StagedList


class Revert(Committed, kw_only=True):
    """The result of a revert: the commit, and its operations with the contents that they expect."""

    operations: list[StagedOperation]


class RevertResult(CommittedResult, frozen=True):
    """A revert, and its operations."""

    staged: StagedList

    @classmethod
    def of_operations(cls, result: CommitResult, staged: StagedList) -> "RevertResult":
        """Returns the result of a commit with these operations."""
        return cls(result, False, len({item.key for item in staged}), staged)

    @property
    def document(self) -> Revert:
        """The JSON document."""
        return Revert.of_result(
            self.result, self.was_repeated, operations=list(map(json_of, self.staged))
        )


def print_revert(revert: RevertResult, output: Output) -> None:
    """Prints each change of a revert, then its commit; of an empty one, that none was written."""
    if not revert.staged:
        branch = Span(revert.result.reference.name or "", "name")
        output.say("no commit was written: ", branch, " keeps its contents")
        return
    print_changes(output, changes_of(revert.staged))
    print_committed(revert, output)
