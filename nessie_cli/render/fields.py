"""The labelled fields of a content, for showing and comparing contents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from nessie_cli.model import Content, ContentKey, type_label

TYPE = "type"
_CAPITAL = r"(?<=[a-z0-9])([A-Z])"


class Difference(NamedTuple):
    """A field that differs between contents: the text on each side, or None."""

    label: str
    texts: tuple[str | None, ...]


@cache
def kebab(name: str) -> str:
    """Converts `metadataLocation` to `metadata-location`, as in options."""
    return re.sub(_CAPITAL, r"-\1", name).lower()


def fields(content: Content) -> dict[str, str]:
    """Returns the text of each field by label: type and id first, then attributes with a value.

    A mapping is one field per name.
    """
    labelled = {TYPE: type_label(content.type_name)} | ({"id": content.id} if content.id else {})
    for name, value in content.attributes().items():
        labelled |= _texts(kebab(name), value)
    return labelled


def _texts(label: str, value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return {f"{label}.{name}": _text(item) for name, item in sorted(value.items())}
    if label == "elements":
        return {label: _dotted(value)}
    return {label: _text(value)}


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    if type(value) is int:
        return str(value)
    # Rarely needed, and as slow to load as the rest of this package.
    import json

    return json.dumps(value, ensure_ascii=False)


def _dotted(elements: Any) -> str:
    return str(ContentKey(tuple(elements))) if elements else ""


def differences(
    contents: Sequence[Content | None], more: Sequence[Mapping[str, str]] = ()
) -> list[Difference]:
    """Returns the fields that differ between contents.

    `more` are further fields of each content. A content that does not exist has no fields; the
    types of the others are shown then.
    """
    further = more or [{}] * len(contents)
    sides = [
        fields(content) | dict(others) if content else None
        for content, others in zip(contents, further, strict=True)
    ]
    labels = list(dict.fromkeys(label for side in sides if side for label in side))
    return list(_differing(labels, sides))


def _differing(
    labels: Sequence[str], sides: Sequence[dict[str, str] | None]
) -> Iterator[Difference]:
    for label in labels:
        texts = tuple(side.get(label) if side else None for side in sides)
        present = {text for text, side in zip(texts, sides, strict=True) if side}
        if len(present) > 1 or (label == TYPE and None in sides):
            yield Difference(label, texts)
