"""Namespaces: list, create, load, properties, drop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder import values
from nessie_cli.iceberg.messages import names
from nessie_cli.iceberg.state import State
from nessie_cli.iceberg.warehouses.warehouse import (
    LOCATION,
    check_namespace_location,
    namespace_location,
)
from nessie_cli.model import CommitResult, ContentKey, Delete, Namespace, Put, type_label
from nessie_cli.model.contents import MOST_PROPERTIES
from nessie_cli.server.iceberg.call import IcebergCall
from nessie_cli.server.iceberg.contents import asked_page
from nessie_cli.server.iceberg.errors import (
    NamespaceNotEmpty,
    NoSuchNamespace,
    Unprocessable,
)
from nessie_cli.server.iceberg.names import (
    NAMESPACE,
    namespace_in,
    namespace_of,
    need_namespace,
    raise_existing,
)
from nessie_cli.server.pipeline.call import NO_CONTENT, Answer, Proposal

_CREATE, _UPDATE = "CreateNamespaceRequest", "UpdateNamespacePropertiesRequest"


def list_namespaces(call: IcebergCall) -> Answer:
    """`GET /v1/{prefix}/namespaces`."""
    text, page = call.text("parent"), asked_page(call)
    parent = namespace_in(text) if text else None
    if parent is not None:
        need_namespace(page.state, parent)
    keys, token = page.keys(parent, Namespace.type)
    return Answer({"namespaces": [key.elements for key in keys], "next-page-token": token})


def create_namespace(call: IcebergCall) -> Answer:
    """`POST /v1/{prefix}/namespaces`. Namespaces above it that are missing are created with it."""
    body = call.json_object(_CREATE)
    key = namespace_of(body, _CREATE)
    properties = values.text_map(body, "properties", _CREATE) if body.get("properties") else {}
    _check_location(call, properties)

    def make(state: State) -> Proposal[CommitResult] | None:
        return call.proposal(state, f"create namespace {key}", _creation(state, key, properties))

    made = need_namespace(call.change(make).after, key)
    return Answer(_shown(call, key, made))


def _creation(state: State, key: ContentKey, properties: Mapping[str, str]) -> list[Put]:
    above = [ContentKey(key.elements[:length]) for length in range(1, len(key.elements))]
    contents = state.contents([key, *above])
    if (there := contents.get(key)) is not None:
        raise_existing(key, there, NAMESPACE)
    for parent in above:
        existing = contents.get(parent)
        if not isinstance(existing, Namespace | None):
            raise NoSuchNamespace(
                f"Namespace does not exist: {parent} (its type is {type_label(existing.type_name)})"
            )
    missing = [
        Put(parent, Namespace(elements=parent.elements))
        for parent in above
        if parent not in contents
    ]
    content = Namespace(elements=key.elements, properties=properties)
    return [*missing, Put(key, content)]


def load_namespace(call: IcebergCall) -> Answer:
    """`GET /v1/{prefix}/namespaces/{namespace}`."""
    key = namespace_in(call.segments["namespace"])
    return Answer(_shown(call, key, need_namespace(call.state(), key)))


def namespace_exists(call: IcebergCall) -> Answer:
    """`HEAD /v1/{prefix}/namespaces/{namespace}`."""
    need_namespace(call.state(), namespace_in(call.segments["namespace"]))
    return NO_CONTENT


def update_properties(call: IcebergCall) -> Answer:
    """`POST /v1/{prefix}/namespaces/{namespace}/properties`."""
    key, body = namespace_in(call.segments["namespace"]), call.json_object(_UPDATE)
    names_to_remove = values.texts(body, "removals", _UPDATE) if body.get("removals") else []
    updates = values.text_map(body, "updates", _UPDATE) if body.get("updates") else {}
    if len(names_to_remove) + len(updates) > MOST_PROPERTIES:
        raise InvalidInput(f"{_UPDATE}: has more than {MOST_PROPERTIES:,} properties")
    removals = set(names_to_remove)
    if both := sorted(updates.keys() & removals):
        raise Unprocessable(f"{_UPDATE}: {names(both)} must not be both removed and updated")
    _check_location(call, updates)

    def make(state: State) -> Proposal[CommitResult] | None:
        there = need_namespace(state, key)
        remaining = {
            name: value for name, value in there.properties.items() if name not in removals
        }
        properties = {**remaining, **updates}
        if properties == there.properties:
            return None
        differing = {*updates, *(name for name in removals if name in there.properties)}
        content = Namespace(id=there.id, elements=there.elements, properties=properties)
        message = f"change namespace {key}: {names(differing)}"
        return call.proposal(state, message, [Put(key, content, there)])

    before = need_namespace(call.change(make).before, key).properties
    return Answer(
        {
            "updated": sorted(updates),
            "removed": sorted(removals & before.keys()),
            "missing": sorted(removals - before.keys()),
        }
    )


def drop_namespace(call: IcebergCall) -> Answer:
    """`DELETE /v1/{prefix}/namespaces/{namespace}`: only if it is empty."""
    key = namespace_in(call.segments["namespace"])

    def make(state: State) -> Proposal[CommitResult] | None:
        need_namespace(state, key)
        if not state.is_empty(key):
            raise NamespaceNotEmpty(f"Namespace {key} is not empty")
        return call.proposal(state, f"drop namespace {key}", [Delete(key)])

    call.change(make)
    return NO_CONTENT


def _shown(call: IcebergCall, key: ContentKey, content: Namespace) -> dict[str, Any]:
    """Returns the answer about a namespace.

    It always has a location: Trino creates no table in a namespace without one.
    """
    location = namespace_location(call.warehouse, content, key)
    return {
        "namespace": list(key.elements),
        "properties": {**content.properties, LOCATION: location},
    }


def _check_location(call: IcebergCall, properties: Mapping[str, str]) -> None:
    if location := properties.get(LOCATION):
        check_namespace_location(call.files.allowed, location)
