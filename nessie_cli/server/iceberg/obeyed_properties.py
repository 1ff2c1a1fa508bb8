"""Properties of tables that PyIceberg obeys at the expense of its user.

PyIceberg's client of this API imports and calls what some properties in the metadata of a table
name, and sends the token of its user and its requests for files to others: they override the
settings of its user. Everybody who writes a table chooses these.
"""

from __future__ import annotations

import re

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder.values import Document

_RUNS = "PyIceberg would run the code that it names"
_SIGNS = "PyIceberg would send its token there"
REFUSED = {
    "py-io-impl": _RUNS,
    "s3.retry-strategy-impl": _RUNS,
    "write.py-location-provider.impl": _RUNS,
    "s3.signer.uri": _SIGNS,
    "s3.signer.endpoint": _SIGNS,
    "s3.signer": "PyIceberg would send its token to a server that signs requests",
}
"""The properties that no client may set, and what each would do."""
_URI = "uri"
STORAGE = ("s3.", "gcs.", "adls.", "hf.", "hdfs.", "client.")
"""The prefixes of storage options, such as an endpoint, a proxy or a secret.

No client gets these, nor `uri`, to which PyIceberg's signer sends the token if there is no
`s3.signer.uri`. They may be set: Flink's connector copies the options of its catalog into each
table that it creates.
"""
_MARKS = (b"\\u", *map(str.encode, REFUSED), *(f'"{start}'.encode() for start in STORAGE))
"""What the text of metadata with such a property contains. JSON can escape each character."""
_URI_MEMBER = re.compile(rb'"uri"\s*+(?::|\Z)')
"""The member `uri` of an object, also cut off behind its name. Columns have this name, too."""
_STEP, _LONGEST = 1 << 20, max(map(len, REFUSED)) + len('""')


def check_properties(document: Document, base: Document | None = None) -> None:
    """Raises `InvalidInput` if new metadata sets such a property. That of `base` may stay."""
    given, before = _properties(document), _properties(base or {})
    for name, effect in REFUSED.items():
        if name in given and given[name] != before.get(name):
            raise InvalidInput(f"properties: {name} must not be set: {effect}")


def may_be_in(text: bytes) -> bool:
    """Whether metadata may have such a property. Each call searches a part of the text."""
    parts = (text[start : start + _STEP + _LONGEST] for start in range(0, len(text), _STEP))
    return any(
        any(mark in part for mark in _MARKS) or _URI_MEMBER.search(part) is not None
        for part in parts
    )


def without_obeyed(document: Document) -> Document:
    """Returns metadata without such properties.

    A table from elsewhere may have them. A commit sends only changes, so they stay in its metadata.
    """
    properties = _properties(document)
    harmless = {name: value for name, value in properties.items() if not _is_obeyed(name)}
    if len(harmless) == len(properties):
        return document
    return {**document, "properties": harmless}


def _is_obeyed(name: str) -> bool:
    return name in REFUSED or name == _URI or name.startswith(STORAGE)


def _properties(document: Document) -> Document:
    properties = document.get("properties")
    return properties if isinstance(properties, dict) else {}
