"""Required columns of one side, and rows of the other side that may lack a value for them.

https://iceberg.apache.org/spec/#default-values
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from nessie_cli.iceberg.builder.values import Document, current_schema
from nessie_cli.iceberg.combination.file_merge import FileConflict
from nessie_cli.iceberg.combination.manifests import bound
from nessie_cli.iceberg.combination.states import TableFile


def required_conflict(
    base: Document, side: Document, added: Iterable[TableFile]
) -> FileConflict | None:
    """Returns the conflict of columns that a side made required with files that the other added.

    Compares the numbers of nulls in the entries of the files. Without them, there may be nulls.
    """
    new = required_columns(base, side)
    files = [file for file in added if file.records and any(_may_lack(file, id_) for id_ in new)]
    if not files:
        return None
    names = ", ".join(str(field["name"]) for field in new.values())
    reason = f"one side made columns required ({names}), and rows of the other may be null there"
    return FileConflict(reason, files)


def required_columns(base: Document, side: Document) -> dict[int, Document]:
    """Returns the columns, by id, that a side made required and rows of the other may lack."""
    before, after = (dict(_fields(current_schema(state))) for state in (base, side))
    return {
        id_: field
        for id_, field in after.items()
        if field["required"] and not _has_value(id_, field, before)
    }


def _has_value(id_: int, field: Document, before: Mapping[int, Document]) -> bool:
    """Returns whether all rows of the other side have a value."""
    if id_ in before:
        return bool(before[id_]["required"])
    return field.get("initial-default") is not None


def _may_lack(file: TableFile, id_: int) -> bool:
    nulls: Any = bound(file.row.get("null_value_counts"), id_)
    return bool(nulls != 0)


def _fields(type_: Any) -> Iterator[tuple[int, Document]]:
    """Yields the columns, and the fields inside them, by id."""
    if not isinstance(type_, Mapping):
        return
    for field in type_.get("fields") or ():
        yield field["id"], field
        yield from _fields(field["type"])
    for part in ("element", "key", "value"):
        yield from _fields(type_.get(part))
