"""JSON values that requests and servers' answers share: types, instants, unknown contents."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from nessie_cli.model import UnknownContent
from nessie_cli.wire.json_text import describe, fault, join

MAX_DEPTH = 50
"""The deepest nesting of attributes of a content of an unknown type."""

_INSTANT = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]\d\d:\d\d)"


def object_with_type(data: Any, path: str, known: Iterable[str]) -> str:
    """Returns the discriminator `type` of a JSON object; `known` is what the message offers."""
    if not isinstance(data, dict):
        raise fault(path, f"must be an object, not {describe(data)}")
    name = data.get("type")
    if name is None:
        raise fault(join(path, "type"), f"is missing ({', '.join(known)})")
    if not isinstance(name, str):
        raise fault(join(path, "type"), f"must be a string, not {describe(name)}")
    return name


def decode_instant(text: str, path: str) -> datetime:
    """Returns an ISO instant with `Z` or an offset, in UTC, without digits beyond microseconds."""
    found = re.fullmatch(_INSTANT, text)
    if found:
        try:
            return datetime.fromisoformat(
                f"{found[1]}{(found[2] or '.0')[:7]}{found[3]}"
            ).astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise fault(path, f"must be an ISO instant such as 2026-01-31T12:00:00Z, not {describe(text)}")


def unknown_content(
    name: str, content_id: str | None, data: dict[str, Any], path: str
) -> UnknownContent:
    """Returns a content of an unknown type, with all of its attributes."""
    attributes = {
        attribute: value for attribute, value in data.items() if attribute not in ("type", "id")
    }
    if _depth(attributes) > MAX_DEPTH:
        raise fault(path, f"is nested more than {MAX_DEPTH} levels deep")
    return UnknownContent(id=content_id, foreign_type=name, foreign_attributes=attributes)


def _depth(value: Any) -> int:
    """Returns the nesting depth of a value, counted up to `MAX_DEPTH`."""
    level: list[Any] = [value]
    depth = 0
    while level and depth <= MAX_DEPTH:
        inner = (item.values() if isinstance(item, dict) else item for item in level)
        level, depth = (
            [found for items in inner for found in items if isinstance(found, dict | list)],
            depth + 1,
        )
    return depth
