"""Content objects: the values of keys, with all the fields of the specification.

Two contents with equal fields are equal. `id` is the identity of a content across renames, merges
and transplants; it is None until the repository assigns one. Attribute names in JSON are the
camel-case form of the field names. Only `attributes` and `content_from` convert them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar

from msgspec import Struct, structs

from nessie_cli.errors import InvalidInput
from nessie_cli.model.keys import ContentKey

INT32 = range(-(2**31), 2**31)
INT64 = range(-(2**63), 2**63)


_LABELS = {"DELTA_LAKE_TABLE": "delta-table"}
"""Types whose label is not derived from their name."""


def type_label(type_name: str) -> str:
    """Returns the label of a content type for people: `iceberg-table` for `ICEBERG_TABLE`."""
    return _LABELS.get(type_name) or type_name.lower().replace("_", "-")


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _int(owner: str, name: str, value: object, allowed: range) -> None:
    if type(value) is not int or value not in allowed:
        raise InvalidInput(
            f"{owner}.{_camel(name)}: must be an integer of {allowed.stop.bit_length()} bits,"
            f" not {value!r}"
        )


def _text(owner: str, name: str, value: object, *, optional: bool = False) -> None:
    if optional and value is None:
        return
    if not isinstance(value, str):
        raise InvalidInput(f"{owner}.{_camel(name)}: must be a string, not {value!r}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise InvalidInput(
                f"{owner}.{_camel(name)}: {value!r} is not valid Unicode text"
            ) from None


def _texts(owner: str, name: str, values: object) -> None:
    if not isinstance(values, tuple):
        raise InvalidInput(f"{owner}.{_camel(name)}: must be a list of strings, not {values!r}")
    for value in values:
        _text(owner, name, value)


class Content(Struct, frozen=True, kw_only=True):
    """Base of all contents.

    `type` is the REST API's discriminator; `payload` the number that the key tree stores for it.
    """

    type: ClassVar[str] = ""
    payload: ClassVar[int] = 0

    id: str | None = None

    def with_id(self, content_id: str | None) -> Content:
        """Returns the same content with another content id."""
        return structs.replace(self, id=content_id)

    @property
    def type_name(self) -> str:
        """The discriminator, including those of unknown types."""
        return self.type

    def attributes(self) -> dict[str, Any]:
        """Returns all attributes but `type` and `id`, by JSON name, including None."""
        names = _attribute_names(type(self))
        return {
            name: list(value) if type(value) is tuple else value
            for (_, name), value in zip(names, structs.astuple(self)[1:], strict=True)
        }

    @classmethod
    def attribute_names(cls) -> tuple[str, ...]:
        """Returns the JSON names of all attributes but `type` and `id`."""
        return tuple(name for _, name in _attribute_names(cls))


_NAMES: dict[str, tuple[tuple[str, str], ...]] = {}


def _attribute_names(cls: type[Content]) -> tuple[tuple[str, str], ...]:
    """Returns (field name, JSON name) of each attribute but the id, which is the first field."""
    if cls.__name__ not in _NAMES:
        _NAMES[cls.__name__] = tuple((name, _camel(name)) for name in cls.__struct_fields__[1:])
    return _NAMES[cls.__name__]


class IcebergTable(Content, frozen=True, kw_only=True, gc=False):
    """An Iceberg table: its current metadata file and the ids in it.

    `snapshot_id` is -1 if there is no current snapshot.
    """

    type: ClassVar[str] = "ICEBERG_TABLE"
    payload: ClassVar[int] = 1

    metadata_location: str
    snapshot_id: int = -1
    schema_id: int = 0
    spec_id: int = 0
    sort_order_id: int = 0

    def __post_init__(self) -> None:
        """Raise `InvalidInput` for a value that the REST API would refuse."""
        _text(self.type, "metadata_location", self.metadata_location)
        _int(self.type, "snapshot_id", self.snapshot_id, INT64)
        for name in ("schema_id", "spec_id", "sort_order_id"):
            _int(self.type, name, getattr(self, name), INT32)


class IcebergView(Content, frozen=True, kw_only=True, gc=False):
    """An Iceberg view.

    `sql_text` and `dialect` are deprecated; newer clients keep both in the metadata file.
    """

    type: ClassVar[str] = "ICEBERG_VIEW"
    payload: ClassVar[int] = 3

    metadata_location: str
    version_id: int
    schema_id: int
    sql_text: str | None = None
    dialect: str | None = None

    def __post_init__(self) -> None:
        """Raise `InvalidInput` for a value that the REST API would refuse."""
        _text(self.type, "metadata_location", self.metadata_location)
        _int(self.type, "version_id", self.version_id, INT64)
        _int(self.type, "schema_id", self.schema_id, INT32)
        for name in ("sql_text", "dialect"):
            _text(self.type, name, getattr(self, name), optional=True)


class DeltaLakeTable(Content, frozen=True, kw_only=True, gc=False):
    """A Delta Lake table: the locations of its log."""

    type: ClassVar[str] = "DELTA_LAKE_TABLE"
    payload: ClassVar[int] = 2

    metadata_location_history: tuple[str, ...] = ()
    checkpoint_location_history: tuple[str, ...] = ()
    last_checkpoint: str | None = None

    def __post_init__(self) -> None:
        """Raise `InvalidInput` for a value that the REST API would refuse."""
        for name in ("metadata_location_history", "checkpoint_location_history"):
            _texts(self.type, name, getattr(self, name))
        _text(self.type, "last_checkpoint", self.last_checkpoint, optional=True)


class Namespace(Content, frozen=True, kw_only=True):
    """A namespace: a content that contains other keys. `elements` normally equals its key."""

    type: ClassVar[str] = "NAMESPACE"
    payload: ClassVar[int] = 4

    elements: tuple[str, ...] = ()
    properties: Mapping[str, str] = {}

    def __post_init__(self) -> None:
        """Raise `InvalidInput` for a value that the REST API would refuse."""
        _texts(self.type, "elements", self.elements)
        if not isinstance(self.properties, Mapping):
            raise InvalidInput(
                f"{self.type}.properties: must map strings to strings, not {self.properties!r}"
            )
        if self.elements and self.elements[-1] == ".":
            raise InvalidInput("NAMESPACE.elements: the last element must not be '.'")
        for name, value in self.properties.items():
            _text(self.type, "properties", name)
            _text(self.type, f"properties[{name}]", value)

    def attributes(self) -> dict[str, Any]:
        """Returns all attributes but `type` and `id`, by JSON name."""
        return {"elements": list(self.elements), "properties": dict(self.properties)}


class UDF(Content, frozen=True, kw_only=True, gc=False):
    """A user-defined function. `sql_text` and `dialect` are deprecated."""

    type: ClassVar[str] = "UDF"
    payload: ClassVar[int] = 5

    sql_text: str | None = None
    dialect: str | None = None
    version_id: str | None = None
    signature_id: str | None = None
    metadata_location: str | None = None

    def __post_init__(self) -> None:
        """Raise `InvalidInput` for a value that the REST API would refuse."""
        for name, _ in _attribute_names(UDF):
            _text(self.type, name, getattr(self, name), optional=True)


class UnknownContent(Content, frozen=True, kw_only=True):
    """A content of an unknown type, stored and shown with all its attributes."""

    payload: ClassVar[int] = 0

    foreign_type: str
    foreign_attributes: Mapping[str, Any] = {}

    def __post_init__(self) -> None:
        """Raise `InvalidInput` if the type name is blank."""
        _text("content", "type", self.foreign_type)
        if not self.foreign_type.strip():
            raise InvalidInput("content.type: must not be blank")

    @property
    def type_name(self) -> str:
        """The type name."""
        return self.foreign_type

    def attributes(self) -> dict[str, Any]:
        """Returns the attributes."""
        return dict(self.foreign_attributes)


CONTENT_TYPES: Mapping[str, type[Content]] = {
    c.type: c for c in (IcebergTable, DeltaLakeTable, IcebergView, Namespace, UDF)
}
"""The known content types by their discriminator."""

TYPE_OF_PAYLOAD: Mapping[int, str] = {c.payload: c.type for c in CONTENT_TYPES.values()}
"""The discriminator of each payload number; 0 (unknown) is not in it."""


MOST_PROPERTIES = 100_000
"""The most properties of a namespace, and of a table or view whose metadata is changed here."""


def check_writable(content: Content) -> None:
    """Raises `InvalidInput` for a namespace whose elements are not a valid key, or too large.

    Such a namespace stays readable if it is stored already.
    """
    if isinstance(content, Namespace):
        if len(content.properties) > MOST_PROPERTIES:
            raise InvalidInput(f"a namespace has at most {MOST_PROPERTIES:,} properties")
        try:
            ContentKey(content.elements)
        except InvalidInput as error:
            raise InvalidInput(
                f"{content.type}.elements: {error.message.removeprefix('Content key ')}"
            ) from None


_COLLECTIONS = frozenset(
    {"metadata_location_history", "checkpoint_location_history", "elements", "properties"}
)


def content_from(type_name: str, content_id: str | None, attributes: Mapping[str, Any]) -> Content:
    """Returns a content from its JSON attributes (without `type` and `id`).

    Ignores attributes that a known type does not have. Raises `InvalidInput` that names a missing
    or invalid attribute.
    """
    cls = CONTENT_TYPES.get(type_name)
    if cls is None:
        return UnknownContent(
            id=content_id, foreign_type=type_name, foreign_attributes=dict(attributes)
        )
    values: dict[str, Any] = {}
    for field_name, name in _attribute_names(cls):
        if name in attributes:
            value = attributes[name]
            if isinstance(value, list):
                value = tuple(value)
            # The REST API takes null for an empty list or map.
            if value is not None or field_name not in _COLLECTIONS:
                values[field_name] = value
    for required in _required_names(cls):
        if required not in values:
            raise InvalidInput(f"{type_name}.{_camel(required)}: is missing")
    return cls(id=content_id, **values)


@cache
def _required_names(cls: type[Content]) -> tuple[str, ...]:
    """The fields without a default.

    `structs.fields` evaluates annotations at each call (0.4 ms), so it is called once per class.
    """
    return tuple(field.name for field in structs.fields(cls) if field.required)


def metadata_file(content: Content | None) -> str | None:
    """Returns the metadata file of a table or view, which no other one has; None for others."""
    return content.metadata_location if isinstance(content, IcebergTable | IcebergView) else None
