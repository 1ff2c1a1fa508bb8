"""The result of merge and transplant."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Result
from nessie_cli.model import MergeResult
from nessie_cli.render.changes import Change
from nessie_cli.render.diffs import print_diff
from nessie_cli.render.merges import merge_headline, print_merge
from nessie_cli.wire.record import INLINE, NOT_JSON


@dataclass(frozen=True, kw_only=True)
class Merge(Result):
    """What a merge or transplant did, or would do in a dry run."""

    outcome: Annotated[MergeResult, INLINE]
    verb: Annotated[str, NOT_JSON]
    """`merged` or `transplanted`."""
    source: Annotated[str, NOT_JSON]
    """What was merged, in words."""
    changes: Annotated[Sequence[Change] | None, NOT_JSON] = None
    """The changes of the target with the comparison of metadata files, if `--deep` requests it."""


def print_outcome(merge: Merge, output: Output) -> None:
    """Prints the keys on stdout and a headline on stderr."""
    if not output.options.quiet:
        output.err.print_line(*merge_headline(merge.outcome, merge.verb, merge.source, output.err))
    if merge.changes is None:
        print_merge(merge.outcome, output.out)
    else:
        print_diff(merge.changes, output.out)
