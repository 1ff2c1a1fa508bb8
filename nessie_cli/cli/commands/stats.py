"""`nessie stats`."""

from itertools import islice
from typing import Annotated, Any, NamedTuple

import typer

from nessie_cli import commitspec
from nessie_cli.audit.sizes import Sizes
from nessie_cli.audit.statistics import Commits, History
from nessie_cli.cli.context import Invocation
from nessie_cli.cli.engines import Engine, EngineOption, chosen, spark_session
from nessie_cli.cli.words import refuse_empty
from nessie_cli.model import NO_ANCESTOR, IcebergTable, Reference

EXAMPLES = ("nessie stats", "nessie stats v1..main -n 5", "nessie stats --sizes --json")
USAGE = "nessie stats [REV|RANGE]"
Range = Annotated[
    str | None, typer.Argument(metavar="[REV|RANGE]", help="The history to count; that of HEAD, when it is left out.", show_default=False)
]


class Line(NamedTuple):
    """The commits that are counted: `commits` of them, from `end` down along first parents, above `since`."""

    end: Reference
    since: str
    commits: int


def stats(
    ctx: typer.Context,
    words: Range = None,
    *,
    most: Annotated[int, typer.Option("-n", "--most", metavar="N", min=1, help="Tell the N most changed keys and largest tables.")] = 20,
    sizes: Annotated[bool, typer.Option("--sizes", help="The largest tables, too; reads every table's metadata file.")] = False,
    engine: EngineOption = None,
) -> None:
    """Count the commits of each author, day and key, what was created and deleted, and how many tables there were.

    History is counted along first parents: a merge is one commit. Days are those of UTC. Out of a terminal a line begins with what it is about:
    `author`, `day`, `key` or `table`.
    """
    call = Invocation.of(ctx)
    refuse_empty(USAGE, words)
    line = _line(call, words)
    if chosen(engine) is Engine.SPARK:
        found, large = _by_spark(call, line, most, sizes=sizes)
    else:
        found, large = _here(call, line, most), _sizes_here(call, line, most) if sizes else None
    if call.wants_json:
        call.answer(_document(line, found, large))
    else:
        _print(call, found, large)


def _line(call: Invocation, words: str | None) -> Line:
    repository, meant = call.repository(), call.revision_range(words)
    if isinstance(meant, commitspec.CommitRange):
        end = repository.resolve(meant.end)
        start = repository.merge_base(meant.start, meant.end) if meant.symmetric else repository.resolve(meant.start).hash
    else:
        end, start = repository.resolve(meant), NO_ANCESTOR
    apart = repository.ahead_behind(f"@{end.hash}", f"@{start}")
    return Line(end, apart.common_ancestor, apart.ahead)


# -- in this process ----------------------------------------------------------------------------------------------------------------------


def _here(call: Invocation, line: Line, most: int) -> History:
    from nessie_cli.audit.statistics import history
    from nessie_cli.cli.heard import progress_of
    from nessie_cli.model.progress import with_progress

    repository = call.repository()
    log = islice(repository.log(f"@{line.end.hash}", operations=True), line.commits)
    before = repository.entries(f"@{line.since}") if line.since != NO_ANCESTOR else ()
    with progress_of(call, "counting commits") as tell:
        return history(with_progress(log, tell, line.commits), before, most)


def _sizes_here(call: Invocation, line: Line, most: int) -> Sizes:
    from nessie_cli.audit.local import each
    from nessie_cli.audit.sizes import size_of_table, sizes
    from nessie_cli.cli.heard import progress_of
    from nessie_cli.iceberg.files import Files
    from nessie_cli.model import Entry

    files = Files()

    def size(entry: Entry) -> Any:
        assert isinstance(entry.content, IcebergTable)
        return size_of_table(entry.key, entry.content, files)

    entries = call.repository().entries(f"@{line.end.hash}", content=True)
    tables = (entry for entry in entries if isinstance(entry.content, IcebergTable))
    with progress_of(call, "reading metadata files") as tell:
        return sizes(each(tables, size, tell), most)


# -- by Spark -----------------------------------------------------------------------------------------------------------------------------


def _by_spark(call: Invocation, line: Line, most: int, *, sizes: bool) -> tuple[History, Sizes | None]:
    with spark_session(call, brief=True) as spark:
        from nessie_cli.spark import history_of, sizes_of

        url, since = call.store_url(), None if line.since == NO_ANCESTOR else line.since
        found = history_of(spark, url, line.end.hash, since, most)
        return found, sizes_of(spark, url, line.end.hash, most) if sizes else None


# -- answers ------------------------------------------------------------------------------------------------------------------------------


def _document(line: Line, found: History, large: Sizes | None) -> dict[str, Any]:
    from msgspec.structs import asdict

    from nessie_cli.wire.encode import encode_key, encode_reference, instant

    def commits(of: Commits) -> dict[str, Any]:
        return {"commits": of.commits, "first": instant(of.first), "last": instant(of.last)}

    def keyed(of: Any, *names: str) -> dict[str, Any]:
        return {"key": encode_key(of.key)} | {name: getattr(of, name) for name in names}

    churn = ("created", "updated", "deleted")
    changed = [keyed(key, "type", "commits", *churn) | {"last": instant(key.last)} for key in found.most_changed]
    return {
        "effectiveReference": encode_reference(line.end),
        "since": None if line.since == NO_ANCESTOR else line.since,
        **commits(found.commits),
        **{name: getattr(found.changes, name) for name in churn},
        "keys": found.keys,
        "authors": [{"author": author.author} | commits(author.commits) for author in found.authors],
        "days": [asdict(day) for day in found.days],
        "mostChanged": changed,
        "sizes": None if large is None else _sizes_document(large, keyed),
    }


def _sizes_document(large: Sizes, keyed: Any) -> dict[str, Any]:
    sums = {name: getattr(large, name) for name in ("tables", "unreadable", "rows", "files", "bytes")}
    return sums | {"largest": [keyed(size, "rows", "files", "bytes") for size in large.largest]}


def _print(call: Invocation, found: History, large: Sizes | None) -> None:
    from nessie_cli.render.stats import AuthorRow, DayRow, KeyRow, Shown, SizeRow, human_size, print_stats

    shown = Shown(
        [AuthorRow(author.author, author.commits.commits, author.commits.first, author.commits.last) for author in found.authors],
        [DayRow(day.day, day.commits, day.created, day.updated, day.deleted, day.tables, day.contents) for day in found.days],
        [KeyRow(str(key.key), key.type, key.commits, key.created, key.updated, key.deleted, key.last) for key in found.most_changed],
        [SizeRow(str(size.key), size.rows, size.files, size.bytes) for size in (large.largest if large else ())],
    )
    print_stats(shown, call.out)
    more = found.keys - len(found.most_changed)
    call.note(f"{found.commits.commits:,} commits changed {found.keys:,} keys{f', {more:,} of which are not shown (-n)' if more else ''}")
    if large:
        call.note(f"{large.tables:,} tables have {large.rows:,} rows in {large.files:,} files of {human_size(large.bytes)}")
    if large and large.unreadable:
        call.note(f"{large.unreadable:,} of their metadata files cannot be read; `nessie audit` says why")
