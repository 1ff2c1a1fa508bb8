"""`nessie log`."""

from collections.abc import Collection, Iterable, Iterator
from itertools import chain, islice
from typing import Annotated

import typer
from msgspec import UNSET, Struct, UnsetType

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Page, Records, Result
from nessie_cli.cli.log.diff_entries import DiffEntry, diff_entries
from nessie_cli.cli.log.options import DeepOption
from nessie_cli.cli.log.selection import SelectionOptions, select
from nessie_cli.errors import InvalidInput
from nessie_cli.inspection.changes import (
    ContentChange,
    changes_of_commit,
    outline_of_commit,
    tally,
)
from nessie_cli.model import ContentKey, LogEntry
from nessie_cli.render.history import NO_NAMES, LogForm, LoggedCommit, Names, print_log
from nessie_cli.render.templates import Template
from nessie_cli.wire import commits
from nessie_cli.wire.scalars import Count

EXAMPLES = (
    "nessie log -n 5 --oneline",
    "nessie log --graph --all --format '%h %an %s'",
    "nessie log main..feature --stat",
    "nessie log --format '%h %ar %an%x09%s' -n 3",
    "nessie log --since '2 days ago' --author etl -- db.sales",
    "nessie log --deep -n 1 -- db.sales.orders",
    "nessie log --filter \"commit.message.startsWith('load') && commit.author != ''\"",
)
ONELINE = "oneline"


class Options(SelectionOptions, frozen=True, kw_only=True):
    """Show the history, newest commit first.

    Times are ISO instants, epoch milliseconds, or words such as '2 hours ago'. TEMPLATE is a format
    string with git-style placeholders, such as '%h %an %s'; `nessie help log` lists them all.
    --deep implies -p.
    """

    oneline: Annotated[
        bool,
        typer.Option("--oneline", help="Show the hash and subject of each commit on one line."),
    ] = False
    graph: Annotated[bool, typer.Option("--graph", help="Draw the commit graph.")] = False
    stat: Annotated[
        bool,
        typer.Option(
            "--stat",
            help="Count the contents that each commit created (+), updated (~), deleted (-)"
            " and renamed (>).",
        ),
    ] = False
    name_status: Annotated[
        bool,
        typer.Option(
            "--name-status",
            help="Show the keys that each commit changed: A created, M updated, D deleted,"
            " R renamed.",
        ),
    ] = False
    patch: Annotated[
        bool, typer.Option("-p", "--patch", help="Show the changes of each commit, field by field.")
    ] = False
    deep: DeepOption = False
    format_: Annotated[
        str | None,
        typer.Option(
            "--format",
            "--pretty",
            metavar="TEMPLATE",
            help="Format each commit using git-style placeholders.",
        ),
    ] = None
    reverse: Annotated[bool, typer.Option("--reverse", help="Show the oldest commit first.")] = (
        False
    )

    @property
    def compares(self) -> bool:
        """Whether changes are shown field by field."""
        return self.patch or self.deep

    @property
    def template(self) -> Template | None:
        """The template of `--format`, or None for a named form.

        Raises `InvalidInput` if it is invalid.
        """
        return None if self.format_ in (None, ONELINE) else Template(self.format_)


class Tally(Struct):
    """The numbers of contents that a commit created, updated, deleted and renamed."""

    created: Count
    updated: Count
    deleted: Count
    renamed: Count


class Logged(commits.LogEntry):
    """A commit; `changes` with `--stat`, `diffs` with `--patch`, `--deep` or `--name-status`."""

    changes: Tally | UnsetType = UNSET
    diffs: list[DiffEntry] | UnsetType = UNSET


class Log(Page, frozen=True, kw_only=True):
    """Commits, newest first."""

    listing = "log_entries"
    log_entries: Records[Logged]


class LogResult(Result, frozen=True):
    """The selected commits, and how they are printed."""

    document: Log
    commits: Iterable[LoggedCommit]
    form: LogForm
    names: Names


def run(options: Options, app: Invocation) -> LogResult:
    """Selects the commits. They are read and compared while they are printed."""
    _check(options, app)
    template = options.template
    selection = select(options, app, graph=options.graph)
    names = _names(template, app)
    form = _form(options, template, names, app)
    keeps_unselected = options.graph and not app.output.is_json
    entries: Iterable[tuple[LogEntry, bool]] = (
        entry for entry in selection.entries if entry[1] or keeps_unselected
    )
    has_more = False
    if options.reverse:
        entries = reversed(list(entries))
    if options.limit is not None and app.options.json:
        # `hasMore` comes before the commits, so they are read first.
        entries = list(entries)
        has_more = next(selection.rest, selection) is not selection
    # An error at the first commit fails the command. Later errors end a listing.
    iterator = iter(entries)
    entries = chain(list(islice(iterator, 1)), iterator)
    changed = _with_changes(options, entries, selection.keys, app)
    logged = (_logged(options, commit) for commit in changed)
    return LogResult(Log(log_entries=logged, has_more=has_more), changed, form, names)


def show(result: LogResult, output: Output) -> None:
    """Prints the commits in the selected form."""
    print_log(result.commits, result.form, output.out, result.names)


def _check(options: Options, app: Invocation) -> None:
    """Raises `InvalidInput` for options that cannot be used together."""
    if options.graph and options.reverse:
        raise InvalidInput("--graph and --reverse cannot be used together")
    if options.name_status and options.compares:
        raise InvalidInput("--name-status and -p cannot be used together: -p also shows the keys")
    if options.format_ in (None, ONELINE):
        return
    others = {
        "--oneline": options.oneline,
        "--json": app.output.is_json,
        "--stat": options.stat,
        "--name-status": options.name_status,
        "-p": options.patch,
        "--deep": options.deep,
    }
    if given := next((name for name, is_given in others.items() if is_given), None):
        raise InvalidInput(
            f"--format and {given} cannot be used together: the template defines the whole"
            " output for a commit"
        )


def _names(template: Template | None, app: Invocation) -> Names:
    """Returns the references at each commit, if they are shown."""
    are_shown = template.names_references if template else not app.output.is_json
    return Names(app.repository().references(), app.head.name) if are_shown else NO_NAMES


def _form(options: Options, template: Template | None, names: Names, app: Invocation) -> LogForm:
    return LogForm(
        oneline=options.oneline or options.format_ == ONELINE,
        graph=options.graph,
        stat=options.stat,
        names=options.name_status,
        patch=options.compares,
        text=(lambda entry: template.filled(entry, names, app.now)) if template else None,
    )


def _with_changes(
    options: Options,
    entries: Iterable[tuple[LogEntry, bool]],
    keys: Collection[ContentKey],
    app: Invocation,
) -> Iterator[LoggedCommit]:
    """Yields the commits with their changes at and below some keys, as the options request."""
    repository = app.repository()
    read = None
    if options.deep:
        from nessie_cli.cli.log.deep import deepen, user_files_reader

        read = user_files_reader()
    needs_contents = options.compares or (options.name_status and app.output.is_json)
    for entry, selected in entries:
        changes: list[ContentChange] | None = None
        if selected and needs_contents:
            changes = changes_of_commit(repository, entry)
        elif selected and (options.stat or options.name_status):
            changes = outline_of_commit(repository, entry)
        if changes and keys:
            changes = [change for change in changes if change.touches(keys)]
        if changes and options.deep:
            changes = list(deepen(changes, app, read))
        yield LoggedCommit(entry, changes, selected)


def _logged(options: Options, commit: LoggedCommit) -> Logged:
    """Returns the record of a commit."""
    changes = commit.changes or ()
    logged = Logged.of(commit.entry)
    if options.stat:
        logged.changes = Tally(**tally(changes))
    if options.compares or options.name_status:
        logged.diffs = list(diff_entries(changes))
    return logged
