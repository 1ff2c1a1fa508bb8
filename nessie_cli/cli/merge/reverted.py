"""The result of a revert."""

from collections.abc import Sequence

from msgspec import field

from nessie_cli.cli.app.output import Output
from nessie_cli.cli.staging.batch import (
    Combinations,
    StagedOperation,
    changes_of,
    json_of,
    notes_of,
    print_changes,
)
from nessie_cli.cli.staging.committed import Committed, CommittedResult, print_committed
from nessie_cli.cli.staging.split_runs import split_documents, split_notes
from nessie_cli.inspection.split_runs import SplitRun
from nessie_cli.model import CommitResult
from nessie_cli.render.spans import Span
from nessie_cli.workspace.staging import StagedList


class Revert(Committed, kw_only=True):
    """The result of a revert: the commit, and its operations with the contents that they expect."""

    operations: list[StagedOperation]


class RevertResult(CommittedResult, frozen=True, kw_only=True):
    """A revert, its operations, and the tables that it combined."""

    staged: StagedList
    combinations: Combinations = field(default_factory=dict)

    @classmethod
    def of_operations(
        cls, result: CommitResult, staged: StagedList, split_runs: Sequence[SplitRun] = ()
    ) -> "RevertResult":
        """Returns the result of a commit with these operations."""
        keys = len({item.key for item in staged})
        return cls(
            result=result, was_repeated=False, keys=keys, split_runs=split_runs, staged=staged
        )

    @property
    def document(self) -> Revert:
        """The JSON document."""
        return Revert.of_result(
            self.result,
            self.was_repeated,
            operations=[json_of(item, self.combinations) for item in self.staged],
            split_runs=split_documents(self.split_runs),
        )

    @property
    def notes(self) -> Sequence[str]:
        """The tables that were combined, and the runs that are split."""
        return [*notes_of(self.staged, self.combinations), *split_notes(self.split_runs)]


def print_revert(revert: RevertResult, output: Output) -> None:
    """Prints each change of a revert, then its commit; of an empty one, that none was written."""
    if not revert.staged:
        branch = Span(revert.result.reference.name or "", "name")
        output.say("no commit was written: ", branch, " keeps its contents")
        return
    print_changes(output, changes_of(revert.staged))
    print_committed(revert, output)
