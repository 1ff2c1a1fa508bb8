"""The tables `audit` and `sizes`: tasks read the contents of a commit and their files."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql.types import ArrayType, StructType

from nessie_cli.audit.checks import audit_content
from nessie_cli.audit.findings import ContentAudit
from nessie_cli.audit.local import each
from nessie_cli.audit.sizes import MeasuredTable, size_of_table
from nessie_cli.iceberg.files import Files
from nessie_cli.model import Entry, IcebergTable
from nessie_cli.repository.base import Repository
from nessie_cli.spark.columns import LONG, TEXT, column
from nessie_cli.spark.keys import (
    ENTRIES_SCHEMA,
    NARROWED,
    STATE,
    KeyPart,
    entries_of,
    entry_row,
    plan_keys,
)
from nessie_cli.spark.table import Row, SourceTable, pin_heads
from nessie_cli.workspace.environment import of_s3

_FINDING = StructType(
    [
        column(
            "kind",
            TEXT,
            "The kind of the finding (METADATA_MISSING, ID_DIFFERS, MANIFEST_MISSING, ...)",
            nullable=False,
        ),
        column("where", TEXT, "The file", nullable=False),
        column("message", TEXT, "The message", nullable=False),
    ]
)
AUDIT_SCHEMA = StructType(
    [
        *ENTRIES_SCHEMA.fields,
        column("uuid", TEXT, "The UUID of the table or view; null if unknown"),
        column(
            "files",
            LONG,
            "The number of checked files",
            nullable=False,
        ),
        column(
            "findings",
            ArrayType(_FINDING, containsNull=False),
            "The findings about its files",
            nullable=False,
        ),
    ]
)
SIZES_SCHEMA = StructType(
    [
        *ENTRIES_SCHEMA.fields,
        column("rows", LONG, "Rows, from the summary of the snapshot; null if missing"),
        column("files", LONG, "Data files, from the summary"),
        column("bytes", LONG, "Bytes of data files, from the summary"),
        column("problem", TEXT, "Why the metadata file cannot be read; null if it can"),
    ]
)


def audits(repository: Repository, part: KeyPart) -> Iterator[tuple[Entry, ContentAudit]]:
    """Yields the findings about the contents of a part."""
    files = Files(of_s3())

    def audit(entry: Entry) -> tuple[Entry, ContentAudit]:
        assert entry.content
        return entry, audit_content(entry.key, entry.content, files)

    return each(entries_of(repository, part), audit)


def measured(repository: Repository, part: KeyPart) -> Iterator[tuple[Entry, MeasuredTable]]:
    """Yields the sizes of the Iceberg tables of a part."""
    files = Files(of_s3())

    def measure(entry: Entry) -> tuple[Entry, MeasuredTable]:
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


def _audit_rows(repository: Repository, part: KeyPart) -> Iterator[Row]:
    for entry, content_audit in audits(repository, part):
        findings = [
            {"kind": finding.kind.value, "where": finding.where, "message": finding.message}
            for finding in content_audit.findings
        ]
        yield (*entry_row(part, entry), content_audit.uuid, content_audit.files, findings)


def _size_rows(repository: Repository, part: KeyPart) -> Iterator[Row]:
    for entry, size in measured(repository, part):
        yield (*entry_row(part, entry), size.rows, size.files, size.bytes, size.problem)


AUDIT = SourceTable("audit", STATE, AUDIT_SCHEMA, NARROWED, pin_heads, plan_keys, _audit_rows)
SIZES = SourceTable("sizes", STATE, SIZES_SCHEMA, NARROWED, pin_heads, plan_keys, _size_rows)
