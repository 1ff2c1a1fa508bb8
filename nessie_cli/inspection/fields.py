"""The labelled fields of contents and of their changes, as texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from nessie_cli.model import Content, ContentKey, type_label

if TYPE_CHECKING:
    from nessie_cli.inspection.changes import ContentChange

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


def changed_fields(change: ContentChange) -> list[Difference]:
    """Returns the fields that a change sets, changes or removes, with the texts of both sides.

    A created or deleted content has all its fields but the type, with None on the other side.
    """
    if change.before and change.after:
        return differences((change.before, change.after))
    sides = [fields(side) if side else {} for side in (change.before, change.after)]
    return [
        Difference(label, tuple(side.get(label) for side in sides))
        for side in sides
        for label in side
        if label != TYPE
    ]


def metadata_fields(change: ContentChange) -> list[Difference]:
    """Returns the differences of the metadata files, labelled as fields: `column total`."""
    facts = change.metadata.facts if change.metadata else ()
    return [
        Difference(f"{fact.what} {fact.name}".rstrip(), (fact.before, fact.after)) for fact in facts
    ]


def changed_labels(change: ContentChange) -> list[str]:
    """Returns the labels of changed fields, or the type of a created or deleted content."""
    if change.before and change.after:
        labels = [difference.label for difference in differences((change.before, change.after))]
        return ["key", *labels] if change.old_key else labels
    return [type_label(side.type_name) for side in (change.before, change.after) if side]
