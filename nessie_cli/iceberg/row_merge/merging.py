"""Merges the rows of two sides of a table, and writes what changes in ours.

The differing files are divided into groups that share no key. Groups that only theirs changed merge
by their files. Of the others, the three states are compared by their rows; the rows that theirs
changed, and that remain, become new data files of ours, and deletes for their earlier versions.
Rows are divided by the hashes of their keys, so memory does not grow with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct, structs
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyroaring import BitMap64

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder.document import ROW_LINEAGE, normalized
from nessie_cli.iceberg.builder.schemas import identifiers
from nessie_cli.iceberg.builder.table import updated
from nessie_cli.iceberg.builder.values import Document, by_id, current_schema
from nessie_cli.iceberg.combination.combination import Combination
from nessie_cli.iceberg.combination.equality import EqualityScope
from nessie_cli.iceberg.combination.file_merge import FileMerge
from nessie_cli.iceberg.combination.key_evidence import KeyEvidence, KeyPartitions
from nessie_cli.iceberg.combination.manifests import Reading
from nessie_cli.iceberg.combination.states import TableFile, file_digest
from nessie_cli.iceberg.row_diff.deletes import Deletes
from nessie_cli.iceberg.row_diff.difference import check_key
from nessie_cli.iceberg.row_diff.parquet import Reader
from nessie_cli.iceberg.row_diff.reading import Check
from nessie_cli.iceberg.row_diff.scan import Read, ScannedFile
from nessie_cli.iceberg.row_diff.schemas import check_columns, every_field, schema_of
from nessie_cli.iceberg.row_merge.data_files import (
    DataFileForm,
    Write,
    deletion_vectors,
    position_deletes,
)
from nessie_cli.iceberg.row_merge.decision import Decisions, DuplicateKey, Side
from nessie_cli.iceberg.row_merge.engines import LocalRows, RowEngine, RowWork
from nessie_cli.iceberg.row_merge.groups import file_groups
from nessie_cli.iceberg.row_merge.parts import PartWork, RowCounts, RowResult
from nessie_cli.iceberg.row_merge.sides import KeyRange, PlacesOfOurs, SideChanges
from nessie_cli.model import RowConflict


class RowOutcome(Struct, frozen=True):
    """A merge of rows: what combines the table, or why the rows do not merge.

    `conflicts` are those with the smallest keys of `conflict_count`. `by_files` is the part of the
    combination that was merged without reading rows: `counts` do not contain its rows.
    """

    combination: Combination
    counts: RowCounts = RowCounts()
    conflicts: Sequence[RowConflict] = ()
    conflict_count: int = 0
    duplicates: Sequence[DuplicateKey] = ()
    by_files: FileMerge = FileMerge(0)


class RowMerger:
    """Merges the rows of a table whose files do not combine.

    `combination` is the one of its files, and `base` the metadata of the base. `key` are the names
    of columns; by default, the identifier fields. With `whole_rows`, a row that both sides changed
    is a conflict. The `engine` reads, merges and writes rows, by default in this process. `check`
    is called with each batch of rows that this process reads, and may raise an error. Reads
    manifests at once. Raises `InvalidInput` if the rows cannot be merged.
    """

    def __init__(
        self,
        combination: Combination,
        base: Document,
        read: Read,
        now: int,
        *,
        key: Sequence[str] = (),
        whole_rows: bool = False,
        engine: RowEngine | None = None,
        check: Check | None = None,
    ) -> None:
        self._combination = combination
        self._engine = engine or LocalRows()
        self._whole_rows = whole_rows
        base, ours, theirs = normalized(base), combination.ours, combination.theirs
        self._version = int(ours["format-version"])
        if self._version == 1:
            raise InvalidInput("rows are merged from format version 2 on: version 1 has no deletes")
        self._merged = updated(ours, combination.definitions.updates, now)
        self._schema = schema_of(self._merged)
        self._key = list(key) or _identifiers(self._schema, [base, ours, theirs])
        for name in self._key:
            check_key(self._schema, name)
        _check_dropped([base, ours, theirs], self._schema)
        ids = [field.field_id for field in self._schema.fields]
        check_columns(ours, theirs, ids)
        self._ours, self._theirs = (
            SideChanges(side, (base, document), self._schema, self._key, read, check=check)
            for side, document in ((Side.OURS, ours), (Side.THEIRS, theirs))
        )
        self._read = read
        self._check = check
        self._evidence = KeyEvidence(
            {field.field_id: field.field_type for field in map(self._schema.find_field, self._key)},
            [base, ours, theirs, self._merged],
        )
        self._groups = file_groups(
            self._ours.difference.files,
            self._theirs.difference.files,
            self._evidence,
            EqualityScope([schema for each in (base, ours, theirs) for schema in each["schemas"]]),
        )
        by_files = self._merged_by_files()
        self._by_files = by_files or FileMerge(combination.files.sequence)
        groups = self._groups
        self._by_rows = groups.of_both if by_files else groups.of_both | groups.of_theirs
        for changes in (self._ours, self._theirs):
            changes.select(self._by_rows)

    def _merged_by_files(self) -> FileMerge | None:
        """Merges the groups that only theirs changed by their files. Returns None if they do not.

        Then these groups are merged by rows, too.
        """
        comparison, groups = self._combination.comparison, self._groups
        if comparison is None:
            return None
        files = comparison.merge_some(groups.of_theirs, groups.of_both | groups.of_ours)
        return None if files.conflicts or files.unions else files

    @property
    def bytes(self) -> int:
        """The bytes of the data files that are read for the changes of both sides."""
        return self._ours.difference.bytes + self._theirs.difference.bytes

    @property
    def new_bytes(self) -> int:
        """The bytes of the data files of theirs with rows that may be written again."""
        return self._theirs.difference.added.bytes

    def merge(self, reader: Reader, write: Write, decisions: Decisions) -> RowOutcome:
        """Merges the rows, and writes new data files and deletes. With conflicts, they are void.

        Raises `InvalidInput` or `StoreUnavailable` for a file that cannot be read or written.
        """
        part = PartWork(self._key, self._whole_rows, decisions, self._form)
        work = RowWork(self._ours, self._theirs, self._places, part)
        ours, result = self._engine.merge(work, reader, write)
        if result.is_refused:
            return self._outcome(self._combination, result)
        deletes, removed = self._deletes(result.deleted, ours.files, reader, write)
        return self._outcome(self._combined([*result.files, *deletes], removed), result)

    def _files_with_keys(self) -> Callable[[TableFile], bool]:
        """Returns whether a data file of ours can have a key that theirs changed."""
        changed = [pair.file for pair in self._theirs.difference.files]
        partitions = KeyPartitions(self._evidence, changed)
        return lambda file: (
            file.identity in self._by_rows
            or (not self._groups.are_about(file.identity) and partitions.may_contain(file))
        )

    def _places(self, keys: KeyRange) -> PlacesOfOurs:
        return PlacesOfOurs(
            self._combination.ours,
            self._schema,
            self._key,
            keys,
            self._read,
            may_contain=self._files_with_keys(),
            check=self._check,
        )

    def _outcome(self, combination: Combination, result: RowResult) -> RowOutcome:
        return RowOutcome(
            combination,
            result.counts,
            result.conflicts,
            result.conflict_count,
            result.duplicates,
            self._by_files,
        )

    # -- what is written -------------------------------------------------------------------------

    @property
    def _form(self) -> DataFileForm:
        merged = self._merged
        specs = by_id(merged["partition-specs"], "spec-id")
        manifests = [
            row
            for row in (*self._combination.listed.rows.values(), *self._listed_theirs())
            if not row.get("content")
        ]
        default = merged["default-spec-id"]
        # A new spec has no manifest whose form a new one could have: the last one is as valid.
        row = next((row for row in manifests if row["partition_spec_id"] == default), manifests[0])
        return DataFileForm(
            self._schema,
            PartitionSpec.model_validate(specs[row["partition_spec_id"]]),
            merged["properties"],
            self._folder,
            str(row["manifest_path"]),
            self._version >= ROW_LINEAGE,
        )

    @property
    def _folder(self) -> str:
        """The folder of data files, and of their deletes."""
        properties = self._merged["properties"]
        folder: str = properties.get("write.data.path") or f"{self._merged['location']}/data"
        return folder.rstrip("/")

    def _listed_theirs(self) -> Iterator[Mapping[str, object]]:
        for source in self._combination.sources.values():
            yield source.listed

    def _deletes(
        self,
        deleted: Mapping[int, BitMap64],
        files: Sequence[ScannedFile],
        reader: Reader,
        write: Write,
    ) -> tuple[list[TableFile], list[TableFile]]:
        """Writes the deletes of positions in files of ours. Returns them and the replaced ones."""
        folder = self._folder
        touched = [(files[number], gone) for number, gone in sorted(deleted.items())]
        if self._version < ROW_LINEAGE:
            return [position_deletes(each.file, gone, folder, write) for each, gone in touched], []
        # A data file has one vector, also with the rows that older files of deletes delete.
        existing = Deletes(reader, every_field([self._merged]))
        vectors = [
            (each.file, gone | existing.positions(each.positions, each.file.path))
            for each, gone in touched
        ]
        replaced = [file for each, _ in touched for file in each.positions if file.is_vector]
        return deletion_vectors(vectors, folder, write), replaced

    def _combined(self, files: Sequence[TableFile], removed: Sequence[TableFile]) -> Combination:
        """Returns the combination that adds files to ours, and removes some."""
        old = self._combination
        listed = {path: Reading(row) for path, row in old.listed.rows.items()}
        # The rows of the new files of theirs are in the merged files: no later merge adds these.
        merged = {
            file_digest(pair.file.path)
            for pair in self._theirs.difference.files
            if pair.before is None
        }
        by_files = self._by_files
        return structs.replace(
            old,
            files=structs.replace(
                by_files, removed=[*by_files.removed, *removed], gone=merged.union(by_files.gone)
            ),
            sources={**listed, **old.sources},
            written=files,
            replaces_only=False,
            same_keys=(),
            vectors=(),
        )


def _identifiers(schema: Schema, states: Sequence[Document]) -> list[str]:
    """Returns the names of the identifier fields. Raises `InvalidInput` without any."""
    ids = [identifiers(current_schema(each)) for each in states]
    if any(each != ids[0] for each in ids):
        raise InvalidInput(
            "the rows cannot be merged: the identifier fields were changed",
            hint="name the columns of the key with --key",
        )
    names = [field.name for field in schema.fields if field.field_id in ids[0]]
    if not ids[0] or len(names) != len(ids[0]):
        raise InvalidInput(
            "the rows cannot be merged: the table has no identifier fields to find them by",
            hint="name the columns of the key with --key",
        )
    return names


def _check_dropped(states: Sequence[Document], schema: Schema) -> None:
    """Raises `InvalidInput` if one side dropped a column that the other one may have changed."""
    base, ours, theirs = (
        {field.field_id: field.name for field in schema_of(each).fields} for each in states
    )
    merged = {field.field_id for field in schema.fields}
    dropped = [
        name for id_, name in base.items() if id_ not in merged and (id_ in ours or id_ in theirs)
    ]
    if dropped:
        raise InvalidInput(f"the rows cannot be merged: one side dropped the column {dropped[0]}")
