"""JSON Schemas of the shapes: for the OpenAPI document (`components`) and for the command line (`definitions`).

They describe and check nothing at run time. Tests hold real answers against them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from inspect import getdoc
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

from nessie_cli.model import MergeBehavior
from nessie_cli.wire import bodies, guards, repository_config, rest, shapes
from nessie_cli.wire.encode import Json
from nessie_cli.wire.shape import OneOf, Shape, alternatives, attributes, constant, without_null

PREFIX = "#/components/schemas/"
TEXT: Json = {"type": "string"}
INSTANT: Json = {"type": "string", "format": "date-time"}
HASH: Json = {"type": "string", "pattern": "^[0-9a-fA-F]{8,64}$"}
SPEC: Json = {"type": "string", "pattern": r"^[0-9a-fA-F]{8,64}([~*^][0-9TZ:.-]+)*$"}
"""A hash with relative parts after it."""
NAME: Json = {"type": "string", "pattern": r"^(-|[A-Za-z](?:[A-Za-z0-9./_-]*[A-Za-z0-9_-])?)$"}


def ref(name: str) -> Json:
    """A reference to a component of the OpenAPI document."""
    return {"$ref": PREFIX + name}


def maybe(schema: Json) -> Json:
    """A value or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def many(schema: Json) -> Json:
    """A list."""
    return {"type": "array", "items": schema}


# -- from the definitions of shapes -----------------------------------------------------------------

_TYPES: Mapping[type, str] = {bool: "boolean", int: "integer", str: "string"}
_INLINE = (shapes.ForeignType, shapes.Int32, shapes.Int64)
"""Scalar types without a definition of their own."""


def is_named(kind: Any) -> bool:
    """Whether a type has a name of its own: a shape, or a scalar with a meaning."""
    return isinstance(kind, type) and kind not in _INLINE and (issubclass(kind, Shape | OneOf) or kind.__module__ == shapes.__name__)


def schema_of(kind: Any, refer: Callable[[Any], Json]) -> Json:
    """The schema of a type; `refer` gives that of a named type."""
    if is_named(kind):
        return refer(kind)
    inner, nullable = without_null(kind)
    if nullable and inner is not None:
        return maybe(schema_of(inner, refer))
    if found := alternatives(kind):
        return {"anyOf": [schema_of(one, refer) for one in found]}
    if get_origin(kind) is list:
        return {"items": schema_of(get_args(kind)[0], refer), "type": "array"}
    if get_origin(kind) is dict:
        return {"additionalProperties": schema_of(get_args(kind)[1], refer), "type": "object"}
    return _scalar(kind)


def _scalar(kind: Any) -> Json:
    """The schema of a scalar type."""
    if fixed := constant(kind):
        return {"type": "null"} if fixed[0] is None else {"const": fixed[0], "type": _TYPES[type(fixed[0])]}
    if get_origin(kind) is Literal:
        return {"enum": list(get_args(kind)), "type": "string"}
    return {**getattr(kind, "schema", {}), "type": next(name for one, name in _TYPES.items() if issubclass(kind, one))}


def definition(kind: Any, refer: Callable[[Any], Json]) -> Json:
    """The definition of a named type."""
    if issubclass(kind, OneOf):
        return {"anyOf": [refer(one) for one in kind.shapes]}
    found: Json = {"description": getdoc(kind)}
    if not issubclass(kind, Shape):
        return dict(sorted((found | _scalar(kind)).items()))
    if kind.is_open:
        found["additionalProperties"] = True
    found["properties"] = {one.name: schema_of(one.type, refer) for one in attributes(kind)}
    found["required"] = [one.name for one in attributes(kind) if not one.optional]
    return dict(sorted((found | {"title": kind.__name__, "type": "object"}).items()))


def definitions(kinds: Iterable[Any]) -> dict[str, Json]:
    """The definitions of named types and of all that they refer to, by their names."""
    found: dict[str, Json] = {}

    def refer(kind: Any) -> Json:
        if kind.__name__ not in found:
            found[kind.__name__] = {}
            found[kind.__name__] = definition(kind, refer)
        return {"$ref": f"#/$defs/{kind.__name__}"}

    for kind in kinds:
        refer(kind)
    return found


# -- requests: from the guards ------------------------------------------------------------------------------------------------------------


def _of_guard(guard: type[BaseModel], **overrides: Json) -> Json:
    """The schema of a guard, without the titles that repeat the names, with some attributes described better than their guard can."""
    schema = guard.model_json_schema()
    schema.pop("title", None)
    schema.pop("description", None)
    definitions = schema.pop("$defs", {})
    schema["properties"] = {name: overrides.get(name) or _without_titles(value, definitions) for name, value in schema["properties"].items()}
    return schema


def _without_titles(value: Any, definitions: Json) -> Any:
    if isinstance(value, list):
        return [_without_titles(item, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        return _without_titles(definitions[value["$ref"].rpartition("/")[2]], definitions)
    return {name: _without_titles(item, definitions) for name, item in value.items() if name not in ("title", "description", "default")}


def _typed(name: str, schema: Json) -> Json:
    """One alternative of a union: the attribute `type` says which."""
    schema = {**schema, "properties": {"type": {"const": name}, **schema["properties"]}}
    schema["required"] = ["type", *schema.get("required", [])]
    return schema


def _requests() -> dict[str, Json]:
    contents = {f"{name}_CONTENT": _typed(name, _of_guard(guard)) for name, guard in guards.CONTENT_GUARDS.items()}
    put = _of_guard(guards.PutGuard, key=ref("ContentKey"), content=ref("Content"), expectedContent=maybe(ref("Content")))
    keyed = _of_guard(guards.KeyOperationGuard, key=ref("ContentKey"))
    behavior = {"enum": [str(one) for one in MergeBehavior]}
    modes = many(ref("MergeKeyBehavior"))
    shared = {"fromRefName": NAME, "keyMergeModes": maybe(modes), "defaultKeyMergeMode": maybe(behavior)}
    return {
        **contents,
        "Content": {"oneOf": [ref(name) for name in contents]},
        "ReferenceRequest": {
            "oneOf": [
                *(_typed(kind, _named_reference()) for kind in ("BRANCH", "TAG")),
                _typed("DETACHED", {"type": "object", "properties": {"hash": SPEC}, "required": ["hash"]}),
            ]
        },
        "ContentKey": _of_guard(guards.KeyGuard, elements={**many({"type": "string", "minLength": 1, "maxLength": 500}), "maxItems": 20}),
        "CommitMetaRequest": _of_guard(guards.CommitMetaGuard, authorTime=maybe(INSTANT)),
        "Operation": {"oneOf": [_typed("PUT", put), _typed("DELETE", keyed), _typed("UNCHANGED", keyed)]},
        "Operations": _object(commitMeta=ref("CommitMetaRequest"), operations={**many(ref("Operation")), "minItems": 1}),
        "MergeKeyBehavior": _of_guard(
            bodies.BehaviorGuard,
            key=ref("ContentKey"),
            mergeBehavior=behavior,
            expectedTargetContent=maybe(ref("Content")),
            resolvedContent=maybe(ref("Content")),
        ),
        "Merge": _without(_of_guard(bodies.MergeGuard, commitMeta=maybe(ref("CommitMetaRequest")), **shared), *bodies.MISSPELT),
        "Transplant": _without(_of_guard(bodies.TransplantGuard, **shared), *bodies.MISSPELT),
        "GetMultipleContentsRequest": _of_guard(bodies.KeysGuard, requestedKeys={**many(ref("ContentKey")), "minItems": 1}),
        "UpdateRepositoryConfigRequest": _object(config=ref("GarbageCollectorConfig")),
        "GarbageCollectorConfig": _typed(repository_config.GARBAGE_COLLECTOR, _of_guard(repository_config.GarbageCollectorGuard)),
        "NamespaceUpdate": _of_guard(bodies.NamespaceUpdateGuard),
    }


def _named_reference() -> Json:
    return {"type": "object", "properties": {"name": NAME, "hash": maybe(SPEC)}, "required": ["name"]}


def _object(**required: Json) -> Json:
    """An object with these attributes and no others."""
    return {"type": "object", "properties": required, "required": list(required), "additionalProperties": False}


def _without(schema: Json, *names: str) -> Json:
    return {**schema, "properties": {name: value for name, value in schema["properties"].items() if name not in names}}


# -- components of the OpenAPI document ---------------------------------------------------------------

_NAMES: Mapping[type, str] = {
    shapes.BareCommit: "CommitResponse",
    shapes.BareConflict: "Conflict",
    shapes.BareDiffEntry: "DiffEntry",
    shapes.BareEntry: "Entry",
    shapes.BareLogEntry: "LogEntry",
    shapes.BareMerge: "MergeResponse",
    shapes.BareMergeDetail: "MergeDetail",
    shapes.Content: "AnyContent",
    shapes.FoundContent: "ContentResponse",
    shapes.Key: "ContentKey",
    shapes.SingleReference: "SingleReferenceResponse",
    rest.BareError: "NessieError",
    rest.Configuration: "NessieConfiguration",
    rest.ConfigurationV1: "NessieConfigurationV1",
    rest.DiffPage: "DiffResponse",
    rest.DiffPageV1: "DiffResponseV1",
    rest.EntryPage: "EntriesResponse",
    rest.EntryPageV1: "EntriesResponseV1",
    rest.FoundContents: "GetMultipleContentsResponse",
    rest.FoundContentsV1: "GetMultipleContentsResponseV1",
    rest.LogPage: "LogResponse",
    rest.LogPageV1: "LogResponseV1",
    rest.MergeV1: "MergeResponseV1",
    rest.NamespacesV1: "NamespacesResponse",
    rest.PreviousRepositoryConfig: "UpdateRepositoryConfigResponse",
    rest.ReferenceHistory: "ReferenceHistoryResponse",
    rest.ReferencePage: "ReferencesResponse",
    rest.ReferencePageV1: "ReferencesResponseV1",
    rest.RepositoryConfigs: "RepositoryConfigResponse",
}
"""The shapes that have the names of the Nessie specification in the OpenAPI document."""


def _answers(given: Mapping[str, Json]) -> dict[str, Json]:
    """The components of all answers; those that are `given` as requests are referred to and stay as they are."""
    found: dict[str, Json] = {"AnyContent": {"type": "object", "properties": {"type": TEXT, "id": maybe(TEXT)}, "required": ["type", "id"]}}

    def refer(kind: Any) -> Json:
        if not issubclass(kind, Shape | OneOf):
            return _scalar(kind)
        name = _NAMES.get(kind, kind.__name__)
        if name not in found and name not in given:
            found[name] = {}
            found[name] = {key: value for key, value in definition(kind, refer).items() if key != "title"}
            if issubclass(kind, Shape):
                found[name]["additionalProperties"] = False
        return ref(name)

    for kind in _NAMES:
        refer(kind)
    return found


def schemas() -> dict[str, Json]:
    """Every component by its name."""
    requests = _requests()
    return requests | _answers(requests)
