"""`nessie show`."""

from collections.abc import Sequence
from typing import Annotated

import typer
from msgspec import Struct, field

from nessie_cli.cli.app.arguments import split_content, split_keys
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Result
from nessie_cli.cli.content.shown import ShownContentResult, print_content, shown_content
from nessie_cli.cli.log.diff_entries import DiffEntry, diff_entries
from nessie_cli.cli.log.options import DeepOption, NameStatusOption
from nessie_cli.errors import InvalidInput
from nessie_cli.inspection.changes import ContentChange, changes_of_commit
from nessie_cli.model import LogEntry
from nessie_cli.render.history import NO_NAMES, LoggedCommit, Names, show_lines
from nessie_cli.wire import commits
from nessie_cli.wire.scalars import empty_list

EXAMPLES = (
    "nessie show",
    "nessie show main~2",
    "nessie show 8f31c0de -- db.sales.orders",
    "nessie show --name-status",
    "nessie show v1 --deep --json",
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


def run(options: Options, app: Invocation) -> ShownCommitResult | ShownContentResult:
    """Reads the commit, or the content of REV:KEY."""
    before, keys = split_keys(app, options.arguments or [], 1, USAGE)
    if before and (content := split_content(before[0])) is not None:
        if keys or options.deep or options.name_status:
            other = "keys after --" if keys else "--deep" if options.deep else "--name-status"
            raise InvalidInput(f"{before[0]} shows one content, so {other} cannot be used with it")
        return shown_content(app, content[1], content[0])
    if options.deep and options.name_status:
        raise InvalidInput("--deep compares field by field; omit --name-status")
    repository = app.repository()
    entry = repository.commit_at(app.revision(before[0] if before else None))
    changes = [change for change in changes_of_commit(repository, entry) if change.touches(keys)]
    if options.deep:
        from nessie_cli.cli.log.deep import deepen

        changes = list(deepen(changes, app))
    names = NO_NAMES if app.output.is_json else Names(repository.references(), app.head.name)
    document = ShownCommit.of(entry)
    document.diffs = list(diff_entries(changes))
    return ShownCommitResult(
        document=document,
        entry=entry,
        changes=changes,
        by_letter=options.name_status,
        names=names,
    )


def show(result: ShownCommitResult | ShownContentResult, output: Output) -> None:
    """Prints the commit, then each change field by field; or the content."""
    if isinstance(result, ShownContentResult):
        print_content(result, output)
        return
    commit = LoggedCommit(result.entry, result.changes)
    lines = show_lines(commit, output.out, result.names, by_letter=result.by_letter)
    output.out.print_lines(lines, paged=True)
