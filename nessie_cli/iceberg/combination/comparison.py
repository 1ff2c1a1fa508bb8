"""Compares two sides of a table with their base, which can be the merge of several states."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, structs

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder.document import normalized
from nessie_cli.iceberg.builder.table import updated
from nessie_cli.iceberg.builder.values import Document
from nessie_cli.iceberg.combination.decision import merge_files
from nessie_cli.iceberg.combination.definitions import (
    DefinitionConflict,
    DefinitionMerge,
    merge_definitions,
)
from nessie_cli.iceberg.combination.equality import EqualityScope
from nessie_cli.iceberg.combination.file_merge import FileConflict, FileMerge
from nessie_cli.iceberg.combination.manifests import ManifestList
from nessie_cli.iceberg.combination.merged_base import merged_state, own_changes, without_dangling
from nessie_cli.iceberg.combination.reading import (
    ManifestReader,
    history_of,
    live_files,
)
from nessie_cli.iceberg.combination.required import required_conflict
from nessie_cli.iceberg.combination.restriction import restricted
from nessie_cli.iceberg.combination.states import (
    FileContent,
    Identity,
    Row,
    SnapshotChanges,
    TableFile,
    TableState,
)
from nessie_cli.iceberg.expiration.retention import line_of
from nessie_cli.iceberg.files import MissingFile

_ISOLATION = (
    "write.delete.isolation-level",
    "write.update.isolation-level",
    "write.merge.isolation-level",
)


class MergedDocument(Struct, frozen=True):
    """The base of two sides whose merge bases conflict: the documents of these, and their base."""

    base: Base
    ours: Document
    theirs: Document


Base = Document | MergedDocument


def normalized_base(base: Base) -> Base:
    """Returns a base with normalized documents."""
    if isinstance(base, MergedDocument):
        ours, theirs = normalized(base.ours), normalized(base.theirs)
        return MergedDocument(normalized_base(base.base), ours, theirs)
    return normalized(base)


def documents_of(base: Base) -> list[Document]:
    """Returns the documents that a base is, or is made of."""
    if isinstance(base, MergedDocument):
        return [*documents_of(base.base), base.ours, base.theirs]
    return [base]


class _Base(NamedTuple):
    """A base: its metadata, its files, and its snapshots from the current one back."""

    document: Document
    state: TableState
    line: frozenset[int]


class FileMerger(Struct, frozen=True):
    """Merges the files of two sides.

    `documents` are the metadata of the base and of both sides, and `shared` the manifests that all
    have. For the other members, see `merge_files`.
    """

    documents: Sequence[Document]
    shared: Collection[Row]
    fork_sequence: int
    scope: EqualityScope

    def merge(self, states: Sequence[TableState]) -> FileMerge:
        """Merges the files of a base and two sides."""
        base, ours, theirs = states
        merged = merge_files(
            base,
            ours,
            theirs,
            self.fork_sequence,
            has_equality_deletes=_has_equality_deletes(states, self.shared, self.fork_sequence),
            scope=self.scope,
        )
        return _without_nulls(self.documents, states, merged)


class Comparison(NamedTuple):
    """The states of a base and two sides, and how they merge."""

    states: Sequence[TableState]
    files: FileMerge
    definitions: DefinitionMerge
    merger: FileMerger

    def merge_some(self, files: Collection[Identity], others: Collection[Identity]) -> FileMerge:
        """Merges some files that theirs changed, as if all `others` were unchanged on both sides.

        No row of the files may have the key of a row of the others.
        """
        base, ours, theirs = self.states
        return self.merger.merge(
            [
                base,
                restricted(base, ours, lambda id_: id_ not in others, others),
                restricted(base, theirs, lambda id_: id_ in files, others),
            ]
        )


class BasesConflict(Exception):
    """Raised if merge bases do not combine."""

    def __init__(self, reasons: Sequence[FileConflict | DefinitionConflict]) -> None:
        first = reasons[0]
        reason, files = (
            (first.reason, first.files) if isinstance(first, FileConflict) else (str(first), ())
        )
        self.conflict = FileConflict(
            f"the branches have several merge bases, which do not combine ({reason}): transplant"
            " new commits",
            files,
            rows_may_merge=False,
        )
        super().__init__(self.conflict.reason)


class Comparisons:
    """Compares states of a table. `documents` are all states, and `lists` their manifests."""

    def __init__(
        self,
        reader: ManifestReader,
        documents: Sequence[Document],
        lists: Sequence[ManifestList],
        *,
        is_serializable: bool,
    ) -> None:
        self._reader = reader
        self._is_serializable = is_serializable
        shared = set.intersection(*(set(each.rows) for each in lists))
        self._shared = [lists[0].rows[path] for path in shared]
        files = live_files(reader, lists, shared)
        self._files = {id(each): live for each, live in zip(documents, files, strict=True)}
        self._scope = EqualityScope([schema for side in documents for schema in side["schemas"]])
        self._versions = {each["format-version"] for each in documents}

    def base_of(self, base: Base) -> _Base:
        """Returns a base. Raises `BasesConflict`."""
        if not isinstance(base, MergedDocument):
            line = frozenset(line_of(base))
            return _Base(base, _leaf_state(base, self._files[id(base)]), line)
        if len(self._versions) > 1:
            raise BasesConflict([FileConflict("they have different format versions")])
        origin = self.base_of(base.base)
        states, merge, definitions, _ = self.compare(origin, base.ours, base.theirs)
        if merge.conflicts or definitions.conflicts:
            raise BasesConflict([*definitions.conflicts, *merge.conflicts])
        if merge.unions:
            files = [union.ours for union in merge.unions]
            raise BasesConflict([FileConflict("both have deletion vectors of one file", files)])
        try:
            document = updated(base.ours, definitions.updates, base.ours["last-updated-ms"])
        except InvalidInput as error:
            raise BasesConflict([FileConflict(error.message)]) from None
        line = origin.line.union(line_of(base.ours), line_of(base.theirs))
        return _Base(document, merged_state(states[0], states[1], states[2], merge), line)

    def compare(self, base: _Base, ours: Document, theirs: Document) -> Comparison:
        """Compares two sides with their base."""
        states = [base.state, *(self._state(side, base) for side in (ours, theirs))]
        if self._is_serializable and not any(
            name in base.document["properties"] for name in _ISOLATION
        ):
            states[0] = structs.replace(states[0], is_serializable=True)
        documents = [base.document, ours, theirs]
        fork = _fork_sequence(ours, theirs)
        merger = FileMerger(documents, self._shared, fork, self._scope)
        return Comparison(states, merger.merge(states), merge_definitions(*documents), merger)

    def _state(self, document: Document, base: _Base) -> TableState:
        """Returns the state of a side, with its changes since the base."""
        files = self._files[id(document)]
        state = _leaf_state(document, files)
        history: list[SnapshotChanges] | None
        try:
            history = list(history_of(self._reader, document, base.line, base.state.files))
        except (LookupError, MissingFile):
            history = None
        lost = base.state.lost
        if lost is not None:
            state = structs.replace(state, files=without_dangling(files, lost))
            history = None if history is None else list(own_changes(history, base.state))
        return structs.replace(state, history=history)


def _leaf_state(document: Document, files: Mapping[Identity, TableFile]) -> TableState:
    properties = document["properties"]
    return TableState(
        document["format-version"],
        document["last-sequence-number"],
        files,
        document.get("next-row-id") or 0,
        is_serializable=any(properties.get(name) == "serializable" for name in _ISOLATION),
    )


def _without_nulls(
    documents: Sequence[Document], states: Sequence[TableState], merged: FileMerge
) -> FileMerge:
    """Returns the outcome, with a conflict for rows without values in required columns."""
    base, ours, theirs = documents
    here = [f for id_, f in states[1].files.items() if id_ not in states[0].files and f.is_data]
    there = [each.file for each in merged.added if each.file.is_data]
    conflicts = list(merged.conflicts)
    if (conflict := required_conflict(base, theirs, here)) is not None:
        # A merge of rows leaves the files of ours as they are.
        conflicts.append(structs.replace(conflict, rows_may_merge=False))
    if (conflict := required_conflict(base, ours, there)) is not None:
        conflicts.append(conflict)
    return structs.replace(merged, conflicts=conflicts)


def _has_equality_deletes(
    states: Sequence[TableState], shared: Collection[Row], fork_sequence: int
) -> bool:
    """Returns whether a state may have equality deletes that are not older than the fork."""
    return any(
        file.content is FileContent.EQUALITY_DELETES
        for state in states
        for file in state.files.values()
    ) or any(
        row.get("content") and (row.get("sequence_number") or 0) > fork_sequence for row in shared
    )


def _fork_sequence(ours: Document, theirs: Document) -> int:
    """Returns the last sequence number that means the same on both sides.

    That is the one of the newest snapshot that both list, as far as none has expired.
    """
    shared = set.intersection(
        *(
            {(each["snapshot-id"], each.get("sequence-number") or 0) for each in side["snapshots"]}
            for side in (ours, theirs)
        )
    )
    return max((number for _, number in shared), default=0)
