"""Removes old snapshots of one table, and schemas and partition specs that are not in use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from nessie_cli.errors import InvalidInput, StoreUnavailable
from nessie_cli.iceberg.builder.document import NO_SNAPSHOT, normalized
from nessie_cli.iceberg.builder.table import updated
from nessie_cli.iceberg.builder.values import Document, by_id
from nessie_cli.iceberg.expiration.branches import OtherBranch
from nessie_cli.iceberg.expiration.merge_bases import Needed, needed_since
from nessie_cli.iceberg.expiration.retention import ExpiryRule, retained
from nessie_cli.iceberg.files import Files, MissingFile
from nessie_cli.iceberg.metadata import content_of, in_state, parse_document
from nessie_cli.iceberg.reachable import BrokenFile, Fault, read_manifest_list
from nessie_cli.iceberg.validity.metadata import check_metadata
from nessie_cli.iceberg.warehouses.metadata_files import next_metadata_file
from nessie_cli.model import IcebergTable


class Hold(Struct, frozen=True):
    """A branch whose merge base needs snapshots that the rules alone would remove."""

    branch: str
    snapshots: int


class Expiration(Struct, frozen=True):
    """What an expiry removes from a table: ids of snapshots, schemas and partition specs.

    `content` is the content with the new metadata file. `kept` is the number of snapshots that
    stay, `removed_refs` are branches and tags inside the table, and `holds` the branches of the
    catalog that keep more.
    """

    content: IcebergTable
    kept: int
    snapshots: tuple[int, ...] = ()
    schemas: tuple[int, ...] = ()
    specs: tuple[int, ...] = ()
    removed_refs: tuple[str, ...] = ()
    holds: tuple[Hold, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is removed."""
        return not (self.snapshots or self.schemas or self.specs or self.removed_refs)


class ExpiredTable(NamedTuple):
    """An expiry of a table, and its metadata before and after, which is not written yet."""

    expiration: Expiration
    before: Document
    after: Document


def expired(
    files: Files,
    content: IcebergTable,
    branches: Mapping[str, OtherBranch],
    rule: ExpiryRule,
    now: int,
) -> ExpiredTable:
    """Computes what an expiry removes from a table. Writes nothing.

    `branches` has the table on each other branch by name. `now` is in milliseconds since 1970. The
    highest ids of schemas and specs stay in use, so that no id is given out again. Raises
    `InvalidInput` or `StoreUnavailable` if a file cannot be read; a branch is skipped if a metadata
    file does not exist, because no merge can read it.
    Cost: reads the metadata files, and the manifest lists of snapshots that stay if the table has a
    partition spec that may go.
    """
    before = metadata_of(files, content)
    document = normalized(before)
    # Branches often share a state.
    distinct = {other: _needed(files, other, document) for other in set(branches.values())}
    needed = {
        branch: need for branch, other in branches.items() if (need := distinct[other]) is not None
    }
    by_rule = retained(document, rule, now)
    ids = by_id(document["snapshots"], "snapshot-id")
    keep = set(by_rule.snapshots)
    for need in needed.values():
        keep |= need.snapshots & ids.keys()
    snapshots = tuple(id_ for id_ in ids if id_ not in keep)
    rest = [ids[id_] for id_ in ids if id_ in keep]
    schemas = _unused_schemas(document, rest, needed.values())
    specs = _unused_specs(files, document, rest, needed.values())
    removals: list[Document] = [
        {"action": "remove-snapshot-ref", "ref-name": name} for name in by_rule.removed_refs
    ]
    for action, member, removed in (
        ("remove-snapshots", "snapshot-ids", snapshots),
        ("remove-schemas", "schema-ids", schemas),
        ("remove-partition-specs", "spec-ids", specs),
    ):
        if removed:
            removals.append({"action": action, member: list(removed)})
    holds = (
        Hold(branch, len(need.snapshots & ids.keys() - by_rule.snapshots))
        for branch, need in sorted(needed.items())
    )
    expiration = Expiration(
        content,
        len(rest),
        snapshots,
        schemas,
        specs,
        by_rule.removed_refs,
        tuple(hold for hold in holds if hold.snapshots),
    )
    if expiration.is_empty:
        return ExpiredTable(expiration, before, before)
    location = content.metadata_location
    after = updated(_with_logged_state(document), removals, now, location)
    file = next_metadata_file(after["location"], after.get("properties") or {}, location)
    next_content = content_of(after, file)
    assert isinstance(next_content, IcebergTable), "it was one before"
    changed = replace(expiration, content=replace(next_content, id=content.id))
    return ExpiredTable(changed, before, after)


def metadata_of(files: Files, content: IcebergTable) -> Document:
    """Returns the metadata of a table in the state of its content.

    Raises `InvalidInput` or `StoreUnavailable`.
    """
    location = content.metadata_location
    document = parse_document(files.read(location), location)
    check_metadata(document)
    return dict(in_state(document, content))


def _needed(files: Files, other: OtherBranch, document: Document) -> Needed | None:
    """Returns what merges with a branch need; None if none can combine the table."""
    try:
        base = normalized(metadata_of(files, other.base))
        head = normalized(metadata_of(files, other.head)) if other.head != other.base else base
    except MissingFile:
        return None
    if base.get("table-uuid") != document.get("table-uuid"):
        return None
    return needed_since(base, head, document)


def _with_logged_state(document: Document) -> Document:
    """Returns metadata whose snapshot log ends with the current snapshot.

    The log is optional, and a content can name another snapshot than its metadata file.
    """
    log, current = document["snapshot-log"], document["current-snapshot-id"]
    if current == NO_SNAPSHOT or (log and log[-1]["snapshot-id"] == current):
        return document
    time = by_id(document["snapshots"], "snapshot-id")[current]["timestamp-ms"]
    latest = max(time, log[-1]["timestamp-ms"]) if log else time
    return {**document, "snapshot-log": [*log, {"timestamp-ms": latest, "snapshot-id": current}]}


def _unused_schemas(
    document: Document, snapshots: Iterable[Document], needed: Iterable[Needed]
) -> tuple[int, ...]:
    used: set[Any] = {document["current-schema-id"], *(each.get("schema-id") for each in snapshots)}
    for need in needed:
        used |= need.schemas
    return _unused(document["schemas"], "schema-id", used)


def _unused_specs(
    files: Files, document: Document, snapshots: Iterable[Document], needed: Iterable[Needed]
) -> tuple[int, ...]:
    used: set[Any] = {document["default-spec-id"]}
    for need in needed:
        used |= need.specs
    for snapshot in snapshots:
        if not _unused(document["partition-specs"], "spec-id", used):
            return ()
        location = snapshot.get("manifest-list")
        if not location:
            # Format version 1 can list manifests here, whose specs are not known.
            return ()
        used |= _specs_in(files, location)
    return () if None in used else _unused(document["partition-specs"], "spec-id", used)


def _unused(definitions: Iterable[Document], member: str, used: set[Any]) -> tuple[int, ...]:
    ids = [each[member] for each in definitions]
    return tuple(id_ for id_ in ids if id_ not in used and id_ != max(ids))


def _specs_in(files: Files, location: str) -> set[int | None]:
    """Returns the partition specs of the manifests of a snapshot."""
    try:
        return {manifest.spec_id for manifest in read_manifest_list(files, location)}
    except BrokenFile as error:
        if error.fault in (Fault.NO_ANSWER, Fault.UNREADABLE):
            raise StoreUnavailable(error.message) from None
        raise InvalidInput(error.message) from None
