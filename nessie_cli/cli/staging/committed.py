"""The result of the commands that commit."""

from typing import Annotated

from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Result
from nessie_cli.cli.staging.submission import Submitted
from nessie_cli.model import CommitResult
from nessie_cli.render.spans import Span
from nessie_cli.render.text import short_hash
from nessie_cli.wire.record import INLINE, NOT_JSON


class Committed(Result, frozen=True):
    """The result of a commit; `addedContents` is null if it created nothing.

    `wasRepeated` is true if an earlier attempt had committed already.
    """

    result: Annotated[CommitResult, INLINE]
    was_repeated: bool
    keys: Annotated[int, NOT_JSON]
    """The number of keys that the commit changed."""

    @classmethod
    def of(cls, submitted: Submitted) -> "Committed":
        """Returns the result of a submission."""
        return cls(submitted.result, submitted.repeated, submitted.operations)


def print_committed(committed: Committed, output: Output) -> None:
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
