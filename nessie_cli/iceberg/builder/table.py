"""Table metadata: new tables, and the 23 updates of the Iceberg REST specification.

https://iceberg.apache.org/spec/#table-metadata-and-snapshots
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar, NamedTuple

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder import partitions, schemas, values
from nessie_cli.iceberg.builder.document import (
    MAIN,
    NO_SNAPSHOT,
    ROW_LINEAGE,
    RequirementFailed,
    check_normalized,
    empty,
    most_metadata_files,
    normalized,
    set_properties,
    supported,
    written,
)
from nessie_cli.iceberg.builder.values import Definitions, Document, by_id, by_snapshot

DEFAULT_VERSION = 2
LAST_ADDED = -1
RESERVED_PROPERTIES = frozenset(
    {
        "format-version", "uuid", "snapshot-count", "current-snapshot-summary",
        "current-snapshot-id", "current-snapshot-timestamp-ms", "current-schema",
        "default-partition-spec", "default-sort-order",
    }
)  # fmt: skip
"""Properties of a request to create a table that are not stored as properties."""
_NEW_TABLE_PROPERTIES = {"write.parquet.compression-codec": "zstd"}
_MOST_DIGITS = 9
_STATISTICS = ("statistics", "partition-statistics")
_CURRENT = ("current-schema-id", "default-spec-id", "default-sort-order-id")
CLOCK_SKEW = 60_000
"""How many milliseconds a snapshot may be older than the one before it."""


def new_table(request: Document, location: str, now: int) -> Document:
    """Returns the metadata of a new table, with field ids assigned afresh.

    `request` has the members of a CreateTableRequest: `schema`, `partition-spec`, `write-order` and
    `properties`, of which `format-version` chooses the format version. `now` is in milliseconds
    since 1970. Raises `InvalidInput`.
    """
    where = "table"
    schema = values.object_(request, "schema", where)
    spec = request.get("partition-spec") and values.object_(request, "partition-spec", where)
    order = request.get("write-order") and values.object_(request, "write-order", where)
    properties = values.text_map(request, "properties", where) if request.get("properties") else {}
    given = properties.get("format-version", str(DEFAULT_VERSION))
    if not given.isdecimal() or len(given) > _MOST_DIGITS:
        raise InvalidInput(f"property format-version: must be an integer, not {given[:60]!r}")
    builder = TableBuilder(None, now, version=int(given))
    names = {id_: field.name for id_, field in schemas.fields(schema).items()}
    counter = iter(range(1, len(names) + 1))
    fresh = schemas.with_fresh_ids(schema, lambda: next(counter))
    ids = {field.name: id_ for id_, field in schemas.fields(fresh).items()}

    def moved(field: Document) -> Document:
        source = values.integer(field, "source-id", "partition spec or sort order")
        if source not in names:
            raise InvalidInput(f"partition spec or sort order: the schema has no field {source}")
        return {**field, "source-id": ids[names[source]]}

    fields = list(map(moved, values.objects(spec, "fields", "partition spec"))) if spec else []
    sorts = list(map(moved, values.objects(order, "fields", "sort order"))) if order else []
    for field in fields:
        field.pop("field-id", None)
    builder.apply({"action": "assign-uuid", "uuid": str(uuid.uuid4())})
    builder.apply({"action": "add-schema", "schema": {**fresh, "schema-id": 0}})
    builder.apply({"action": "set-current-schema", "schema-id": LAST_ADDED})
    builder.apply({"action": "add-spec", "spec": {"spec-id": 0, "fields": fields}})
    builder.apply({"action": "set-default-spec", "spec-id": LAST_ADDED})
    builder.apply(
        {"action": "add-sort-order", "sort-order": {"order-id": 1 if sorts else 0, "fields": sorts}}
    )
    builder.apply({"action": "set-default-sort-order", "sort-order-id": LAST_ADDED})
    builder.apply({"action": "set-location", "location": location})
    stored = {name: value for name, value in properties.items() if name not in RESERVED_PROPERTIES}
    builder.apply({"action": "set-properties", "updates": {**_NEW_TABLE_PROPERTIES, **stored}})
    return builder.build()


def updated(
    base: Document | None,
    updates: Sequence[Document],
    now: int,
    previous_location: str | None = None,
) -> Document:
    """Returns metadata with updates applied in order, `base` itself if they change nothing.

    `base` is None for a table that the updates create. `previous_location` is the metadata file of
    `base`, which is added to the metadata log. Raises `InvalidInput` for invalid updates, and
    `RequirementFailed` for a snapshot that is based on stale metadata.
    """
    builder = builder_for(base, updates, now)
    for update in updates:
        builder.apply(update)
    return builder.build(previous_location)


def builder_for(base: Document | None, updates: Iterable[Document], now: int) -> TableBuilder:
    """Returns a builder for these updates, which are not applied yet."""
    version = DEFAULT_VERSION
    if base is None:
        # A new table begins with the version that its updates ask for.
        upgrades = (
            update for update in updates if update.get("action") == "upgrade-format-version"
        )
        if first := next(upgrades, None):
            version = values.integer(first, "format-version", "upgrade-format-version")
    return TableBuilder(base, now, version=version)


class Columns(NamedTuple):
    """The fields of a schema by id, and their ids by name."""

    fields: dict[int, schemas.Field]
    ids_by_name: dict[str, int]


class TableBuilder:
    """Applies updates to metadata. `now` is in milliseconds since 1970.

    An update costs time for itself only, because one commit may have many of them.
    """

    def __init__(self, base: Document | None, now: int, *, version: int = DEFAULT_VERSION) -> None:
        self._base = base
        self._now = now
        self._made = made = normalized(base) if base is not None else empty(supported(version))
        self._exists = base is not None
        self._changed = base is None
        self._redefined = base is None
        """Whether schemas, partition specs or sort orders were changed, or the current ones."""
        self._schemas = Definitions(made["schemas"], "schema-id", schemas.form)
        self._specs = Definitions(made["partition-specs"], "spec-id", partitions.spec_form)
        self._orders = Definitions(made["sort-orders"], "order-id", partitions.order_form)
        self._columns: dict[int, Columns] = {}
        self._snapshots = by_id(made["snapshots"], "snapshot-id")
        self._statistics = {name: by_snapshot(made[name]) for name in _STATISTICS}
        self._keys = by_id(made.get("encryption-keys") or [], "key-id")
        self._refs_of: dict[int, set[str]] = {}
        for name, ref in made["refs"].items():
            self._refs_of.setdefault(ref["snapshot-id"], set()).add(name)
        self._last_added: dict[str, int | None] = {"schema": None, "spec": None, "order": None}
        self._added: dict[str, set[int]] = {"schema": set(), "spec": set(), "order": set()}
        self._added_snapshots: set[int] = set()
        self._moves_of_main: list[int] = []
        self._removed_snapshots = False

    @property
    def _version(self) -> int:
        return int(self._made["format-version"])

    @cached_property
    def _partition_fields(self) -> partitions.FieldIds:
        """The ids of partition fields, also of specs that an update has removed."""
        return partitions.field_ids(self._made["partition-specs"])

    def require(self, given: Sequence[Document]) -> None:
        """Checks requirements on the updates so far. Raises `RequirementFailed`."""
        check_normalized(given, self._made if self._exists else None)

    def apply(self, update: Document) -> None:
        """Applies one update. Raises `InvalidInput` or `RequirementFailed`."""
        action = values.text(update, "action", "update")
        apply = self._UPDATES.get(action)
        if apply is None:
            raise InvalidInput(f"update: there is no update {action!r} of a table")
        apply(self, update)
        self._exists = True

    def build(self, previous_location: str | None = None) -> Document:
        """Returns the new metadata, or the base if nothing has changed."""
        made = self._made
        if not self._changed and self._base is not None:
            return self._base
        made |= {
            "schemas": [*self._schemas],
            "partition-specs": [*self._specs],
            "sort-orders": [*self._orders],
            "snapshots": [*self._snapshots.values()],
            **{name: list(chain(*by.values())) for name, by in self._statistics.items()},
        }
        if self._keys or "encryption-keys" in made:
            made["encryption-keys"] = [*self._keys.values()]
        for member in ("table-uuid", "location"):
            if made.get(member) is None and not (member == "table-uuid" and self._version == 1):
                raise InvalidInput(f"table metadata: {member} is missing")
        if self._redefined:
            self._check_definitions()
        self._trim_snapshot_log()
        if self._base is not None and previous_location is not None:
            entry = {
                "timestamp-ms": self._base["last-updated-ms"],
                "metadata-file": previous_location,
            }
            made["metadata-log"] = [*made["metadata-log"], entry][
                -most_metadata_files(made["properties"]) :
            ]
        # Another machine may have had a clock that is ahead.
        logged = made["snapshot-log"][-1]["timestamp-ms"] if made["snapshot-log"] else 0
        made["last-updated-ms"] = max(self._now, made.get("last-updated-ms", 0), logged)
        return written(made)

    def _check_definitions(self) -> None:
        made, columns = self._made, self._current_columns()
        default = self._specs.get(made["default-spec-id"])
        order = self._orders.get(made["default-sort-order-id"])
        if default is None or order is None:
            raise InvalidInput(
                "table metadata: the default partition spec or sort order is missing"
            )
        partitions.check_spec(default, columns.fields, version=0)
        partitions.check_order(order, columns.fields)
        for spec in self._specs:
            partitions.check_names(spec, columns.fields, columns.ids_by_name)

    def _current_columns(self) -> Columns:
        schema = self._schemas.get(self._made["current-schema-id"])
        if schema is None:
            raise InvalidInput("table metadata: there is no current schema")
        id_ = schema["schema-id"]
        if id_ not in self._columns:
            fields = schemas.fields(schema)
            self._columns[id_] = Columns(fields, schemas.ids_by_name(fields))
        return self._columns[id_]

    def _trim_snapshot_log(self) -> None:
        """Drops entries of removed snapshots and of those that were current between updates."""
        made = self._made
        current = made["current-snapshot-id"]
        between = self._added_snapshots.intersection(self._moves_of_main) - {current}
        if not between and not self._removed_snapshots:
            return
        log: list[Document] = []
        for entry in made["snapshot-log"]:
            if entry["snapshot-id"] not in self._snapshots:
                # History before a gap would make time travel read a wrong snapshot.
                log = [] if self._removed_snapshots else log
            elif entry["snapshot-id"] not in between:
                log.append(entry)
        if current in self._snapshots and (not log or log[-1]["snapshot-id"] != current):
            raise InvalidInput("snapshot log: the latest entry is not the current snapshot")
        made["snapshot-log"] = log

    # -- identity, properties, location -----------------------------------------------------------

    def _assign_uuid(self, update: Document) -> None:
        given = values.text(update, "uuid", "assign-uuid")
        self._set("table-uuid", given)

    def _upgrade(self, update: Document) -> None:
        version = supported(values.integer(update, "format-version", "upgrade-format-version"))
        if version < self._version:
            raise InvalidInput(f"format version {self._version} cannot be downgraded to {version}")
        self._set("format-version", version)
        if version >= ROW_LINEAGE:
            self._made.setdefault("next-row-id", 0)

    def _set_location(self, update: Document) -> None:
        given = values.text(update, "location", "set-location")
        self._set("location", given.rstrip("/") or given)

    def _set_properties(self, update: Document) -> None:
        given = values.text_map(update, "updates", "set-properties")
        self._changed |= set_properties(self._made["properties"], given)

    def _remove_properties(self, update: Document) -> None:
        given = values.texts(update, "removals", "remove-properties")
        for name in given:
            self._made["properties"].pop(name, None)
        self._changed |= bool(given)

    def _set(self, member: str, value: Any) -> None:
        if self._made.get(member) != value:
            self._made[member] = value
            self._changed = True
            self._redefined |= member in _CURRENT

    # -- schemas ----------------------------------------------------------------------------------

    def _add_schema(self, update: Document) -> None:
        schema = schemas.canonical(values.object_(update, "schema", "add-schema"))
        fields = schemas.check(schema, self._version)
        made = self._made
        id_ = self._schemas.id_of(schema, made["current-schema-id"])
        last_column = max(made["last-column-id"], max(fields, default=0))
        if id_ in self._schemas and last_column == made["last-column-id"]:
            self._last_added["schema"] = id_ if id_ in self._added["schema"] else None
            return
        made["last-column-id"] = last_column
        if id_ not in self._schemas:
            self._schemas.add({**schema, "schema-id": id_})
            self._columns[id_] = Columns(fields, schemas.ids_by_name(fields))
        self._note_added("schema", id_)
        self._changed = True

    def _set_current_schema(self, update: Document) -> None:
        id_ = self._id(update, "schema-id", "schema")
        if id_ not in self._schemas:
            raise InvalidInput(f"set-current-schema: there is no schema {id_}")
        self._set("current-schema-id", id_)

    def _remove_schemas(self, update: Document) -> None:
        gone = self._remove(self._schemas, update, "schema-ids", "current-schema-id")
        for id_ in gone:
            self._columns.pop(id_, None)

    def _id(self, update: Document, member: str, kind: str) -> int:
        """Returns the id in an update. -1 stands for the last one that was added."""
        id_ = values.integer(update, member, str(update["action"]))
        if id_ != LAST_ADDED:
            return id_
        added = self._last_added[kind]
        if added is None:
            raise InvalidInput(f"{update['action']}: no {kind} has been added")
        return added

    def _note_added(self, kind: str, id_: int) -> None:
        self._added[kind].add(id_)
        self._last_added[kind] = id_
        self._redefined = True

    def _remove(
        self, definitions: Definitions, update: Document, ids: str, current: str
    ) -> set[int]:
        """Removes definitions, and returns the ids that the update lists."""
        gone = set(values.integers(update, ids, str(update["action"])))
        if self._made[current] in gone:
            raise InvalidInput(
                f"{update['action']}: {self._made[current]} is the {current.removesuffix('-id')}"
            )
        definitions.remove(gone)
        self._changed |= bool(gone)
        self._redefined |= bool(gone)
        return gone

    # -- partition specs and sort orders ----------------------------------------------------------

    def _add_spec(self, update: Document) -> None:
        made = self._made
        given = values.object_(update, "spec", "add-spec")
        spec = partitions.spec(given, self._partition_fields, made["last-partition-id"])
        id_ = self._specs.id_of(spec, 0)
        if id_ in self._specs:
            self._last_added["spec"] = (
                id_ if self._last_added["spec"] in self._added["spec"] else None
            )
            return
        columns = self._current_columns()
        partitions.check_names(spec, columns.fields, columns.ids_by_name)
        partitions.check_spec(spec, columns.fields, self._version)
        made["last-partition-id"] = max(made["last-partition-id"], partitions.last_field_id(spec))
        self._specs.add({**spec, "spec-id": id_})
        self._partition_fields |= partitions.field_ids([spec])
        self._note_added("spec", id_)
        self._changed = True

    def _set_default_spec(self, update: Document) -> None:
        id_ = self._id(update, "spec-id", "spec")
        if id_ not in self._specs:
            raise InvalidInput(f"set-default-spec: there is no partition spec {id_}")
        self._set("default-spec-id", id_)

    def _remove_specs(self, update: Document) -> None:
        self._remove(self._specs, update, "spec-ids", "default-spec-id")

    def _add_order(self, update: Document) -> None:
        order = partitions.order(values.object_(update, "sort-order", "add-sort-order"))
        id_ = partitions.UNSORTED_ORDER_ID
        if order["fields"]:
            id_ = self._orders.id_of(order, 1)
        if id_ in self._orders:
            self._last_added["order"] = (
                id_ if self._last_added["order"] in self._added["order"] else None
            )
            return
        partitions.check_order(order, self._current_columns().fields)
        self._orders.add({**order, "order-id": id_})
        self._note_added("order", id_)
        self._changed = True

    def _set_default_order(self, update: Document) -> None:
        id_ = self._id(update, "sort-order-id", "order")
        if id_ not in self._orders:
            raise InvalidInput(f"set-default-sort-order: there is no sort order {id_}")
        self._set("default-sort-order-id", id_)

    # -- snapshots --------------------------------------------------------------------------------

    def _add_snapshot(self, update: Document) -> None:
        where, made = "add-snapshot", self._made
        snapshot = values.object_(update, "snapshot", where)
        id_ = values.long(snapshot, "snapshot-id", where)
        values.long(snapshot, "timestamp-ms", where)
        if isinstance(summary := snapshot.get("summary"), dict):
            values.check_few(summary, "summary", where)
        if "manifest-list" in snapshot or "manifests" not in snapshot:
            values.text(snapshot, "manifest-list", where)
        if not (self._schemas and self._specs and self._orders):
            raise InvalidInput(
                f"{where}: a schema, a partition spec and a sort order have to come before"
            )
        if id_ in self._snapshots:
            raise InvalidInput(f"{where}: snapshot {id_} already exists")
        sequence = self._sequence_number(snapshot)
        if self._version >= ROW_LINEAGE:
            first = values.long(snapshot, "first-row-id", where)
            if first < made["next-row-id"]:
                raise RequirementFailed(
                    f"Cannot add snapshot with first-row-id {first}, "
                    f"the next-row-id is {made['next-row-id']}"
                )
            made["next-row-id"] += values.long(snapshot, "added-rows", where)
        made["last-sequence-number"] = sequence
        self._snapshots[id_] = {
            name: value for name, value in snapshot.items() if name != "sequence-number" or value
        }
        self._added_snapshots.add(id_)
        self._changed = True

    def _sequence_number(self, snapshot: Document) -> int:
        """Returns the sequence number of a snapshot. Raises `RequirementFailed` if it is stale."""
        where, last = "add-snapshot", self._made["last-sequence-number"]
        given = snapshot.get("sequence-number")
        number = 0 if given is None else values.long(snapshot, "sequence-number", where)
        if self._version == 1:
            if number:
                raise InvalidInput(f"{where}: the sequence number must be 0 in format version 1")
        elif number < last + (snapshot.get("parent-snapshot-id") is not None):
            raise RequirementFailed(
                f"Cannot add snapshot with sequence number {number}, "
                f"the last sequence number is {last}"
            )
        return number

    def _set_ref(self, update: Document) -> None:
        where, made = "set-snapshot-ref", self._made
        name = values.text(update, "ref-name", where)
        ref = _ref(update)
        if made["refs"].get(name) == ref:
            return
        id_ = ref["snapshot-id"]
        snapshot = self._snapshots.get(id_)
        if snapshot is None:
            raise InvalidInput(f"{where}: {name}: there is no snapshot {id_}")
        if name == MAIN:
            if ref["type"] != "branch":
                raise InvalidInput(f"{where}: {MAIN} must be a branch")
            made["current-snapshot-id"] = id_
            added = id_ in self._added_snapshots
            self._log_snapshot(snapshot["timestamp-ms"] if added else self._now, id_)
            self._moves_of_main.append(id_)
        if earlier := made["refs"].get(name):
            self._refs_of[earlier["snapshot-id"]].discard(name)
        made["refs"][name] = ref
        self._refs_of.setdefault(id_, set()).add(name)
        self._changed = True

    def _log_snapshot(self, time: int, id_: int) -> None:
        log = self._made["snapshot-log"]
        # Iceberg's Java library does not load a table whose log goes back further.
        if log and time < log[-1]["timestamp-ms"] - CLOCK_SKEW:
            raise InvalidInput(
                f"set-snapshot-ref: snapshot {id_} of {time} is older than "
                f"the latest entry of the snapshot log, {log[-1]['timestamp-ms']}"
            )
        log.append({"timestamp-ms": time, "snapshot-id": id_})

    def _remove_ref(self, update: Document) -> None:
        self._drop_ref(values.text(update, "ref-name", "remove-snapshot-ref"))

    def _drop_ref(self, name: str) -> None:
        if name == MAIN:
            self._made["current-snapshot-id"] = NO_SNAPSHOT
        if (ref := self._made["refs"].pop(name, None)) is not None:
            self._refs_of[ref["snapshot-id"]].discard(name)
            self._changed = True

    def _remove_snapshots(self, update: Document) -> None:
        given = values.integers(update, "snapshot-ids", "remove-snapshots", values.INT64)
        for id_ in given:
            if self._snapshots.pop(id_, None) is None:
                continue
            for files in self._statistics.values():
                files.pop(id_, None)
            for name in tuple(self._refs_of.get(id_, ())):
                self._drop_ref(name)
            self._removed_snapshots = self._changed = True

    # -- statistics and encryption keys -----------------------------------------------------------

    def _set_statistics(self, update: Document) -> None:
        given = values.object_(update, "statistics", "set-statistics")
        values.text(given, "statistics-path", "set-statistics")
        blobs = values.objects(given, "blob-metadata", "set-statistics")
        values.check_few(blobs, "blob-metadata", "set-statistics")
        self._put_statistics("statistics", given)

    def _set_partition_statistics(self, update: Document) -> None:
        given = values.object_(update, "partition-statistics", "set-partition-statistics")
        values.text(given, "statistics-path", "set-partition-statistics")
        self._put_statistics("partition-statistics", given)

    def _put_statistics(self, member: str, given: Document) -> None:
        id_ = values.long(given, "snapshot-id", f"set-{member}")
        values.long(given, "file-size-in-bytes", f"set-{member}")
        by_snapshot = self._statistics[member]
        by_snapshot.pop(id_, None)
        by_snapshot[id_] = [given]
        self._changed = True

    def _remove_statistics(self, update: Document) -> None:
        self._drop_statistics("statistics", update)

    def _remove_partition_statistics(self, update: Document) -> None:
        self._drop_statistics("partition-statistics", update)

    def _drop_statistics(self, member: str, update: Document) -> None:
        id_ = values.long(update, "snapshot-id", f"remove-{member}")
        self._changed |= self._statistics[member].pop(id_, None) is not None

    def _add_encryption_key(self, update: Document) -> None:
        key = values.object_(update, "encryption-key", "add-encryption-key")
        id_ = values.text(key, "key-id", "add-encryption-key")
        values.text(key, "encrypted-key-metadata", "add-encryption-key")
        if id_ not in self._keys:
            self._keys[id_] = key
            self._changed = True

    def _remove_encryption_key(self, update: Document) -> None:
        id_ = values.text(update, "key-id", "remove-encryption-key")
        self._changed |= self._keys.pop(id_, None) is not None

    _UPDATES: ClassVar[Mapping[str, Callable[[TableBuilder, Document], None]]] = {
        "assign-uuid": _assign_uuid,
        "upgrade-format-version": _upgrade,
        "add-schema": _add_schema,
        "set-current-schema": _set_current_schema,
        "remove-schemas": _remove_schemas,
        "add-spec": _add_spec,
        "set-default-spec": _set_default_spec,
        "remove-partition-specs": _remove_specs,
        "add-sort-order": _add_order,
        "set-default-sort-order": _set_default_order,
        "add-snapshot": _add_snapshot,
        "set-snapshot-ref": _set_ref,
        "remove-snapshot-ref": _remove_ref,
        "remove-snapshots": _remove_snapshots,
        "set-location": _set_location,
        "set-properties": _set_properties,
        "remove-properties": _remove_properties,
        "set-statistics": _set_statistics,
        "remove-statistics": _remove_statistics,
        "set-partition-statistics": _set_partition_statistics,
        "remove-partition-statistics": _remove_partition_statistics,
        "add-encryption-key": _add_encryption_key,
        "remove-encryption-key": _remove_encryption_key,
    }


def _ref(update: Document) -> Document:
    """Returns the snapshot reference in an update."""
    where = "set-snapshot-ref"
    ref = {
        name: value
        for name, value in update.items()
        if name not in ("action", "ref-name") and value is not None
    }
    values.long(ref, "snapshot-id", where)
    ref["type"] = values.text(ref, "type", where).lower()
    if ref["type"] not in ("branch", "tag"):
        raise InvalidInput(f"{where}: type must be branch or tag, not {ref['type']!r}")
    for member in ("min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms"):
        if member in ref:
            if values.long(ref, member, where) < 1:
                raise InvalidInput(f"{where}: {member} must be at least 1")
            if ref["type"] == "tag" and member != "max-ref-age-ms":
                raise InvalidInput(f"{where}: a tag has no {member}")
    return ref
