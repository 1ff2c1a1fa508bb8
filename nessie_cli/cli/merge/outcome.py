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
from nessie_cli.cli.merge.commits import changes_of_commits
from nessie_cli.errors import InvalidInput
from nessie_cli.model import (
    Content,
    ContentKey,
    KeyBehavior,
    KeyRange,
    MergeBehavior,
    MergeResult,
)
from nessie_cli.render.changes import Change
from nessie_cli.render.diffs import print_diff
from nessie_cli.render.merges import merge_headline, print_merge
from nessie_cli.repository.base import Repository
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
    changes: Annotated[Sequence[Change] | None, NOT_JSON] = None


def refuse_deep_write(*, deep: bool, dry_run: bool) -> None:
    """Raises `InvalidInput` for `--deep` without `--dry-run`."""
    if deep and not dry_run:
        raise InvalidInput(
            "--deep needs --dry-run. Hint: afterwards, `nessie show --deep` shows the same"
        )


def with_effects(
    outcome: MergeResult, repository: Repository, commits: Sequence[str]
) -> MergeResult:
    """Returns the result of a transplant with `DROP` only for keys that were left out.

    A transplant leaves out a key only if it would conflict: if the target differs from the state
    before the first commit that changes the key.
    """
    dropped = [detail.key for detail in outcome.details if detail.behavior is MergeBehavior.DROP]
    before: dict[ContentKey, Content | None] = {}
    if dropped:
        for entry in changes_of_commits(repository, commits, KeyRange(keys=tuple(dropped))):
            before.setdefault(entry.key, entry.before)
    details = [
        replace(detail, behavior=MergeBehavior.NORMAL)
        if detail.key in before and before[detail.key] == detail.target
        else detail
        for detail in outcome.details
    ]
    return replace(outcome, details=tuple(details))


def with_differences(merge: Merge, app: Invocation, behaviors: Sequence[KeyBehavior]) -> Merge:
    """Adds the comparison of metadata files to the result of a dry run."""
    changes = list(deep_changes(_differences(merge.outcome, behaviors), app))
    return replace(merge, diffs=list(diff_entries(changes)), changes=changes)


def _differences(
    outcome: MergeResult, behaviors: Sequence[KeyBehavior]
) -> Iterator[model.DiffEntry]:
    """Yields the changes of the target: to the content of the source, or of `--resolve`."""
    resolved = {one.key: one.resolved for one in behaviors if one.resolved is not None}
    for detail in outcome.details:
        after = resolved.get(detail.key, detail.source)
        if detail.behavior is not MergeBehavior.DROP and after != detail.target:
            yield model.DiffEntry(detail.key, detail.target, after)


def print_outcome(merge: Merge, output: Output) -> None:
    """Prints the keys on stdout and a headline on stderr, unless `--quiet` is set."""
    if output.options.quiet:
        return
    outcome = merge.outcome
    is_contained = merge.source_hash is not None and (outcome.common_ancestor == merge.source_hash)
    output.err.print_text(
        *merge_headline(outcome, merge.verb, merge.source, output.err, is_contained=is_contained)
    )
    if merge.changes is None:
        print_merge(merge.outcome, output.out)
    else:
        print_diff(merge.changes, output.out)
