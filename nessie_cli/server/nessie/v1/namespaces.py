"""API v1: namespaces. Each call is one read or one commit on HEAD."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from msgspec import structs

from nessie_cli.errors import (
    CommitNotFound,
    ContentNotFound,
    InvalidInput,
    NessieError,
    ReferenceConflict,
    ReferenceNotFound,
)
from nessie_cli.model import (
    CommitMeta,
    CommitResult,
    ContentKey,
    Delete,
    Entry,
    KeyRange,
    Namespace,
    Operation,
    Put,
    Reference,
    ReferenceType,
)
from nessie_cli.repository.changes import Commit
from nessie_cli.revisions import Revision
from nessie_cli.server.http.streams import ListingBody
from nessie_cli.server.nessie.v1.reading import reference_at
from nessie_cli.server.nessie.v1.requests import check_name_v1
from nessie_cli.server.pipeline.call import NO_CONTENT, Answer, Call
from nessie_cli.server.pipeline.targets import DETACHED, named
from nessie_cli.wire import keys
from nessie_cli.wire.contents import content_struct
from nessie_cli.wire.decode import decode_content_value, decode_namespace_update


class NamespaceNotFound(ContentNotFound):
    """There is no such namespace. `key` is its key."""

    code = "NAMESPACE_NOT_FOUND"

    def __init__(self, key: ContentKey) -> None:
        super().__init__(f"Namespace '{key.plain}' does not exist", key)


class NamespaceExists(NessieError):
    """A namespace or another content with this name exists."""

    code: ClassVar[str] = "NAMESPACE_ALREADY_EXISTS"
    status: ClassVar[int] = 409


class NamespaceNotEmptyV1(NessieError):
    """The namespace contains something."""

    code: ClassVar[str] = "NAMESPACE_NOT_EMPTY"
    status: ClassVar[int] = 409


def _at(call: Call, method: str) -> Reference:
    return reference_at(
        call, call.segments["ref"], call.text("hashOnRef"), place=f"{method}.refName"
    )


def _below(call: Call, at: Reference, key: ContentKey) -> Iterable[ContentKey]:
    """Yields the keys below a namespace that are not namespaces."""
    for entry in call.repository.entries(Revision(None, at.hash), KeyRange(prefix=key)):
        if entry.key != key and entry.type != Namespace.type:
            yield entry.key


def _find(call: Call, at: Reference, key: ContentKey) -> Namespace:
    """Returns a namespace: stored, or implied by keys of contents below it (without an id)."""
    content = (
        call.repository.contents(Revision(None, at.hash), [key]).get(key) if key.elements else None
    )
    if isinstance(content, Namespace):
        return content
    if content is None and key.elements and any(True for _ in _below(call, at, key)):
        return Namespace(elements=key.elements)
    raise NamespaceNotFound(key)


def get_namespace(call: Call) -> Answer:
    """Returns a namespace."""
    return Answer(content_struct(_find(call, _at(call, "getNamespace"), call.path_key("name"))))


def get_namespaces(call: Call) -> Answer:
    """Returns a namespace and all below it, stored and implied; all namespaces without a name."""
    at = _at(call, "getNamespaces")
    prefix = keys.decode(call.text("name") or "")
    entries = call.repository.entries(
        Revision(None, at.hash), KeyRange(prefix=prefix if prefix.elements else None), content=True
    )
    return Answer(
        ListingBody(
            "namespaces",
            map(content_struct, namespaces_of(entries, max(1, len(prefix.elements)))),
            dict,
        )
    )


def namespaces_of(entries: Iterable[Entry], shortest: int) -> Iterator[Namespace]:
    """Returns the namespaces of sorted entries, in order: stored and implied ones.

    An implied one has at least `depth` elements, and contains a key.
    """
    above: list[tuple[str, ...]] = []
    """The reported namespaces that contain the last key. The next key may be in them as well."""
    for entry in entries:
        elements = entry.key.elements
        while above and elements[: len(above[-1])] != above[-1]:
            above.pop()
        for length in range(max(shortest, len(above[-1]) + 1 if above else 0), len(elements)):
            above.append(elements[:length])
            yield Namespace(elements=elements[:length])
        if isinstance(entry.content, Namespace):
            above.append(elements)
            yield entry.content


def put_namespace(call: Call) -> Answer:
    """Creates the namespace of the body; the name in the path is ignored."""
    body = call.needed_json("createNamespace.namespace")
    namespace = decode_content_value(body, "namespace")
    if not isinstance(namespace, Namespace):
        raise InvalidInput(f"namespace.type: must be NAMESPACE, not {namespace.type_name}")
    if not namespace.elements:
        raise InvalidInput("Namespace name must not be empty")
    key = ContentKey(namespace.elements)
    branch = _head(call)
    existing = call.repository.contents(Revision(None, branch.hash), [key]).get(key)
    if existing is not None and not isinstance(existing, Namespace):
        raise NamespaceExists(f"Another content object with name '{key.plain}' already exists")
    if existing is not None or any(True for _ in _below(call, branch, key)):
        raise NamespaceExists(f"Namespace '{key.plain}' already exists")
    created = _commit(
        call, branch, Put(key, namespace), f"create namespace '{keys.encode_canonical(key)}'"
    )
    return Answer(content_struct(structs.replace(namespace, id=created.added[key])))


def delete_namespace(call: Call) -> Answer:
    """Deletes an empty namespace."""
    key = call.path_key("name")
    branch = _head(call)
    content = (
        call.repository.contents(Revision(None, branch.hash), [key]).get(key)
        if key.elements
        else None
    )
    if not isinstance(content, Namespace):
        raise NamespaceNotFound(key)
    if any(True for _ in _below(call, branch, key)):
        raise NamespaceNotEmptyV1(f"Namespace '{key.plain}' is not empty")
    _commit(call, branch, Delete(key), f"delete namespace '{keys.encode_canonical(key)}'")
    return NO_CONTENT


def post_namespace(call: Call) -> Answer:
    """Changes the properties of a namespace: removals first, then updates."""
    updates, removals = decode_namespace_update(
        call.needed_json("updateProperties.namespaceUpdate")
    )
    key = call.path_key("name")
    branch = _head(call)
    namespace = _find(call, branch, key)
    properties = {
        name: value for name, value in namespace.properties.items() if name not in removals
    } | updates
    changed = structs.replace(namespace, properties=properties)
    _commit(
        call,
        branch,
        Put(key, changed),
        f"update properties for namespace '{keys.encode_canonical(key)}'",
    )
    return NO_CONTENT


def _head(call: Call) -> Reference:
    name = check_name_v1(call.segments["ref"], "refName")
    if name == DETACHED:
        raise InvalidInput(f"Cannot resolve {DETACHED} to HEAD")
    return named(call.repository, name)


def _commit(call: Call, branch: Reference, operation: Operation, message: str) -> CommitResult:
    if branch.type is not ReferenceType.BRANCH:
        raise ReferenceNotFound(f"Named reference '{branch.name}' not found", branch.name)
    try:
        result: CommitResult = call.submit(
            Commit(branch.name, [operation], CommitMeta(message), branch.hash)
        )
    except ReferenceConflict as conflict:
        # The original server reports any conflict here as a missing reference.
        raise CommitNotFound(conflict.message, branch.name) from None
    return result
