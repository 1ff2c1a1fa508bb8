"""What differs between two states of a table, by their metadata alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct
from pyiceberg.schema import Schema, index_name_by_id
from pyiceberg.types import DoubleType, FloatType, PrimitiveType

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder.document import normalized
from nessie_cli.iceberg.builder.values import Document, by_id, current_schema
from nessie_cli.iceberg.combination.states import TableFile
from nessie_cli.iceberg.expiration.retention import line_of
from nessie_cli.iceberg.row_diff.deletes import columns_of
from nessie_cli.iceberg.row_diff.filters import row_filter
from nessie_cli.iceberg.row_diff.scan import FilePair, Read, differing_files
from nessie_cli.iceberg.row_diff.schemas import check_columns, schema_of, selected, widened


class Selection(Struct, frozen=True):
    """The rows and columns that are compared.

    `key` are the columns that pair the two states of an updated row (default: the identifier fields
    of the table, otherwise row ids). `columns` are compared and returned, beside the key (default:
    all). `where` is a filter as in SQL: a change is returned if its row matches before or after.
    `limit` is the largest number of changes. Without `rows`, only metadata is read, and columns are
    not compared.
    """

    key: Sequence[str] = ()
    columns: Sequence[str] = ()
    where: str | None = None
    limit: int | None = None
    rows: bool = True


class FileTotals(Struct, frozen=True):
    """The number of some data files, with their rows and bytes. Deleted rows are included."""

    files: int
    rows: int
    bytes: int


class DifferenceSummary(NamedTuple):
    """What differs between two states of a table by their metadata, as it is shown.

    `added` and `removed` are data files of one state only, and `changed` those in which the states
    delete different rows. `bytes` is the size of all files that may be read.
    """

    schema: Schema
    key: Sequence[str]
    added: FileTotals
    removed: FileTotals
    changed: FileTotals
    delete_files: int
    bytes: int

    @property
    def files(self) -> int:
        """The number of all files that may be read."""
        return self.added.files + self.removed.files + self.changed.files + self.delete_files


class TableDifference(Struct, frozen=True, dict=True):
    """The files that differ between two states of a table, and how their rows are compared.

    The states are normalized metadata; None means no table. `schema` are the compared columns, and
    `key` the names of those that pair updated rows. Rows without a key are paired by row ids below
    `next_row_id`, if it is not None.
    """

    before: Document | None
    after: Document | None
    files: Sequence[FilePair]
    schema: Schema
    key: Sequence[str]
    next_row_id: int | None
    where: str | None
    limit: int | None

    @cached_property
    def added(self) -> FileTotals:
        """The data files that only the later state has."""
        return _totals(pair.file for pair in self.files if pair.before is None)

    @cached_property
    def removed(self) -> FileTotals:
        """The data files that only the earlier state has."""
        return _totals(pair.file for pair in self.files if pair.after is None)

    @cached_property
    def changed(self) -> FileTotals:
        """The data files in which the states delete different rows."""
        return _totals(pair.file for pair in self.files if pair.before and pair.after)

    @cached_property
    def delete_files(self) -> Sequence[TableFile]:
        """The delete files that apply to any of the data files."""
        scanned = [side for pair in self.files for side in pair if side is not None]
        deletes = (delete for side in scanned for delete in (*side.positions, *side.equality))
        return list({delete.identity: delete for delete in deletes}.values())

    @property
    def summary(self) -> DifferenceSummary:
        """What is shown of the difference."""
        return DifferenceSummary(
            self.schema,
            self.key,
            self.added,
            self.removed,
            self.changed,
            len(self.delete_files),
            self.bytes,
        )

    @cached_property
    def bytes(self) -> int:
        """The bytes of all files that may be read."""
        data = sum(_size(pair.file) for pair in self.files)
        return data + sum(map(_size, self.delete_files))


def _totals(files: Iterable[TableFile]) -> FileTotals:
    listed = list(files)
    return FileTotals(len(listed), sum(file.records for file in listed), sum(map(_size, listed)))


def _size(file: TableFile) -> int:
    size = file.identity.size
    return int(file.row["file_size_in_bytes"]) if size is None else size


def compare_tables(
    before: Document | None,
    after: Document | None,
    read: Read,
    selection: Selection = Selection(),  # noqa: B008 (immutable)
) -> TableDifference:
    """Compares two states of a table by their metadata and manifests.

    The states are table metadata in the state that a content names; None means no table. Raises
    `InvalidInput` if they belong to different tables, or are not supported.
    """
    documents = [None if each is None else normalized(each) for each in (before, after)]
    old, new = documents
    if old and new and old.get("table-uuid") != new.get("table-uuid"):
        raise InvalidInput(
            "the rows cannot be compared: this is another table, which was created under the same"
            " key"
        )
    last = new or old
    assert last is not None, "a table is in one of the states"
    newest = schema_of(last)
    key = list(selection.key) or _identifiers(last, newest)
    schema = selected(newest, [*key, *selection.columns]) if selection.columns else newest
    if old and new and selection.rows:
        check_columns(old, new, index_name_by_id(schema))
        schema = widened(schema, schema_of(old))
    for name in key:
        check_key(schema, name)
    if selection.where is not None:
        _check_filter(selection.where, schema, newest)
    files = differing_files(old, new, read)
    if old and new and selection.rows:
        check_columns(old, new, _columns_of_deletes(files))
    return TableDifference(
        old,
        new,
        files,
        schema,
        key,
        None if key else _shared_row_ids(old, new),
        selection.where,
        selection.limit,
    )


def _identifiers(document: Document, schema: Schema) -> list[str]:
    """Returns the names of the identifier fields. There are none if one is inside a struct."""
    ids = current_schema(document).get("identifier-field-ids") or ()
    names = [field.name for field in schema.fields if field.field_id in ids]
    return names if len(names) == len(ids) else []


def _columns_of_deletes(files: Iterable[FilePair]) -> set[int]:
    """Returns the ids of the columns of the equality deletes that apply to some files."""
    sides = (side for pair in files for side in (pair.before, pair.after) if side is not None)
    return {id_ for side in sides for delete in side.equality for id_ in columns_of(delete)}


def _check_filter(text: str, compared: Schema, whole: Schema) -> None:
    try:
        row_filter(text, compared)
    except InvalidInput as error:
        row_filter(text, whole)
        reason = error.message.removesuffix(f". Hint: {error.hint}")
        raise InvalidInput(
            f"{reason} among the compared columns",
            hint="a filter can use only columns that are compared: add it to them",
        ) from None


def check_key(schema: Schema, name: str) -> None:
    """Raises `InvalidInput` if a column cannot be a part of a key, or is missing."""
    field = selected(schema, [name]).fields[0]
    type_ = field.field_type
    if not isinstance(type_, PrimitiveType) or isinstance(type_, FloatType | DoubleType):
        raise InvalidInput(f"column '{field.name}' of type {type_} cannot be a key")


def _shared_row_ids(before: Document | None, after: Document | None) -> int | None:
    """Returns the id before which both states gave ids to the same rows, or None if no id is.

    It is the next row id of the newest snapshot that both states descend from. Beyond it, each
    branch gave out the same ids to different rows. Before format version 3 rows have no ids.
    """
    if before is None or after is None:
        return None
    snapshots = by_id(before["snapshots"], "snapshot-id")
    line_of_after = set(line_of(after))
    common = next((snapshots[id_] for id_ in line_of(before) if id_ in line_of_after), None)
    if common is None or common.get("first-row-id") is None or common.get("added-rows") is None:
        return None
    return int(common["first-row-id"] + common["added-rows"])
