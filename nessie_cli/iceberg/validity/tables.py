"""Table metadata, as Iceberg's `TableMetadataParser` reads it.

https://iceberg.apache.org/spec/#table-metadata-fields
"""

from __future__ import annotations

import base64
import binascii

from nessie_cli.iceberg.builder import partitions, schemas
from nessie_cli.iceberg.builder.document import MAIN, NO_SNAPSHOT, ROW_LINEAGE
from nessie_cli.iceberg.builder.table import CLOCK_SKEW
from nessie_cli.iceberg.validity.nodes import DocumentNode, check_unique
from nessie_cli.iceberg.validity.schemas import check_schema, refuse_repeated_ids

_BASE64_UNIT = 4
_DIRECTIONS, _NULL_ORDERS = ("asc", "desc"), ("nulls-first", "nulls-last")


def check_table(table: DocumentNode) -> None:
    """Checks table metadata. Raises `InvalidInput` that names the place."""
    version = table.need("format-version").integer()
    _check_scalars(table, version)
    current = _check_schemas(table, version)
    _check_specs(table, version, current)
    _check_orders(table, version, current)
    if properties := table.find("properties"):
        properties.text_map()
    _check_history(table, version)


def _check_scalars(table: DocumentNode, version: int) -> None:
    uuid = table.given("table-uuid")
    if uuid is not None:
        uuid.text()
    elif version > 1:
        table.need("table-uuid").refuse("is null")
    if not table.need("location").text():
        table.need("location").refuse("is empty")
    table.need("last-column-id").integer()
    table.need("last-updated-ms").long()
    if version > 1:
        table.need("last-sequence-number").long()
    if last := table.need("last-partition-id") if version > 1 else table.given("last-partition-id"):
        last.integer()
    if version >= ROW_LINEAGE:
        table.need("next-row-id").long()


def _check_schemas(table: DocumentNode, version: int) -> dict[int, schemas.Field]:
    """Returns the fields of the current schema."""
    listed = table.find("schemas")
    if listed is None and version == 1:
        schema = table.need("schema")
        check_schema(schema)
        return schemas.fields(schema.value)
    if version == 1 and (unused := table.find("schema")):
        refuse_repeated_ids(unused)
    given = table.need("schemas").items()
    current = table.need("current-schema-id").integer()
    ids = [check_schema(schema) for schema in given]
    check_unique(given, ids)
    if current not in ids:
        table.need("current-schema-id").refuse(f"is {current}, which is not among the schemas")
    return schemas.fields(given[ids.index(current)].value)


def _check_specs(table: DocumentNode, version: int, fields: dict[int, schemas.Field]) -> None:
    ids_by_name = schemas.ids_by_name(fields)
    listed = table.find("partition-specs")
    if listed is None and version == 1:
        given = table.need("partition-spec")
        _check_fields(given)
        with given.placed():
            partitions.check_names({"fields": given.value}, fields, ids_by_name)
            partitions.check_spec({"fields": given.value}, fields, version=0)
        return
    specs = table.need("partition-specs").items()
    default = table.need("default-spec-id").integer()
    ids = [spec.need("spec-id").integer() for spec in specs]
    for spec, id_ in zip(specs, ids, strict=True):
        _check_fields(spec.need("fields"))
        with spec.placed():
            partitions.check_names(spec.value, fields, ids_by_name)
            if id_ == default:
                partitions.check_spec(spec.value, fields, version=0)
            else:
                partitions.check_earlier_spec(spec.value, fields)
    check_unique(specs, ids)
    if default not in ids:
        table.need("default-spec-id").refuse(
            f"is {default}, which is not among the partition specs"
        )


def _check_fields(given: DocumentNode) -> None:
    """Checks the members of partition fields."""
    numbered = 0
    for field in given.items():
        field.need("name").text()
        field.need("transform").text()
        field.need("source-id").integer()
        if id_ := field.find("field-id"):
            id_.integer()
            numbered += 1
    if numbered not in (0, len(given.value)):
        given.refuse("has some fields with a field-id and some without")


def _check_orders(table: DocumentNode, version: int, fields: dict[int, schemas.Field]) -> None:
    listed = table.find("sort-orders")
    if listed is None and version == 1:
        return
    orders = table.need("sort-orders").items()
    default = table.need("default-sort-order-id").integer()
    ids = [order.need("order-id").integer() for order in orders]
    for order, id_ in zip(orders, ids, strict=True):
        _check_order(order, id_)
        if id_ == default:
            with order.placed():
                partitions.check_order(order.value, fields)
    check_unique(orders, ids)
    if default not in ids:
        table.need("default-sort-order-id").refuse(
            f"is {default}, which is not among the sort orders"
        )


def _check_order(order: DocumentNode, id_: int) -> None:
    given = order.need("fields").items()
    if bool(given) == (id_ == partitions.UNSORTED_ORDER_ID):
        order.refuse(f"has the id {id_}, but only the order without fields has the id 0")
    for field in given:
        transform = field.need("transform")
        with transform.placed():
            partitions.transform(transform.text(), "transform")
        field.need("source-id").integer()
        for name, allowed in (("direction", _DIRECTIONS), ("null-order", _NULL_ORDERS)):
            if field.need(name).text().lower() not in allowed:
                field.need(name).refuse(f"is neither {allowed[0]} nor {allowed[1]}")


# -- history ---------------------------------------------------------------------------------------


def _check_history(table: DocumentNode, version: int) -> None:
    """Checks the members of table metadata that describe its history."""
    newest = table.need("last-sequence-number").long() if version > 1 else 0
    listed = table.find("snapshots")
    snapshots = [] if listed is None else listed.items()
    ids = [check_snapshot(snapshot, newest) for snapshot in snapshots]
    check_unique(snapshots, ids)
    _check_references(table, set(ids))
    updated = table.need("last-updated-ms").long()
    for name, member in (("snapshot-log", "snapshot-id"), ("metadata-log", "metadata-file")):
        if log := table.given(name):
            _check_log(log, member, updated)
    if statistics := table.find("statistics"):
        for file in statistics.items():
            check_statistics(file)
    if partition_statistics := table.find("partition-statistics"):
        for file in partition_statistics.items():
            check_statistics_file(file)
    if keys := table.find("encryption-keys"):
        for key in keys.items():
            check_key(key)


def check_snapshot(snapshot: DocumentNode, newest: int) -> int:
    """Checks a snapshot, and returns its id. `newest` is the table's last sequence number."""
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
    rows = [node.long() for node in (first, added) if node is not None]
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
        id_ = check_reference(reference)
        if id_ not in snapshots:
            reference.refuse(f"is at snapshot {id_}, which is not among the snapshots")
        if reference.place == f"refs.{MAIN}" and id_ != current:
            reference.refuse(f"is at snapshot {id_}, but the current-snapshot-id is {current}")


def check_reference(reference: DocumentNode) -> int:
    """Checks a branch or tag of a table, and returns the id of its snapshot."""
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


def check_statistics_file(file: DocumentNode) -> None:
    """Checks a file of partition statistics."""
    file.need("snapshot-id").long()
    file.need("statistics-path").text()
    file.need("file-size-in-bytes").long()


def check_statistics(file: DocumentNode) -> None:
    """Checks a file of statistics."""
    check_statistics_file(file)
    file.need("file-footer-size-in-bytes").long()
    for blob in file.need("blob-metadata").items():
        blob.need("type").text()
        blob.need("snapshot-id").long()
        blob.need("sequence-number").long()
        for field in blob.need("fields").items():
            field.integer()
        if properties := blob.find("properties"):
            properties.text_map()


def check_key(key: DocumentNode) -> None:
    """Checks an encryption key."""
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
