"""The OpenAPI document as one HTML page that loads nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from nessie_cli.wire.scalars import Json

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff;
       max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
code, .method { font-family: ui-monospace, monospace; font-size: .92em }
details { border: 1px solid #d5d5d5; border-radius: 6px; margin: .4rem 0; padding: .4rem .8rem }
summary { cursor: pointer } .method { display: inline-block; min-width: 4.5rem; font-weight: 700 }
.GET { color: #0b6e4f } .POST { color: #1d4ed8 } .PUT { color: #a15c00 } .DELETE { color: #b91c1c }
table { border-collapse: collapse; margin: .5rem 0 }
td { border-bottom: 1px solid #e5e5e5; padding: .15rem .8rem .15rem 0;
     text-align: left; vertical-align: top }
@media (prefers-color-scheme: dark) {
  body { background: #161616; color: #e6e6e6 }
  details, td { border-color: #3a3a3a }
  a, .POST { color: #8ab4ff } .GET { color: #4ade80 } .PUT { color: #fbbf24 }
  .DELETE { color: #f87171 }
}
"""


def manual(document: Json) -> str:
    """Returns the page."""
    info = document["info"]
    parts = [
        (
            "<!doctype html><html lang='en'><head><meta charset='utf-8'><meta name='viewport'"
            " content='width=device-width'>"
        ),
        f"<title>{escape(info['title'])}</title><style>{_STYLE}</style></head><body>",
        (
            f"<h1>{escape(info['title'])}"
            f" {escape(info['version'])}</h1><p>{escape(info['description'])}</p>"
        ),
        "<p>As a document for programs: <a href='/api/openapi.json'>openapi.json</a></p>",
    ]
    parts.extend(_ways_in(document))
    for tag in document["tags"]:
        parts.append(f"<h2>{escape(tag['description'])}</h2>")
        parts.extend(_operations(document, tag["name"]))
    parts.append("<h2>Shapes</h2>")
    parts.extend(
        _shape(name, schema) for name, schema in sorted(document["components"]["schemas"].items())
    )
    return "\n".join([*parts, "</body></html>"])


def _ways_in(document: Json) -> Iterator[str]:
    """Describes the ways to authenticate, any one of which is enough."""
    ways, schemes = document["security"], document["components"]["securitySchemes"]
    credentials = ", or ".join(
        " and ".join(f"<code>{escape(name)}</code>" for name in way) or "nothing" for way in ways
    )
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(scheme['description'])}</td></tr>"
        for name, scheme in schemes.items()
    )
    yield f"<h2>Authentication</h2><p>A request needs {credentials}.</p><table>{rows}</table>"


def _operations(document: Json, tag: str) -> Iterator[str]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if tag in operation["tags"]:
                yield _operation(method.upper(), path, operation)


def _operation(method: str, path: str, operation: Json) -> str:
    rows = "".join(map(_parameter, operation["parameters"]))
    table = f"<table>{rows}</table>" if rows else ""
    body = operation.get("requestBody")
    takes = f"<p>Takes {_type(body['content']['application/json']['schema'])}.</p>" if body else ""
    answers = "".join(
        f"<tr><td>{status}</td><td>{_answer(response)}</td></tr>"
        for status, response in operation["responses"].items()
    )
    head = (
        f"<summary><span class='method {method}'>{method}</span> <code>{escape(path)}</code>"
        f" {escape(operation['summary'])}</summary>"
    )
    return f"<details>{head}{table}{takes}<table>{answers}</table></details>"


def _parameter(parameter: Json) -> str:
    needed = ", required" if parameter["required"] else ""
    return (
        f"<tr><td><code>{escape(parameter['name'])}</code></td><td>{parameter['in']}{needed}</td>"
        f"<td>{escape(parameter['description'])}</td></tr>"
    )


def _answer(response: Json) -> str:
    content = response.get("content")
    shape = f" {_type(content['application/json']['schema'])}" if content else ""
    return f"{escape(response['description'])}{shape}"


def _shape(name: str, schema: Json) -> str:
    required = schema.get("required", ())
    rows = "".join(
        f"<tr><td><code>{escape(attribute)}</code></td>"
        f"<td>{_type(value)}{'' if attribute in required else ', optional'}</td></tr>"
        for attribute, value in schema.get("properties", {}).items()
    )
    body = f"<table>{rows}</table>" if rows else f"<p>{_type(schema)}</p>"
    return (
        "<details"
        f" id='{escape(name)}'><summary><code>{escape(name)}</code></summary>{body}</details>"
    )


def _type(schema: Any) -> str:
    """Describes a schema in a few words, with links to the named ones."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f"<a href='#{name}'>{name}</a>"
    if "const" in schema:
        return f"<code>{escape(str(schema['const']))}</code>"
    if "enum" in schema:
        return " or ".join(f"<code>{escape(str(value))}</code>" for value in schema["enum"])
    union = schema.get("anyOf") or schema.get("oneOf")
    if union:
        return " or ".join(map(_type, union))
    return _plain_type(schema)


def _plain_type(schema: Json) -> str:
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if schema.get("type") == "object" and "properties" in schema:
        return (
            "{"
            + ", ".join(
                f"<code>{escape(name)}</code>: {_type(value)}"
                for name, value in schema["properties"].items()
            )
            + "}"
        )
    return escape(str(schema.get("type", "anything")))
