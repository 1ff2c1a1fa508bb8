"""The keys in the body of S3's DeleteObjects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

from nessie_cli.errors import InvalidInput, NotAllowed

MOST_KEYS = 1000
"""The limit of S3."""
_MOST_CHARACTERS = 2 * 2**20
_DECLARATION = re.compile(r"\s*<\?xml[^>]*\?>")
_ENCODING = re.compile(r"encoding\s*=\s*[\"']utf-8[\"']", re.IGNORECASE)


def deleted_keys(body: str) -> Iterator[str]:
    """Yields the keys.

    Raises `InvalidInput` for a body of another form, `NotAllowed` for one that deletes versions.
    """
    if len(body) > _MOST_CHARACTERS:
        raise InvalidInput("body: is too large")
    declaration = _DECLARATION.match(body)
    other = declaration and "encoding" in declaration[0] and not _ENCODING.search(declaration[0])
    # Entities and encodings could make S3 read different keys than this program.
    if "<!" in body or other:
        raise InvalidInput("body: must be plain XML in UTF-8")
    try:
        root = ET.fromstring(body)  # noqa: S314 - without entities, of bounded size
    except ET.ParseError:
        raise InvalidInput("body: is not XML") from None
    if _name(root) != "Delete" or len(root) > MOST_KEYS + 1:
        raise InvalidInput(f"body: must be a Delete of at most {MOST_KEYS} objects")
    for child in root:
        if _name(child) == "Object":
            yield _key(child)
        elif _name(child) != "Quiet":
            raise InvalidInput("body: holds more than objects")


def _key(child: ET.Element) -> str:
    names = [_name(member) for member in child]
    if "VersionId" in names:
        raise NotAllowed("body: deletes versions of objects")
    if names != ["Key"] or not child[0].text or len(child[0]):
        raise InvalidInput("body: an object must have a key and nothing else")
    return child[0].text


def _name(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]
