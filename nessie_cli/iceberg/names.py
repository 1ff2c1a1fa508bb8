"""PyIceberg's identifiers as keys of the repository, and where a new table or view of a name lies."""

from __future__ import annotations

import re
import uuid

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError
from pyiceberg.typedef import Identifier

from nessie_cli.errors import InvalidInput
from nessie_cli.model import ContentKey

_NOT_FOR_FOLDERS = re.compile(r"[^\w.-]|^\.+")


def key_of(identifier: str | Identifier, error: type[Exception] = ValueError) -> ContentKey:
    """The key that an identifier names: a text is split at its dots, a tuple is taken as it is. Raises `error` for one that can name nothing."""
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
    """The key of a namespace; None for the root, which is the empty tuple. Raises `NoSuchNamespaceError` for what can name none."""
    return None if namespace == () else key_of(namespace, NoSuchNamespaceError)


def location_in(folder: str, key: ContentKey, *, below: int = 0) -> str:
    """A folder of its own for a new table or view; the first `below` elements of its key are in `folder` already.

    It ends with a UUID: what has the same name on another branch, or had it before, lies elsewhere, so that files can be cleaned up by folder.
    """
    names = [_NOT_FOR_FOLDERS.sub("_", element) for element in key.elements[below:]]
    return "/".join((folder.rstrip("/"), *names)) + f"_{uuid.uuid4()}"
