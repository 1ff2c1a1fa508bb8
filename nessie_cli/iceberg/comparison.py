"""Differences between two Iceberg contents by their metadata files.

These are columns, partitions, sort order, properties, numbers of rows and files, and the SQL of
views. The numbers come from the summaries of snapshots, so manifests and data are not read. The ids
of a content say which schema, spec, order and snapshot of its file are current.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from nessie_cli.errors import InvalidInput, NessieError
from nessie_cli.iceberg.builder.values import in_order
from nessie_cli.iceberg.locations import shown
from nessie_cli.iceberg.metadata import Document, read_document
from nessie_cli.model import Content, IcebergTable, IcebergView
from nessie_cli.model.contents import MOST_PROPERTIES

MOST_SNAPSHOTS = 1000
"""How many snapshots are followed from one side to the other.

Beyond this limit, only the newest one is reported.
"""


class MetadataDifference(Struct, frozen=True):
    """One difference: its kind (`column`, `rows`, ...), its name, and the text of both sides.

    The name is empty if there is only one of its kind. A side is None if the item is missing there.
    """

    what: str
    name: str
    before: str | None
    after: str | None


class DataChange(Struct, frozen=True):
    """The rows and data files that snapshots added and removed, by their summaries.

    A row that was replaced counts as added and as removed.
    """

    rows_added: int = 0
    rows_removed: int = 0
    files_added: int = 0
    files_removed: int = 0


class Comparison(Struct, frozen=True):
    """All differences, or the problems of files that could not be read.

    `data` is None if the snapshots do not tell it.
    """

    facts: tuple[MetadataDifference, ...] = ()
    problems: tuple[str, ...] = ()
    data: DataChange | None = None


class _Side(Struct, frozen=True):
    content: IcebergTable | IcebergView
    document: Document


def compare(
    before: Content | None, after: Content | None, read: Callable[[str], Document] = read_document
) -> Comparison:
    """Compares two contents by their metadata files, which only Iceberg contents have.

    Cost: one `read` for each side, none if the contents are equal.
    """
    if before == after:
        return Comparison()
    problems: list[str] = []
    sides = [_side(content, problems, read) for content in (before, after)]
    if problems or not any(sides):
        return Comparison(problems=tuple(dict.fromkeys(problems)))
    try:
        return Comparison(tuple(_facts(*sides)), data=_data_change(*sides))
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError):
        where = " or ".join(
            dict.fromkeys(shown(side.content.metadata_location) for side in sides if side)
        )
        return Comparison(problems=(f"{where} is not valid Iceberg metadata",))


def figures_of(content: IcebergTable | IcebergView, document: Document) -> dict[str, str]:
    """Returns rows, files and columns by their labels, as one metadata file gives them.

    Raises `InvalidInput` for a file that is not sound.
    """
    side = _Side(content, document)
    try:
        summary = _summary(side)
        counts = {
            part: f"{int(summary[attribute]):,}"
            for part, attribute in _COUNTS
            if part != "bytes" and attribute in summary
        }
        return counts | {f"column {path}": text for path, text in _columns(side).values()}
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError):
        raise _unsound(content) from None


class Description(Struct, frozen=True):
    """What the metadata file of a table or view says about one state, as texts.

    `columns` are paths with types, columns in structs included. `sql` is by dialect.
    """

    columns: tuple[tuple[str, str], ...]
    partition: str
    sort_order: str
    properties: tuple[tuple[str, str], ...]
    sql: tuple[tuple[str, str], ...]
    format_version: str
    location: str


def describe(content: IcebergTable | IcebergView, document: Document) -> Description:
    """Describes the state of a content. Raises `InvalidInput` for a file that is not sound."""
    side = _side_of(content, document)
    try:
        return Description(
            tuple(_columns(side).values()),
            "".join(text for _, text in _partition(side).values()),
            "".join(text for _, text in _order(side).values()),
            tuple(_properties(side).values()),
            tuple(_sql(side).values()),
            _text(document.get("format-version")) or "",
            _text(document.get("location")) or "",
        )
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError):
        raise _unsound(content) from None


def _unsound(content: IcebergTable | IcebergView) -> InvalidInput:
    return InvalidInput(f"{shown(content.metadata_location)} is not valid Iceberg metadata")


def _side(
    content: Content | None, problems: list[str], read: Callable[[str], Document]
) -> _Side | None:
    if not isinstance(content, IcebergTable | IcebergView):
        return None
    try:
        return _side_of(content, read(content.metadata_location))
    except NessieError as error:
        problems.append(error.message)
        return None


def _side_of(content: IcebergTable | IcebergView, document: Document) -> _Side:
    properties = document.get("properties")
    if isinstance(properties, dict) and len(properties) > MOST_PROPERTIES:
        where = shown(content.metadata_location)
        raise InvalidInput(f"{where} has more than {MOST_PROPERTIES:,} properties")
    return _Side(content, document)


def _facts(before: _Side | None, after: _Side | None) -> Iterator[MetadataDifference]:
    for part, read in (
        ("column", _columns),
        ("partition", _partition),
        ("sort-order", _order),
        ("property", _properties),
        ("sql", _sql),
    ):
        old, new = ({} if side is None else read(side) for side in (before, after))
        yield from _differing(part, old, new)
    for part, attribute in (("format-version", "format-version"), ("location", "location")):
        old_text, new_text = (
            None if side is None else _text(side.document.get(attribute))
            for side in (before, after)
        )
        if old_text != new_text:
            yield MetadataDifference(part, "", old_text, new_text)
    yield from _snapshots(before, after)


def _differing(
    part: str, old: Mapping[Any, tuple[str, str]], new: Mapping[Any, tuple[str, str]]
) -> Iterator[MetadataDifference]:
    """Yields the differences of named items. A renamed item (with the same id) has both names."""
    for id_ in dict.fromkeys([*old, *new]):
        before, after = old.get(id_), new.get(id_)
        if before == after:
            continue
        if before and after and before[0] != after[0]:
            yield MetadataDifference(
                part, after[0], " ".join(filter(None, before)), " ".join(filter(None, after))
            )
        else:
            yield MetadataDifference(
                part,
                (after or before or ("", ""))[0],
                before[1] if before else None,
                after[1] if after else None,
            )


def _text(value: Any) -> str | None:
    return None if value is None else _text_of(value)


def _text_of(value: Any) -> str:
    """Returns the text of a single value. One call would make the text of a large list."""
    if isinstance(value, list | dict):
        raise TypeError("not a single value")
    return str(value)


# -- schemas --------------------------------------------------------------------------------------


def _columns(side: _Side) -> dict[Any, tuple[str, str]]:
    """Returns path and type of every column by field id, columns in structs included."""
    return {id_: (path, text) for id_, path, text in _fields(_schema(side), "")}


def _schema(side: _Side) -> Document:
    schemas = {schema.get("schema-id", 0): schema for schema in side.document.get("schemas", ())}
    schema = (
        schemas.get(side.content.schema_id)
        or schemas.get(side.document.get("current-schema-id"))
        or side.document.get("schema")
        or {}
    )
    return dict(schema)


def _fields(struct: Document, above: str) -> Iterator[tuple[Any, str, str]]:
    for field in struct.get("fields", ()):
        path = f"{above}{_text_of(field['name'])}"
        yield (
            field["id"],
            path,
            _type_text(field["type"]) + (" required" if field.get("required") else ""),
        )
        for inner, name in _structs(field["type"], ""):
            yield from _fields(inner, f"{path}.{name}")


def _structs(type_: Any, name: str) -> Iterator[tuple[Document, str]]:
    """Yields the structs in a type, with their paths in it."""
    if not isinstance(type_, Mapping):
        return
    if type_.get("type") == "struct":
        yield type_, name
    for part in ("element", "key", "value"):
        if part in type_:
            yield from _structs(type_[part], f"{name}{part}.")


def _type_text(type_: Any) -> str:
    if not isinstance(type_, Mapping):
        return _text_of(type_)
    kind = _text_of(type_.get("type"))
    if kind == "list":
        return f"list<{_type_text(type_['element'])}>"
    return (
        f"map<{_type_text(type_['key'])}, {_type_text(type_['value'])}>" if kind == "map" else kind
    )


# -- partitions, order, properties, views ---------------------------------------------------------


def _partition(side: _Side) -> dict[Any, tuple[str, str]]:
    specs = {
        spec.get("spec-id"): spec.get("fields", ())
        for spec in side.document.get("partition-specs", ())
    }
    spec_id = side.content.spec_id if isinstance(side.content, IcebergTable) else None
    fields: Sequence[Document] = specs.get(spec_id) or side.document.get("partition-spec") or ()
    return _one(_transforms(fields, _names(side)))


def _order(side: _Side) -> dict[Any, tuple[str, str]]:
    orders = {
        order.get("order-id"): order.get("fields", ())
        for order in side.document.get("sort-orders", ())
    }
    order_id = side.content.sort_order_id if isinstance(side.content, IcebergTable) else None
    fields = orders.get(order_id, ())
    names = _names(side)
    return _one(
        [
            " ".join(
                (
                    _transform(field, names),
                    field.get("direction", "asc"),
                    field.get("null-order", ""),
                )
            ).rstrip()
            for field in fields
        ]
    )


def _one(texts: Sequence[str]) -> dict[Any, tuple[str, str]]:
    return {"": ("", ", ".join(texts))} if texts else {}


def _names(side: _Side) -> dict[Any, str]:
    return {id_: path for id_, (path, _) in _columns(side).items()}


def _transforms(fields: Sequence[Document], names: Mapping[Any, str]) -> list[str]:
    return [_transform(field, names) for field in fields]


def _transform(field: Document, names: Mapping[Any, str]) -> str:
    ids = field.get("source-ids") or [field.get("source-id")]
    columns = ", ".join(names.get(id_, f"field {id_}") for id_ in ids)
    transform = _text_of(field.get("transform", "identity"))
    return columns if transform == "identity" else f"{transform}({columns})"


def _properties(side: _Side) -> dict[Any, tuple[str, str]]:
    properties = side.document.get("properties") or {}
    return {name: (name, _text_of(properties[name])) for name in in_order(properties.keys())}


def _sql(side: _Side) -> dict[Any, tuple[str, str]]:
    """Returns the SQL of a view's version by dialect."""
    if not isinstance(side.content, IcebergView):
        return {}
    versions = {version.get("version-id"): version for version in side.document.get("versions", ())}
    version = (
        versions.get(side.content.version_id)
        or versions.get(side.document.get("current-version-id"))
        or {}
    )
    return {
        r.get("dialect"): (_text_of(r.get("dialect")), _text_of(r.get("sql")))
        for r in version.get("representations", ())
        if r.get("type") == "sql"
    }


# -- snapshots ------------------------------------------------------------------------------------

_COUNTS = (
    ("rows", "total-records"),
    ("data-files", "total-data-files"),
    ("delete-files", "total-delete-files"),
    ("bytes", "total-files-size"),
)


def _snapshots(before: _Side | None, after: _Side | None) -> Iterator[MetadataDifference]:
    old, new = (_summary(side) for side in (before, after))
    for part, attribute in _COUNTS:
        if old.get(attribute) != new.get(attribute):
            yield MetadataDifference(part, "", _text(old.get(attribute)), _text(new.get(attribute)))
    operations = _operations(before, after)
    if operations:
        yield MetadataDifference("operations", "", None, ", ".join(operations))


def _snapshot_of(side: _Side) -> dict[Any, Document]:
    return {
        snapshot.get("snapshot-id"): snapshot for snapshot in side.document.get("snapshots", ())
    }


def _summary(side: _Side | None) -> Document:
    """Returns the summary of the content's snapshot.

    It has zero counts for a table without a snapshot, and is empty if the snapshot has expired.
    """
    if side is None or not isinstance(side.content, IcebergTable):
        return {}
    if side.content.snapshot_id < 0:
        return {attribute: "0" for _, attribute in _COUNTS}
    return dict(_snapshot_of(side).get(side.content.snapshot_id, {}).get("summary") or {})


def _operations(before: _Side | None, after: _Side | None) -> list[str]:
    """Returns the operations between both snapshots, the oldest first.

    If neither descends from the other, only the last operation is returned.
    """
    if after is None or not isinstance(after.content, IcebergTable):
        return []
    start = (
        before.content.snapshot_id if before and isinstance(before.content, IcebergTable) else -1
    )
    snapshots, where = _snapshot_of(after), after.content.snapshot_id
    operations: list[str] = []
    while where != start and where in snapshots and len(operations) < MOST_SNAPSHOTS:
        snapshot = snapshots[where]
        operations.append(_text_of((snapshot.get("summary") or {}).get("operation", "unknown")))
        where = snapshot.get("parent-snapshot-id", -1)
    descends = where == start or (start < 0 and where not in snapshots)
    return operations[::-1] if descends else operations[:1]


# -- data ------------------------------------------------------------------------------------------


def _data_change(before: _Side | None, after: _Side | None) -> DataChange | None:
    """Returns what the snapshots between two sides added and removed.

    If neither descends from the other, that is what undoes those of `before` since their common
    ancestor, and what those of `after` did since then. None if they have none that is listed.
    """
    old, new = _line(before), _line(after)
    if not old or not new:
        rows, files = _whole(after) if new else _whole(before)
        added = DataChange(rows_added=rows, files_added=files)
        return added if new else _undone(added)
    common = next((id_ for id_ in new if id_ in old), None)
    if common is None:
        return None
    undone, done = _undone(_sum_since(old, common)), _sum_since(new, common)
    return DataChange(
        done.rows_added + undone.rows_added,
        done.rows_removed + undone.rows_removed,
        done.files_added + undone.files_added,
        done.files_removed + undone.files_removed,
    )


def _undone(change: DataChange) -> DataChange:
    return DataChange(
        change.rows_removed, change.rows_added, change.files_removed, change.files_added
    )


def _whole(side: _Side | None) -> tuple[int, int]:
    summary = _summary(side)
    return _count(summary, "total-records"), _count(summary, "total-data-files")


def _line(side: _Side | None) -> Mapping[Any, Document]:
    """Returns the summaries of the current snapshot and its listed ancestors, newest first."""
    line: dict[Any, Document] = {}
    if side is None or not isinstance(side.content, IcebergTable):
        return line
    snapshots = _snapshot_of(side)
    where: Any = side.content.snapshot_id
    while where in snapshots and where not in line and len(line) < MOST_SNAPSHOTS:
        line[where] = snapshots[where].get("summary") or {}
        where = snapshots[where].get("parent-snapshot-id")
    return line


def _sum_since(line: Mapping[Any, Document], end: Any) -> DataChange:
    total = DataChange()
    for id_, summary in line.items():
        if id_ == end:
            break
        # A replacement of files has the same rows.
        rows = 0 if summary.get("operation") == "replace" else 1
        deleted = _count(summary, "deleted-records") + _count(summary, "added-position-deletes")
        total = DataChange(
            total.rows_added + rows * _count(summary, "added-records"),
            total.rows_removed + rows * deleted,
            total.files_added + _count(summary, "added-data-files"),
            total.files_removed + _count(summary, "deleted-data-files"),
        )
    return total


def _count(summary: Document, attribute: str) -> int:
    return int(summary.get(attribute, 0))
