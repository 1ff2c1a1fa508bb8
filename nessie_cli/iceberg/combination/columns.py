"""Three-way merge of the columns of a table that both sides changed.

Columns are matched by their ids, so names, types and texts merge independently.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nessie_cli.iceberg.builder.values import Document

_MISSING = object()


class _Collision(Exception):
    """Both sides changed one thing differently."""


def merged_schema(base: Document, ours: Document, theirs: Document) -> Document | None:
    """Returns the schema that has the changes of both sides, None if they collide.

    A column that one side dropped and the other changed collides, and so do two columns that get
    one name. A type with fields of its own is merged as a whole. The schema has no id.
    """
    try:
        return _merged(base, ours, theirs)
    except _Collision:
        return None


def _merged(base: Document, ours: Document, theirs: Document) -> Document:
    before, here, there = (
        {field["id"]: field for field in side["fields"]} for side in (base, ours, theirs)
    )
    columns = {
        id_: column
        for id_ in {**before, **here, **there}
        if (column := _column(before.get(id_), here.get(id_), there.get(id_))) is not None
    }
    names = [column["name"] for column in columns.values()]
    if len(set(names)) < len(names):
        raise _Collision
    identifiers = _value(
        *(set(side.get("identifier-field-ids") or ()) for side in (base, ours, theirs))
    )
    order = _order(list(before), list(here), list(there))
    merged: Document = {
        "type": "struct",
        "fields": [columns[id_] for id_ in order if id_ in columns],
    }
    if identifiers:
        merged["identifier-field-ids"] = sorted(identifiers)
    return merged


def _column(
    before: Document | None, here: Document | None, there: Document | None
) -> Document | None:
    """Returns a merged column; None if it is dropped."""
    if before is None or here is None or there is None:
        column: Document | None = _value(before, here, there)
        return column
    members = {
        name: _value(*(column.get(name, _MISSING) for column in (before, here, there)))
        for name in {**before, **here, **there}
    }
    return {name: value for name, value in members.items() if value is not _MISSING}


def _order(before: Sequence[int], here: Sequence[int], there: Sequence[int]) -> list[int]:
    """Returns the ids of ours and theirs, in the order of the side that moved columns."""
    common = [id_ for id_ in before if id_ in here and id_ in there]
    orders = [[id_ for id_ in side if id_ in common] for side in (before, here, there)]
    first, second = (there, here) if _value(*orders) != orders[1] else (here, there)
    return [*first, *(id_ for id_ in second if id_ not in first)]


def _value(before: Any, here: Any, there: Any) -> Any:
    """Returns the three-way merge of one value. Raises `_Collision`."""
    if there in (before, here):
        return here
    if here != before:
        raise _Collision
    return there
