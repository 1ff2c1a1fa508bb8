"""The checks of one content: is its metadata file sound, is its snapshot in it, are the manifests there, do the ids agree.

Nothing but the content and its files is looked at, so contents can be checked anywhere and in any order. What is wrong with one is a finding,
never an error. Data files are not looked at. Sources: the Iceberg table specification (versions 1 to 3) and view specification (version 1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from nessie_cli.audit.findings import Audited, Finding, FindingKind, Holder
from nessie_cli.errors import InvalidInput, StoreUnavailable
from nessie_cli.iceberg.files import Files, MissingFile, shown
from nessie_cli.iceberg.metadata import NO_SNAPSHOT, Document, content_of, parse_document
from nessie_cli.model import UDF, Content, ContentKey, DeltaLakeTable, IcebergTable, IcebergView

_MOST_HOLDERS = 5
"""Keys that one message names."""


def audit_content(key: ContentKey, content: Content, files: Files) -> Audited:
    """Check one content. Cost: its metadata file and manifest list are read, and each manifest is asked for its size.

    Raises `InvalidInput` where the library that reads manifest lists is missing: that is wrong with no content.
    """
    check = _Check(key, content.id or "", files)
    if isinstance(content, IcebergTable | IcebergView):
        check.iceberg(content)
    elif isinstance(content, DeltaLakeTable):
        check.files_are_there(
            (*content.metadata_location_history, *content.checkpoint_location_history)
        )
    elif isinstance(content, UDF) and content.metadata_location:
        check.files_are_there((content.metadata_location,))
    return Audited(key, check.content_id, tuple(check.findings), check.uuid, check.looked_at)


def shared_uuid(uuid: str, holders: Sequence[Holder]) -> Iterator[Finding]:
    """What is wrong with contents of one state that call themselves by one uuid; nothing where there is only one. `holders` ascend."""
    for holder in holders if len(holders) > 1 else ():
        key, content_id = holder
        others = [str(other) for other, _ in holders if other != key]
        named = ", ".join(others[:_MOST_HOLDERS]) + (
            f" and {len(others) - _MOST_HOLDERS} more" if len(others) > _MOST_HOLDERS else ""
        )
        message = f"its uuid {shown(uuid)} is that of {named} as well: they share files, and whatever removes files of one breaks the other"
        yield Finding(FindingKind.UUID_SHARED, key, content_id, "", message)


class _Manifest(NamedTuple):
    """A manifest; 0 bytes where nobody tells how many it has."""

    where: str
    length: int


class _Check:
    """What is found out about one content."""

    def __init__(self, key: ContentKey, content_id: str, files: Files) -> None:
        self.key = key
        self.content_id = content_id
        self.findings: list[Finding] = []
        self.uuid: str | None = None
        self.looked_at = 0
        self._files = files

    def found(self, kind: FindingKind, where: str, message: str) -> None:
        self.findings.append(Finding(kind, self.key, self.content_id, shown(where), message))

    def failed(
        self,
        where: str,
        error: InvalidInput | StoreUnavailable,
        missing: FindingKind,
        unreadable: FindingKind,
    ) -> None:
        """A file that could not be read."""
        unreachable = FindingKind.UNREACHABLE if isinstance(error, StoreUnavailable) else unreadable
        message = error.message.removeprefix(f"{shown(where)}: ")
        self.found(missing if isinstance(error, MissingFile) else unreachable, where, message)

    # -- Iceberg ------------------------------------------------------------------------------------------------------------------

    def iceberg(self, content: IcebergTable | IcebergView) -> None:
        where = content.metadata_location
        self.looked_at += 1
        try:
            document = parse_document(self._files.read(where), where)
        except (InvalidInput, StoreUnavailable) as error:
            self.failed(where, error, FindingKind.METADATA_MISSING, FindingKind.METADATA_UNREADABLE)
            return
        try:
            self._document(content, document)
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError):
            self.found(FindingKind.METADATA_UNREADABLE, where, "is no sound Iceberg metadata file")

    def _document(self, content: IcebergTable | IcebergView, document: Document) -> None:
        where = content.metadata_location
        in_file = content_of(document, where)
        if type(in_file) is not type(content):
            names = {IcebergTable: "a table", IcebergView: "a view"}
            self.found(
                FindingKind.WRONG_TYPE,
                where,
                f"is the metadata of {names[type(in_file)]}, and the content is {names[type(content)]}",
            )
            return
        uuid = document.get("table-uuid" if isinstance(content, IcebergTable) else "view-uuid")
        self.uuid = uuid if isinstance(uuid, str) else None
        ids = _table_ids(document) if isinstance(content, IcebergTable) else _view_ids(document)
        self._ids(content, in_file, ids)
        if isinstance(content, IcebergTable) and content.snapshot_id != NO_SNAPSHOT:
            snapshot = _by_id(document, "snapshots", "snapshot-id").get(content.snapshot_id)
            if snapshot is not None:
                self._snapshot(where, snapshot)

    def _ids(
        self, content: Content, in_file: Content, ids: Mapping[str, Sequence[Any] | None]
    ) -> None:
        """Each id of the content has to be in the file, and to be the one that the file calls current."""
        missing: list[str] = []
        other: list[str] = []
        for name, there in ids.items():
            field = name.replace("-", "_")
            ours, current = getattr(content, field), getattr(in_file, field)
            if ours == current:
                continue
            (missing if there is not None and ours not in there else other).append(
                f"{name} {ours} (the file's current one is {current})"
            )
        where = getattr(content, "metadata_location", "")
        if missing:
            self.found(FindingKind.ID_MISSING, where, f"has no {', no '.join(missing)}")
        if other:
            self.found(
                FindingKind.ID_DIFFERS,
                where,
                f"another one is current: the content says {', '.join(other)}",
            )

    def _snapshot(self, metadata: str, snapshot: Document) -> None:
        """The manifest list of a snapshot and its manifests; format version 1 may name the manifests in the snapshot itself."""
        where = snapshot.get("manifest-list")
        if where is None:
            self._manifests(
                metadata, [_Manifest(path, 0) for path in snapshot.get("manifests") or ()]
            )
            return
        self.looked_at += 1
        reachable = _reachable()
        try:
            manifests = reachable.read_manifest_list(self._files, where)
        except reachable.Broken as error:
            missing = error.fault is reachable.Fault.MISSING
            kind = (
                FindingKind.MANIFEST_LIST_MISSING
                if missing
                else FindingKind.MANIFEST_LIST_UNREADABLE
            )
            # What could not be read for whatever reason is one fault there; a file system that does not answer says nothing about the file.
            kind = (
                FindingKind.UNREACHABLE if isinstance(error.__context__, StoreUnavailable) else kind
            )
            self.found(kind, where, error.message.removeprefix(f"{shown(where)}: "))
            return
        self._manifests(
            where, [_Manifest(manifest.file.location, manifest.length) for manifest in manifests]
        )

    def _manifests(self, named_by: str, manifests: Sequence[_Manifest]) -> None:
        """One finding for each thing that is wrong, however many manifests have it: the first of them is named."""
        bad: dict[FindingKind, list[tuple[str, str]]] = {}
        for manifest in manifests:
            self.looked_at += 1
            try:
                size = self._files.size(manifest.where)
            except StoreUnavailable as error:
                bad.setdefault(FindingKind.UNREACHABLE, []).append(
                    (manifest.where, error.message.removeprefix(f"{shown(manifest.where)}: "))
                )
            except InvalidInput as error:
                kind = (
                    FindingKind.MANIFEST_MISSING
                    if isinstance(error, MissingFile)
                    else FindingKind.MANIFEST_DAMAGED
                )
                bad.setdefault(kind, []).append(
                    (manifest.where, error.message.removeprefix(f"{shown(manifest.where)}: "))
                )
            else:
                if manifest.length not in (0, size):
                    why = f"has {size:,} bytes, and {shown(named_by)} says {manifest.length:,}"
                    bad.setdefault(FindingKind.MANIFEST_DAMAGED, []).append((manifest.where, why))
        for kind, found in bad.items():
            where, why = found[0]
            self.found(
                kind,
                where,
                why
                + (
                    f"; so it is with {len(found)} of its {len(manifests)} manifests"
                    if len(found) > 1
                    else ""
                ),
            )

    # -- others -------------------------------------------------------------------------------------------------------------------

    def files_are_there(self, locations: Sequence[str]) -> None:
        """Of what this program does not read, only that it is there."""
        for where in locations:
            self.looked_at += 1
            try:
                self._files.size(where)
            except (InvalidInput, StoreUnavailable) as error:
                self.failed(where, error, FindingKind.FILE_MISSING, FindingKind.FILE_MISSING)


def _reachable() -> Any:
    """What follows a table's files, with the library that it needs."""
    try:
        from nessie_cli.iceberg import reachable
    except ImportError:
        raise InvalidInput(
            "manifest lists are read by fastavro. Hint: `pip install 'nessie-cli[iceberg]'`"
        ) from None
    return reachable


def _table_ids(document: Document) -> dict[str, Sequence[Any] | None]:
    """The ids of each kind in a file; None where the file, being old, may leave them out."""
    return {
        "snapshot-id": [NO_SNAPSHOT, *_by_id(document, "snapshots", "snapshot-id")],
        "schema-id": _ids_in(document, "schemas", "schema-id"),
        "spec-id": _ids_in(document, "partition-specs", "spec-id"),
        "sort-order-id": _ids_in(document, "sort-orders", "order-id"),
    }


def _view_ids(document: Document) -> dict[str, Sequence[Any] | None]:
    return {
        "version-id": list(_by_id(document, "versions", "version-id")),
        "schema-id": _ids_in(document, "schemas", "schema-id"),
    }


def _ids_in(document: Document, items: str, item_id: str) -> list[Any] | None:
    return list(_by_id(document, items, item_id)) if items in document else None


def _by_id(document: Document, items: str, item_id: str) -> dict[Any, Document]:
    return {item.get(item_id): item for item in document.get(items) or ()}
