"""Requests that try to keep a server busy.

A request is made when a test sends it: together they have hundreds of megabytes.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote

FORM = {"content-type": "application/x-www-form-urlencoded"}
JSON = {"content-type": "application/json"}
TOKENS = "/iceberg/v1/oauth/tokens"
NAMESPACES = "/iceberg/v1/main/namespaces"
TABLES = f"{NAMESPACES}/a/tables"
CONTENTS = "/api/v2/trees/main/contents"
MERGE = f"/api/v2/trees/main@{'a' * 64}/history/merge"
SCHEMA: dict[str, Any] = {"type": "struct", "fields": []}
EXPECTED = "a" * 64
COMMIT = f"v2/trees/main@{EXPECTED}/history/commit"
NAMESPACE = "v1/namespaces/namespace/main/a"
BRANCH = {"type": "BRANCH", "name": "main", "hash": EXPECTED}
GROWING = '["aaaaaaaaaaaaaaaa"]' + ".map(x, x + x + x + x)" * 12 + "[0].size() > 0"

Request = dict[str, Any]
"""The arguments of `Client.send`."""


class Hostile(NamedTuple):
    """The status of the answer, the number of clients that send the request at once, and a
    function that makes it."""

    status: int
    count: int
    request: Callable[[], Request]


def _post(path: str, raw: bytes, **headers: str) -> Request:
    found: Request = {"method": "POST", "path": path, "raw": raw}
    return (
        found | {"headers": {n.replace("_", "-"): v for n, v in headers.items()}}
        if headers
        else found
    )


def _get(path: str) -> Request:
    return {"method": "GET", "path": path}


def _form(raw: bytes) -> Request:
    return {"method": "POST", "path": TOKENS, "headers": FORM, "raw": raw}


# -- long texts ------------------------------------------------------------------------------------


def _long_name() -> str:
    return "a-" * 2_000_000 + "a"


def _long_hash() -> str:
    return EXPECTED + "~1" * 2_000_000


LONG_TEXTS: dict[str, tuple[str, Callable[[], Any]]] = {
    "name, v2": ("v2/trees?name=x&type=BRANCH", lambda: BRANCH | {"name": _long_name()}),
    "name, v1": ("v1/trees/tree?sourceRefName=main", lambda: BRANCH | {"name": _long_name()}),
    "hash, v2": ("v2/trees?name=x&type=BRANCH", lambda: BRANCH | {"hash": _long_hash()}),
    "source of a merge": (
        f"v2/trees/main@{EXPECTED}/history/merge",
        lambda: {"fromRefName": "main", "fromHash": _long_hash()},
    ),
    "source of a merge, v1": (
        f"v1/trees/branch/main/merge?expectedHash={EXPECTED}",
        lambda: {"fromRefName": _long_name(), "fromHash": EXPECTED},
    ),
    "transplant": (
        f"v2/trees/main@{EXPECTED}/history/transplant",
        lambda: {"fromRefName": "main", "hashesToTransplant": [_long_hash()]},
    ),
}


def _long_text(path: str, body: Callable[[], Any]) -> Request:
    return {"method": "POST", "path": f"/api/{path}", "body": body()}


# -- many items ------------------------------------------------------------------------------------


def _many_texts() -> list[str]:
    return [f"{number:06x}" for number in range(900_000)]


def _namespace() -> dict[str, Any]:
    properties = dict.fromkeys(_many_texts(), "")
    return {"type": "NAMESPACE", "elements": ["a"], "properties": properties}


def _commit(operations: Any = (), **meta: Any) -> dict[str, Any]:
    return {"commitMeta": {"message": "m", **meta}, "operations": [*operations]}


MANY_ITEMS: dict[str, tuple[str, Callable[[], Any]]] = {
    "properties of a commit": (
        COMMIT,
        lambda: _commit(allProperties={key: ["v"] for key in _many_texts()}),
    ),
    "authors of a commit": (COMMIT, lambda: _commit(authors=_many_texts())),
    "properties of a namespace": (
        COMMIT,
        lambda: _commit([{"type": "PUT", "key": {"elements": ["a"]}, "content": _namespace()}]),
    ),
    "properties of a new namespace, v1": (NAMESPACE, _namespace),
    "removals, v1": (
        NAMESPACE,
        lambda: {"propertyUpdates": {}, "propertyRemovals": _many_texts()},
    ),
    "retention policies": (
        "v2/config/repository",
        lambda: {
            "config": {
                "type": "GARBAGE_COLLECTOR",
                "perRefCutoffPolicies": [{"referenceNamePattern": "a", "policy": "1"}] * 150_000,
            }
        },
    ),
}


def _many_items(what: str, path: str, body: Callable[[], Any]) -> Request:
    return {
        "method": "PUT" if "new" in what else "POST",
        "path": f"/api/{path}",
        "raw": json.dumps(body()).encode(),
        "headers": JSON,
    }


def _many_fields() -> Request:
    """The last field has the name of another one. The body is just below the size of large ones."""
    fields = [
        {"id": number, "name": f"c{number % 3999}", "required": False, "type": "long"}
        for number in range(1, 4001)
    ]
    return {
        "method": "POST",
        "path": TABLES,
        "body": {"name": "f", "schema": {"type": "struct", "fields": fields}},
    }


def _large_summary() -> Request:
    names = _many_texts()[:240_000]
    # Sorting them takes longest in no order.
    Random(0).shuffle(names)
    version = {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": dict.fromkeys(names, ""),
        "default-namespace": ["a"],
        "representations": [{"type": "sql", "dialect": "spark", "sql": "SELECT 1"}],
    }
    body = {"name": "v", "schema": SCHEMA, "view-version": version}
    return {"method": "POST", "path": f"{NAMESPACES}/a/views", "body": body}


def _many_values() -> bytes:
    return gzip.compress(b"[" + b"{}," * 990_000 + b"{}]")


def _many_decisions() -> bytes:
    return b'{"fromRefName":"main","fromHash":"","keyMergeModes":[%b{}]}' % (
        b'{"a":1},' * 1_900_000
    )


def _many_names() -> bytes:
    return b"{" + b",".join(b'"%x":1' % number for number in range(900_000)) + b"}"


def _type_of_many_spaces() -> Request:
    field = {"id": 1, "name": "c", "required": True, "type": "fixed[" + " " * 60_000 + "x"}
    body = {"name": "u", "schema": {"type": "struct", "fields": [field]}}
    return {"method": "POST", "path": TABLES, "body": body}


_GZIP = {"content_type": "application/json", "content_encoding": "gzip"}
HOSTILE = {
    "a large summary of a view": Hostile(400, 1, _large_summary),
    "schemas of many fields": Hostile(400, 16, _many_fields),
    **{
        f"many {what}": Hostile(400, 1, partial(_many_items, what, path, body))
        for what, (path, body) in MANY_ITEMS.items()
    },
    **{
        f"a long {what}": Hostile(400, 1, partial(_long_text, path, body))
        for what, (path, body) in LONG_TEXTS.items()
    },
    "a large form": Hostile(413, 1, lambda: _form(b"%41&" * 500_000)),
    "a form with many fields": Hostile(400, 1, lambda: _form(b"&".join([b"a=1"] * 21))),
    "a growing filter": Hostile(400, 1, lambda: _get(f"/api/v2/trees?filter={quote(GROWING)}")),
    "spaces in If-None-Match": Hostile(
        200,
        4,
        lambda: _get(f"{TABLES}/t") | {"headers": {"if-none-match": "a" + " " * 60_000 + "b"}},
    ),
    "many slashes": Hostile(404, 4, lambda: _get(f"/iceberg/v1/{'/' * 30_000}/namespaces")),
    "many versions": Hostile(404, 4, lambda: _get(f"/iceberg/v1{'/v1' * 10_000}/namespaces/x")),
    "many references": Hostile(404, 4, lambda: _get(f"/api/v2/trees/{'@/' * 15_000}x/history")),
    "many parameters": Hostile(400, 4, lambda: _get("/api/v2/trees?" + "&".join(["a"] * 25_000))),
    "compressed bodies of Iceberg": Hostile(
        413, 4, lambda: _post(NAMESPACES, _many_values(), **_GZIP)
    ),
    "compressed bodies of Nessie": Hostile(
        413, 4, lambda: _post(CONTENTS, _many_values(), **_GZIP)
    ),
    "many decisions of a merge": Hostile(
        413, 4, lambda: _post(MERGE, _many_decisions(), content_type="application/json")
    ),
    "names of Iceberg": Hostile(413, 1, lambda: _post(NAMESPACES, _many_names())),
    "names of Nessie": Hostile(400, 1, lambda: _post(CONTENTS, _many_names())),
    "a text of 64 MB": Hostile(400, 1, lambda: _post(CONTENTS, b'["' + b"a" * 64_000_000 + b'"]')),
    "many spaces": Hostile(400, 1, lambda: _post(CONTENTS, b" " * 64_000_000)),
    "deep JSON": Hostile(
        413, 4, lambda: _post(NAMESPACES, b"[" * 2_000_000, content_type="application/json")
    ),
    "a type of many spaces": Hostile(400, 2, _type_of_many_spaces),
}
