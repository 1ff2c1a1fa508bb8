"""Three-way merge of definitions: columns, partitions, sort order and properties of a table.

The result are updates of ours, as Iceberg's REST catalog has them: the metadata builder applies
them and checks them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from nessie_cli.iceberg.builder import partitions, schemas
from nessie_cli.iceberg.builder.values import Document, by_id, in_order
from nessie_cli.iceberg.combination.columns import merged_schema
from nessie_cli.iceberg.expiration.retention import ancestors
from nessie_cli.wire.large_json import encode

_LAST_ADDED = -1
_NAME_MAPPING = "schema.name-mapping.default"
_COMMIT_ID = "nessie.commit.id"
"""Iceberg's NessieCatalog writes the commit that it loaded a table from into the metadata."""


class DefinitionConflict(Struct, frozen=True):
    """A definition that both sides changed differently: its kind and, for properties, its name.

    `text` says another reason.
    """

    kind: str
    name: str = ""
    text: str = ""

    def __str__(self) -> str:
        """Returns a text for people."""
        if self.text:
            return self.text
        return f"both sides changed the {self.kind}" + (f" {self.name!r}" if self.name else "")


class DefinitionMerge(Struct, frozen=True):
    """The updates that bring the definitions of theirs to ours, or the conflicts."""

    updates: Sequence[Document] = ()
    conflicts: Sequence[DefinitionConflict] = ()


def merge_definitions(base: Document, ours: Document, theirs: Document) -> DefinitionMerge:
    """Merges the definitions of three states of one table, which are normalized metadata."""
    conflicts = [*_differing(base, ours, theirs)]
    updates: list[Document] = []
    for kind in (_schema, _spec, _order):
        made = kind(base, ours, theirs)
        if isinstance(made, DefinitionConflict):
            conflicts.append(made)
        else:
            updates += made
    for name, value in _properties(base, ours, theirs, conflicts):
        updates.append(
            {"action": "remove-properties", "removals": [name]}
            if value is None
            else {"action": "set-properties", "updates": {name: value}}
        )
    for update in _references(base, ours, theirs, conflicts):
        updates.append(update)
    if expired := _expired_snapshots(base, ours, theirs):
        updates.append({"action": "remove-snapshots", "snapshot-ids": expired})
    return DefinitionMerge(updates, conflicts)


def _differing(base: Document, ours: Document, theirs: Document) -> Iterator[DefinitionConflict]:
    """Yields the members that identify a table, or that cannot be merged, if they differ."""
    sides = base, ours, theirs
    if ours.get("table-uuid") != theirs.get("table-uuid"):
        changed = _changed("UUID of the table", *(each.get("table-uuid") for each in sides))
        yield DefinitionConflict("UUID", text=f"{changed}: it was dropped and created again")
    for member, kind in (("location", "location"), ("encryption-keys", "encryption keys")):
        values = [encode({member: each.get(member)}) for each in sides]
        if len(set(values)) > 1:
            yield DefinitionConflict(kind, text=_changed(kind, *values))


def _changed(kind: str, before: Any, here: Any, there: Any) -> str:
    """Returns a text that says which sides changed a definition."""
    if before not in (here, there):
        return f"both sides changed the {kind}"
    return f"{'theirs' if here == before else 'ours'} changed the {kind}"


def _schema(
    base: Document, ours: Document, theirs: Document
) -> list[Document] | DefinitionConflict:
    sides = [
        (schemas.form(schema), schemas.identifiers(schema), state["last-column-id"])
        for state in (base, ours, theirs)
        for schema in [_current(state, "schemas", "schema-id", "current-schema-id")]
    ]
    if sides[2] != sides[1]:
        # The base of a picked or reverted commit need not be a state of both sides.
        for name, side in (("ours", ours), ("theirs", theirs)):
            takes_back = side is theirs and _takes_back_columns(base, theirs)
            if not (takes_back or _has_had_columns(side, base)):
                text = f"the columns of {name} do not come from those of the base"
                return DefinitionConflict("columns", text=text)
    # A column id that one side gave out and dropped again is in its files.
    if clashing := _columns_with_one_id(ours, theirs):
        text = f"both sides gave one id to different columns ({', '.join(clashing)})"
        return DefinitionConflict("columns", text=text)
    if sides[2] in sides[:2]:
        return []
    here, there = (
        _current(side, "schemas", "schema-id", "current-schema-id") for side in (ours, theirs)
    )
    if sides[1] == sides[0]:
        return _columns_of(ours, theirs, there)
    before = _current(base, "schemas", "schema-id", "current-schema-id")
    merged = merged_schema(before, here, there)
    return DefinitionConflict("columns") if merged is None else _columns_of(ours, theirs, merged)


def _columns_with_one_id(ours: Document, theirs: Document) -> list[str]:
    """Returns the names of columns that have one id, but are columns of one side only.

    An id means the same on both sides if a schema that has it is one of both, or if both sides gave
    it to columns of one name and type.
    """
    forms = [schemas.form(schema) for schema in theirs["schemas"]]
    shared = [schema for schema in ours["schemas"] if schemas.form(schema) in forms]
    here, there, both = (
        _columns_by_id(of_side) for of_side in (ours["schemas"], theirs["schemas"], shared)
    )
    for id_ in sorted(here.keys() & there.keys() - both.keys()):
        if not here[id_] & there[id_]:
            return [min(columns)[0] for columns in (here[id_], there[id_])]
    return []


def _columns_by_id(of_side: Sequence[Document]) -> dict[int, set[tuple[str, str]]]:
    """Returns the names and types that columns have in some schemas, by their ids."""
    columns: dict[int, set[tuple[str, str]]] = {}
    for schema in of_side:
        for id_, name, type_ in schemas.columns(schema):
            columns.setdefault(id_, set()).add((name, type_))
    return columns


def _columns_of(
    ours: Document, theirs: Document, schema: Document
) -> list[Document] | DefinitionConflict:
    """Returns the updates that give a schema to ours, with columns of theirs."""
    last = max(ours["last-column-id"], _last_id(schema))
    dropped: list[Document] = []
    for earlier in theirs["schemas"]:
        # Ours must not give out the id of a column that theirs has dropped.
        if _last_id(earlier) > last:
            last = _last_id(earlier)
            dropped.append({"action": "add-schema", "schema": _without(earlier, "schema-id")})
    if last < theirs["last-column-id"]:
        text = "theirs has dropped a column that none of its schemas lists"
        return DefinitionConflict("columns", text=text)
    for earlier in ours["schemas"]:
        # The metadata builder adds no schema twice.
        if schemas.form(earlier) == schemas.form(schema):
            update = {"action": "set-current-schema", "schema-id": earlier["schema-id"]}
            return [*dropped, update]
    return [
        *dropped,
        {"action": "add-schema", "schema": _without(schema, "schema-id")},
        {"action": "set-current-schema", "schema-id": _LAST_ADDED},
    ]


def _last_id(schema: Document) -> int:
    return max((id_ for id_, _, _ in schemas.columns(schema)), default=0)


def _has_had_columns(side: Document, base: Document) -> bool:
    """Returns whether the columns of a side come from those of the base, with their ids."""
    before = _current(base, "schemas", "schema-id", "current-schema-id")
    forms = map(schemas.form, side["schemas"])
    return schemas.form(before) in forms and side["last-column-id"] >= base["last-column-id"]


def _takes_back_columns(base: Document, theirs: Document) -> bool:
    """Returns whether theirs is an earlier state of the base, with columns that fit later files.

    Then the base has given every id of theirs to the same column. But a column cannot get back a
    narrower type: later files have values of the wider one.
    """
    earlier, later = ([*map(schemas.form, each["schemas"])] for each in (theirs, base))
    if theirs["last-column-id"] > base["last-column-id"] or any(f not in later for f in earlier):
        return False
    before, there = (
        {
            id_: type_
            for id_, _, type_ in schemas.columns(
                _current(each, "schemas", "schema-id", "current-schema-id")
            )
        }
        for each in (base, theirs)
    )
    return all(before[id_] == there[id_] for id_ in before.keys() & there.keys())


def _spec(base: Document, ours: Document, theirs: Document) -> list[Document] | DefinitionConflict:
    forms = [
        {spec["spec-id"]: partitions.spec_form(spec) for spec in state["partition-specs"]}
        for state in (base, ours, theirs)
    ]
    # Ours has removed those that only the base and theirs have.
    new = [
        spec
        for spec in theirs["partition-specs"]
        if spec["spec-id"] not in forms[1] and spec["spec-id"] not in forms[0]
    ]
    if any(forms[1].get(id_, form) != form for id_, form in forms[2].items()):
        return DefinitionConflict("partitions")
    if new and forms[1].keys() - forms[0].keys():
        return DefinitionConflict("partitions")
    updates: list[Document] = [{"action": "add-spec", "spec": spec} for spec in new]
    default = _three_way(base, ours, theirs, "default-spec-id")
    if default is None:
        return DefinitionConflict("default partitions")
    if default != ours["default-spec-id"]:
        updates.append({"action": "set-default-spec", "spec-id": default})
    return updates


def _order(base: Document, ours: Document, theirs: Document) -> list[Document]:
    """Returns updates for the sort order. Ours stays if both sides changed it."""
    forms = [
        partitions.order_form(_current(state, "sort-orders", "order-id", "default-sort-order-id"))
        for state in (base, ours, theirs)
    ]
    if forms[2] in (forms[0], forms[1]) or forms[1] != forms[0]:
        return []
    order = _current(theirs, "sort-orders", "order-id", "default-sort-order-id")
    for earlier in ours["sort-orders"]:
        if partitions.order_form(earlier) == forms[2]:
            id_ = earlier["order-id"]
            return [{"action": "set-default-sort-order", "sort-order-id": id_}]
    return [
        {"action": "add-sort-order", "sort-order": order},
        {"action": "set-default-sort-order", "sort-order-id": _LAST_ADDED},
    ]


def _properties(
    base: Document, ours: Document, theirs: Document, conflicts: list[DefinitionConflict]
) -> Iterator[tuple[str, str | None]]:
    """Yields the properties that change on ours; None removes one. Collects the conflicts."""
    before, here, there = (state["properties"] for state in (base, ours, theirs))
    for name in in_order(before, here, there):
        if name == _COMMIT_ID:
            continue
        values = [properties.get(name) for properties in (before, here, there)]
        if name == _NAME_MAPPING and values[1] != values[2] and values[0] is not None:
            # Files without ids of columns cannot be read without it.
            text = _changed(f"property {name!r}", *values)
            conflicts.append(DefinitionConflict("property", name, text))
            continue
        if name == _NAME_MAPPING and not _fits_columns(base, ours, theirs):
            text = f"one side changed the columns, and the other one set the property {name!r}"
            conflicts.append(DefinitionConflict("property", name, text))
            continue
        if values[2] in (values[0], values[1]):
            continue
        if values[1] != values[0]:
            conflicts.append(DefinitionConflict("property", name))
        else:
            yield name, values[2]


def _fits_columns(base: Document, ours: Document, theirs: Document) -> bool:
    """Returns whether a name mapping that one side set is about the columns of the result."""
    if (_NAME_MAPPING in ours["properties"]) is (_NAME_MAPPING in theirs["properties"]):
        return True
    before, here, there = (
        schemas.form(_current(each, "schemas", "schema-id", "current-schema-id"))
        for each in (base, ours, theirs)
    )
    other = there if _NAME_MAPPING in ours["properties"] else here
    return bool(other == before or here == there)


def _references(
    base: Document, ours: Document, theirs: Document, conflicts: list[DefinitionConflict]
) -> Iterator[Document]:
    """Yields the removals of branches and tags inside the table. Collects the conflicts.

    Those that theirs added or moved are conflicts: their snapshots are not those of ours.
    """
    before, here, there = (each.get("refs") or {} for each in (base, ours, theirs))
    for name in in_order(before, there):
        reference = there.get(name)
        if name == "main" or reference in (before.get(name), here.get(name)):
            continue
        if reference is None and here.get(name) == before.get(name):
            yield {"action": "remove-snapshot-ref", "ref-name": name}
            continue
        kind = (reference or before[name]).get("type", "branch")
        conflicts.append(
            DefinitionConflict(kind, name, f"theirs changed the {kind} {name!r} inside the table")
        )


def _expired_snapshots(base: Document, ours: Document, theirs: Document) -> list[int]:
    """Returns the snapshots of ours that theirs has removed, and that no branch or tag names.

    Theirs has had those before the last one that it and the base have in common. Others of the base
    can be those of another branch, or later ones if theirs is an earlier state, as for a revert.
    """
    here, before, there = (by_id(side["snapshots"], "snapshot-id") for side in (ours, base, theirs))
    line = {id_: number for number, id_ in enumerate(ancestors(before, _current_id(base)))}
    common = next((id_ for id_ in ancestors(there, _current_id(theirs)) if id_ in line), None)
    if common is None:
        return []
    stays = {_current_id(ours), *(ref["snapshot-id"] for ref in ours["refs"].values())}
    return [
        id_
        for id_, number in line.items()
        if number > line[common] and id_ in here and id_ not in there and id_ not in stays
    ]


def _current_id(state: Document) -> int:
    return int(state["current-snapshot-id"])


def _three_way(base: Document, ours: Document, theirs: Document, member: str) -> int | None:
    """Returns the merged value of a number; None for a conflict."""
    before, here, there = (int(state[member]) for state in (base, ours, theirs))
    if there in (before, here):
        return here
    return there if here == before else None


def _current(state: Document, items: str, id_member: str, member: str) -> Document:
    current: Document = by_id(state[items], id_member)[state[member]]
    return current


def _without(document: Mapping[str, Any], member: str) -> Document:
    return {name: value for name, value in document.items() if name != member}
