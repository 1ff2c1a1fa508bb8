"""Commits a frame of operations: tasks check the rows, the driver commits or does a dry run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import ArrayType, StringType, StructType

from nessie_cli.errors import InvalidInput
from nessie_cli.model import CommitMeta, Content, ContentKey, Delete, Operation, Put, Unchanged
from nessie_cli.spark.columns import content_of
from nessie_cli.spark.errors import at
from nessie_cli.spark.options import WriteOptions
from nessie_cli.spark.process import opened
from nessie_cli.wire.bodies import encode_operation
from nessie_cli.wire.decode import decode_content, decode_operation

COLUMNS = ("operation", "key", "content", "expected_content")
OPERATIONS = ("PUT", "DELETE", "UNCHANGED")
_ORDER = (Delete, Put, Unchanged)
"""The order of operations: one commit may delete and create the same key."""


class TaskOperations(WriterCommitMessage):
    """The operations of one task, as REST JSON."""

    def __init__(self, text: bytes) -> None:
        self.text = text


class CommitWriter(DataSourceArrowWriter):
    """Writes one commit, after all tasks are done. A failed job writes nothing."""

    def __init__(self, options: WriteOptions, schema: StructType, *, overwrite: bool) -> None:
        self._options = options
        with at(options.place):
            if overwrite:
                raise InvalidInput(
                    "mode overwrite: commits are only appended", hint='use .mode("append")'
                )
            _check_columns(schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskOperations:
        """Reads the operations of one task. An error names the invalid row by its key."""
        with at(self._options.place):
            operations = [
                encode_operation(operation_of(row))
                for batch in iterator
                for row in batch.to_pylist()
            ]
        return TaskOperations(json.dumps(operations).encode())

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Makes the commit, or does a dry run."""
        options = self._options
        with at(options.place), opened(options.url) as repository:
            operations = sorted(
                _operations(messages), key=lambda operation: _ORDER.index(type(operation))
            )
            if not operations:
                raise InvalidInput(
                    "the frame has no rows, but a commit needs at least one operation"
                )
            repository.commit(
                options.branch or repository.config().default_branch,
                operations,
                CommitMeta(options.message, authors=(options.author,) if options.author else ()),
                expected_hash=options.expected_hash,
                request_id=options.request_id,
                dry_run=options.dry_run,
            )


def _operations(messages: Sequence[WriterCommitMessage | None]) -> Iterator[Operation]:
    for message in messages:
        assert isinstance(message, TaskOperations)
        for data in json.loads(message.text):
            yield decode_operation(data, allow_unknown=True)


def _check_columns(schema: StructType) -> None:
    types = {field.name: field.dataType for field in schema.fields}
    for name in types:
        if name not in COLUMNS:
            raise InvalidInput(
                f"column {name}: operations have no such column",
                hint=f"select {', '.join(COLUMNS)}",
            )
    for name in COLUMNS[:2]:
        if name not in types:
            raise InvalidInput(
                f"column {name} is missing", hint=f"operations have {', '.join(COLUMNS)}"
            )
    if not isinstance(types["operation"], StringType):
        raise InvalidInput(
            f"column 'operation' is {types['operation'].simpleString()}, "
            f"but must be a string: {', '.join(OPERATIONS)}"
        )
    key = types["key"]
    if not isinstance(key, StringType) and not (
        isinstance(key, ArrayType) and isinstance(key.elementType, StringType)
    ):
        raise InvalidInput(
            f"column 'key' is {key.simpleString()}, "
            "but must be a string (db.orders) or an array of the key's elements"
        )
    for name in COLUMNS[2:]:
        if name in types and not isinstance(types[name], StructType | StringType):
            raise InvalidInput(
                f"column {name} is {types[name].simpleString()}, "
                "but must be a struct as in the table contents, or the JSON of a content"
            )


def operation_of(row: Mapping[str, Any]) -> Operation:
    """Returns the operation of a row. Raises `InvalidInput`, which names the row by its key."""
    key, name = _key(row["key"]), row["operation"]
    content, expected = row.get("content"), row.get("expected_content")
    if name not in OPERATIONS:
        raise InvalidInput(
            f"row {key}: operation {name!r} is unknown", hint=f"use {', '.join(OPERATIONS)}"
        )
    if name == "PUT":
        if content is None:
            raise InvalidInput(f"row {key}: PUT has no content")
        return Put(
            key,
            _content(content, f"row {key}: content"),
            None if expected is None else _content(expected, f"row {key}: expected_content"),
        )
    if content is not None or expected is not None:
        raise InvalidInput(f"row {key}: {name} takes no content")
    return Delete(key) if name == "DELETE" else Unchanged(key)


def _key(value: Any) -> ContentKey:
    if not value:
        raise InvalidInput("column 'key' is null in a row")
    if any(element is None for element in value):
        raise InvalidInput(f"column key: an element of {value!r} is null")
    return ContentKey.parse(value) if isinstance(value, str) else ContentKey(tuple(value))


def _content(value: Any, place: str) -> Content:
    return (
        decode_content(value, place, allow_unknown=True)
        if isinstance(value, str)
        else content_of(value, place)
    )
