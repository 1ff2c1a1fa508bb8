"""Checks one content: its metadata file, its snapshot, its manifests and its ids.

A check reads only the content and its files, so contents can be checked anywhere and in any order.
A problem is a finding, never an error. Data files are not checked.

https://iceberg.apache.org/spec/#table-metadata-fields and https://iceberg.apache.org/view-spec/
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, NamedTuple

from nessie_cli.audit.findings import AuditFinding, ContentAudit, FindingKind, Holder
from nessie_cli.errors import InvalidInput, StoreUnavailable
from nessie_cli.iceberg.builder.document import NO_SNAPSHOT
from nessie_cli.iceberg.files import Files, MissingFile, MissingPackage
from nessie_cli.iceberg.locations import shown
from nessie_cli.iceberg.metadata import Document, content_of, parse_document
from nessie_cli.iceberg.validity.metadata import check_metadata
from nessie_cli.model import UDF, Content, ContentKey, DeltaLakeTable, IcebergTable, IcebergView

_MOST_HOLDERS = 5
"""How many keys a message names."""
_parsing = Lock()
"""Held while a document is in memory: it can take thousands of times as much as its file."""


def audit_content(key: ContentKey, content: Content, files: Files) -> ContentAudit:
    """Checks one content.

    Cost: reads the metadata file and the manifest list, and one request for the size of each
    manifest. Raises `InvalidInput` if the library for manifest lists is missing.
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
    return ContentAudit(key, check.content_id, tuple(check.findings), check.uuid, check.looked_at)


def shared_uuid(uuid: str, holders: Sequence[Holder]) -> Iterator[AuditFinding]:
    """Returns the findings about contents of one state that share a UUID. `holders` are sorted."""
    for holder in holders if len(holders) > 1 else ():
        key, content_id = holder
        others = [str(other) for other, _ in holders if other != key]
        named = ", ".join(others[:_MOST_HOLDERS]) + (
            f" and {len(others) - _MOST_HOLDERS} more" if len(others) > _MOST_HOLDERS else ""
        )
        message = (
            f"its UUID {shown(uuid)} is also that of {named}: they share files, "
            "so deleting files of one breaks the other"
        )
        yield AuditFinding(FindingKind.UUID_SHARED, key, content_id, "", message)


class _Manifest(NamedTuple):
    """A manifest. Its length is 0 if it is unknown."""

    where: str
    length: int


class _Check:
    """The check of one content and its results."""

    def __init__(self, key: ContentKey, content_id: str, files: Files) -> None:
        self.key = key
        self.content_id = content_id
        self.findings: list[AuditFinding] = []
        self.uuid: str | None = None
        self.looked_at = 0
        self._files = files

    def found(self, kind: FindingKind, where: str, message: str) -> None:
        self.findings.append(AuditFinding(kind, self.key, self.content_id, shown(where), message))

    def failed(
        self,
        where: str,
        error: InvalidInput | StoreUnavailable,
        missing: FindingKind,
        unreadable: FindingKind,
    ) -> None:
        """Adds a finding about a file that could not be read."""
        unreachable = FindingKind.UNREACHABLE if isinstance(error, StoreUnavailable) else unreadable
        if isinstance(error, MissingPackage):
            raise error
        message = _reason(where, error)
        self.found(missing if isinstance(error, MissingFile) else unreachable, where, message)

    # -- Iceberg ----------------------------------------------------------------------------------

    def iceberg(self, content: IcebergTable | IcebergView) -> None:
        where = content.metadata_location
        self.looked_at += 1
        try:
            data = self._files.read(where)
            with _parsing:
                snapshot = self._snapshot_in(data, content)
        except (InvalidInput, StoreUnavailable) as error:
            self.failed(where, error, FindingKind.METADATA_MISSING, FindingKind.METADATA_UNREADABLE)
            return
        if snapshot is not None:
            self._snapshot(where, snapshot)

    def _snapshot_in(self, data: bytes, content: IcebergTable | IcebergView) -> Document | None:
        """Checks a metadata file, and returns the snapshot of the content, if it is there.

        Raises `InvalidInput` for an invalid file.
        """
        where = content.metadata_location
        document = parse_document(data, where)
        check_metadata(document)
        in_file = content_of(document, where)
        if type(in_file) is not type(content):
            names = {IcebergTable: "a table", IcebergView: "a view"}
            self.found(
                FindingKind.WRONG_TYPE,
                where,
                f"is the metadata of {names[type(in_file)]}, but the content is "
                f"{names[type(content)]}",
            )
            return None
        uuid = document.get("table-uuid" if isinstance(content, IcebergTable) else "view-uuid")
        self.uuid = uuid if isinstance(uuid, str) else None
        ids = _table_ids(document) if isinstance(content, IcebergTable) else _view_ids(document)
        self._ids(content, in_file, ids)
        if isinstance(content, IcebergTable) and content.snapshot_id != NO_SNAPSHOT:
            return _by_id(document, "snapshots", "snapshot-id").get(content.snapshot_id)
        return None

    def _ids(
        self, content: Content, in_file: Content, ids: Mapping[str, Sequence[Any] | None]
    ) -> None:
        """Checks that each id of the content is in the file, and is the current one there."""
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
                f"the content has {', '.join(other)}",
            )

    def _snapshot(self, metadata: str, snapshot: Document) -> None:
        """Checks a snapshot's manifest list and manifests.

        Format version 1 may list the manifests in the snapshot itself.
        """
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
        except reachable.BrokenFile as error:
            missing = error.fault is reachable.Fault.MISSING
            kind = (
                FindingKind.MANIFEST_LIST_MISSING
                if missing
                else FindingKind.MANIFEST_LIST_UNREADABLE
            )
            # `reachable` has one fault for all of these, but silence is not a fault of the file.
            kind = (
                FindingKind.UNREACHABLE if isinstance(error.__context__, StoreUnavailable) else kind
            )
            self.found(kind, where, _reason(where, error))
            return
        self._manifests(
            where, [_Manifest(manifest.file.location, manifest.length) for manifest in manifests]
        )

    def _manifests(self, named_by: str, manifests: Sequence[_Manifest]) -> None:
        """Adds one finding for each kind of problem, which names the first manifest that has it."""
        bad: dict[FindingKind, list[tuple[str, str]]] = {}
        for manifest in manifests:
            self.looked_at += 1
            try:
                size = self._files.size(manifest.where)
            except StoreUnavailable as error:
                bad.setdefault(FindingKind.UNREACHABLE, []).append(
                    (manifest.where, _reason(manifest.where, error))
                )
            except InvalidInput as error:
                kind = (
                    FindingKind.MANIFEST_MISSING
                    if isinstance(error, MissingFile)
                    else FindingKind.MANIFEST_DAMAGED
                )
                bad.setdefault(kind, []).append((manifest.where, _reason(manifest.where, error)))
            else:
                if manifest.length not in (0, size):
                    why = (
                        f"has {size:,} bytes instead of the {manifest.length:,} in"
                        f" {shown(named_by)}"
                    )
                    bad.setdefault(FindingKind.MANIFEST_DAMAGED, []).append((manifest.where, why))
        for kind, problems in bad.items():
            where, why = problems[0]
            self.found(
                kind,
                where,
                why
                + (
                    f"; the same holds for {len(problems)} of its {len(manifests)} manifests"
                    if len(problems) > 1
                    else ""
                ),
            )

    # -- others -----------------------------------------------------------------------------------

    def files_are_there(self, locations: Sequence[str]) -> None:
        """Checks only that the files of other formats exist."""
        for where in locations:
            self.looked_at += 1
            try:
                self._files.size(where)
            except (InvalidInput, StoreUnavailable) as error:
                self.failed(where, error, FindingKind.FILE_MISSING, FindingKind.FILE_MISSING)


def _reason(where: str, error: InvalidInput | StoreUnavailable) -> str:
    """Returns the message of an error without the file, which the finding names already."""
    return error.message.removeprefix(shown(where)).removeprefix(":").lstrip()


def _reachable() -> Any:
    """Imports the module that reads manifest lists, which needs fastavro."""
    try:
        from nessie_cli.iceberg import reachable
    except ImportError:
        raise MissingPackage(
            "fastavro is needed to read manifest lists", hint="`pip install 'nessie-cli[iceberg]'`"
        ) from None
    return reachable


def _table_ids(document: Document) -> dict[str, Sequence[Any] | None]:
    """Returns the ids of each kind in a file, None if an old file may omit them."""
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
