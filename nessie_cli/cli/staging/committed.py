"""The result of the commands that commit."""

from collections.abc import Sequence
from typing import Any, Self

from msgspec import UNSET, UnsetType, structs

from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Result
from nessie_cli.cli.staging.split_runs import SplitRunDocument, split_documents, split_notes
from nessie_cli.cli.staging.submission import Submitted
from nessie_cli.inspection.split_runs import SplitRun
from nessie_cli.inspection.text import short_hash
from nessie_cli.model import CommitResult
from nessie_cli.render.spans import Span
from nessie_cli.wire.references import CommitOutcome


class Committed(CommitOutcome):
    """The result of a commit; `addedContents` is null if it created nothing.

    `wasRepeated` is true if an earlier attempt had committed already. `splitRuns` are runs of which
    the commit reverts some tables, but not all.
    """

    was_repeated: bool
    split_runs: list[SplitRunDocument] | UnsetType = UNSET

    @classmethod
    def of_result(cls, result: CommitResult, was_repeated: bool, **others: Any) -> Self:
        """Returns the document of a commit; `others` are the attributes of a subclass."""
        outcome = structs.asdict(CommitOutcome.of(result))
        return cls(**outcome, was_repeated=was_repeated, **others)


class CommittedResult(Result, frozen=True):
    """A commit, the number of keys that it changed, and the runs that it splits."""

    result: CommitResult
    was_repeated: bool
    keys: int
    split_runs: Sequence[SplitRun] = ()

    @classmethod
    def of(cls, submitted: Submitted) -> "CommittedResult":
        """Returns the result of a submission."""
        return cls(submitted.result, submitted.repeated, submitted.operations)

    @property
    def document(self) -> Committed:
        """The JSON document."""
        return Committed.of_result(
            self.result, self.was_repeated, split_runs=split_documents(self.split_runs)
        )

    @property
    def notes(self) -> Sequence[str]:
        """The runs that it splits."""
        return split_notes(self.split_runs)


def print_committed(committed: CommittedResult, output: Output) -> None:
    """Prints the branch, its new hash and how many keys were committed."""
    result = committed.result
    keys = f"{committed.keys} key{'' if committed.keys == 1 else 's'}"
    branch = Span(result.reference.name or "", "name")
    hash_ = Span(short_hash(result.reference.hash), "hash")
    if committed.was_repeated:
        output.say("an earlier attempt had committed this: ", branch, " ", hash_, f" {keys}")
    elif result.applied:
        output.say(branch, " ", hash_, f" {keys}")
    else:
        output.say(f"would commit {keys} to ", branch, "; nothing was written")
