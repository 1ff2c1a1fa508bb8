"""`nessie log`."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Annotated, Any

import typer

from nessie_cli import commitspec
from nessie_cli.cli import filters, walks
from nessie_cli.cli.context import Invocation
from nessie_cli.cli.walks import changes_in
from nessie_cli.cli.words import refuse_empty, split_keys
from nessie_cli.errors import InvalidInput
from nessie_cli.model import ContentKey, LogEntry

EXAMPLES = (
    "nessie log -n 5 --oneline",
    "nessie log --graph --all",
    "nessie log main..feature --stat",
    "nessie log --since '2 days ago' --author etl -- db.sales",
)
USAGE = "nessie log [REV|RANGE] [-- KEY...]"


def log(
    ctx: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(metavar="[REV|RANGE] [-- KEY...]", help="Where to start, and which keys.")] = None,
    *,
    limit: Annotated[int | None, typer.Option("-n", "--max-count", metavar="N", min=0, help="At most N commits.")] = None,
    oneline: Annotated[bool, typer.Option("--oneline", help="One line per commit.")] = False,
    graph: Annotated[bool, typer.Option("--graph", help="Draw how the commits hang together.")] = False,
    stat: Annotated[bool, typer.Option("--stat", help="Count what each commit created (+), updated (~), deleted (-), renamed (>).")] = False,
    all_: Annotated[bool, typer.Option("--all", help="The commits of every branch and tag.")] = False,
    since: Annotated[str | None, typer.Option("--since", "--after", metavar="T", help="Commits made then or later.")] = None,
    until: Annotated[str | None, typer.Option("--until", "--before", metavar="T", help="Commits made then or earlier.")] = None,
    author: Annotated[str | None, typer.Option(metavar="P", help="An author matches this regular expression.")] = None,
    grep: Annotated[str | None, typer.Option(metavar="P", help="The message matches this regular expression.")] = None,
    first_parent: Annotated[bool, typer.Option("--first-parent", help="Do not follow merged branches.")] = False,
    reverse: Annotated[bool, typer.Option("--reverse", help="Oldest first.")] = False,
) -> None:
    """Show the history, newest commit first.

    Times are ISO instants, epoch milliseconds, or words such as '2 hours ago'. Out of a terminal a line is: hash, time, author, subject.
    """
    call = Invocation.of(ctx)
    refuse_empty("--since T, --until T, --author P, --grep P", since, until, author, grep)
    before, keys = split_keys(call, words or [], 1, USAGE)
    if (graph and reverse) or (all_ and before):
        raise InvalidInput("--graph and --reverse exclude each other" if graph else "--all takes no revision: it starts at every reference")
    start, end = (commitspec.parse_time(text, call.now) if text else None for text in (since, until))
    tests = _tests((start, end), author, grep, keys)
    commits = _commits(call, before, all_=all_, first_parent=first_parent, operations=bool(keys), since=start)
    found = filters.select(commits, tests, limit)
    if call.wants_json:
        chosen = [entry for entry, passed in found if passed]
        _answer(call, reversed(chosen) if reverse else chosen, more=next(commits, None) is not None, stat=stat)
        return
    _print(call, ((entry, passed) for entry, passed in found if passed or graph), oneline=oneline, graph=graph, stat=stat, reverse=reverse)


def _tests(span: tuple[datetime | None, datetime | None], author: str | None, grep: str | None, keys: list[ContentKey]) -> list[filters.Test]:
    since, until = span
    tests = [
        filters.made_since(since) if since else None,
        filters.made_until(until) if until else None,
        filters.by_author(filters.pattern("--author", author)) if author else None,
        filters.by_message(filters.pattern("--grep", grep)) if grep else None,
        filters.touching(keys) if keys else None,
    ]
    return [test for test in tests if test]


def _commits(call: Invocation, before: list[str], *, all_: bool, first_parent: bool, operations: bool, since: datetime | None) -> Iterator[LogEntry]:
    repository = call.repository()
    if all_:
        heads = (reference.hash for reference in repository.references())
        return walks.commits_of_all(repository, heads, first_parent=first_parent, operations=operations)
    meant = call.revision_range(before[0] if before else None)
    return walks.commits_of(repository, meant, first_parent=first_parent, operations=operations, since=since)


def _print(call: Invocation, found: Iterable[tuple[LogEntry, bool]], *, oneline: bool, graph: bool, stat: bool, reverse: bool) -> None:
    from nessie_cli.render.history import LogForm, Logged, Names, print_log

    repository = call.repository()
    logged = (Logged(entry, changes_in(repository, entry) if stat and passed else None, passed) for entry, passed in found)
    # Names of references are for people: a program that wants them asks for the references.
    names = Names(repository.references(), call.head.name) if call.out.is_terminal else Names()
    print_log(reversed(list(logged)) if reverse else logged, LogForm(oneline=oneline, graph=graph, stat=stat), call.out, names)


def _answer(call: Invocation, chosen: Iterable[LogEntry], *, more: bool, stat: bool) -> None:
    from nessie_cli.wire.facts import log_entry_with_facts

    documents = map(log_entry_with_facts, chosen)
    call.answer_listing("logEntries", _with_changes(call, chosen) if stat else documents, hasMore=more, token=None)


def _with_changes(call: Invocation, chosen: Iterable[LogEntry]) -> Iterator[dict[str, Any]]:
    from nessie_cli.render.changes import tally
    from nessie_cli.wire.facts import log_entry_with_facts

    return (log_entry_with_facts(entry) | {"changes": tally(changes_in(call.repository(), entry))} for entry in chosen)
