"""Compares three states of a table, and decides how the sides combine.

Reads manifest lists and those manifests that the three states do not share; no data file. Reads
deletion vectors of data files in which both sides deleted rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, structs
from pyiceberg.schema import Schema

from nessie_cli.iceberg.avro import USUAL, AvroLimits
from nessie_cli.iceberg.builder.document import normalized
from nessie_cli.iceberg.builder.schemas import identifiers
from nessie_cli.iceberg.builder.values import Document, current_schema
from nessie_cli.iceberg.combination.comparison import (
    Base,
    BasesConflict,
    Comparison,
    Comparisons,
    documents_of,
    normalized_base,
)
from nessie_cli.iceberg.combination.definitions import (
    DefinitionConflict,
    DefinitionMerge,
)
from nessie_cli.iceberg.combination.engines import Engine, LocalEngine, Read
from nessie_cli.iceberg.combination.file_merge import FileConflict, FileMerge
from nessie_cli.iceberg.combination.identifiers import files_with_same_keys
from nessie_cli.iceberg.combination.key_evidence import KeyEvidence
from nessie_cli.iceberg.combination.manifests import (
    ManifestList,
    Reading,
)
from nessie_cli.iceberg.combination.reading import ManifestReader, snapshot_of
from nessie_cli.iceberg.combination.required import required_columns
from nessie_cli.iceberg.combination.side_changes import SideChanges
from nessie_cli.iceberg.combination.states import (
    Identity,
    TableFile,
    TableState,
)
from nessie_cli.iceberg.combination.unions import UnitedVector, read_vectors, unite


class Combination(Struct, frozen=True):
    """How two sides of a table combine. With conflicts, the rest is not final.

    `ours` is the normalized metadata of ours, `listed` its manifests, `sources` are all that were
    read, by path, and `engine` reads them again. `replaces_only` is whether theirs only rewrote
    rows. `same_keys` are data files of theirs whose rows may have the identifiers of rows that ours
    added. `vectors` are to be written, too. `written` are new files with merged rows, and deletes.
    `comparison` are the compared states, None if the merge bases do not combine.
    """

    ours: Document
    theirs: Document
    listed: ManifestList
    sources: Mapping[str, Reading]
    engine: Engine
    files: FileMerge
    definitions: DefinitionMerge
    replaces_only: bool = False
    same_keys: Sequence[TableFile] = ()
    vectors: Sequence[UnitedVector] = ()
    written: Sequence[TableFile] = ()
    comparison: Comparison | None = None

    @property
    def notes(self) -> list[str]:
        """What the result does not contain, and what it may contain twice."""
        text = (
            f"both sides added rows whose identifiers may be equal (in {len(self.same_keys)} of the"
            " files of theirs): the table may contain them twice"
        )
        skew = "one side changed rows that may depend on changes of the other side (write skew)"
        return [
            *([text] if self.same_keys else []),
            *([skew] if self.files.may_skew else []),
        ]

    @property
    def conflicts(self) -> list[FileConflict | DefinitionConflict]:
        """The reasons why the sides do not combine."""
        return [*self.definitions.conflicts, *self.files.conflicts]


def combine(
    base: Base,
    ours: Document,
    theirs: Document,
    read: Read,
    *,
    is_serializable: bool = False,
    refuses_same_keys: bool = False,
    key: Sequence[str] = (),
    limits: AvroLimits = USUAL,
    engine: Engine | None = None,
) -> Combination:
    """Combines three states of a table: metadata in the state that each content names.

    The base can be a state of any branch: that before a picked commit, for example. If it is to be
    merged itself, that is done in memory. With
    `is_serializable`, a table that sets no isolation is serializable. With `refuses_same_keys`,
    rows that both sides added with equal identifiers are a conflict. `key` are the columns that
    identify rows instead, if the table has all of them. The `engine` reads and encodes manifests,
    by default in this process. Raises `InvalidInput` or
    `StoreUnavailable` if a file is missing, damaged or cannot be read, or if a file exceeds the
    `limits`, or all entries together.
    """
    bases = normalized_base(base)
    sides = [normalized(document) for document in (ours, theirs)]
    documents = [*documents_of(bases), *sides]
    engine = engine or LocalEngine(read)
    reader = ManifestReader(read, engine, _deciding_columns(documents, key), limits)
    lists = [reader.list_of(snapshot_of(document)) for document in documents]
    compared = Comparisons(reader, documents, lists, is_serializable=is_serializable)
    try:
        state = compared.base_of(bases)
    except BasesConflict as error:
        refused = FileMerge(0, conflicts=[error.conflict])
        return Combination(
            sides[0], sides[1], lists[-2], reader.sources, engine, refused, DefinitionMerge()
        )
    comparison = compared.compare(state, *sides)
    merged, states = comparison.files, comparison.states
    sides_changed = [SideChanges(states[0], side, comparison.merger.scope) for side in states[1:]]
    same_keys = _files_with_same_keys(documents, states, sides_changed, merged, key)
    if same_keys and refuses_same_keys:
        reason = "both sides added rows whose identifiers may be equal"
        merged = structs.replace(merged, conflicts=[FileConflict(reason, same_keys)])
    vectors: list[UnitedVector] = []
    if not (merged.conflicts or comparison.definitions.conflicts):
        merged, vectors = unite(merged, read_vectors(merged.unions, read, limits.vector))
    history = states[2].history
    return Combination(
        sides[0],
        sides[1],
        lists[-2],
        reader.sources,
        engine,
        merged,
        comparison.definitions,
        bool(history) and all(changes.operation == "replace" for changes in history or ()),
        same_keys,
        vectors,
        comparison=comparison,
    )


def _files_with_same_keys(
    documents: Sequence[Document],
    states: Sequence[TableState],
    sides: Sequence[SideChanges],
    merged: FileMerge,
    key: Sequence[str],
) -> list[TableFile]:
    """Returns the added data files of theirs with keys that files which ours added may have.

    Rows whose deletion a side took back count as added: their files of deletes stand for them.
    """
    before = states[0].files
    # Files of compactions that contain rows of the base only.
    compacted: set[str] = set()
    for state in states:
        for changes in state.history or ():
            if changes.operation == "replace" and all(
                path in compacted or Identity(path) in before for path in changes.removed
            ):
                compacted.update(changes.added)
    ours, theirs = sides
    added = [
        [*ours.added_data, *ours.undone_deletes],
        [
            *(each.file for each in merged.added if each.file.is_data),
            *theirs.undone_deletes,
        ],
    ]
    rows = [[f for f in files if f.path not in compacted] for files in added]
    fields = _key_columns(documents, key) if all(rows) else set()
    if not fields:
        return []
    schema = Schema.model_validate(current_schema(documents[-2]))
    evidence = KeyEvidence({id_: schema.find_type(id_) for id_ in fields}, documents)
    return files_with_same_keys(evidence, *rows)


def _key_columns(documents: Sequence[Document], key: Sequence[str]) -> set[int]:
    """Returns the columns of ours that identify a row: those of the key if it has all of them."""
    ours, theirs = map(current_schema, documents[-2:])
    # Theirs may have renamed a column.
    ids = {field["name"]: field["id"] for each in (theirs, ours) for field in each["fields"]}
    fields = {ids[name] for name in key if name in ids}
    if len(fields) < len(key) or not fields <= {field["id"] for field in ours["fields"]}:
        fields = set()
    return fields or identifiers(ours)


def _deciding_columns(documents: Sequence[Document], key: Sequence[str]) -> frozenset[int]:
    """Returns the columns whose statistics the decision can depend on."""
    required = (required_columns(base, side) for base in documents for side in documents)
    return frozenset(_key_columns(documents, key)).union(*required)
