"""The rows that differ between two contents of a table, for Python programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from nessie_cli.iceberg.builder.values import Document
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.metadata import in_state, parse_document
from nessie_cli.iceberg.row_diff.changes import RowChanges
from nessie_cli.iceberg.row_diff.difference import Selection, compare_tables
from nessie_cli.model import IcebergTable


def changed_rows(
    before: IcebergTable | None,
    after: IcebergTable | None,
    *,
    key: Sequence[str] = (),
    columns: Sequence[str] = (),
    where: str | None = None,
    limit: int | None = None,
    properties: Mapping[str, str] | None = None,
) -> RowChanges:
    """Returns the rows that differ between two states of a table; None means no table.

    `key` are the columns that pair the states of an updated row, `columns` those that are compared,
    and `where` is a filter as in SQL. `properties` are those of PyIceberg's FileIO. Metadata is
    read at once, and data files while the result is iterated.
    """
    files = Files(properties)
    old, new = (document_of(content, files.read) for content in (before, after))
    difference = compare_tables(old, new, files.read, Selection(key, columns, where, limit))
    return RowChanges(difference, files)


def document_of(content: IcebergTable | None, read: Callable[[str], bytes]) -> Document | None:
    """Returns the metadata of a table in the state of a content; None means no table."""
    if content is None:
        return None
    location = content.metadata_location
    return dict(in_state(parse_document(read(location), location), content))
