"""`nessie log`."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, NamedTuple

import typer

from nessie_cli import commitspec
from nessie_cli.cli import filters, walks
from nessie_cli.cli.context import Invocation
from nessie_cli.cli.walks import changes_in, counted_changes_in
from nessie_cli.cli.words import refuse_empty, split_keys
from nessie_cli.errors import InvalidInput
from nessie_cli.model import ContentKey, LogEntry
from nessie_cli.repository.log_filter import ALL_COMMITS, LogFilter, tests_of

EXAMPLES = (
    "nessie log -n 5 --oneline",
    "nessie log --graph --all",
    "nessie log main..feature --stat",
    "nessie log --format '%h %ar %an%x09%s' -n 3",
    "nessie log --since '2 days ago' --author etl -- db.sales",
    "nessie log --filter \"commit.message.startsWith('load') && commit.author != ''\"",
)
USAGE = "nessie log [REV|RANGE] [-- KEY...]"
Texts = list[str] | None
Authors = Annotated[Texts, typer.Option("--author", metavar="P", help="An author matches this regular expression; repeat it.", show_default=False)]
Committers = Annotated[Texts, typer.Option("--committer", metavar="P", help="The committer matches; repeat it.", show_default=False)]
Filter = Annotated[str | None, typer.Option("--filter", metavar="CEL", help="This expression holds, about `commit` and `operations`.")]


class Which(NamedTuple):
    """Which commits are asked for."""

    before: list[str]
    keys: list[ContentKey]
    all: bool
    first_parent: bool
    since: str | None
    until: str | None
    author: Texts
    committer: Texts
    grep: str | None
    ignore_case: bool
    filter: str | None
    merges: bool | None
    operations: bool


def log(
    ctx: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(metavar="[REV|RANGE] [-- KEY...]", help="Where to start, and which keys.")] = None,
    *,
    limit: Annotated[int | None, typer.Option("-n", "--max-count", "--number", metavar="N", min=0, help="At most N commits.")] = None,
    skip: Annotated[int, typer.Option("--skip", metavar="N", min=0, help="Leave the first N out.", show_default=False)] = 0,
    oneline: Annotated[bool, typer.Option("--oneline", help="One line per commit.")] = False,
    graph: Annotated[bool, typer.Option("--graph", help="Draw how the commits hang together.")] = False,
    stat: Annotated[bool, typer.Option("--stat", help="Count what each commit created (+), updated (~), deleted (-), renamed (>).")] = False,
    name_status: Annotated[bool, typer.Option("--name-status", help="The keys of each commit: A created, M updated, D deleted, R renamed.")] = False,
    patch: Annotated[bool, typer.Option("-p", "--patch", help="What each commit changed, field by field.")] = False,
    all_: Annotated[bool, typer.Option("--all", help="The commits of every branch and tag.")] = False,
    since: Annotated[str | None, typer.Option("--since", "--after", metavar="T", help="Commits made then or later.")] = None,
    until: Annotated[str | None, typer.Option("--until", "--before", metavar="T", help="Commits made then or earlier.")] = None,
    author: Authors = None,
    committer: Committers = None,
    grep: Annotated[str | None, typer.Option(metavar="P", help="The message matches this regular expression.")] = None,
    ignore_case: Annotated[bool, typer.Option("-i", "--ignore-case", help="Upper and lower case are the same in these expressions.")] = False,
    filter_: Filter = None,
    merges: Annotated[bool | None, typer.Option("--merges/--no-merges", help="Only merges, or none.", show_default=False)] = None,
    format_: Annotated[str | None, typer.Option("--format", "--pretty", metavar="TEMPLATE", help="As this says, with git's placeholders.")] = None,
    first_parent: Annotated[bool, typer.Option("--first-parent", help="Do not follow merged branches.")] = False,
    reverse: Annotated[bool, typer.Option("--reverse", help="Oldest first.")] = False,
    extended: Annotated[bool, typer.Option("-x", "--extended", help="The operations as well, in JSON.")] = False,
    revision: Annotated[str | None, typer.Option("-r", "--revision-range", metavar="REV|RANGE", hidden=True)] = None,
) -> None:
    """Show the history, newest commit first.

    TEMPLATE is a text with %H %h %P %p (hash, parents), %s %b %B (message), %an %ae %ad %ar %at (author, time; %c. the committer), %d %D
    (references), %n, %%, %xNN. Times are ISO instants, epoch milliseconds, or words such as '2 hours ago'. Out of a terminal a line is: hash, time,
    author, subject.
    """
    call = Invocation.of(ctx)
    refuse_empty("an option without its value", since, until, grep, filter_, *author or (), *committer or ())
    before, keys = split_keys(call, [*([revision] if revision else []), *(words or [])], 1, USAGE)
    if (graph and reverse) or (all_ and before):
        raise InvalidInput("--graph and --reverse exclude each other" if graph else "--all takes no revision: it starts at every reference")
    if format_ is not None and (call.wants_json or graph or stat or patch or name_status):
        raise InvalidInput("--format says all of what is shown: it excludes --json, --graph, --stat, --name-status and -p")
    which = Which(before, keys, all_, first_parent, since, until, author, committer, grep, ignore_case, filter_, merges, extended)
    commits, tests, left_out = _chosen(call, which, skip, graph=graph)
    found = filters.select(commits, tests, limit, left_out)
    if call.wants_json:
        chosen: Iterable[LogEntry] = (entry for entry, passed in found if passed)
        _answer(call, chosen, commits, reverse=reverse, stat=stat, diffs=patch or name_status)
        return
    if format_ is not None and format_ != "oneline":
        _print_filled(call, (entry for entry, passed in found if passed), format_, reverse=reverse)
        return
    from nessie_cli.render.history import LogForm

    form = LogForm(oneline=oneline or format_ is not None, graph=graph, stat=stat, names=name_status, patch=patch)
    _print(call, ((entry, passed) for entry, passed in found if passed or graph), form, reverse=reverse)


def _filter(call: Invocation, which: Which, skip: int) -> LogFilter:
    since, until = (commitspec.parse_time(text, call.now) if text else None for text in (which.since, which.until))
    authors, committers, grep = (
        tuple(filters.pattern(option, text, ignore_case=which.ignore_case) for text in texts or ())
        for option, texts in (("--author", which.author), ("--committer", which.committer), ("--grep", [which.grep] if which.grep else None))
    )
    return LogFilter(authors, committers, grep[0] if grep else None, since, until, which.merges, tuple(which.keys), skip)


def _chosen(call: Invocation, which: Which, skip: int, *, graph: bool) -> tuple[Iterator[LogEntry | None], list[filters.Test], int]:
    """The commits to look at; the tests that are still to be made of them, and how many of those that pass to skip."""
    operations = which.operations or (which.filter is not None and "operations" in which.filter)
    wanted = _filter(call, which, 0 if which.filter else skip)
    tests = [filters.by_filter("log", which.filter)] if which.filter else []
    meant = None if which.all else call.revision_range(which.before[0] if which.before else None)
    walk = walks.walk_of(meant, first_parent=which.first_parent)
    repository = call.repository()
    if graph and wanted != ALL_COMMITS:
        # A graph is drawn through commits that do not pass as well.
        every = LogFilter(since=wanted.since)
        commits = repository.filtered_log(walk, every, operations=operations or bool(which.keys))
        return commits, [*tests_of(wanted), *tests], skip
    operations = operations or (bool(which.keys) and call.wants_json)
    return repository.filtered_log(walk, wanted, operations=operations), tests, skip if which.filter else 0


def _print(call: Invocation, found: Iterable[tuple[LogEntry, bool]], form: Any, *, reverse: bool) -> None:
    from nessie_cli.render.history import Logged, Names, print_log

    repository = call.repository()
    look = changes_in if form.patch else counted_changes_in
    logged = (Logged(entry, look(repository, entry) if form.changes and passed else None, passed) for entry, passed in found)
    # Names of references are for people: a program that wants them asks for the references.
    names = Names(repository.references(), call.head.name) if call.out.is_terminal else Names()
    print_log(reversed(list(logged)) if reverse else logged, form, call.out, names)


def _print_filled(call: Invocation, found: Iterable[LogEntry], text: str, *, reverse: bool) -> None:
    from nessie_cli.render.history import Names
    from nessie_cli.render.templates import Template

    template = Template(text)
    names = Names(call.repository().references(), call.head.name) if template.names_references else Names()
    call.out.print_texts(template.filled(entry, names, call.now) for entry in (reversed(list(found)) if reverse else found))


def _answer(call: Invocation, found: Iterable[LogEntry], rest: Iterator[LogEntry | None], *, reverse: bool, stat: bool, diffs: bool) -> None:
    """One document, which says as well whether there is more; `--jsonl` writes commits as they are read."""
    if call.options.jsonl and not reverse:
        call.answer_listing("logEntries", (_document(call, entry, stat=stat, diffs=diffs) for entry in found))
        return
    chosen = list(found)
    documents = (_document(call, entry, stat=stat, diffs=diffs) for entry in (reversed(chosen) if reverse else chosen))
    call.answer_listing("logEntries", documents, hasMore=next(rest, rest) is not rest, token=None)


def _document(call: Invocation, entry: LogEntry, *, stat: bool, diffs: bool) -> dict[str, Any]:
    from nessie_cli.wire.facts import log_entry_with_facts

    body = log_entry_with_facts(entry)
    if stat or diffs:
        from nessie_cli.render.changes import encode_changes, tally

        changes = (changes_in if diffs else counted_changes_in)(call.repository(), entry)
        body |= {"changes": tally(changes)} if stat else {}
        body |= {"diffs": list(encode_changes(changes))} if diffs else {}
    return body
