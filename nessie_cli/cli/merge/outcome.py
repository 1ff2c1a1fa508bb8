"""The result of merge and transplant."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Result
from nessie_cli.cli.log.diff_entries import DiffEntry, diff_entries
from nessie_cli.errors import InvalidInput
from nessie_cli.inspection.changes import ContentChange, changes_of
from nessie_cli.inspection.merges import differences_of
from nessie_cli.inspection.text import short_hash
from nessie_cli.model import MergeResult
from nessie_cli.render.merges import (
    merge_headline,
    merge_table,
    notes_of_combinations,
    replaced_contents,
)
from nessie_cli.render.spans import Span
from nessie_cli.wire.documents import DetailedMerge

if TYPE_CHECKING:
    from nessie_cli.iceberg.files import Files


class Merge(DetailedMerge, kw_only=True):
    """The effect of a merge or transplant, or the expected effect in a dry run.

    `diffs` are the changes of the target, with the comparison of metadata files (`--deep`).
    """

    diffs: list[DiffEntry] | UnsetType = UNSET


class Merged(Result, frozen=True, kw_only=True):
    """A merge or transplant, and how it is printed."""

    outcome: MergeResult
    verb: str
    """`merged` or `transplanted`."""
    source: str
    """The description of the source."""
    source_hash: str | None = None
    """The hash of the source of a merge."""
    changes: Sequence[ContentChange] | None = None
    """The changes of the target, if `--deep` compares them."""

    @property
    def document(self) -> Merge:
        """The JSON document."""
        merge = Merge.of(self.outcome)
        if self.changes is not None:
            merge.diffs = list(diff_entries(self.changes))
        return merge


def refuse_deep_write(*, deep: bool, dry_run: bool) -> None:
    """Raises `InvalidInput` for `--deep` without `--dry-run`."""
    if deep and not dry_run:
        raise InvalidInput(
            "--deep needs --dry-run", hint="afterwards, `nessie show --deep` shows the same"
        )


def with_differences(merge: Merged, app: Invocation, files: "Files") -> Merged:
    """Adds the comparison of metadata files to the result of a dry run."""
    from nessie_cli.cli.log.deep import deepen
    from nessie_cli.inspection.metadata import metadata_reader

    changes = changes_of(differences_of(merge.outcome))
    return replace(merge, changes=list(deepen(changes, app, metadata_reader(files))))


def print_outcome(merge: Merged, output: Output) -> None:
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
    for line in (*replaced_contents(outcome), *notes_of_combinations(outcome)):
        output.err.print_text(line)
    if merge.changes is None:
        output.out.print_table(*merge_table(merge.outcome), paged=True)
        return
    from nessie_cli.render.diffs import print_diff

    print_diff(merge.changes, output.out)
