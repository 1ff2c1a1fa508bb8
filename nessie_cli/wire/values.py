"""Decodes the values that requests and answers share: types, instants, keys, contents."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from msgspec import structs

from nessie_cli import model
from nessie_cli.errors import InvalidInput
from nessie_cli.wire.contents import CONTENTS, ForeignContent, Key
from nessie_cli.wire.json_text import describe, fault, join
from nessie_cli.wire.validation import checked

MAX_DEPTH = 50
"""The deepest nesting of attributes of a content of an unknown type."""

_INSTANT = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]\d\d:\d\d)"


def object_with_type(data: Any, path: str, type_names: Iterable[str]) -> str:
    """Returns the discriminator `type` of a JSON object; errors offer `type_names`."""
    if not isinstance(data, dict):
        raise fault(path, f"must be an object, not {describe(data)}")
    name = data.get("type")
    if name is None:
        raise fault(join(path, "type"), f"is missing ({', '.join(type_names)})")
    if not isinstance(name, str):
        raise fault(join(path, "type"), f"must be a string, not {describe(name)}")
    return name


def decode_instant(text: str, path: str) -> datetime:
    """Returns an ISO instant with `Z` or an offset, in UTC, without digits beyond microseconds."""
    match = re.fullmatch(_INSTANT, text)
    if match:
        try:
            return datetime.fromisoformat(
                f"{match[1]}{(match[2] or '.0')[:7]}{match[3]}"
            ).astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise fault(path, f"must be an ISO instant such as 2026-01-31T12:00:00Z, not {describe(text)}")


def key_of(key: Key, path: str, *, allow_empty: bool = False) -> model.ContentKey:
    """Returns a content key. One without elements is invalid unless `allow_empty`."""
    if not key.elements and not allow_empty:
        raise fault(path, "Content key must not be empty")
    try:
        return model.ContentKey(tuple(key.elements))
    except InvalidInput as error:
        raise fault(path, error.message) from None


def content_of(data: Any, path: str, *, allow_unknown: bool = False) -> model.Content:
    """Returns a content. `allow_unknown` keeps one of an unknown type with all its attributes."""
    name = object_with_type(data, path, model.CONTENT_TYPES)
    if name in CONTENTS:
        values: dict[str, Any] = structs.asdict(checked(CONTENTS[name], data, path))
        for attribute, value in values.items():
            if isinstance(value, list):
                values[attribute] = tuple(value)
        try:
            return model.CONTENT_TYPES[name](**values)
        except InvalidInput as error:
            raise below(path, name, error) from None
    if allow_unknown:
        return _unknown_content(data, path)
    near = (
        f"write {name.upper()}"
        if name.upper() in model.CONTENT_TYPES
        else f"known are {', '.join(model.CONTENT_TYPES)}"
    )
    raise fault(join(path, "type"), f"{describe(name)} is not a content type ({near})")


def below(path: str, owner: str, error: InvalidInput) -> InvalidInput:
    """Returns the error of a content with the path as the owner of the attribute, not its type."""
    return InvalidInput(join(path, error.message.removeprefix(f"{owner}.")))


def _unknown_content(data: dict[str, Any], path: str) -> model.UnknownContent:
    content = checked(ForeignContent, data, path)
    attributes = {name: value for name, value in data.items() if name not in ("type", "id")}
    if _depth(attributes) > MAX_DEPTH:
        raise fault(path, f"is nested more than {MAX_DEPTH} levels deep")
    try:
        return model.UnknownContent(
            id=content.id, foreign_type=content.type, foreign_attributes=attributes
        )
    except InvalidInput as error:
        raise below(path, "content", error) from None


def _depth(value: Any) -> int:
    """Returns the nesting depth of a value, counted up to `MAX_DEPTH`."""
    level: list[Any] = [value]
    depth = 0
    while level and depth <= MAX_DEPTH:
        inner = (item.values() if isinstance(item, dict) else item for item in level)
        level, depth = (
            [child for items in inner for child in items if isinstance(child, dict | list)],
            depth + 1,
        )
    return depth
