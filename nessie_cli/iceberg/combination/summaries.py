"""The summaries of partitions in a manifest list, by which readers skip manifests.

https://iceberg.apache.org/spec/#manifest-lists
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import json
from pyiceberg.conversions import from_bytes, to_bytes
from pyiceberg.schema import Schema
from pyiceberg.transforms import parse_transform
from pyiceberg.types import PrimitiveType

from nessie_cli.iceberg.builder.values import Document
from nessie_cli.iceberg.combination.states import Row


def partition_names(schema: Row) -> dict[int, str]:
    """Returns the names that a manifest has for partition fields, by their ids, in order.

    `schema` is the Avro schema of its entries.
    """
    types = {field["name"]: field["type"] for field in schema["fields"]}
    types = {field["name"]: field["type"] for field in types["data_file"]["fields"]}
    return {field.get("field-id"): field["name"] for field in types["partition"]["fields"]}


def with_partitions(
    summaries: Sequence[Document] | None,
    schema: Row,
    metadata: Mapping[str, str],
    partitions: Sequence[Row],
) -> list[Document] | None:
    """Returns the summaries of a manifest, made wider by the partitions of more files.

    `schema` and `metadata` are those of the manifest. Returns None, which is unknown, if it has no
    summaries or does not say what they mean. Raises `ValueError` if they are damaged.
    """
    if summaries is None or not {"schema", "partition-spec"} <= metadata.keys():
        return None
    columns = Schema.model_validate_json(metadata["schema"])
    fields = json.decode(metadata["partition-spec"])
    names = partition_names(schema).values()
    return [
        _wider(summary, field, columns, [partition[name] for partition in partitions])
        for summary, field, name in zip(summaries, fields, names, strict=True)
    ]


def _wider(summary: Document, field: Document, columns: Schema, values: Sequence[Any]) -> Document:
    present = [value for value in values if value is not None]
    numbers = [value for value in present if value == value]  # noqa: PLR0124 - NaN is not
    wider = {
        **summary,
        "contains_null": summary["contains_null"] or len(present) < len(values),
        "contains_nan": summary.get("contains_nan") or len(numbers) < len(present),
    }
    if numbers:
        type_ = parse_transform(field["transform"]).result_type(
            columns.find_type(field["source-id"])
        )
        assert isinstance(type_, PrimitiveType), "partition values have no parts"
        old = (summary.get("lower_bound"), summary.get("upper_bound"))
        bounds: list[bytes] = [bound for bound in old if bound is not None]
        bounds += [to_bytes(type_, value) for value in numbers]
        bounds.sort(key=partial(from_bytes, type_))
        wider |= {"lower_bound": bounds[0], "upper_bound": bounds[-1]}
    return wider
