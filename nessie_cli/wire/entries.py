"""The structs of keys and their contents in answers: entries and differences.

`encode` and `facts` convert them.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct, field

from nessie_cli.wire.commits import Digest
from nessie_cli.wire.contents import ContentId, Key

OptionalContent = Annotated[
    Any, Meta(extra_json_schema={"anyOf": [{"title": "Content"}, {"type": "null"}]})
]
"""A content of any type, or null."""


class BareEntry(Struct, rename="camel"):
    """A key of a state; the attribute of the key is `name`."""

    type: str
    name: Key
    content_id: ContentId
    content: OptionalContent


class Entry(BareEntry):
    """A key of a state; the attribute of the key is `name`.

    The cache key changes only if the content changes.
    """

    value_hash: Digest | None
    cache_key: str | None


class EntryV1(Struct):
    """A key of a state in REST v1."""

    type: str
    name: Key


class BareDiffEntry(Struct):
    """A key whose content differs."""

    key: Key
    before: OptionalContent = field(name="from")
    after: OptionalContent = field(name="to")
