"""Table metadata, as Iceberg's `TableMetadataParser` reads it.

https://iceberg.apache.org/spec/#table-metadata-fields
"""

from __future__ import annotations

from nessie_cli.iceberg.builder import partitions, schemas
from nessie_cli.iceberg.builder.document import ROW_LINEAGE
from nessie_cli.iceberg.validity.nodes import DocumentNode, check_unique
from nessie_cli.iceberg.validity.schemas import check_schema
from nessie_cli.iceberg.validity.snapshots import check_history

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
    check_history(table, version)


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
