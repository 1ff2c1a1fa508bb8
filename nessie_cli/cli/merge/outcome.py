"""The result of merge and transplant."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec.structs import replace

from nessie_cli import model
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Result
from nessie_cli.cli.log.deep import deep_changes
from nessie_cli.cli.log.diff_entries import DiffEntry, diff_entries
from nessie_cli.errors import InvalidInput
from nessie_cli.model import MergeResult
from nessie_cli.render.changes import ContentChange
from nessie_cli.render.diffs import print_diff
from nessie_cli.render.merges import merge_headline, print_merge, replaced_contents
from nessie_cli.render.spans import Span
from nessie_cli.render.text import short_hash
from nessie_cli.wire.record import INLINE, NOT_JSON, OPTIONAL


class Merge(Result, frozen=True, kw_only=True):
    """The effect of a merge or transplant, or the expected effect in a dry run.

    `diffs` are the changes of the target, with the comparison of metadata files (`--deep`).
    """

    outcome: Annotated[MergeResult, INLINE]
    verb: Annotated[str, NOT_JSON]
    """`merged` or `transplanted`."""
    source: Annotated[str, NOT_JSON]
    """The description of the source."""
    source_hash: Annotated[str | None, NOT_JSON] = None
    """The hash of the source of a merge."""
    diffs: Annotated[Sequence[DiffEntry] | None, OPTIONAL] = None
    changes: Annotated[Sequence[ContentChange] | None, NOT_JSON] = None


def refuse_deep_write(*, deep: bool, dry_run: bool) -> None:
    """Raises `InvalidInput` for `--deep` without `--dry-run`."""
    if deep and not dry_run:
        raise InvalidInput(
            "--deep needs --dry-run", hint="afterwards, `nessie show --deep` shows the same"
        )


def with_differences(merge: Merge, app: Invocation) -> Merge:
    """Adds the comparison of metadata files to the result of a dry run."""
    changes = list(deep_changes(_differences(merge.outcome), app))
    return replace(merge, diffs=list(diff_entries(changes)), changes=changes)


def _differences(outcome: MergeResult) -> Iterator[model.DiffEntry]:
    """Yields the changes of the target."""
    for detail in outcome.details:
        if detail.result != detail.target:
            yield model.DiffEntry(detail.key, detail.target, detail.result)


def print_outcome(merge: Merge, output: Output) -> None:
    """Prints the keys on stdout and a headline on stderr, unless `--quiet` is set."""
    if output.options.quiet:
        return
    outcome = merge.outcome
    is_contained = merge.source_hash is not None and (outcome.common_ancestor == merge.source_hash)
    output.err.print_text(
        *merge_headline(outcome, merge.verb, merge.source, is_contained=is_contained)
    )
    for commit in outcome.skipped:
        output.err.print_text(
            "skipped ",
            Span(short_hash(commit), "hash"),
            ": it changes nothing on this branch",
        )
    for line in replaced_contents(outcome):
        output.err.print_text(line)
    if merge.changes is None:
        print_merge(merge.outcome, output.out)
    else:
        print_diff(merge.changes, output.out)
