"""Names in requests: namespaces, tables and views as keys, and their contents."""

from __future__ import annotations

from typing import Any, NoReturn

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder import values
from nessie_cli.iceberg.state import State
from nessie_cli.model import (
    Content,
    ContentKey,
    IcebergTable,
    IcebergView,
    Namespace,
    type_label,
)
from nessie_cli.server.iceberg.errors import (
    Exists,
    NoSuchNamespace,
    NoSuchTable,
    NoSuchView,
)

SEPARATOR = "\x1f"
"""What separates the levels of a namespace in a path."""
TABLE, VIEW, NAMESPACE = "Table", "View", "Namespace"


def namespace_in(text: str) -> ContentKey:
    """Returns the key of a namespace in a path or query."""
    return ContentKey(tuple(text.split(SEPARATOR)))


def namespace_of(body: dict[str, Any], where: str) -> ContentKey:
    """Returns the key of the namespace in a body. Raises `InvalidInput`, also for the root."""
    levels = values.texts(body, "namespace", where)
    if not levels:
        raise InvalidInput(
            f"{where}: namespace is empty. Contents at the root have no namespace; Iceberg REST"
            " cannot address them"
        )
    return ContentKey(tuple(levels))


def identifier_of(body: dict[str, Any], member: str, where: str) -> ContentKey:
    """Returns the key of a table or view identifier in a body."""
    identifier, place = values.object_(body, member, where), f"{where}: {member}"
    return child(namespace_of(identifier, place), values.text(identifier, "name", place))


def child(namespace: ContentKey, name: str) -> ContentKey:
    """Returns the key of a name in a namespace."""
    return ContentKey((*namespace.elements, name))


def need_namespace(state: State, key: ContentKey) -> Namespace:
    """Returns a namespace. Raises `NoSuchNamespace`."""
    found = state.content(key)
    if not isinstance(found, Namespace):
        raise NoSuchNamespace(f"Namespace does not exist: {key}{_but(found)}")
    return found


def need_table(state: State, key: ContentKey) -> IcebergTable:
    """Returns a table. Raises `NoSuchTable`."""
    found = state.content(key)
    if not isinstance(found, IcebergTable):
        raise NoSuchTable(f"Table does not exist: {key}{_but(found)}")
    return found


def need_view(state: State, key: ContentKey) -> IcebergView:
    """Returns a view. Raises `NoSuchView`."""
    found = state.content(key)
    if not isinstance(found, IcebergView):
        raise NoSuchView(f"View does not exist: {key}{_but(found)}")
    return found


def need_free(state: State, key: ContentKey, kind: str) -> Namespace:
    """Returns the namespace of a new table or view. Raises `Exists`, `NoSuchNamespace`."""
    there, parent = _with_parent(state, key)
    if there is not None:
        raise_existing(key, there, kind)
    return parent


def need_free_for(state: State, old: ContentKey, new: ContentKey) -> None:
    """Raises `Exists` or `NoSuchNamespace` if a table or view cannot be renamed to a key."""
    there, _ = _with_parent(state, new)
    if there is not None:
        raise Exists(f"Cannot rename {old} to {new}. {_kind_of(there)} already exists")


def _with_parent(state: State, key: ContentKey) -> tuple[Content | None, Namespace]:
    """Returns the content of a key and its namespace.

    Raises `NoSuchNamespace` if both are missing.
    """
    assert key.parent is not None, "names at the root are refused before"
    contents = state.contents([key, key.parent])
    there, parent = contents.get(key), contents.get(key.parent)
    if isinstance(parent, Namespace):
        return there, parent
    if there is None:
        raise NoSuchNamespace(f"Namespace does not exist: {key.parent}{_but(parent)}")
    return there, Namespace(elements=key.parent.elements)


def raise_existing(key: ContentKey, there: Content, kind: str) -> NoReturn:
    """Raises `Exists` for a key that is taken. The words are those of Iceberg's own library."""
    found = _kind_of(there)
    same = "" if found == kind else " with same name"
    raise Exists(f"{found}{same} already exists: {key}")


def _kind_of(content: Content) -> str:
    kinds = {IcebergTable: TABLE, IcebergView: VIEW, Namespace: NAMESPACE}
    return kinds.get(type(content)) or f"A content of type {type_label(content.type_name)}"


def _but(there: Content | None) -> str:
    return "" if there is None else f" (its type is {type_label(there.type_name)})"
