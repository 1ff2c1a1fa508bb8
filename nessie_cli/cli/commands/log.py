"""`nessie log`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated

import typer

from nessie_cli.cli import filters, walks
from nessie_cli.cli.context import Invocation
from nessie_cli.cli.words import split_keys
from nessie_cli.commitspec import parse_time
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
    before, keys = split_keys(call, words or [], 1, USAGE)
    _check_together(graph=graph, reverse=reverse, all_=all_, start=before)
    tests = _tests(call, since, until, author, grep, keys)
    found = _commits(call, before, all_=all_, first_parent=first_parent, operations=bool(keys) or (call.wants_json and stat))
    _print(call, _Selection(found, tests, limit, reverse), oneline=oneline, graph=graph, stat=stat)
