"""Names in requests: the reference and warehouse, namespaces, and tables and views as keys.

A path is `/iceberg/{ref}/v1/{prefix}/...`. The prefix is `ref` or `ref|warehouse`. Clients without
a prefix can name both as their warehouse: they find the prefix in the configuration. The server
announces it percent-encoded once. Some clients encode it again and some decode it, so it is read in
all these forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn
from urllib.parse import quote, unquote

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
    content = state.content(key)
    if not isinstance(content, Namespace):
        raise NoSuchNamespace(f"Namespace does not exist: {key}{_but(content)}")
    return content


def need_table(state: State, key: ContentKey) -> IcebergTable:
    """Returns a table. Raises `NoSuchTable`."""
    content = state.content(key)
    if not isinstance(content, IcebergTable):
        raise NoSuchTable(f"Table does not exist: {key}{_but(content)}")
    return content


def need_view(state: State, key: ContentKey) -> IcebergView:
    """Returns a view. Raises `NoSuchView`."""
    content = state.content(key)
    if not isinstance(content, IcebergView):
        raise NoSuchView(f"View does not exist: {key}{_but(content)}")
    return content


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
    existing = _kind_of(there)
    same = "" if existing == kind else " with same name"
    raise Exists(f"{existing}{same} already exists: {key}")


def _kind_of(content: Content) -> str:
    kinds = {IcebergTable: TABLE, IcebergView: VIEW, Namespace: NAMESPACE}
    return kinds.get(type(content)) or f"A content of type {type_label(content.type_name)}"


def _but(there: Content | None) -> str:
    return "" if there is None else f" (its type is {type_label(there.type_name)})"


BELOW = "/iceberg"
_HOST = re.compile(r"(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::\d+)?")
_THIS_MACHINE = re.compile(r"(?:localhost|127(?:\.\d+){3}|\[::1\])(?::\d+)?")
_FRONT = re.compile(r"(?:/[\w.~-]+)*", re.ASCII)
_WHOLE_HASH = re.compile(r"[0-9a-fA-F]{64}")


class Prefix(NamedTuple):
    """The reference (a name, `name@hash` or `@hash`) and the warehouse; None is the default."""

    reference: str | None = None
    warehouse: str | None = None


def announced(reference: str, warehouse: str | None) -> str:
    """Returns the prefix that clients put into paths, percent-encoded once."""
    return quote(f"{reference}|{warehouse}" if warehouse else reference, safe="")


def read_prefix(front: str | None, prefix: str | None, parameter: str | None) -> Prefix:
    """Returns what a request names in front of `v1` and as its prefix, both decoded once.

    The parameter of a request for the configuration is `WAREHOUSE`, `REF|WAREHOUSE` or `REF|`.
    Raises `InvalidInput` if they name different references.
    """
    in_path = _joined(_parsed(prefix), _parsed(front))
    in_query = _parsed(parameter) if parameter and "|" in parameter else Prefix(None, parameter)
    return _joined(in_path, in_query)


def _joined(first: Prefix, second: Prefix) -> Prefix:
    """Returns two parts of a request as one. The first takes precedence."""
    if None not in (first.reference, second.reference) and first.reference != second.reference:
        raise InvalidInput(
            f"the request names two references, {first.reference!r} and {second.reference!r}"
        )
    return Prefix(first.reference or second.reference, first.warehouse or second.warehouse)


def _parsed(text: str | None) -> Prefix:
    if text is None:
        return Prefix()
    if "%" in text:
        # A client has encoded it again. No reference has a percent sign in its name.
        text = unquote(text, errors="replace")
    reference, _, warehouse = text.partition("|")
    if _WHOLE_HASH.fullmatch(reference):
        reference = f"@{reference}"
    return Prefix(reference or None, warehouse or None)


def client_uri(scheme: str, header: Callable[[bytes], str | None]) -> str:
    """Returns the URI of the catalog that the client uses; empty if it is uncertain.

    A proxy may have another URI; clients then use the one that they know. Headers of a proxy are
    trusted, because the answer goes only to its client.
    """
    host = header(b"x-forwarded-host") or header(b"host") or ""
    protocol = header(b"x-forwarded-proto")
    if protocol is None and (scheme == "https" or _THIS_MACHINE.fullmatch(host)):
        protocol = scheme
    front = (header(b"x-forwarded-prefix") or "").rstrip("/")
    if (
        protocol not in ("http", "https")
        or not _HOST.fullmatch(host)
        or not _FRONT.fullmatch(front)
    ):
        return ""
    return f"{protocol}://{host}{front}{BELOW}"
