"""JSON Schemas of the shapes, for the OpenAPI document (`components`) and the command line.

They check nothing at run time. Tests validate real answers with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from inspect import cleandoc
from typing import Any, Literal, Union, get_args, get_origin

from msgspec import NODEFAULT, Struct, structs
from msgspec.json import schema_components

from nessie_cli.wire import bodies, commits, entries, merges, references, rest, shapes
from nessie_cli.wire.contents import CONTENTS, Key
from nessie_cli.wire.encode import Json
from nessie_cli.wire.shape import (
    SCALARS,
    Attribute,
    OneOf,
    Shape,
    alternatives,
    attributes,
    constant,
    is_shape,
    plain,
    without_null,
)

PREFIX = "#/components/schemas/"
TEXT: Json = {"type": "string"}
HASH: Json = {"type": "string", "pattern": "^[0-9a-fA-F]{8,64}$"}


def ref(name: str) -> Json:
    """A reference to a component of the OpenAPI document."""
    return {"$ref": PREFIX + name}


def maybe(schema: Json) -> Json:
    """A value or null."""
    return {"anyOf": [schema, {"type": "null"}]}


# -- from the definitions of shapes ----------------------------------------------------------------

_TYPES: Mapping[type, str] = {bool: "boolean", int: "integer", str: "string"}


def is_named(kind: Any) -> bool:
    """Whether a type has a definition of its own: a shape, or a scalar with a description."""
    return "description" in SCALARS.get(kind, {}) or (
        isinstance(kind, type) and issubclass(kind, Shape | OneOf | Struct)
    )


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
    """The schema of a scalar type, or of any value."""
    if kind is Any:
        return {}
    if fixed := constant(kind):
        return (
            {"type": "null"}
            if fixed[0] is None
            else {"const": fixed[0], "type": _TYPES[type(fixed[0])]}
        )
    if get_origin(kind) is Literal:
        return {"enum": list(get_args(kind)), "type": "string"}
    rules = {name: rule for name, rule in SCALARS.get(kind, {}).items() if name != "description"}
    return rules | {"type": _TYPES[plain(kind)]}


def definition(kind: Any, refer: Callable[[Any], Json]) -> Json:
    """The definition of a named type."""
    if kind in SCALARS:
        return dict(sorted((SCALARS[kind] | _scalar(kind)).items()))
    if issubclass(kind, OneOf):
        return {"anyOf": [refer(one) for one in kind.shapes]}
    if not issubclass(kind, Shape):
        return _of_struct(kind, refer)
    found: Json = {"description": cleandoc(kind.__doc__)} if kind.__doc__ else {}
    if kind.is_open:
        found["additionalProperties"] = True
    found |= {"properties": {}, "required": []}
    for one in attributes(kind):
        if one.name:
            found["properties"][one.name] = schema_of(_present(kind, one), refer)
            found["required"] += [] if one.optional else [one.name]
        else:
            inner = _of_struct(one.type, refer)
            found["properties"] |= inner["properties"]
            found["required"] += inner["required"]
    return dict(sorted((found | {"title": kind.__name__, "type": "object"}).items()))


def _of_struct(struct: type[Struct], refer: Callable[[Any], Json]) -> Json:
    """The definition of a struct in output; what is never left out is required."""
    _, components = schema_components((struct,), ref_template="#/$defs/{name}")
    found = _with_clean_text(components[struct.__name__])
    left_out = {
        field.encode_name
        for field in structs.fields(struct)
        if struct.__struct_config__.omit_defaults
        and (field.default is not NODEFAULT or field.default_factory in (list, dict))
    }
    found["properties"] = {
        name: _in_output(schema, refer, left_out=name in left_out)
        for name, schema in found["properties"].items()
    }
    found["required"] = [name for name in found["properties"] if name not in left_out]
    is_open = {"additionalProperties": True} if getattr(struct, "is_open", False) else {}
    return dict(sorted((found | is_open).items()))


_STRUCTS = (
    commits.AddedContent,
    commits.CommitMeta,
    commits.CommitMetaV1,
    commits.LoggedDelete,
    commits.LoggedPut,
    commits.PutV1,
    merges.BareConflict,
    merges.BareMergeDetail,
    merges.ConflictOfOurs,
    merges.ContentPlace,
    merges.KeyRename,
    merges.MergeDetailOfOurs,
    merges.MergeOption,
    merges.Rename,
    merges.MergeDetailV1,
    references.ReferenceMetadata,
    references.ReferenceMetadataV1,
)
_NAMED: Mapping[str, Any] = {
    kind.__name__: kind for kind in (*SCALARS, shapes.Content, shapes.Reference, Key, *_STRUCTS)
}
"""Types with definitions of their own, by titles and references in msgspec's schemas."""


def _with_clean_text(schema: Json) -> Json:
    """The schema of a struct with its docstring, without the indentation of the source."""
    text = schema.get("description")
    return schema if text is None else schema | {"description": cleandoc(text)}


def _in_output(schema: Json, refer: Callable[[Any], Json], *, left_out: bool = False) -> Json:
    """The schema of an attribute in output: no default, references by `refer`."""
    name = schema["$ref"].rpartition("/")[2] if "$ref" in schema else schema.get("title")
    if name is not None and name in _NAMED:
        return refer(_NAMED[name])
    if "anyOf" in schema:
        several = [
            _in_output(alternative, refer)
            for alternative in schema["anyOf"]
            if not (left_out and alternative == {"type": "null"})
        ]
        return several[0] if len(several) == 1 else {"anyOf": several}
    below = {
        inner: _in_output(schema[inner], refer)
        for inner in ("items", "additionalProperties")
        if inner in schema
    }
    return {inner: rule for inner, rule in schema.items() if inner != "default"} | below


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


def _present(kind: Any, attribute: Attribute) -> Any:
    """The type of an attribute if it is there: a record leaves out null if it may be missing."""
    inner, _ = without_null(attribute.type)
    is_left_out = attribute.optional and hasattr(kind, "attributes")
    return inner if is_left_out and inner is not None else attribute.type


# -- components of the OpenAPI document ------------------------------------------------------------

_ANSWERS: Mapping[Any, str] = {
    commits.BareCommit: "CommitResponse",
    merges.BareConflict: "Conflict",
    entries.BareDiffEntry: "DiffEntry",
    entries.BareEntry: "Entry",
    commits.BareLogEntry: "LogEntry",
    merges.BareMerge: "MergeResponse",
    merges.BareMergeDetail: "MergeDetail",
    shapes.Content: "AnyContent",
    shapes.ContentResponse: "ContentResponse",
    shapes.SingleReference: "SingleReferenceResponse",
    **{shape: shape.__name__ for shape in rest.ANSWERS},
}
"""The shapes whose components have names of the Nessie specification."""


def schemas() -> dict[str, Json]:
    """Every component by its name."""
    found = _request_components()
    return found | _answer_components(found)


def _request_components() -> dict[str, Json]:
    """The components of all requests, which are named as their structs."""
    contents: Any = Union[tuple(CONTENTS.values())]  # noqa: UP007 - made of a tuple
    (content, *_), components = schema_components(
        (contents, *bodies.BODIES), ref_template=PREFIX + "{name}"
    )
    for body in components.values():
        for misspelt in bodies.MISSPELT:
            body["properties"].pop(misspelt, None)
    found = {name: _with_clean_text(body) for name, body in components.items()}
    return found | {"Content": content}


def _answer_components(given: Mapping[str, Json]) -> dict[str, Json]:
    """Returns the components of all answers, without those that requests define (`given`)."""
    found: dict[str, Json] = {
        "AnyContent": {
            "type": "object",
            "properties": {"type": TEXT, "id": maybe(TEXT)},
            "required": ["type", "id"],
        }
    }

    def refer(kind: Any) -> Json:
        if not (is_shape(kind) or alternatives(kind)):
            return _scalar(kind)
        name = _ANSWERS.get(kind, getattr(kind, "__name__", ""))
        if name not in found and name not in given:
            found[name] = {}
            found[name] = {
                key: value for key, value in definition(kind, refer).items() if key != "title"
            }
            if is_shape(kind):
                found[name]["additionalProperties"] = False
        return ref(name)

    for kind in _ANSWERS:
        refer(kind)
    return found
