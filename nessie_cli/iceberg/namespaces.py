"""The namespaces of a catalog, which are contents of the repository with properties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
)
from pyiceberg.typedef import Properties
from pyiceberg.types import transform_dict_value_to_str

from nessie_cli.iceberg.errors import pyiceberg_errors
from nessie_cli.iceberg.reference import CatalogChange, PyIcebergState
from nessie_cli.model import ContentKey, Delete, Namespace, Put, type_label

T = TypeVar("T")


def get(state: PyIcebergState, key: ContentKey) -> Namespace:
    """Returns the namespace of a key. Raises `NoSuchNamespaceError`."""
    content = state.content(key)
    if not isinstance(content, Namespace):
        raise NoSuchNamespaceError(
            f"Namespace {key} does not exists"
            if content is None
            else f"{key} is not a namespace; its type is {type_label(content.type_name)}"
        )
    return content


def exists(state: PyIcebergState, key: ContentKey | None) -> bool:
    """Whether there is a namespace of this key. None, the root, always exists."""
    return key is None or isinstance(state.content(key), Namespace)


def check_parent(state: PyIcebergState, key: ContentKey) -> None:
    """Raises `NoSuchNamespaceError` if the parent namespace of a key does not exist."""
    if not exists(state, key.parent):
        raise NoSuchNamespaceError(f"Namespace does not exist: {key.parent}")


def create(state: PyIcebergState, key: ContentKey, properties: Properties) -> CatalogChange[None]:
    """Creates a namespace and its missing parents."""
    above = _above(key)
    contents = state.contents([key, *above])
    if (there := contents.get(key)) is not None:
        raise NamespaceAlreadyExistsError(
            f"Namespace {key} already exists"
            if isinstance(there, Namespace)
            else f"{key} exists with type {type_label(there.type_name)}"
        )
    for parent in above:
        if not isinstance(contents.get(parent), Namespace | None):
            raise NoSuchNamespaceError(
                f"{parent} is not a namespace; its type is {type_label(contents[parent].type_name)}"
            )
    missing = [
        Put(parent, Namespace(elements=parent.elements))
        for parent in above
        if parent not in contents
    ]
    with pyiceberg_errors():
        content = Namespace(
            elements=key.elements, properties=transform_dict_value_to_str(properties)
        )
    return CatalogChange(f"create namespace {key}", [*missing, Put(key, content)], None)


def _above(key: ContentKey) -> Sequence[ContentKey]:
    return [ContentKey(key.elements[:length]) for length in range(1, len(key.elements))]


def drop(state: PyIcebergState, key: ContentKey) -> CatalogChange[None]:
    """Drops an empty namespace. Raises `NamespaceNotEmptyError`."""
    get(state, key)
    if not state.is_empty(key):
        raise NamespaceNotEmptyError(f"Namespace {key} is not empty")
    return CatalogChange(f"drop namespace {key}", [Delete(key)], None)


def set_properties(
    key: ContentKey, there: Namespace, properties: Properties, names: str, answer: T
) -> CatalogChange[T]:
    """Replaces the properties of a namespace. `names` lists those that differ."""
    if properties == there.properties:
        return CatalogChange("", (), answer)
    with pyiceberg_errors():
        content = Namespace(
            id=there.id, elements=there.elements, properties=transform_dict_value_to_str(properties)
        )
    return CatalogChange(f"change namespace {key}: {names}", [Put(key, content, there)], answer)
