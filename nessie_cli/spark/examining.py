"""The tables `audit` and `sizes`: what the files of the contents of a state say, read by the tasks that read the contents."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql.types import ArrayType, StructType

from nessie_cli.audit.checks import audit_content
from nessie_cli.audit.findings import Audited
from nessie_cli.audit.local import each
from nessie_cli.audit.sizes import Size, size_of_table
from nessie_cli.iceberg.files import Files
from nessie_cli.model import Entry, IcebergTable
from nessie_cli.repository.base import Repository
from nessie_cli.spark.columns import LONG, TEXT, column, key_values
from nessie_cli.spark.states import ENTRIES_SCHEMA, NARROWED, STATE, SomeKeys, entries_of, plan_keys
from nessie_cli.spark.table import Row, Table, pin_heads

_FINDING = StructType(
    [
        column(
            "kind",
            TEXT,
            "What is wrong (METADATA_MISSING, ID_DIFFERS, MANIFEST_MISSING, ...)",
            nullable=False,
        ),
        column("where", TEXT, "The file that it is about", nullable=False),
        column("message", TEXT, "Why, in words", nullable=False),
    ]
)
AUDIT_SCHEMA = StructType(
    [
        *ENTRIES_SCHEMA.fields,
        column("uuid", TEXT, "What the table or view calls itself; null where that is not known"),
        column(
            "files",
            LONG,
            "Files that were looked at; 0 for a content that has none",
            nullable=False,
        ),
        column(
            "findings",
            ArrayType(_FINDING, containsNull=False),
            "What is wrong with its files",
            nullable=False,
        ),
    ]
)
SIZES_SCHEMA = StructType(
    [
        *ENTRIES_SCHEMA.fields,
        column("rows", LONG, "Rows, as the summary of the snapshot says; null where it does not"),
        column("files", LONG, "Data files, likewise"),
        column("bytes", LONG, "Bytes of data files, likewise"),
        column("problem", TEXT, "Why the metadata file cannot be read; null where it can"),
    ]
)


def audits(repository: Repository, part: SomeKeys) -> Iterator[tuple[Entry, Audited]]:
    """What is wrong with the files of the contents of a piece."""
    files = Files()

    def audit(entry: Entry) -> tuple[Entry, Audited]:
        assert entry.content
        return entry, audit_content(entry.key, entry.content, files)

    return each(entries_of(repository, part), audit)


def measured(repository: Repository, part: SomeKeys) -> Iterator[tuple[Entry, Size]]:
    """How large the Iceberg tables of a piece are."""
    files = Files()

    def measure(entry: Entry) -> tuple[Entry, Size]:
        assert isinstance(entry.content, IcebergTable)
        return entry, size_of_table(entry.key, entry.content, files)

    return each(
        (
            entry
            for entry in entries_of(repository, part)
            if isinstance(entry.content, IcebergTable)
        ),
        measure,
    )


def _audit_rows(repository: Repository, part: SomeKeys) -> Iterator[Row]:
    for entry, found in audits(repository, part):
        findings = [
            {"kind": item.kind.value, "where": item.where, "message": item.message}
            for item in found.findings
        ]
        yield (*_entry(part, entry), found.uuid, found.files, findings)


def _size_rows(repository: Repository, part: SomeKeys) -> Iterator[Row]:
    for entry, size in measured(repository, part):
        yield (*_entry(part, entry), size.rows, size.files, size.bytes, size.problem)


def _entry(part: SomeKeys, entry: Entry) -> Row:
    return (
        part.reference,
        part.hash,
        *key_values(entry.key),
        entry.type,
        entry.content_id,
        entry.value_hash,
    )


AUDIT = Table("audit", STATE, AUDIT_SCHEMA, NARROWED, pin_heads, plan_keys, _audit_rows)
SIZES = Table("sizes", STATE, SIZES_SCHEMA, NARROWED, pin_heads, plan_keys, _size_rows)
