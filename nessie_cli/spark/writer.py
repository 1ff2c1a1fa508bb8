"""A frame of operations as one commit: tasks read and check their rows, the driver makes the commit, or judges it."""

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
from nessie_cli.spark.failures import at
from nessie_cli.spark.options import Submission
from nessie_cli.spark.process import opened
from nessie_cli.wire.decode import decode_content, decode_operation
from nessie_cli.wire.encode import encode_operation

COLUMNS = ("operation", "key", "content", "expected_content")
OPERATIONS = ("PUT", "DELETE", "UNCHANGED")
_ORDER = (Delete, Put, Unchanged)
"""A key may be deleted and made again by one commit, in this order."""


class SomeOperations(WriterCommitMessage):
    """What one task has read: operations as the JSON that a client sends."""

    def __init__(self, text: bytes) -> None:
        self.text = text


class CommitWriter(DataSourceArrowWriter):
    """Writes one commit. Nothing is written before all tasks are done, so a failed job leaves nothing behind."""

    def __init__(self, submission: Submission, schema: StructType, *, overwrite: bool) -> None:
        self._submission = submission
        with at(submission.place):
            if overwrite:
                raise InvalidInput(
                    'mode overwrite: a commit is added to what is there; write .mode("append")'
                )
            _check_columns(schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> SomeOperations:
        """Read the operations of one task. Raises for a row that is none; the row is named by its key."""
        with at(self._submission.place):
            found = [
                encode_operation(operation_of(row))
                for batch in iterator
                for row in batch.to_pylist()
            ]
        return SomeOperations(json.dumps(found).encode())

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Make the commit, or judge it."""
        asked = self._submission
        with at(asked.place), opened(asked.url) as repository:
            operations = sorted(
                _operations(messages), key=lambda operation: _ORDER.index(type(operation))
            )
            if not operations:
                raise InvalidInput("the frame has no rows; a commit has one operation or more")
            repository.commit(
                asked.branch or repository.config().default_branch,
                operations,
                CommitMeta(asked.message, authors=(asked.author,) if asked.author else ()),
                expected_hash=asked.expected_hash,
                request_id=asked.request_id,
                dry_run=asked.dry_run,
            )


def _operations(messages: Sequence[WriterCommitMessage | None]) -> Iterator[Operation]:
    for message in messages:
        assert isinstance(message, SomeOperations)
        for data in json.loads(message.text):
            yield decode_operation(data, allow_unknown=True)


def _check_columns(schema: StructType) -> None:
    types = {field.name: field.dataType for field in schema.fields}
    for name in types:
        if name not in COLUMNS:
            raise InvalidInput(
                f"column {name}: operations have none; they have {', '.join(COLUMNS)}; select those"
            )
    for name in COLUMNS[:2]:
        if name not in types:
            raise InvalidInput(f"column {name}: is missing; operations have {', '.join(COLUMNS)}")
    if not isinstance(types["operation"], StringType):
        raise InvalidInput(
            f"column operation: is {types['operation'].simpleString()}; it holds {', '.join(OPERATIONS)}"
        )
    key = types["key"]
    if not isinstance(key, StringType) and not (
        isinstance(key, ArrayType) and isinstance(key.elementType, StringType)
    ):
        raise InvalidInput(
            f"column key: is {key.simpleString()}; it is a text (db.orders), or an array of the key's elements"
        )
    for name in COLUMNS[2:]:
        if name in types and not isinstance(types[name], StructType | StringType):
            raise InvalidInput(
                f"column {name}: is {types[name].simpleString()}; it is a struct as in the table contents, or the JSON of a content"
            )


def operation_of(row: Mapping[str, Any]) -> Operation:
    """One row as an operation. Raises `InvalidInput` that names the row by its key."""
    key, name = _key(row["key"]), row["operation"]
    content, expected = row.get("content"), row.get("expected_content")
    if name not in OPERATIONS:
        raise InvalidInput(f"row {key}: operation {name!r} is none of {', '.join(OPERATIONS)}")
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
        raise InvalidInput("column key: a row has none")
    if any(element is None for element in value):
        raise InvalidInput(f"column key: an element of {value!r} is null")
    return ContentKey.parse(value) if isinstance(value, str) else ContentKey(tuple(value))


def _content(value: Any, place: str) -> Content:
    return (
        decode_content(value, place, allow_unknown=True)
        if isinstance(value, str)
        else content_of(value, place)
    )
