"""The OpenAPI 3.1 document, generated from the table of endpoints and the schemas."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nessie_cli import __version__
from nessie_cli.server.nessie.routes import ROUTES
from nessie_cli.server.pipeline.table import Endpoint, Param
from nessie_cli.wire.rest import SPEC_VERSION
from nessie_cli.wire.scalars import Json
from nessie_cli.wire.schemas import HASH, ref, schemas

_SEGMENTS: Mapping[str, str] = {
    "ref": (
        "a reference, and in v2 a commit: `name`, `name@hash`, `@hash`, then relative"
        " parts (`~1`, `^2`, `*2026-01-31T12:00:00Z`)"
    ),
    "from": "as `ref`",
    "to": "as `ref`",
    "key": "a content key, its elements joined with dots",
    "name": "a namespace, its elements joined with dots",
    "kind": "branch or tag",
    "range": "`from[*hash]...to[*hash]`",
}
_EXAMPLES: Mapping[str, str] = {
    "ref": "main",
    "from": "main",
    "to": "main",
    "key": "db.t",
    "name": "db",
    "kind": "branch",
    "range": "main...main",
}
_TYPES: Mapping[str, Json] = {
    "string": {"type": "string"},
    "key": {"type": "string"},
    "hash": HASH,
    "integer": {"type": "integer", "format": "int32"},
    "boolean": {"type": "boolean"},
    "fetch": {"enum": ["MINIMAL", "ALL"]},
}
_REFUSALS: Mapping[str, str] = {
    "400": "the request is invalid",
    "401": "the server does not know who asks",
    "403": "a rule forbids it to the caller",
    "404": "what was named does not exist",
    "406": "the client takes no JSON",
    "409": "a conflict, or something of this name exists",
    "413": "the body is too large",
    "415": "the body is not JSON",
    "503": "the store is away; try again",
}

_SCHEMES: Mapping[str, Json] = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": (
            "A token of the server's own, or a JSON Web Token of the issuer that it trusts."
        ),
    },
    "basic": {
        "type": "http",
        "scheme": "basic",
        "description": (
            "For clients without bearer tokens: the password is a token, the user its name."
        ),
    },
    "mutualTLS": {
        "type": "mutualTLS",
        "description": (
            "A client certificate of the server's CA. It grants access without a caller name."
        ),
    },
}


def security(*, credentials: bool, anonymous: bool, certificates: bool) -> list[Json]:
    """Returns the security requirements, any one of which is enough."""
    ways: list[Json] = [{}] if anonymous or not credentials else []
    ways += [{name: []} for name in ("bearer", "basic") if credentials]
    return [{"mutualTLS": [], **way} for way in ways] if certificates else ways


def openapi(ways: Sequence[Json] = ({},)) -> Json:
    """Returns the whole document. `ways` are the security requirements."""
    paths: dict[str, Any] = {}
    for endpoint in ROUTES:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Nessie REST API",
            "version": SPEC_VERSION,
            "description": (
                f"Git for a data lake's catalog, served by nessie {__version__}: API v2, and v1"
                " for older clients."
            ),
        },
        "servers": [{"url": "/"}],
        "tags": [
            {"name": "v2", "description": "API version 2"},
            {"name": "v1", "description": "API version 1, for older clients"},
        ],
        "security": list(ways),
        "paths": paths,
        "components": {"schemas": schemas(), "securitySchemes": dict(_SCHEMES)},
    }


def _operation(endpoint: Endpoint) -> Json:
    body: Json = {
        "tags": [endpoint.path.split("/")[2]],
        "operationId": f"{endpoint.path.split('/')[2]}_{endpoint.handler.__name__.lstrip('_')}",
        "summary": endpoint.doc.summary,
        "parameters": [*_segments(endpoint), *map(_parameter, endpoint.doc.query)],
        "responses": _responses(endpoint),
    }
    if endpoint.body:
        body["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": ref(endpoint.body)}},
        }
    return body


def _segments(endpoint: Endpoint) -> Iterator[Json]:
    for name in re.findall(r"\{(\w+)\}", endpoint.path):
        schema = {"type": "string", "minLength": 1}
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "description": _SEGMENTS[name],
            "schema": schema,
            "example": _EXAMPLES[name],
        }


def _parameter(param: Param) -> Json:
    schema = _TYPES[param.type]
    return {
        "name": param.name,
        "in": "query",
        "required": param.required,
        "description": param.meaning,
        "schema": {"type": "array", "items": schema} if param.many else schema,
    }


def _responses(endpoint: Endpoint) -> Json:
    done: Json = {"description": endpoint.doc.summary}
    if endpoint.doc.answer:
        done["content"] = {"application/json": {"schema": ref(endpoint.doc.answer)}}
    refused = {status: _refusal(meaning) for status, meaning in _REFUSALS.items()}
    return {str(endpoint.doc.status): done, **refused}


def _refusal(meaning: str) -> Json:
    return {"description": meaning, "content": {"application/json": {"schema": ref("NessieError")}}}
