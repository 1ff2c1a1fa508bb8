"""PyIceberg's identifiers as keys of the repository, and locations of new tables and views."""

from __future__ import annotations

import uuid

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError
from pyiceberg.typedef import Identifier

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.locations import folder_for
from nessie_cli.model import ContentKey


def key_of(identifier: str | Identifier, error: type[Exception] = ValueError) -> ContentKey:
    """Returns the key of an identifier. A string is split at its dots, a tuple is not.

    Raises `error` for an invalid identifier.
    """
    elements = tuple(Catalog.identifier_to_tuple(identifier))
    if not elements or not all(
        isinstance(element, str) and element.strip() for element in elements
    ):
        raise error(f"Identifier is empty, or has an empty part: {identifier!r}")
    try:
        return ContentKey(elements)
    except InvalidInput as fault:
        raise error(fault.message) from None


def namespace_key(namespace: str | Identifier) -> ContentKey | None:
    """Returns the key of a namespace, None for the root, which is the empty tuple.

    Raises `NoSuchNamespaceError` for an invalid identifier.
    """
    return None if namespace == () else key_of(namespace, NoSuchNamespaceError)


def location_in(folder: str, key: ContentKey, *, below: int = 0) -> str:
    """Returns the location of a new table or view in a folder.

    The folder already stands for the first `below` elements of the key. The location ends with a
    UUID, so that tables of the same name on other branches, or later, get other folders. Then files
    can be deleted by folder.
    """
    return f"{folder_for(folder, key.elements[below:])}_{uuid.uuid4()}"
