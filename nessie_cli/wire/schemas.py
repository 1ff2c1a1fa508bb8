"""JSON Schemas of the structs, for the OpenAPI document and the output of the command line.

msgspec derives them. Here they become schemas of output: no defaults, and every attribute is
required that is never left out. They check nothing at run time. Tests validate real answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from inspect import cleandoc
from typing import Any, Union, get_args

from msgspec import NODEFAULT, UNSET, Meta, Struct, structs
from msgspec.json import schema_components

from nessie_cli.model import FULL_HASH
from nessie_cli.wire import bodies, entries, merges, references, rest
from nessie_cli.wire.commits import BareLogEntry
from nessie_cli.wire.contents import CONTENTS, ForeignContent
from nessie_cli.wire.scalars import Json

PREFIX = "#/components/schemas/"
TEXT: Json = {"type": "string"}
HASH: Json = {"type": "string", "pattern": f"^{FULL_HASH}$"}


def ref(name: str) -> Json:
    """A reference to a component of the OpenAPI document."""
    return {"$ref": PREFIX + name}


# -- output ----------------------------------------------------------------------------------------


def _types_in(kind: Any) -> Iterator[type[Any]]:
    """Yields the structs and enumerations in a type, also those of a union without a tag."""
    if isinstance(kind, Meta):
        yield from (kind.extra or {}).get("structs", ())
    elif isinstance(kind, type) and issubclass(kind, Struct | Enum):
        yield kind
    else:
        for part in get_args(kind):
            yield from _types_in(part)


def _reached(kinds: Iterable[Any]) -> dict[str, type[Any]]:
    """Returns types and those that they refer to, by name."""
    reached: dict[str, type[Any]] = {}
    todo = [part for kind in kinds for part in _types_in(kind)]
    while todo:
        kind = todo.pop(0)
        other = reached.get(kind.__name__)
        if other not in (None, kind):
            raise TypeError(f"{kind} and {other} have the same name")
        if other is None:
            reached[kind.__name__] = kind
            if issubclass(kind, Struct):
                todo += [part for field in structs.fields(kind) for part in _types_in(field.type)]
    return reached


def _output(kinds: Iterable[Any], titled: Callable[[Json], Json]) -> dict[str, Json]:
    """Returns the schemas of structs and of those that they refer to, by name.

    References are names. `titled` replaces the schema of a scalar or union with a title.
    """
    reached = _reached(kinds)
    _, components = schema_components(tuple(reached.values()), ref_template="{name}")

    def shown(schema: Json, *, left_out: bool = False) -> Json:
        if issubclass(reached.get(schema.get("$ref", ""), Struct), Enum):
            return TEXT | {"enum": [member.value for member in reached[schema["$ref"]]]}
        if "title" in schema:
            return titled(schema)
        if "anyOf" in schema:
            several = [
                shown(alternative)
                for alternative in schema["anyOf"]
                if not (left_out and alternative == {"type": "null"})
            ]
            return several[0] if len(several) == 1 else {"anyOf": several}
        return {
            name: shown(rule) if name in ("items", "additionalProperties") else rule
            for name, rule in schema.items()
            if name != "default"
        }

    def of_struct(struct: type[Struct], schema: Json) -> Json:
        absent = dict(_absent(struct))
        properties = {
            name: shown(rule, left_out=absent.get(name, False))
            for name, rule in schema["properties"].items()
        }
        required = [name for name in properties if name not in absent]
        is_open = {"additionalProperties": True} if getattr(struct, "is_open", False) else {}
        return _clean(schema) | {"properties": properties, "required": required} | is_open

    return {
        name: of_struct(kind, components[name])
        for name, kind in reached.items()
        if issubclass(kind, Struct)
    }


def _absent(struct: type[Struct]) -> Iterator[tuple[str, bool]]:
    """Yields the attributes that may be left out, and whether null is left out."""
    omits = struct.__struct_config__.omit_defaults
    for field in structs.fields(struct):
        if field.default is UNSET:
            yield field.encode_name, False
        elif omits and (field.default is not NODEFAULT or field.default_factory in (list, dict)):
            yield field.encode_name, field.default is None


def _clean(schema: Json) -> Json:
    """Returns a schema with its description, without the indentation of the source."""
    text = schema.get("description")
    return schema if text is None else schema | {"description": cleandoc(text)}


def _referring(schema: Any, refer: Callable[[str], Json]) -> Any:
    """Returns a schema with its references, which are names, replaced."""
    if isinstance(schema, list):
        return [_referring(part, refer) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return refer(schema["$ref"])
    return {name: _referring(rule, refer) for name, rule in schema.items()}


def definitions(kinds: Iterable[Any]) -> dict[str, Json]:
    """The definitions of structs and of all that they refer to, by their names."""
    scalars: dict[str, Json] = {}

    def titled(schema: Json) -> Json:
        scalars[schema["title"]] = {
            name: rule for name, rule in schema.items() if name not in ("title", "default")
        }
        return {"$ref": schema["title"]}

    every = _output(kinds, titled) | scalars
    return {
        name: _referring(dict(sorted(schema.items())), lambda other: {"$ref": f"#/$defs/{other}"})
        for name, schema in every.items()
    }


# -- components of the OpenAPI document ------------------------------------------------------------

_ANSWERS: Mapping[type[Struct], str] = {
    references.BareCommit: "CommitResponse",
    merges.BareConflict: "Conflict",
    entries.BareDiffEntry: "DiffEntry",
    entries.BareEntry: "Entry",
    BareLogEntry: "LogEntry",
    merges.BareMerge: "MergeResponse",
    merges.BareMergeDetail: "MergeDetail",
    rest.SingleReference: "SingleReferenceResponse",
    **{struct: struct.__name__ for struct in rest.ANSWERS if struct is not rest.SingleReference},
}
"""The structs of answers, with the names of the Nessie specification."""


def schemas() -> dict[str, Json]:
    """Every component by its name."""
    requests = _request_components()
    return _answer_components() | requests


def _request_components() -> dict[str, Json]:
    """The components of all requests, which are named as their structs."""
    contents: Any = Union[tuple(CONTENTS.values())]  # noqa: UP007 - made of a tuple
    (content, *_), components = schema_components(
        (contents, *bodies.BODIES), ref_template=PREFIX + "{name}"
    )
    for body in components.values():
        for misspelt in bodies.MISSPELT:
            body["properties"].pop(misspelt, None)
    described = {name: _clean(body) for name, body in components.items()}
    return described | {"Content": content}


def _answer_components() -> dict[str, Json]:
    """The components of all answers."""
    unions: dict[str, Json] = {
        "Content": {
            "type": "object",
            "properties": {"type": TEXT, "id": {"anyOf": [TEXT, {"type": "null"}]}},
            "required": ["type", "id"],
        }
    }
    names = {struct.__name__: name for struct, name in _ANSWERS.items()} | {"Content": "AnyContent"}

    def titled(schema: Json) -> Json:
        if "anyOf" not in schema:
            return {rule: schema[rule] for rule in schema if rule not in ("title", "description")}
        unions.setdefault(schema["title"], {"anyOf": schema["anyOf"]})
        return {"$ref": schema["title"]}

    answers = {
        name: {rule: schema[rule] for rule in schema if rule != "title"}
        | {"additionalProperties": False}
        for name, schema in _output(_ANSWERS, titled).items()
        if name != ForeignContent.__name__  # `AnyContent` describes it
    }
    return {
        names.get(name, name): _referring(schema, lambda other: ref(names.get(other, other)))
        for name, schema in (answers | unions).items()
    }
