"""`nessie stats`."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from heapq import nsmallest
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self

import typer
from msgspec import Struct, structs

from nessie_cli.audit.sizes import MeasuredTable, Sizes
from nessie_cli.audit.statistics import Author, Day, HistoryStatistics, KeyChanges
from nessie_cli.cli.app.arguments import refuse_empty
from nessie_cli.cli.app.engines import Engine, EngineOption, chosen, spark_session
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Document, Result
from nessie_cli.errors import InvalidInput
from nessie_cli.inspection.text import name_of
from nessie_cli.model import NO_ANCESTOR, Entry, IcebergTable, Reference, type_label
from nessie_cli.model.progress import with_progress
from nessie_cli.render.spans import Column
from nessie_cli.render.terminal import Terminal
from nessie_cli.render.text import counted, human_size
from nessie_cli.revisions import RevisionRange
from nessie_cli.wire.contents import Key
from nessie_cli.wire.references import AnyReference, reference_struct
from nessie_cli.wire.scalars import Count, Hash, Instant, instant
from nessie_cli.workspace.environment import of_s3

if TYPE_CHECKING:
    from nessie_cli.gc.branch_sizes import BranchTable

EXAMPLES = (
    "nessie stats",
    "nessie stats v1..main -n 5",
    "nessie stats --sizes --json",
    "nessie stats --sizes --by-branch",
)
USAGE = "nessie stats [REV|RANGE]"


def _number(heading: str) -> Column:
    return Column(heading, right=True)


_CHURN = (_number("CREATED"), _number("UPDATED"), _number("DELETED"))
_AUTHOR = (
    Column("AUTHOR", "author", "fold"),
    _number("COMMITS"),
    Column("FIRST", "time", "spare"),
    Column("LAST", "time", "spare"),
)
_DAY = (Column("DAY"), _number("COMMITS"), *_CHURN, _number("TABLES"), _number("CONTENTS"))
_KEY = (
    Column("KEY", "key", "fold"),
    Column("TYPE", room="spare"),
    _number("COMMITS"),
    *_CHURN,
    Column("LAST", "time", "spare"),
)
_SIZE = (
    Column("KEY", "key", "fold"),
    _number("ROWS"),
    _number("FILES"),
    _number("SIZE"),
    Column("OLDEST SNAPSHOT", "time", "spare"),
)
_BRANCH_SIZE = (
    Column("BRANCH", "name"),
    Column("KEY", "key", "fold"),
    _number("ONLY HERE"),
    _number("FILES"),
    _number("SMALL"),
    _number("SIZE"),
    Column("OLDEST SNAPSHOT", "time", "spare"),
)
SMALL = 32_000_000
"""Bytes: far below the files of 512 MiB at which Iceberg's writers aim."""


class Options(Struct, frozen=True, kw_only=True):
    """Count commits by author, by day and by key.

    The line of a day also shows how many tables and contents (without namespaces) existed after its
    last counted commit. Days are in UTC. A commit with several authors counts for the first one.
    Only first parents are followed: a merge is one commit, and A..B begins after the newest commit
    that A and B share along first parents.
    """

    revision: Annotated[
        str | None,
        typer.Argument(
            metavar="[REV|RANGE]",
            help="The revision or range whose history is counted. Default: HEAD.",
            show_default=False,
        ),
    ] = None
    most: Annotated[
        int,
        typer.Option(
            "-n",
            "--most",
            metavar="N",
            min=1,
            help="Show the N most changed keys and, with --sizes, the N largest tables; with"
            " --by-branch, N tables of branches.",
        ),
    ] = 20
    sizes: Annotated[
        bool,
        typer.Option(
            "--sizes",
            help="Also show the largest Iceberg tables. This reads the metadata files of all of"
            " them.",
        ),
    ] = False
    by_branch: Annotated[
        bool,
        typer.Option(
            "--by-branch",
            help="With --sizes: also show the bytes that only one branch holds, by its commits and"
            " its reflog, for each table. This reads all manifests, as `nessie gc mark` does.",
        ),
    ] = False
    small: Annotated[
        int,
        typer.Option(
            "--small",
            metavar="BYTES",
            min=1,
            help="With --by-branch: count files below this size as small.",
        ),
    ] = SMALL
    engine: EngineOption = None


class AuthorCount(Struct):
    """The commits of an author, or of a committer if the commits have no author."""

    author: str
    commits: Count
    first: Instant | None
    last: Instant | None

    @classmethod
    def of(cls, counted: Author) -> Self:
        """Returns the struct of an author's commits."""
        commits = counted.commits
        times = (instant(commits.first), instant(commits.last))
        return cls(counted.author, commits.commits, *times)


class DayCount(Struct):
    """The changes of a day in UTC. `tables` and `contents` exist at its end, without namespaces."""

    day: str
    commits: Count
    created: Count
    updated: Count
    deleted: Count
    tables: Count
    contents: Count


class KeyCount(Struct):
    """The changes of a key; `type` is that of its newest content."""

    key: Key
    type: str
    commits: Count
    created: Count
    updated: Count
    deleted: Count
    last: Instant | None

    @classmethod
    def of(cls, counted: KeyChanges) -> Self:
        """Returns the struct of a key's changes."""
        changes = (counted.commits, counted.created, counted.updated, counted.deleted)
        return cls(Key.of(counted.key), counted.type, *changes, instant(counted.last))


class TableSize(Struct, rename="camel"):
    """The size of a table from the summary of its snapshot, or null if the summary lacks it.

    `oldestSnapshot` is the time of the oldest snapshot in the metadata file.
    """

    key: Key
    rows: Count | None
    files: Count | None
    bytes: Count | None
    oldest_snapshot: Instant | None

    @classmethod
    def of(cls, size: MeasuredTable) -> Self:
        """Returns the struct of a table's size."""
        oldest = instant(size.oldest_snapshot)
        return cls(Key.of(size.key), size.rows, size.files, size.bytes, oldest)


class TableSizes(Struct):
    """The sums of all Iceberg tables, and the largest ones.

    Tables with `unreadable` metadata files are not in the sums.
    """

    tables: Count
    unreadable: Count
    rows: Count
    files: Count
    bytes: Count
    largest: list[TableSize]

    @classmethod
    def of(cls, sizes: Sizes) -> Self:
        """Returns the struct of the sizes of tables."""
        sums = (sizes.tables, sizes.unreadable, sizes.rows, sizes.files, sizes.bytes)
        return cls(*sums, list(map(TableSize.of, sizes.largest)))


class BranchTableSize(Struct, rename="camel"):
    """A table at the head of a branch.

    `onlyHere` are the bytes that no other reference holds: data files, delete files, manifests and
    statistics. `files`, `smallFiles` and `bytes` are about the current snapshot. They are null if a
    file cannot be read; `problem` says why.
    """

    branch: str
    key: Key
    only_here: Count | None
    files: Count | None
    small_files: Count | None
    bytes: Count | None
    oldest_snapshot: Instant | None
    problem: str | None

    @classmethod
    def of(cls, table: "BranchTable") -> Self:
        """Returns the struct of a table on a branch."""
        return cls(
            table.branch,
            Key.of(table.key),
            table.only,
            table.files,
            table.small_files,
            table.bytes,
            instant(table.oldest_snapshot),
            table.problem,
        )


class Statistics(Document, frozen=True, kw_only=True):
    """The counts of a history.

    `since` is the commit before the first one that is counted, or null for the whole history.
    `sizes` is null without `--sizes`, and `branches` without `--by-branch`.
    """

    effective_reference: AnyReference
    since: Hash | None
    commits: Count
    first: Instant | None
    last: Instant | None
    created: Count
    updated: Count
    deleted: Count
    keys: Count
    authors: list[AuthorCount]
    days: list[DayCount]
    most_changed: list[KeyCount]
    sizes: TableSizes | None
    branches: list[BranchTableSize] | None


class StatisticsResult(Result, frozen=True):
    """The counted history, and the sizes of tables. `branches` are those that are shown."""

    document: Statistics
    history: HistoryStatistics
    sizes: Sizes | None
    branches: Sequence[Any] = ()
    branch_tables: int = 0


class CountedRange(NamedTuple):
    """The counted commits: from `end` along first parents to `since`, exclusive."""

    end: Reference
    since: str
    commits: int


def run(options: Options, app: Invocation) -> StatisticsResult:
    """Counts the history, and with `--sizes` the tables at its end."""
    refuse_empty(USAGE, options.revision)
    if options.by_branch and not options.sizes:
        raise InvalidInput("--by-branch needs --sizes")
    line = _line(options.revision, app)
    if chosen(options.engine) is Engine.SPARK:
        statistics, sizes = _count_by_spark(options, line, app)
    else:
        statistics, sizes = (
            _count(options, line, app),
            _sizes(options, line, app) if options.sizes else None,
        )
    branches = _by_branch(options, app) if options.by_branch else []
    shown = nsmallest(options.most, branches, key=lambda table: table.rank)
    document = Statistics(
        effective_reference=reference_struct(line.end),
        since=None if line.since == NO_ANCESTOR else line.since,
        commits=statistics.commits.commits,
        first=instant(statistics.commits.first),
        last=instant(statistics.commits.last),
        created=statistics.changes.created,
        updated=statistics.changes.updated,
        deleted=statistics.changes.deleted,
        keys=statistics.keys,
        authors=list(map(AuthorCount.of, statistics.authors)),
        days=[DayCount(**structs.asdict(day)) for day in statistics.days],
        most_changed=list(map(KeyCount.of, statistics.most_changed)),
        sizes=TableSizes.of(sizes) if sizes else None,
        branches=list(map(BranchTableSize.of, shown)) if options.by_branch else None,
    )
    return StatisticsResult(document, statistics, sizes, shown, len(branches))


def show(result: StatisticsResult, output: Output) -> None:
    """Prints a table for each subject, and sums on stderr."""
    _print_tables(result, output.out)
    history = result.history
    more = history.keys - len(history.most_changed)
    verb = "is" if more == 1 else "are"
    hidden = f", {more:,} of which {verb} not shown (-n)" if more else ""
    commits = counted(history.commits.commits, "commit")
    output.note(f"{commits} changed {counted(history.keys, 'key')}{hidden}")
    if (sizes := result.sizes) is None:
        return
    output.note(
        f"{counted(sizes.tables, 'table')} with {counted(sizes.rows, 'row')} in"
        f" {counted(sizes.files, 'file')} of {human_size(sizes.bytes)}"
    )
    if sizes.unreadable:
        output.note(
            f"{counted(sizes.unreadable, 'metadata file')} cannot be read; `nessie audit` shows why"
        )
    if (hidden_tables := result.branch_tables - len(result.branches)) > 0:
        output.note(f"{counted(hidden_tables, 'table')} of branches not shown (-n)")
    for table in result.branches:
        if table.problem:
            output.note(f"{table.key} on {table.branch}: {table.problem}")


def _line(revision: str | None, app: Invocation) -> CountedRange:
    repository, meant = app.repository(), app.revision_range(revision)
    if isinstance(meant, RevisionRange):
        end = repository.resolve(meant.end)
        start = (
            repository.merge_base(meant.start, meant.end)
            if meant.symmetric
            else repository.resolve(meant.start).hash
        )
    else:
        end, start = repository.resolve(meant), NO_ANCESTOR
    apart = repository.ahead_behind(f"@{end.hash}", f"@{start}")
    return CountedRange(end, apart.common_ancestor, apart.ahead)


def _count(options: Options, line: CountedRange, app: Invocation) -> HistoryStatistics:
    """Counts in this process."""
    from nessie_cli.audit.statistics import history

    repository = app.repository()
    log = islice(repository.log(f"@{line.end.hash}", operations=True), line.commits)
    before = repository.entries(f"@{line.since}") if line.since != NO_ANCESTOR else ()
    with app.at_work("counting commits") as progress:
        return history(with_progress(log, progress, line.commits), before, options.most)


def _sizes(options: Options, line: CountedRange, app: Invocation) -> Sizes:
    """Sums up the tables in this process."""
    from nessie_cli.audit.local import each
    from nessie_cli.audit.sizes import size_of_table, sizes
    from nessie_cli.iceberg.files import Files

    files = Files(of_s3())

    def size(entry: Entry) -> MeasuredTable:
        assert isinstance(entry.content, IcebergTable)
        return size_of_table(entry.key, entry.content, files)

    entries = app.repository().entries(f"@{line.end.hash}", content=True)
    tables = (entry for entry in entries if isinstance(entry.content, IcebergTable))
    with app.at_work("reading metadata files") as progress:
        return sizes(each(tables, size, progress), options.most)


def _by_branch(options: Options, app: Invocation) -> "list[BranchTable]":
    """Measures the tables of all branches in this process."""
    try:
        from nessie_cli.gc.branch_sizes import branch_tables
        from nessie_cli.gc.roots import moves_since
    except ImportError:
        raise InvalidInput(
            "--by-branch: a package is missing that reads the files of tables",
            hint="`pip install 'nessie-cli[iceberg]'`",
        ) from None
    from nessie_cli.iceberg.files import Files

    repository = app.repository()
    with app.at_work("reading manifests") as progress:
        since = moves_since(repository, app.now)
        return branch_tables(repository, Files(of_s3()), options.small, since, progress)


def _count_by_spark(
    options: Options, line: CountedRange, app: Invocation
) -> tuple[HistoryStatistics, Sizes | None]:
    """Counts on Spark, and sums up the tables if requested."""
    with spark_session(app, brief=True) as spark:
        from nessie_cli.spark import history_of, sizes_of

        url, since = app.store.url(), None if line.since == NO_ANCESTOR else line.since
        statistics = history_of(spark, url, line.end.hash, since, options.most)
        return statistics, sizes_of(
            spark, url, line.end.hash, options.most
        ) if options.sizes else None


def _print_tables(result: StatisticsResult, out: Terminal) -> None:
    def numbers(*values: int | None) -> Iterator[str]:
        """Unknown numbers are empty cells."""
        return ("" if value is None else f"{value:,}" for value in values)

    def sizes(value: int | None) -> list[str]:
        return ["" if value is None else human_size(value)]

    def times(value: datetime | None) -> list[Any]:
        return ["" if value is None else out.time(value)]

    def churn(count: Day | KeyChanges) -> Iterator[str]:
        return numbers(count.commits, count.created, count.updated, count.deleted)

    authors = (
        (
            name_of(author.author),
            *numbers(author.commits.commits),
            out.time(author.commits.first),
            out.time(author.commits.last),
        )
        for author in result.history.authors
    )
    days = (
        (day.day, *churn(day), *numbers(day.tables, day.contents)) for day in result.history.days
    )
    keys = (
        (str(changed.key), type_label(changed.type), *churn(changed), out.time(changed.last))
        for changed in result.history.most_changed
    )
    tables = (
        (
            str(table.key),
            *numbers(table.rows, table.files),
            *sizes(table.bytes),
            *times(table.oldest_snapshot),
        )
        for table in (result.sizes.largest if result.sizes else ())
    )
    branches = (
        (
            table.branch,
            str(table.key),
            *sizes(table.only),
            *numbers(table.files, table.small_files),
            *sizes(table.bytes),
            *times(table.oldest_snapshot),
        )
        for table in result.branches
    )
    out.print_tables(
        [
            ("Authors", _AUTHOR, authors),
            ("Days", _DAY, days),
            ("Most changed keys", _KEY, keys),
            ("Largest tables", _SIZE, tables),
            ("Tables by branch", _BRANCH_SIZE, branches),
        ]
    )
