"""The data files in which two states of a table differ, with their delete files.

Reads manifests only. A data file that both states have, with the same deletes, has no changed rows.

https://iceberg.apache.org/spec/#scan-planning
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder.document import NO_SNAPSHOT
from nessie_cli.iceberg.builder.values import Document, by_id
from nessie_cli.iceberg.combination.manifests import (
    Entry,
    Status,
    read_list,
    read_manifest,
)
from nessie_cli.iceberg.combination.states import FileContent, Identity, Row, TableFile

Read = Callable[[str], bytes]
"""Returns the bytes of a file. Raises `InvalidInput` or `StoreUnavailable`."""


class ScannedFile(Struct, frozen=True, eq=False):
    """A data file in one state of a table, and the delete files that apply to it.

    `positions` are its deletion vector, or files of position deletes. `first_row_id` is the id of
    its first row, or None before format version 3.
    """

    file: TableFile
    first_row_id: int | None
    positions: Sequence[TableFile]
    equality: Sequence[TableFile]

    @property
    def deletes(self) -> frozenset[Identity]:
        """What identifies the delete files."""
        return frozenset(delete.identity for delete in (*self.positions, *self.equality))


class FilePair(NamedTuple):
    """A data file in both states. It is None where it is missing."""

    before: ScannedFile | None
    after: ScannedFile | None

    @property
    def file(self) -> TableFile:
        """The data file."""
        scanned = self.after or self.before
        assert scanned is not None
        return scanned.file


def differing_files(before: Document | None, after: Document | None, read: Read) -> list[FilePair]:
    """Returns the data files that differ between two states of a table.

    The states are normalized metadata; None means no table. Files that only `before` has come
    first, and those that only `after` has last; older files come before newer ones.

    Cost: two manifest lists, the manifests that the states do not share, and all manifests of
    deletes if there are any; also the shared manifests of data files if the states have different
    delete files.
    """
    documents = (before, after)
    locations = [_manifest_list(document) for document in documents]
    if locations[0] == locations[1]:
        return []
    manifests = _Manifests(read)
    rows = [manifests.listed(location) for location in locations]
    shared = rows[0].keys() & rows[1].keys()
    old_deletes, new_deletes = (
        {
            entry.file.identity: entry.file.sequence
            for entry in manifests.entries(listed, deletes=True, without=shared)
        }
        for listed in rows
    )
    unread = shared if old_deletes == new_deletes else frozenset[str]()
    scanned = [
        _scanned(document, manifests, listed, unread)
        for document, listed in zip(documents, rows, strict=True)
    ]
    pairs = [
        FilePair(*(files.get(path) for files in scanned))
        for path in dict.fromkeys([*scanned[0], *scanned[1]])
    ]
    return sorted((pair for pair in pairs if _differs(pair)), key=_order)


def _differs(pair: FilePair) -> bool:
    return pair.before is None or pair.after is None or pair.before.deletes != pair.after.deletes


def _order(pair: FilePair) -> tuple[int, int]:
    group = 0 if pair.after is None else 2 if pair.before is None else 1
    return group, pair.file.sequence


def _manifest_list(document: Document | None) -> str | None:
    """Returns the location of the manifest list of the current snapshot."""
    if document is None or document["current-snapshot-id"] == NO_SNAPSHOT:
        return None
    id_ = document["current-snapshot-id"]
    snapshot = by_id(document["snapshots"], "snapshot-id").get(id_)
    if snapshot is None:
        raise InvalidInput(f"the metadata does not list its current snapshot {id_}")
    if not snapshot.get("manifest-list"):
        raise InvalidInput(
            f"snapshot {id_} of format version 1 has no manifest list",
            hint="rewrite its manifests, or upgrade the table",
        )
    return str(snapshot["manifest-list"])


class _Manifests:
    """Reads manifests, each once."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._entries: dict[str, list[Entry]] = {}

    def listed(self, location: str | None) -> Mapping[str, Row]:
        """Returns the rows of a manifest list by the paths of the manifests."""
        return {} if location is None else read_list(self._read(location), location).rows

    def entries(
        self, listed: Mapping[str, Row], *, deletes: bool, without: Container[str] = ()
    ) -> Iterator[Entry]:
        """Yields the live entries of the manifests of deletes or of data files."""
        for path, row in listed.items():
            if bool(row.get("content")) is not deletes or path in without:
                continue
            if path not in self._entries:
                entries = read_manifest(self._read(path), row).entries
                self._entries[path] = [e for e in entries if e.status is not Status.DELETED]
            yield from self._entries[path]


def _scanned(
    document: Document | None,
    manifests: _Manifests,
    listed: Mapping[str, Row],
    unread: Container[str],
) -> dict[str, ScannedFile]:
    """Returns the data files of a state by their paths, without those in unread manifests."""
    entries = list(manifests.entries(listed, deletes=False, without=unread))
    if not entries or document is None:
        return {}
    deletes = manifests.entries(listed, deletes=True)
    index = _DeleteIndex((entry.file for entry in deletes), _unpartitioned(document))
    return {
        entry.file.path: ScannedFile(
            entry.file,
            entry.first_row_id,
            index.positions_for(entry.file),
            index.equality_for(entry.file),
        )
        for entry in entries
    }


def _unpartitioned(document: Document) -> frozenset[int]:
    """Returns the ids of the partition specs that do not partition."""
    return frozenset(
        spec["spec-id"]
        for spec in document["partition-specs"]
        if all(field["transform"] == "void" for field in spec["fields"])
    )


_Partition = tuple[int, tuple[Any, ...]]


class _DeleteIndex:
    """Finds the delete files that apply to a data file."""

    def __init__(self, deletes: Iterable[TableFile], unpartitioned: frozenset[int]) -> None:
        self._vectors: dict[str, TableFile] = {}
        self._by_path: dict[str, list[TableFile]] = defaultdict(list)
        self._by_partition: dict[_Partition, list[TableFile]] = defaultdict(list)
        self._equality: dict[_Partition | None, list[TableFile]] = defaultdict(list)
        for file in deletes:
            partition = (file.spec_id, file.partition)
            if file.content is FileContent.EQUALITY_DELETES:
                self._equality[None if file.spec_id in unpartitioned else partition].append(file)
            elif file.referenced is None:
                self._by_partition[partition].append(file)
            elif file.is_vector:
                self._vectors[file.referenced] = file
            else:
                self._by_path[file.referenced].append(file)

    def positions_for(self, data: TableFile) -> list[TableFile]:
        """Returns the deletion vector of a data file, or its files of position deletes."""
        vector = self._vectors.get(data.path)
        if vector is not None and data.sequence <= vector.sequence:
            # It contains the deletes of all files of position deletes.
            return [vector]
        deletes = [
            *self._by_path.get(data.path, ()),
            *self._by_partition.get((data.spec_id, data.partition), ()),
        ]
        return [delete for delete in deletes if data.sequence <= delete.sequence]

    def equality_for(self, data: TableFile) -> list[TableFile]:
        """Returns the files of equality deletes that apply to a data file."""
        deletes = [
            *self._equality.get(None, ()),
            *self._equality.get((data.spec_id, data.partition), ()),
        ]
        return [delete for delete in deletes if data.sequence < delete.sequence]
