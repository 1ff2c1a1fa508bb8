"""`nessie diff`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Annotated

import typer
from msgspec import UNSET, Struct, UnsetType

from nessie_cli.cli.app.arguments import split_keys
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Page, Records, Result
from nessie_cli.cli.log.diff_entries import DiffEntry, diff_entries
from nessie_cli.cli.log.options import (
    DeepOption,
    NameStatusOption,
    RowColumnsOption,
    RowFilterOption,
    RowFormatOption,
    RowKeyOption,
    RowLimitOption,
    RowOutputOption,
    RowsOption,
)
from nessie_cli.cli.log.rows import (
    ChangedContents,
    RowsResult,
    RowStatisticsResult,
    compare_rows,
    count_rows,
    row_options,
    show_rows,
)
from nessie_cli.errors import InvalidInput
from nessie_cli.inspection.changes import ContentChange, changes_of
from nessie_cli.inspection.comparison import changes_between, ends_of
from nessie_cli.model import ContentKey, Reference
from nessie_cli.render.diffs import print_diff, print_name_status, print_names, print_summary
from nessie_cli.render.terminal import Terminal
from nessie_cli.revisions import Revision
from nessie_cli.wire.references import AnyReference, reference_struct

EXAMPLES = (
    "nessie diff main feature",
    "nessie diff main...feature --stat",
    "nessie diff --staged",
    "nessie diff main feature --deep -- db.sales.orders",
    "nessie diff v1 --name-status -- db.sales",
    "nessie diff main feature --name-only",
    "nessie diff main feature --rows -- db.sales.orders",
    "nessie diff main feature --rows --key id --where 'id > 1' --format markdown",
    "nessie diff main feature --exit-code --json",
)
USAGE = "nessie diff A [B] [-- PREFIX...]"
DIFFERENCES_FOUND = 1


class Options(Struct, frozen=True, kw_only=True):
    """Show the contents that differ between two revisions, field by field.

    A..B is the same as A B; A...B compares the merge base of A and B with B. --staged compares the
    head of the current branch with the staged batch, and takes no revision. The global option -q
    prints no differences, and exits with 1 if there are any. With --json, -q is ignored.
    """

    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="A [B] [-- PREFIX...]",
            help="Compare A with B (default: HEAD), at and below each PREFIX. A is required, except"
            " with --staged.",
        ),
    ] = None
    staged: Annotated[
        bool,
        typer.Option(
            "--staged",
            "--cached",
            help="Show the staged changes.",
        ),
    ] = False
    stat: Annotated[
        bool,
        typer.Option(
            "--stat",
            help="Show each key with the names of its changed fields, or with the type of a created"
            " or deleted content.",
        ),
    ] = False
    name_status: NameStatusOption = False
    name_only: Annotated[
        bool,
        typer.Option("--name-only", help="Show only keys, and for a rename only the new key."),
    ] = False
    deep: DeepOption = False
    rows: RowsOption = False
    key: RowKeyOption = None
    columns: RowColumnsOption = None
    where: RowFilterOption = None
    limit: RowLimitOption = None
    format: RowFormatOption = None
    output: RowOutputOption = None
    exit_code: Annotated[
        bool,
        typer.Option("--exit-code", help="Exit with 1 if there are differences."),
    ] = False

    @property
    def print_changes(self) -> Callable[[Iterable[ContentChange], Terminal], None]:
        """The function that prints the changes in the selected form."""
        if self.name_only:
            return print_names
        return print_name_status if self.name_status else print_summary if self.stat else print_diff


class Diff(Page, frozen=True, kw_only=True):
    """The keys whose contents differ.

    `staged` is true if the staged batch is compared with its branch; both references are then that
    branch.
    """

    listing = "diffs"
    effective_from_reference: AnyReference
    effective_to_reference: AnyReference
    staged: bool | UnsetType = UNSET
    diffs: Records[DiffEntry]


class DiffResult(Result, frozen=True, kw_only=True):
    """The differences, and how they are printed."""

    document: Diff
    changes: Iterable[ContentChange]
    options: Options
    fails: bool

    @property
    def exit_code(self) -> int:
        """1 if there are differences and `--exit-code` is given."""
        return DIFFERENCES_FOUND if self.fails else 0


def run(options: Options, app: Invocation) -> DiffResult | RowsResult | RowStatisticsResult:
    """Finds the differences. They are read while they are printed."""
    _check(options)
    rows = row_options(options)
    arguments, prefixes = split_keys(app, options.arguments or [], 2, USAGE)
    if options.staged:
        before, after, changes = _staged(arguments, prefixes, app)
    else:
        before, after = (app.repository().resolve(side) for side in _sides(arguments, app))
        changes = changes_between(app.repository(), before.hash, after.hash, prefixes)
    if rows is not None:
        contents = ChangedContents(before, after, changes, options.staged)
        if options.stat:
            return count_rows(rows, app, contents)
        return compare_rows(rows, app, contents, exit_code=options.exit_code)
    if options.deep:
        from nessie_cli.cli.log.deep import deepen

        changes = deepen(changes, app)
    first = list(islice(changes, 1))
    quiet = app.options.quiet and not app.output.is_json
    changes = iter(()) if quiet else chain(first, changes)
    document = Diff(
        effective_from_reference=reference_struct(before),
        effective_to_reference=reference_struct(after),
        staged=True if options.staged else UNSET,
        diffs=diff_entries(changes),
    )
    return DiffResult(
        document=document,
        changes=changes,
        options=options,
        fails=bool(first) and (options.exit_code or quiet),
    )


def show(result: DiffResult | RowsResult | RowStatisticsResult, output: Output) -> None:
    """Prints the changes in the selected form."""
    if not isinstance(result, DiffResult):
        show_rows(result, output)
        return
    result.options.print_changes(result.changes, output.out)


def _check(options: Options) -> None:
    """Raises `InvalidInput` for options that cannot be used together."""
    forms = {
        "--stat": options.stat,
        "--name-status": options.name_status,
        "--name-only": options.name_only,
    }
    given = [name for name, is_given in forms.items() if is_given]
    if options.rows:
        forms["--deep"] = options.deep
        others = [name for name, is_given in forms.items() if is_given and name != "--stat"]
        if others:
            raise InvalidInput(f"--rows and {others[0]} cannot be used together")
    if options.deep and given:
        raise InvalidInput(
            "--deep compares field by field; omit --stat, --name-status and --name-only"
        )
    if len(given) > 1:
        raise InvalidInput(f"{given[0]} and {given[1]} cannot be used together")


def _sides(arguments: Sequence[str], app: Invocation) -> tuple[Revision, Revision]:
    """Returns the revisions to compare."""
    if not arguments:
        raise InvalidInput(
            f"diff needs a revision to compare with: {USAGE}",
            hint="`nessie diff --staged` shows the staged changes",
        )
    if len(arguments) > 1:
        return app.revision(arguments[0]), app.revision(arguments[1])
    meant = app.revision_range(arguments[0])
    if isinstance(meant, Revision):
        return meant, app.revision(None)
    return ends_of(app.repository(), meant)


def _staged(
    arguments: Sequence[str], prefixes: Sequence[ContentKey], app: Invocation
) -> tuple[Reference, Reference, Iterator[ContentChange]]:
    """Returns the branch of the staged batch, twice, and the changes at or below some keys."""
    from nessie_cli.cli.log.staged import staged_differences

    if arguments:
        raise InvalidInput(
            f"--staged compares with the head of the branch, so it takes no revision"
            f" ({arguments[0]!r})"
        )
    branch, differences = staged_differences(app)
    selected = (
        entry
        for entry in differences
        if not prefixes or any(entry.key.starts_with(prefix) for prefix in prefixes)
    )
    return branch, branch, iter(changes_of(selected))
