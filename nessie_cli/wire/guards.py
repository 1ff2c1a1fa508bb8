"""The pydantic models that everything from outside passes, and their faults as one line.

Models are strict: a text is no number, true is no number, a number with a fraction is no whole number. Unknown attributes are ignored, except in
commit metadata (reference 1.1, 7.3). What values mean together is the business of the dataclasses that are made of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from nessie_cli.wire.json_text import describe, fault, join
from nessie_cli.wire.leniency import coerce, is_lenient

Int32 = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]


def _list_of_texts(value: Any) -> Any:
    """A list as the tuple that a frozen value holds; null stands for no elements, as the original reads it."""
    return () if value is None else tuple(value) if isinstance(value, list) else value


def _map_of_texts(value: Any) -> Any:
    return {} if value is None else value


def _map_or_empty_list(value: Any) -> Any:
    """The original reads an empty list where the properties of a commit belong as none."""
    return {} if value == [] and is_lenient() else value


Texts = Annotated[tuple[str, ...], BeforeValidator(_list_of_texts)]
TextMap = Annotated[dict[str, str], BeforeValidator(_map_of_texts)]
JsonObject = dict[str, Any]


class Guard(BaseModel):
    """Base: attributes have camel-case names in JSON, nothing is converted silently."""

    model_config = ConfigDict(strict=True, extra="ignore", alias_generator=to_camel)


# -- contents: one model per type, fields named as in its dataclass -----------------------------------------------------------------------


class ContentGuard(Guard):
    """What every content has."""

    id: str | None = None


class IcebergTableGuard(ContentGuard):
    """ICEBERG_TABLE; all of its attributes have to be there."""

    metadata_location: str
    snapshot_id: Int64
    schema_id: Int32
    spec_id: Int32
    sort_order_id: Int32


class IcebergViewGuard(ContentGuard):
    """ICEBERG_VIEW."""

    metadata_location: str
    version_id: Int64
    schema_id: Int32
    sql_text: str | None = None
    dialect: str | None = None


class DeltaLakeTableGuard(ContentGuard):
    """DELTA_LAKE_TABLE."""

    metadata_location_history: Texts = ()
    checkpoint_location_history: Texts = ()
    last_checkpoint: str | None = None


class NamespaceGuard(ContentGuard):
    """NAMESPACE; the original takes one without elements."""

    elements: Texts = ()
    properties: TextMap = Field(default_factory=dict)


class UDFGuard(ContentGuard):
    """UDF."""

    sql_text: str | None = None
    dialect: str | None = None
    version_id: str | None = None
    signature_id: str | None = None
    metadata_location: str | None = None


CONTENT_GUARDS: Mapping[str, type[ContentGuard]] = {
    "ICEBERG_TABLE": IcebergTableGuard,
    "ICEBERG_VIEW": IcebergViewGuard,
    "DELTA_LAKE_TABLE": DeltaLakeTableGuard,
    "NAMESPACE": NamespaceGuard,
    "UDF": UDFGuard,
}
"""The guard of each content type."""


# -- keys, operations, commit metadata ----------------------------------------------------------------------------------------------------


class KeyGuard(Guard):
    """A content key; the original reads one without elements as the empty key."""

    elements: Texts = ()


class KeyOperationGuard(Guard):
    """DELETE and UNCHANGED."""

    key: KeyGuard


class PutGuard(Guard):
    """PUT; `metadata` and `documentation` are checked to be JSON of the right kind and go no further (reference 6.4)."""

    key: KeyGuard
    content: JsonObject
    expected_content: JsonObject | None = None
    metadata: list[JsonObject] | None = None
    documentation: JsonObject | None = None


class CommitMetaGuard(Guard):
    """Commit metadata, singular and plural names; the only object in which an unknown attribute is a fault."""

    model_config = ConfigDict(extra="forbid")

    message: str
    author: str | None = None
    authors: list[str] | None = None
    signed_off_by: str | None = None
    all_signed_off_by: list[str] | None = None
    author_time: str | None = None
    properties: Annotated[dict[str, str] | None, BeforeValidator(_map_or_empty_list)] = None
    all_properties: Annotated[dict[str, list[str]] | None, BeforeValidator(_map_or_empty_list)] = None
    hash: Any = None
    committer: Any = None
    commit_time: Any = None
    parent_commit_hashes: Any = None


# -- faults -------------------------------------------------------------------------------------------------------------------------------

_MUST_BE: Mapping[str, str] = {
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
}

G = TypeVar("G", bound=Guard)


def check(guard: type[G], data: Any, path: str) -> G:
    """The guard filled from a JSON value, or `InvalidInput` with the first fault."""
    try:
        return guard.model_validate(data)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=True)
    if is_lenient() and (coerced := coerce(data, faults)) is not None:
        return check(guard, coerced, path)
    first = faults[0]
    raise fault(join(path, *first["loc"]), _problem(first, guard))


def _problem(error: ErrorDetails, guard: type[Guard]) -> str:
    kind, value = error["type"], error["input"]
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        known = sorted(to_camel(name) for name in guard.model_fields)
        return f"is no attribute that is known here ({', '.join(known)})"
    if kind in ("greater_than_equal", "less_than_equal"):
        return f"is out of range: {describe(value)} does not fit into {_bits(error)} bits"
    if kind in _MUST_BE:
        return f"{_MUST_BE[kind]}, not {describe(value)}"
    return error["msg"].removeprefix("Value error, ")


def _bits(error: ErrorDetails) -> int:
    bound: int = next(iter(error["ctx"].values()))
    return 64 if abs(bound) > 2**32 else 32
