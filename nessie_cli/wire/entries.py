"""The structs of keys and their contents in answers: entries and differences."""

from __future__ import annotations

from typing import Protocol, Self

from msgspec import Struct, field

from nessie_cli import model
from nessie_cli.wire.contents import AnyContent, Key, optional_content
from nessie_cli.wire.scalars import ContentId, Digest


class BareEntry(Struct, rename="camel"):
    """A key of a state; the attribute of the key is `name`."""

    type: str
    name: Key
    content_id: ContentId
    content: AnyContent | None

    @classmethod
    def of(cls, entry: model.Entry) -> Self:
        """Returns the struct of an entry."""
        return cls(entry.type, Key.of(entry.key), entry.content_id, optional_content(entry.content))


class Entry(BareEntry):
    """A key of a state; the attribute of the key is `name`.

    The cache key changes only if the content changes.
    """

    value_hash: Digest | None
    cache_key: str | None

    @classmethod
    def of(cls, entry: model.Entry) -> Self:
        """Returns the struct of an entry, with its value hash and cache key."""
        return cls(
            entry.type,
            Key.of(entry.key),
            entry.content_id,
            optional_content(entry.content),
            entry.value_hash,
            entry.cache_key,
        )


class TypedKey(Protocol):
    """A key with the type of its content."""

    @property
    def type(self) -> str:
        """The type of the content."""

    @property
    def key(self) -> model.ContentKey:
        """The key."""


class EntryV1(Struct):
    """A key of a state in REST v1."""

    type: str
    name: Key

    @classmethod
    def of(cls, entry: TypedKey) -> Self:
        """Returns the struct of an entry."""
        return cls(entry.type, Key.of(entry.key))


class BareDiffEntry(Struct):
    """A key whose content differs."""

    key: Key
    before: AnyContent | None = field(name="from")
    after: AnyContent | None = field(name="to")

    @classmethod
    def of(cls, entry: model.DiffEntry) -> Self:
        """Returns the struct of a difference."""
        return cls(Key.of(entry.key), optional_content(entry.before), optional_content(entry.after))
