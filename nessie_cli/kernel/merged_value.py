"""The value of a content at several merge bases."""

from __future__ import annotations

from msgspec import Struct


class MergedValue(Struct, frozen=True):
    """A merge of records that conflict, of one content: its base and its sides."""

    base: Value
    ours: Value
    theirs: Value


Value = bytes | MergedValue | None
"""A record, or records to be merged; None if the content is absent."""


def merged_value(base: Value, ours: Value, theirs: Value) -> Value:
    """Returns the merge of three values: one of them, if at most one side changed it."""
    if theirs in (base, ours):
        return ours
    return theirs if ours == base else MergedValue(base, ours, theirs)


def records_of(value: Value) -> list[bytes]:
    """Returns the records of a value."""
    if isinstance(value, MergedValue):
        return [r for v in (value.base, value.ours, value.theirs) for r in records_of(v)]
    return [] if value is None else [value]
