"""JSON Schemas (2020-12) of the output of `--json`, generated from the commands' results.

The published schemas allow unknown attributes, because later versions add some. `closed` returns
the strict form for the tests.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from functools import cache
from types import NoneType
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from manual.tree import module_of
from nessie_cli.cli.app.result import Document
from nessie_cli.cli.help.help import Text
from nessie_cli.cli.registry import COMMANDS, CommandEntry
from nessie_cli.wire import schemas as wire
from nessie_cli.wire.documents import ErrorAnswer

Schema = dict[str, Any]
FOLDER = "docs/reference/json"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
WIDTH = 150
DEFINITIONS = "definitions.json"
"""The file of the definitions that all schemas share."""
LINE = "line"
"""The definition of one line of `--jsonl`."""


class Answer(NamedTuple):
    """The documents that a command can print, and for a listing the records of `--jsonl`."""

    documents: tuple[Any, ...]
    records: tuple[Any, ...] = ()


def _answers(table: Mapping[str, CommandEntry], above: str = "") -> Iterator[tuple[str, Answer]]:
    """Yields each command with the results that its `run` returns."""
    for name, entry in table.items():
        if entry.children is not None:
            yield from _answers(entry.children, f"{above}{name} ")
        else:
            path = f"{above}{name}"
            yield path, _answer(module_of(entry))


def _answer(module: Any) -> Answer:
    result = get_type_hints(module.run)["return"]
    results = (one for one in get_args(result) or (result,) if one is not NoneType)
    kinds = tuple(map(_document_of, results))
    if not any(map(_listing_of, kinds)):
        return Answer(kinds)
    return Answer(kinds, tuple(map(_line_of, kinds)))


def _document_of(result: Any) -> Any:
    """Returns the type of a result's document."""
    if issubclass(result, Document):
        return result
    declared = inspect.getattr_static(result, "document")
    if isinstance(declared, property):
        return get_type_hints(declared.fget, include_extras=True)["return"]
    return get_type_hints(result, include_extras=True)["document"]


def _listing_of(kind: Any) -> str | None:
    return getattr(kind, "listing", None)


def _line_of(kind: Any) -> Any:
    """Returns the type of one line of `--jsonl`: a record of a listing, or the whole document."""
    if not (listing := _listing_of(kind)):
        return kind
    return get_args(get_type_hints(kind, include_extras=True)[listing])[0]


def _name(document: Any) -> str:
    """Returns the name of a definition: of a struct, or of a union by its title."""
    if get_origin(document) is Annotated:
        return str(document.__metadata__[0].title)
    return str(document.__name__)


ANSWERS: Mapping[str, Answer] = dict(_answers(COMMANDS))
"""By the name of the command."""


def schema_of(name: str, answer: Answer) -> Schema:
    """Returns the schema of one command: its result, its help, or an error."""
    head: Schema = {"$schema": DIALECT, "title": f"nessie {name} --json"}
    body = _any_of(*answer.documents, Text, ErrorAnswer)
    lines: Schema = {}
    if answer.records:
        head["description"] = f"With --jsonl each line is what #/$defs/{LINE} describes."
        lines = {LINE: _any_of(*answer.records, Text, ErrorAnswer)}
    return head | body | {"$defs": dict(sorted((_needed(body | lines) | lines).items()))}


def _any_of(*documents: Any) -> Schema:
    return {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in dict.fromkeys(map(_name, documents))]}


@cache
def definitions() -> Schema:
    """Returns the schema of every document, by its name."""
    documents = [
        document for answer in ANSWERS.values() for document in (*answer.documents, *answer.records)
    ]
    return wire.definitions((*documents, Text, ErrorAnswer))


def _needed(schema: Schema) -> Schema:
    """Returns the definitions that a schema refers to, directly or indirectly."""
    found: Schema = {}
    todo = list(_references(schema))
    while todo:
        name = todo.pop()
        if name not in found:
            found[name] = definitions()[name]
            todo += _references(found[name])
    return found


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        if "$ref" in schema:
            yield schema["$ref"].rpartition("/")[2]
        schema = list(schema.values())
    if isinstance(schema, list):
        for item in schema:
            yield from _references(item)


def schemas() -> dict[str, Schema]:
    """Returns the schema of every command by its name."""
    return {name: schema_of(name, answer) for name, answer in ANSWERS.items()}


def files() -> dict[str, str]:
    """Returns the generated files by path. The schemas of the commands share one of definitions."""
    found = {
        f"{FOLDER}/{name.replace(' ', '-')}.json": written(_shared(schema))
        for name, schema in schemas().items()
    }
    shared = {
        "$schema": DIALECT,
        "title": "Definitions of nessie's JSON",
        "$defs": dict(sorted(definitions().items())),
    }
    return {**found, f"{FOLDER}/{DEFINITIONS}": written(shared), f"{FOLDER}/index.md": _page()}


def _shared(schema: Schema) -> Schema:
    """Returns a schema that refers to the file of definitions instead of repeating them."""
    lines = {name: body for name, body in schema["$defs"].items() if name == LINE}
    found: Schema = _referring(
        {name: body for name, body in schema.items() if name != "$defs"}
        | ({"$defs": lines} if lines else {})
    )
    return found


def _referring(value: Any) -> Any:
    if isinstance(value, list):
        return [_referring(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        name: f"{DEFINITIONS}{body}" if name == "$ref" else _referring(body)
        for name, body in value.items()
    }


def written(document: Any) -> str:
    """Returns a JSON text that puts a value on one line if it fits."""
    return _written(document, 0) + "\n"


def _written(value: Any, depth: int) -> str:
    line = json.dumps(value, ensure_ascii=False)
    if not value or not isinstance(value, dict | list) or (depth and len(line) + depth <= WIDTH):
        return line
    if isinstance(value, dict):
        parts = [
            f"{json.dumps(name, ensure_ascii=False)}: {_written(item, depth + 1)}"
            for name, item in value.items()
        ]
    else:
        parts = [_written(item, depth + 1) for item in value]
    indent = " " * (depth + 1)
    first, last = "{}" if isinstance(value, dict) else "[]"
    return f"{first}\n" + ",\n".join(indent + part for part in parts) + f"\n{' ' * depth}{last}"


def _page() -> str:
    rows = "\n".join(
        f"| `nessie {name}` | [{name.replace(' ', '-')}.json]({name.replace(' ', '-')}.json) |"
        f" {_words(answer)} |"
        for name, answer in ANSWERS.items()
    )
    return f"""# JSON of the commands

With `--json`, a command prints exactly one document: its result, or `{{"error": ...}}`.
A listing that fails midway has both: the records that were read, and `error`.
`nessie serve` and `nessie ui` print a document only if they fail.

References, commits, contents and errors have the shapes of Nessie's REST API v2.
Later versions may add attributes, so ignore unknown attributes.
Attributes are never renamed or removed within a major version.

With `--jsonl`, a listing prints one record per line as it is read.
If it fails midway, the last line is `{{"error": ...}}`.
Other commands print the same document as with `--json`, on one line.

Every command has a JSON Schema (2020-12).
The schemas share [definitions.json](definitions.json).
The column "document" names the definitions of the documents that a command can print.
After "per line" are the definitions of the records that `--jsonl` prints.
`nessie content view` is an alias of `nessie content show`.
`nessie cherry-pick` is an alias of `nessie transplant`.

| command | schema | document |
|---|---|---|
{rows}

With `--json`, `--help` and `nessie help` print an object with `name` and `text`.
"""


def _words(answer: Answer) -> str:
    names = ", ".join(map(_name, answer.documents))
    records = ", ".join(map(_name, answer.records))
    return (names or "only errors") + (f"; per line {records}" if records else "")


# -- the list of attributes ------------------------------------------------------------------------


def fields() -> list[str]:
    """Returns every attribute of every document, as `Document.attribute: type`.

    A `?` marks optional attributes. A listed attribute is never removed.
    """
    return sorted(
        line for name, definition in definitions().items() for line in _attributes(name, definition)
    )


def _attributes(name: str, definition: Schema) -> Iterator[str]:
    required = definition.get("required", ())
    for attribute, schema in definition.get("properties", {}).items():
        yield f"{name}.{attribute}{'' if attribute in required else '?'}: {_type(schema)}"


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return " | ".join(_type(one) for one in schema["anyOf"])
    if "const" in schema or "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    kind = schema.get("type", "any")
    if kind == "array":
        return f"[{_type(schema['items'])}]"
    if kind == "object":
        return f"{{{_type(schema.get('additionalProperties', {}))}}}"
    return str(kind)


# -- the strict form -------------------------------------------------------------------------------


def closed(schema: Any) -> Any:
    """Returns the same schema without unknown attributes, except where it allows any explicitly."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    found = {name: closed(value) for name, value in schema.items()}
    return (
        {"additionalProperties": False} | found
        if "properties" in found and found.get("type") == "object"
        else found
    )
