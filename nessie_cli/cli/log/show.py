"""`nessie show`."""

from collections.abc import Sequence
from itertools import chain
from typing import Annotated

import typer
from msgspec import Struct, field

from nessie_cli.cli.app.arguments import split_content, split_keys
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Result
from nessie_cli.cli.content.shown import ShownContentResult, print_content, shown_content
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
    RowDiff,
    RowsResult,
    compare_rows,
    row_options,
    show_rows,
)
from nessie_cli.errors import InvalidInput, NessieError
from nessie_cli.inspection.changes import ContentChange, changes_of_commit
from nessie_cli.model import LogEntry, Reference, ReferenceType
from nessie_cli.render.history import NO_NAMES, LoggedCommit, Names, show_lines
from nessie_cli.wire import commits
from nessie_cli.wire.scalars import empty_list

EXAMPLES = (
    "nessie show",
    "nessie show main~2",
    "nessie show 8f31c0de -- db.sales.orders",
    "nessie show --name-status",
    "nessie show v1 --deep --json",
    "nessie show main --rows --format csv -- db.sales.orders",
    "nessie show v1:db.orders",
)
USAGE = "nessie show [REV|REV:KEY] [-- KEY...]"


class Options(Struct, frozen=True, kw_only=True):
    """Show a commit's metadata and changes.

    The changes of a merge are relative to its first parent. A key selects itself and all keys below
    it. REV:KEY shows one content, as `nessie content show KEY --at REV` does.
    """

    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[REV] [-- KEY...]",
            help="The commit (default: HEAD). With KEY, show only the changes of those keys.",
        ),
    ] = None
    name_status: NameStatusOption = False
    deep: DeepOption = False
    rows: RowsOption = False
    key: RowKeyOption = None
    columns: RowColumnsOption = None
    where: RowFilterOption = None
    limit: RowLimitOption = None
    format: RowFormatOption = None
    output: RowOutputOption = None


class ShownCommit(commits.LogEntry):
    """A commit, and each content before and after it."""

    diffs: list[DiffEntry] = field(default_factory=empty_list)


class ShownCommitResult(Result, frozen=True, kw_only=True):
    """A commit, and how it is printed."""

    document: ShownCommit
    entry: LogEntry
    changes: Sequence[ContentChange]
    by_letter: bool
    names: Names


class ShownRowsResult(Result, frozen=True, kw_only=True):
    """A commit, and the rows that it changed."""

    commit: LoggedCommit
    names: Names
    rows: RowsResult

    @property
    def document(self) -> RowDiff:
        """The changed rows."""
        return self.rows.document

    @property
    def failures(self) -> Sequence[NessieError]:
        """The tables that cannot be compared, and why."""
        return self.rows.failures


def run(
    options: Options, app: Invocation
) -> ShownCommitResult | ShownRowsResult | ShownContentResult:
    """Reads the commit, or the content of REV:KEY."""
    rows = row_options(options)
    revisions, keys = split_keys(app, options.arguments or [], 1, USAGE)
    if revisions and (content := split_content(revisions[0])) is not None:
        if other := "keys after --" if keys else _form_of(options):
            raise InvalidInput(
                f"{revisions[0]} shows one content, so {other} cannot be used with it"
            )
        return shown_content(app, content[1], content[0])
    if options.deep and options.name_status:
        raise InvalidInput("--deep compares field by field; omit --name-status")
    if options.rows and (options.deep or options.name_status):
        other = "--deep" if options.deep else "--name-status"
        raise InvalidInput(f"--rows and {other} cannot be used together")
    repository = app.repository()
    entry = repository.commit_at(app.revision(revisions[0] if revisions else None))
    changes = [change for change in changes_of_commit(repository, entry) if change.touches(keys)]
    names = NO_NAMES if app.output.is_json else Names(repository.references(), app.head.name)
    if rows is not None:
        before, after = (
            Reference(ReferenceType.DETACHED, "", hash_) for hash_ in (entry.parent, entry.hash)
        )
        compared = compare_rows(rows, app, ChangedContents(before, after, changes))
        commit = LoggedCommit(entry, changes)
        return ShownRowsResult(commit=commit, names=names, rows=compared)
    if options.deep:
        from nessie_cli.cli.log.deep import deepen

        changes = list(deepen(changes, app))
    document = ShownCommit.of(entry)
    document.diffs = list(diff_entries(changes))
    return ShownCommitResult(
        document=document,
        entry=entry,
        changes=changes,
        by_letter=options.name_status,
        names=names,
    )


def _form_of(options: Options) -> str | None:
    """Returns the option that selects what is shown of a commit."""
    forms = {
        "--deep": options.deep,
        "--name-status": options.name_status,
        "--rows": options.rows,
    }
    return next((name for name, is_given in forms.items() if is_given), None)


def show(result: ShownCommitResult | ShownRowsResult | ShownContentResult, output: Output) -> None:
    """Prints the commit, then each change field by field or row by row; or the content."""
    if isinstance(result, ShownRowsResult):
        if result.rows.is_for_people and not result.rows.is_quiet:
            lines = show_lines(result.commit, output.out, result.names, by_letter=True)
            output.out.print_lines(chain(lines, [[]]))
        show_rows(result.rows, output)
        return
    if isinstance(result, ShownContentResult):
        print_content(result, output)
        return
    commit = LoggedCommit(result.entry, result.changes)
    lines = show_lines(commit, output.out, result.names, by_letter=result.by_letter)
    output.out.print_lines(lines, paged=True)
