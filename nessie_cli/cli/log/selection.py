"""The selection of the commits of a log: its options, and the history walk."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, NamedTuple

import typer
from msgspec import Struct

from nessie_cli.cli.app.arguments import refuse_empty, split_keys
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.errors import InvalidInput
from nessie_cli.model import ContentKey, LogEntry
from nessie_cli.repository.log_filter import ALL_COMMITS, ENTRIES, LogFilter, Walk, tests_of
from nessie_cli.revisions import parse_time

USAGE = "nessie log [REV|RANGE] [-- KEY...]"
Test = Callable[[LogEntry], bool]


class SelectionOptions(Struct, frozen=True, kw_only=True):
    """The options that select commits."""

    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[REV|RANGE] [-- KEY...]",
            help="A revision to start at (default: HEAD), or a range such as A..B. With KEY, only"
            " commits that changed those keys or keys below them.",
        ),
    ] = None
    limit: Annotated[
        int | None,
        typer.Option(
            "-n", "--max-count", "--number", metavar="N", min=0, help="Show at most N commits."
        ),
    ] = None
    skip: Annotated[
        int,
        typer.Option(
            "--skip", metavar="N", min=0, help="Skip the first N commits.", show_default=False
        ),
    ] = 0
    all_: Annotated[
        bool,
        typer.Option("--all", help="Show the commits of every branch and tag; takes no revision."),
    ] = False
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            "--after",
            metavar="T",
            help="Show commits with a commit time at or after this time.",
        ),
    ] = None
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            "--before",
            metavar="T",
            help="Show commits with a commit time at or before this time.",
        ),
    ] = None
    author: Annotated[
        list[str] | None,
        typer.Option(
            "--author",
            metavar="P",
            help="Show commits with an author that matches this regular expression, or any of them"
            " if repeated.",
        ),
    ] = None
    committer: Annotated[
        list[str] | None,
        typer.Option(
            "--committer",
            metavar="P",
            help="Show commits whose committer matches this regular expression, or any of them if"
            " repeated.",
        ),
    ] = None
    grep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="P",
            help="Show commits whose message matches this regular expression, or any of them if"
            " repeated.",
        ),
    ] = None
    ignore_case: Annotated[
        bool,
        typer.Option(
            "-i", "--ignore-case", help="Ignore case in --author, --committer and --grep."
        ),
    ] = False
    filter_: Annotated[
        str | None,
        typer.Option(
            "--filter",
            metavar="CEL",
            help="Show commits for which this expression is true; see nessie-filters(7).",
        ),
    ] = None
    merges: Annotated[
        bool | None,
        typer.Option(
            "--merges/--no-merges", help="Show only merges, or no merges.", show_default=False
        ),
    ] = None
    first_parent: Annotated[
        bool, typer.Option("--first-parent", help="Follow only first parents.")
    ] = False
    extended: Annotated[
        bool,
        typer.Option(
            "-x", "--extended", help="With --json: include the operations of each commit."
        ),
    ] = False
    revision: Annotated[
        str | None, typer.Option("-r", "--revision-range", metavar="REV|RANGE", hidden=True)
    ] = None


class Selection(NamedTuple):
    """The selected commits.

    `entries` yields each commit that was read, and whether it is selected. It ends with the last
    selected commit. `rest` yields the commits after it, with None for those that the repository
    filtered out.
    """

    entries: Iterator[tuple[LogEntry, bool]]
    rest: Iterator[LogEntry | None]
    keys: Sequence[ContentKey]


def select(options: SelectionOptions, app: Invocation, *, graph: bool) -> Selection:
    """Returns the selected commits, newest first, read while they are consumed.

    A graph needs all commits, because its lines pass through those that are not selected. Raises
    `InvalidInput` for options that cannot be used together or have no effect.
    """
    for name in ("since", "until", "grep", "filter_", "author", "committer"):
        given = getattr(options, name)
        refuse_empty(
            f"--{name.rstrip('_')} needs a value", *(given if isinstance(given, list) else [given])
        )
    arguments = [*([options.revision] if options.revision else []), *(options.arguments or [])]
    revisions, keys = split_keys(app, arguments, 1, USAGE)
    if options.all_ and revisions:
        raise InvalidInput("--all starts at every branch and tag, so it takes no revision")
    filter_ = _log_filter(options, keys, app)
    tests: list[Test] = []
    skip = 0
    if options.filter_:
        from nessie_cli.cli.app.filters import by_filter

        # The expression is evaluated in this process, so `--skip` is applied here as well.
        tests, skip = [by_filter("log", options.filter_)], options.skip
    operations = options.extended or (
        options.filter_ is not None and "operations" in options.filter_
    )
    if graph and filter_ != ALL_COMMITS:
        tests, skip = [*tests_of(filter_, ENTRIES), *tests], options.skip
        filter_ = LogFilter(since=filter_.since)
        operations = operations or bool(keys)
    else:
        operations = operations or (bool(keys) and app.output.is_json)
    meant = None if options.all_ else app.revision_range(revisions[0] if revisions else None)
    walk = Walk.of(meant, first_parent=options.first_parent)
    entries = app.repository().filtered_log(walk, filter_, operations=operations)
    return Selection(_selected(entries, tests, options.limit, skip), entries, keys)


def _log_filter(
    options: SelectionOptions, keys: Sequence[ContentKey], app: Invocation
) -> LogFilter:
    """Returns the conditions that the repository evaluates."""
    since, until = (
        parse_time(text, app.now) if text else None for text in (options.since, options.until)
    )

    def patterns(option: str, texts: Iterable[str] | None) -> tuple[re.Pattern[str], ...]:
        return tuple(
            _pattern(option, text, ignore_case=options.ignore_case) for text in texts or ()
        )

    grep = patterns("--grep", options.grep)
    return LogFilter(
        patterns("--author", options.author),
        patterns("--committer", options.committer),
        _any_of(grep) if grep else None,
        since,
        until,
        options.merges,
        tuple(keys),
        0 if options.filter_ else options.skip,
    )


def _any_of(patterns: Sequence[re.Pattern[str]]) -> re.Pattern[str]:
    """Returns a pattern that matches if one of the patterns does. All have the same flags."""
    if len(patterns) == 1:
        return patterns[0]
    text = "|".join(f"(?:{pattern.pattern})" for pattern in patterns)
    try:
        return re.compile(text, patterns[0].flags)
    except re.error:
        raise InvalidInput(
            "--grep: flags such as (?i) cannot be combined with another --grep", hint="use -i"
        ) from None


def _pattern(option: str, text: str, *, ignore_case: bool) -> re.Pattern[str]:
    try:
        return re.compile(text, re.IGNORECASE if ignore_case else 0)
    except re.error as error:
        raise InvalidInput(f"{option} {text!r} is not a regular expression: {error}") from None


def _selected(
    entries: Iterable[LogEntry | None], tests: Sequence[Test], limit: int | None, skip: int
) -> Iterator[tuple[LogEntry, bool]]:
    """Yields each entry, and whether it passes every test, after the first `skip` that do.

    Ends with the last of at most `limit` selected entries.
    """
    left = limit
    for entry in entries if limit != 0 else ():
        if entry is None:
            continue
        passed = all(test(entry) for test in tests)
        selected = passed and skip == 0
        skip -= passed and not selected
        yield entry, selected
        if selected and left is not None:
            left -= 1
            if not left:
                return
