"""The result of the commands that commit."""

from typing import Any, Self

from msgspec import structs

from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Result
from nessie_cli.cli.staging.submission import Submitted
from nessie_cli.inspection.text import short_hash
from nessie_cli.model import CommitResult
from nessie_cli.render.spans import Span
from nessie_cli.wire.references import CommitOutcome


class Committed(CommitOutcome):
    """The result of a commit; `addedContents` is null if it created nothing.

    `wasRepeated` is true if an earlier attempt had committed already.
    """

    was_repeated: bool

    @classmethod
    def of_result(cls, result: CommitResult, was_repeated: bool, **others: Any) -> Self:
        """Returns the document of a commit; `others` are the attributes of a subclass."""
        outcome = structs.asdict(CommitOutcome.of(result))
        return cls(**outcome, was_repeated=was_repeated, **others)


class CommittedResult(Result, frozen=True):
    """A commit, and the number of keys that it changed."""

    result: CommitResult
    was_repeated: bool
    keys: int

    @classmethod
    def of(cls, submitted: Submitted) -> "CommittedResult":
        """Returns the result of a submission."""
        return cls(submitted.result, submitted.repeated, submitted.operations)

    @property
    def document(self) -> Committed:
        """The JSON document."""
        return Committed.of_result(self.result, self.was_repeated)


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
