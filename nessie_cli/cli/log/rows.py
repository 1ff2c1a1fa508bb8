"""`--rows`: the rows that differ in the changed Iceberg tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from msgspec import UNSET, Struct, UnsetType, field

from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Page, Records, Result
from nessie_cli.cli.log.options import RowFormat
from nessie_cli.errors import InvalidInput, NessieError
from nessie_cli.iceberg.files import Files
from nessie_cli.inspection.changes import ContentChange
from nessie_cli.model import Reference
from nessie_cli.render.rows import (
    CHANGE_TYPE,
    csv_line,
    csv_texts,
    markdown_texts,
    row_table,
    totals_table,
)
from nessie_cli.render.text import counted, human_size
from nessie_cli.wire.contents import Key
from nessie_cli.wire.documents import Error
from nessie_cli.wire.references import AnyReference, reference_struct
from nessie_cli.wire.scalars import Count
from nessie_cli.workspace.environment import of_s3

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation
    from nessie_cli.cli.app.progress import Work
    from nessie_cli.iceberg.row_diff.difference import FileTotals as Totals
    from nessie_cli.inspection.rows import ChangedRow, ChangedTable

_LARGE = 100_000_000
"""From this number of bytes on, the cost is announced on a terminal."""


class RowOptions(NamedTuple):
    """The options of `--rows`."""

    key: Sequence[str]
    columns: Sequence[str]
    where: str | None
    limit: int | None
    format: RowFormat | None
    output: Path | None


def row_options(options: Any) -> RowOptions | None:
    """Returns the options of `--rows` among those of a command, or None without `--rows`.

    Raises `InvalidInput` for options that need others.
    """
    names = ("key", "columns", "where", "limit", "format", "output")
    given = [name for name in names if getattr(options, name) is not None]
    if not options.rows:
        if given:
            raise InvalidInput(f"--{given[0]} needs --rows")
        return None
    if options.output is not None and options.format in (None, RowFormat.TABLE):
        raise InvalidInput("--output needs --format markdown, csv or parquet")
    if options.format is RowFormat.PARQUET and options.output is None:
        raise InvalidInput("--format parquet needs --output FILE")
    return RowOptions(
        _names(options.key),
        _names(options.columns),
        options.where,
        options.limit,
        options.format,
        options.output,
    )


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in text.split(",")] if text else []


# -- JSON -----------------------------------------------------------------------------------------


class FileTotals(Struct):
    """The number of some data files, with their rows and bytes. Deleted rows are included."""

    files: Count
    rows: Count
    bytes: Count

    @classmethod
    def of(cls, totals: Totals) -> Self:
        """Returns the struct of totals."""
        return cls(totals.files, totals.rows, totals.bytes)


class TableTotals(Struct, rename="camel"):
    """What differs in a table by its metadata.

    `addedFiles` and `removedFiles` are data files of one state only, and `changedFiles` those in
    which other rows are deleted. `bytes` is the size of all files that may be read.
    """

    key: Key
    columns: list[str]
    key_columns: list[str]
    added_files: FileTotals
    removed_files: FileTotals
    changed_files: FileTotals
    delete_files: Count
    bytes: Count

    @classmethod
    def of(cls, table: ChangedTable) -> Self:
        """Returns the struct of a table."""
        summary = table.summary
        return cls(
            Key.of(table.change.key),
            table.columns,
            list(summary.key),
            FileTotals.of(summary.added),
            FileTotals.of(summary.removed),
            FileTotals.of(summary.changed),
            summary.delete_files,
            summary.bytes,
        )


class RowEntry(Struct):
    """A changed row: `change` is INSERT, DELETE or UPDATE. Its values are by column.

    Values have the form of Iceberg's JSON single-value serialization. A struct has field names.
    """

    key: Key
    change: str
    before: dict[str, Any] | None = field(name="from")
    after: dict[str, Any] | None = field(name="to")


class ComparedStates(Page, frozen=True, kw_only=True):
    """The compared states."""

    effective_from_reference: AnyReference
    effective_to_reference: AnyReference
    staged: bool | UnsetType = UNSET
    errors: list[Error] | UnsetType = UNSET


class RowDiff(ComparedStates, frozen=True, kw_only=True):
    """The changed rows of the tables whose contents differ; `errors` of tables not compared."""

    listing = "rows"
    rows: Records[RowEntry]


class RowStatistics(ComparedStates, frozen=True, kw_only=True):
    """The tables whose contents differ, by their metadata; `errors` of tables not compared."""

    listing = "tables"
    tables: list[TableTotals]


# -- results --------------------------------------------------------------------------------------


class ComparedTable:
    """The changed rows of a table, which are read and counted while they are consumed."""

    def __init__(self, table: ChangedTable, work: Work) -> None:
        self.table = table
        self.changes = table.open(work)
        self.counts: Counter[str] = Counter()
        self._work = work

    def rows(self) -> Iterator[ChangedRow]:
        """Yields the changed rows."""
        from nessie_cli.inspection.rows import changed_rows

        for row in changed_rows(self.changes, self._work):
            self.counts[row.kind] += 1
            yield row

    def entries(self) -> Iterator[RowEntry]:
        """Yields the changed rows for JSON."""
        key, columns = Key.of(self.table.change.key), self.table.columns
        for kind, *states in self.rows():
            before, after = (
                None if values is None else dict(zip(columns, values, strict=True))
                for values in states
            )
            yield RowEntry(key, kind, before, after)

    def write_parquet(self, path: Path) -> None:
        """Writes all rows to a Parquet file."""
        from nessie_cli.inspection.rows import write_parquet

        with self._work:
            self.counts += write_parquet(self.changes, path)

    @property
    def summary(self) -> str:
        """How many rows changed: `db.orders: 3 inserted, 1 deleted, 2 updated`."""
        names = {"INSERT": "inserted", "DELETE": "deleted", "UPDATE": "updated"}
        counts = ", ".join(
            f"{self.counts[k]:,} {name}" for k, name in names.items() if self.counts[k]
        )
        text = f"{self.table.change.key}: {counts or 'no row differs'}"
        if keys := self.changes.ambiguous_keys:
            text += f"; {counted(keys, 'key')} of several rows, which are not paired"
        return text


class RowsResult(Result, frozen=True, kw_only=True):
    """The changed rows, and how they are printed."""

    document: RowDiff
    tables: Sequence[ComparedTable]
    failures: Sequence[NessieError] = ()
    format: RowFormat
    output: Path | None
    exits_with_difference: bool
    is_quiet: bool

    @property
    def is_for_people(self) -> bool:
        """Whether the rows are printed as a table."""
        return self.format is RowFormat.TABLE

    @property
    def exit_code(self) -> int:
        """1 if rows differ and `--exit-code` is given."""
        return int(self.exits_with_difference and any(table.counts for table in self.tables))


class RowStatisticsResult(Result, frozen=True, kw_only=True):
    """The tables whose contents differ, by their metadata."""

    document: RowStatistics
    tables: Sequence[ComparedTable]
    failures: Sequence[NessieError] = ()


class ChangedContents(NamedTuple):
    """Changed contents, and the references that they were compared at."""

    before: Reference
    after: Reference
    changes: Iterable[ContentChange]
    staged: bool = False


def compare_rows(
    options: RowOptions, app: Invocation, contents: ChangedContents, *, exit_code: bool = False
) -> RowsResult:
    """Compares the rows of changed contents. They are read while they are printed."""
    if app.output.is_json and options.format is not None:
        raise InvalidInput("--json and --format cannot be used together")
    tables, failures = _compared(options, app, contents, rows=True)
    if options.format in (RowFormat.CSV, RowFormat.PARQUET):
        if len(tables) > 1:
            keys = ", ".join(str(compared.table.change.key) for compared in tables)
            raise InvalidInput(
                f"--format {options.format} is for one table, but {len(tables)} differ",
                hint=f"name one after --: {keys}",
            )
        if failures:
            raise failures[0]
    _announce(tables, app)
    entries = (entry for compared in tables for entry in compared.entries())
    return RowsResult(
        document=RowDiff(**_references(contents), errors=_errors(failures), rows=entries),
        tables=tables,
        failures=failures,
        format=options.format or RowFormat.TABLE,
        output=options.output,
        exits_with_difference=exit_code or app.options.quiet,
        is_quiet=app.options.quiet,
    )


def count_rows(
    options: RowOptions, app: Invocation, contents: ChangedContents
) -> RowStatisticsResult:
    """Compares the tables among changed contents by their metadata alone."""
    for name in ("where", "limit", "format", "output"):
        if getattr(options, name) is not None:
            raise InvalidInput(f"--stat and --{name} cannot be used together")
    tables, failures = _compared(options, app, contents, rows=False)
    totals = [TableTotals.of(compared.table) for compared in tables]
    document = RowStatistics(**_references(contents), errors=_errors(failures), tables=totals)
    return RowStatisticsResult(document=document, tables=tables, failures=failures)


def _compared(
    options: RowOptions, app: Invocation, contents: ChangedContents, *, rows: bool
) -> tuple[list[ComparedTable], list[InvalidInput]]:
    """Returns the tables among changed contents, and the errors of those not comparable.

    They are compared by their metadata. A server that reads rows compares commits, with its own
    access to the files. Raises `InvalidInput` if no table can be compared.
    """
    from nessie_cli.iceberg.row_diff.difference import Selection
    from nessie_cli.inspection.rows import comparison_of_tables, tables_among
    from nessie_cli.inspection.server_rows import ServerRows

    files = Files(of_s3())
    selection = Selection(options.key, options.columns, options.where, options.limit, rows=rows)
    compare = comparison_of_tables(files, selection, app.at_work("reading metadata files"))
    source = app.repository().row_source
    if not contents.staged and source is not None:
        before, after = contents.before.hash, contents.after.hash
        work = app.at_work("the server is reading data files")
        server = ServerRows(source, before, after, selection, work)
        compare = partial(server.compared, read_locally=compare)
    tables: list[ComparedTable] = []
    failures: list[InvalidInput] = []
    for change in tables_among(contents.changes):
        try:
            tables.append(ComparedTable(compare(change), app.at_work("reading data files")))
        except InvalidInput as error:
            failures.append(error)
    if failures and not tables:
        raise failures[0]
    return tables, failures


def _errors(failures: Sequence[NessieError]) -> list[Error] | UnsetType:
    return list(map(Error.of, failures)) or UNSET


def _references(contents: ChangedContents) -> dict[str, Any]:
    return {
        "effective_from_reference": reference_struct(contents.before),
        "effective_to_reference": reference_struct(contents.after),
        "staged": True if contents.staged else UNSET,
    }


def _announce(tables: Sequence[ComparedTable], app: Invocation) -> None:
    summaries = [compared.table.summary for compared in tables]
    size = sum(summary.bytes for summary in summaries)
    if app.output.err.is_terminal and size >= _LARGE:
        files = sum(summary.files for summary in summaries)
        app.output.note(f"reading up to {counted(files, 'file')} of {human_size(size)}")


def show_rows(result: RowsResult | RowStatisticsResult, output: Output) -> None:
    """Prints the changed rows, then their number on stderr."""
    if isinstance(result, RowStatisticsResult):
        changed = (compared.table for compared in result.tables)
        output.out.print_table(*totals_table(changed), paged=True)
        return
    if result.is_quiet and result.output is None:
        for table in result.tables:
            next(table.rows(), None)
        return
    match result.format:
        case RowFormat.TABLE:
            tables = (row_table(t.table, t.rows(), output.out) for t in result.tables)
            output.out.print_tables(tables)
        case RowFormat.PARQUET:
            assert result.output is not None
            for table in result.tables:
                table.write_parquet(result.output)
            if not result.tables:
                from nessie_cli.inspection.rows import write_no_rows

                write_no_rows(result.output)
        case _:
            _print_texts(result, output)
    if result.format is not RowFormat.TABLE and not result.tables:
        output.note("no table differs")
    for table in result.tables:
        output.note(table.summary)


def _print_texts(result: RowsResult, output: Output) -> None:
    texts = markdown_texts if result.format is RowFormat.MARKDOWN else csv_texts
    lines: Iterator[str] = (
        text for table in result.tables for text in texts(table.table, table.rows())
    )
    if result.format is RowFormat.CSV and not result.tables:
        # A reader of the file gets no row, not an error.
        lines = iter([csv_line([CHANGE_TYPE])])
    if result.output is None:
        output.out.print_data(lines)
        return
    with result.output.open("w", encoding="utf-8", newline="") as file:
        file.writelines(lines)
