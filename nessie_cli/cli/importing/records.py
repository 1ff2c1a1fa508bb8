"""`nessie import --list` and `--adopt`: the tables that were imported."""

from __future__ import annotations

from collections.abc import Sequence

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Document, Listing, Records, Result
from nessie_cli.errors import NotFound
from nessie_cli.importing.records import ImportRecords
from nessie_cli.importing.selection import NamePattern, matches_any
from nessie_cli.model import ContentKey, ImportedTable
from nessie_cli.render.spans import Column
from nessie_cli.render.text import counted
from nessie_cli.wire.contents import Key

_COLUMNS = (
    Column("KEY", "key", "fold"),
    Column("STATE"),
    Column("WRITTEN BY"),
    Column("SOURCE", "name", "cut"),
)


class ImportedRow(Document, frozen=True, kw_only=True):
    """A table or view that was imported, and its state on the current branch.

    `state` is "as imported", "changed", or "absent" if the branch has nothing at this key.
    `adopted` says that no other catalog writes it.
    """

    source: str
    record: str
    name: list[str]
    key: Key
    location: str
    source_metadata: str
    metadata: str
    adopted: bool
    state: str


class ImportedRows(Listing, frozen=True, kw_only=True):
    """The imported tables and views, by source and key."""

    listing = "tables"
    tables: Records[ImportedRow]


class ImportedRowsResult(Result, frozen=True):
    """The imported tables and views. `adopted` is their number if they were adopted just now."""

    document: ImportedRows
    adopted: int | None = None


def list_imported(app: Invocation) -> ImportedRowsResult:
    """Returns the rows of all records, with their states on the current branch."""
    rows = [
        (record.source, record.name, row)
        for record in ImportRecords(app.repository()).all()
        for row in sorted(record.tables, key=lambda row: row.key)
    ]
    return ImportedRowsResult(_documents(app, rows))


def adopt(app: Invocation, patterns: Sequence[str]) -> ImportedRowsResult:
    """Marks the imported tables of keys or globs as adopted.

    Raises `NotFound` if a pattern matches no imported table.
    """
    records = ImportRecords(app.repository())
    keys: dict[ContentKey, None] = {}
    rows = [row for record in records.all() for row in record.tables]
    for text in patterns:
        pattern = NamePattern.parse(text)
        matching = [row.key for row in rows if pattern.matches(row.key.elements)]
        if not matching:
            raise NotFound(
                f"no imported table matches '{text}'",
                text,
                hint="`nessie import --list` lists the imported tables",
            )
        keys |= dict.fromkeys(matching)
    records.adopt(list(keys))
    parsed = list(map(NamePattern.parse, patterns))
    adopted = [
        (record.source, record.name, row)
        for record in records.all()
        for row in record.tables
        if matches_any(parsed, row.key.elements)
    ]
    return ImportedRowsResult(_documents(app, adopted), len(keys))


def show_imported(result: ImportedRowsResult, output: Output) -> None:
    """Prints a row for each table, or the number of those that were adopted."""
    if result.adopted is not None:
        output.say(
            f"adopted {counted(result.adopted, 'table')}: `nessie gc` may delete unreachable files"
            " in their folders"
        )
        return
    output.out.print_table(
        _COLUMNS,
        [
            (
                str(ContentKey(tuple(row.key.elements))),
                row.state,
                "nessie" if row.adopted else "the source, too",
                row.source,
            )
            for row in result.document.tables
        ],
        paged=True,
    )


def _documents(app: Invocation, rows: Sequence[tuple[str, str, ImportedTable]]) -> ImportedRows:
    repository = app.repository()
    contents = repository.contents(app.revision(None), sorted({row.key for _, _, row in rows}))

    def state(row: ImportedTable) -> str:
        content = contents.get(row.key)
        if content is None:
            return "absent"
        same = getattr(content, "metadata_location", None) == row.metadata
        return "as imported" if same else "changed"

    return ImportedRows(
        tables=[
            ImportedRow(
                source=source,
                record=record,
                name=list(row.name),
                key=Key.of(row.key),
                location=row.location,
                source_metadata=row.source_metadata,
                metadata=row.metadata,
                adopted=row.adopted,
                state=state(row),
            )
            for source, record, row in rows
        ]
    )
