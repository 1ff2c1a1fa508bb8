"""The history in table metadata: snapshots, references, logs, statistics, encryption keys."""

from __future__ import annotations

import base64
import binascii

from nessie_cli.iceberg.builder.document import MAIN, NO_SNAPSHOT
from nessie_cli.iceberg.builder.table import CLOCK_SKEW
from nessie_cli.iceberg.validity.nodes import DocumentNode, check_unique

_BASE64_UNIT = 4


def check_history(table: DocumentNode, version: int) -> None:
    """Checks the members of table metadata that describe its history."""
    newest = table.need("last-sequence-number").long() if version > 1 else 0
    listed = table.find("snapshots")
    snapshots = [] if listed is None else listed.items()
    ids = [_check_snapshot(snapshot, newest) for snapshot in snapshots]
    check_unique(snapshots, ids)
    _check_references(table, set(ids))
    updated = table.need("last-updated-ms").long()
    for name, member in (("snapshot-log", "snapshot-id"), ("metadata-log", "metadata-file")):
        if log := table.given(name):
            _check_log(log, member, updated)
    if statistics := table.find("statistics"):
        for file in statistics.items():
            _check_statistics(file)
    if partition_statistics := table.find("partition-statistics"):
        for file in partition_statistics.items():
            _check_statistics_file(file)
    if keys := table.find("encryption-keys"):
        for key in keys.items():
            _check_key(key)


def _check_snapshot(snapshot: DocumentNode, newest: int) -> int:
    """Returns the id of a snapshot."""
    id_ = snapshot.need("snapshot-id").long()
    sequence = snapshot.find("sequence-number")
    if sequence is not None and sequence.long() > newest:
        sequence.refuse(f"is {sequence.value}, but the table's last-sequence-number is {newest}")
    if parent := snapshot.find("parent-snapshot-id"):
        parent.long()
    snapshot.need("timestamp-ms").long()
    if summary := snapshot.find("summary"):
        summary.text_map()
    if schema := snapshot.given("schema-id"):
        schema.integer()
    if key := snapshot.given("key-id"):
        key.text()
    first, added = snapshot.given("first-row-id"), snapshot.given("added-rows")
    rows = [one.long() for one in (first, added) if one is not None]
    if manifests := snapshot.find("manifest-list"):
        manifests.text()
        if rows and min(rows) < 0:
            snapshot.refuse("has a negative first-row-id or added-rows")
        if first is not None and added is None:
            snapshot.refuse("has a first-row-id and no added-rows")
    else:
        for manifest in snapshot.need("manifests").items():
            manifest.text()
    return id_


def _check_references(table: DocumentNode, snapshots: set[int]) -> None:
    given = table.given("current-snapshot-id")
    current = NO_SNAPSHOT if given is None else given.long()
    if given is not None and current != NO_SNAPSHOT and current not in snapshots:
        given.refuse(f"is {current}, which is not among the snapshots")
    references = table.find("refs")
    if references is None:
        return
    for reference in references.members():
        id_ = _check_reference(reference)
        if id_ not in snapshots:
            reference.refuse(f"is at snapshot {id_}, which is not among the snapshots")
        if reference.place == f"refs.{MAIN}" and id_ != current:
            reference.refuse(f"is at snapshot {id_}, but the current-snapshot-id is {current}")


def _check_reference(reference: DocumentNode) -> int:
    """Returns the id of the snapshot."""
    id_ = reference.need("snapshot-id").long()
    kind = reference.need("type").text().lower()
    if kind not in ("branch", "tag"):
        reference.need("type").refuse("is neither branch nor tag")
    least = reference.given("min-snapshots-to-keep")
    limits = [reference.given(name) for name in ("max-snapshot-age-ms", "max-ref-age-ms")]
    for limit in (least, *limits):
        if limit is None:
            continue
        if (limit.integer() if limit is least else limit.long()) < 1:
            limit.refuse("is not positive")
        if kind == "tag" and limit is not limits[1]:
            limit.refuse("is given, but the reference is a tag")
    return id_


def _check_log(log: DocumentNode, member: str, updated: int) -> None:
    """Checks the entries of a log, whose times may go back by the skew of clocks."""
    before: int | None = None
    for entry in log.items():
        time = entry.need("timestamp-ms").long()
        if member == "snapshot-id":
            entry.need(member).long()
        else:
            entry.need(member).text()
        if before is not None and time < before - CLOCK_SKEW:
            entry.refuse("is older than the entry before it")
        before = time
    if before is not None and updated < before - CLOCK_SKEW:
        log.refuse(f"ends at {before}, which is later than last-updated-ms")


def _check_statistics_file(file: DocumentNode) -> None:
    file.need("snapshot-id").long()
    file.need("statistics-path").text()
    file.need("file-size-in-bytes").long()


def _check_statistics(file: DocumentNode) -> None:
    _check_statistics_file(file)
    file.need("file-footer-size-in-bytes").long()
    for blob in file.need("blob-metadata").items():
        blob.need("type").text()
        blob.need("snapshot-id").long()
        blob.need("sequence-number").long()
        for field in blob.need("fields").items():
            field.integer()
        if properties := blob.find("properties"):
            properties.text_map()


def _check_key(key: DocumentNode) -> None:
    key.need("key-id").text()
    metadata = key.need("encrypted-key-metadata")
    text = metadata.text()
    try:
        base64.b64decode(text + "=" * (-len(text) % _BASE64_UNIT), validate=True)
    except (binascii.Error, ValueError):
        metadata.refuse("is not Base64")
    if by := key.given("encrypted-by-id"):
        by.text()
    if properties := key.find("properties"):
        properties.text_map()
