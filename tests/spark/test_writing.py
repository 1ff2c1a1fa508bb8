"""Rows as operations, and contents as rows. An invalid row is named."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from nessie_cli import (
    ContentKey,
    DeltaLakeTable,
    IcebergTable,
    IcebergView,
    InvalidInput,
    Namespace,
    UnknownContent,
    connect,
)
from nessie_cli.model import UDF, Content, Delete, Put, Unchanged
from nessie_cli.spark.columns import CONTENT, content_of, content_row
from nessie_cli.spark.errors import TaskError
from nessie_cli.spark.source import NessieDataSource
from nessie_cli.spark.writer import operation_of
from nessie_cli.wire.contents import content_json
from tests.repository.vocabulary import Catalog, key, table
from tests.spark.reading import rows

CONTENTS: list[Content] = [
    IcebergTable(
        id="1", metadata_location="s3://a", snapshot_id=-1, schema_id=2, spec_id=3, sort_order_id=4
    ),
    IcebergTable(metadata_location="", snapshot_id=2**63 - 1),
    IcebergView(
        id="2",
        metadata_location="s3://v",
        version_id=-5,
        schema_id=6,
        sql_text="select 1",
        dialect="spark",
    ),
    DeltaLakeTable(
        id="3",
        metadata_location_history=("a", "b"),
        checkpoint_location_history=(),
        last_checkpoint="c",
    ),
    Namespace(id="4", elements=("a", "b"), properties={"owner": "ann", "": "x"}),
    Namespace(),
    UDF(
        id="5", sql_text="x", dialect="d", version_id="v1", signature_id="s", metadata_location="m"
    ),
    UnknownContent(
        id="6", foreign_type="WASM", foreign_attributes={"code": [1, {"a": None}], "naïve": "ü"}
    ),
]


@pytest.mark.parametrize("content", CONTENTS, ids=lambda content: content.type_name)
def test_a_content_is_restored_from_its_row(content: Content) -> None:
    schema = to_arrow_schema(StructType([StructField("content", CONTENT)]))
    (row,) = pa.RecordBatch.from_arrays(
        [pa.array([content_row(content)], schema.field("content").type)], schema=schema
    ).to_pylist()
    assert content_of(row["content"], "content") == content


@pytest.mark.parametrize("content", CONTENTS, ids=lambda content: content.type_name)
@pytest.mark.parametrize("form", ["struct", "json"])
def test_a_row_is_an_operation(content: Content, form: str) -> None:
    import json

    value = content_row(content) if form == "struct" else json.dumps(content_json(content))
    found = operation_of(
        {"operation": "PUT", "key": ["db", "a.b"], "content": value, "expected_content": value}
    )
    assert found == Put(ContentKey(("db", "a.b")), content, content)


def test_rows_without_contents() -> None:
    assert operation_of({"operation": "DELETE", "key": 'db."a.b"'}) == Delete(
        ContentKey(("db", "a.b"))
    )
    assert operation_of({"operation": "UNCHANGED", "key": "db", "content": None}) == Unchanged(
        key("db")
    )


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"operation": "UPSERT", "key": "db.a"},
            "row db.a: operation 'UPSERT' is unknown. Hint: use PUT, DELETE, UNCHANGED",
        ),
        ({"operation": None, "key": "db.a"}, "row db.a: operation None is unknown"),
        ({"operation": "PUT", "key": "db.a"}, "row db.a: PUT has no content"),
        (
            {"operation": "DELETE", "key": "db.a", "content": {"type": "UDF"}},
            "row db.a: DELETE takes no content",
        ),
        (
            {
                "operation": "PUT",
                "key": "db.a",
                "content": {"type": "OURS", "attributes": "[" * 50_000},
            },
            "row db.a: content: attributes: the JSON is nested too deeply",
        ),
        ({"operation": "DELETE", "key": None}, "column 'key' is null in a row"),
        (
            {"operation": "DELETE", "key": ["a", None]},
            "column key: an element of ['a', None] is null",
        ),
        ({"operation": "DELETE", "key": "a..b"}, "key 'a..b': an element is empty"),
        (
            {"operation": "PUT", "key": "a", "content": {"snapshot_id": 1}},
            "row a: content.type: is missing",
        ),
        (
            {"operation": "PUT", "key": "a", "content": {"type": "NAMESPACE", "snapshot_id": 1}},
            "row a: content: NAMESPACE has no snapshot_id",
        ),
        (
            {"operation": "PUT", "key": "a", "content": {"type": "ICEBERG_TABLE"}},
            "row a: content: ICEBERG_TABLE.metadata_location: is missing",
        ),
        (
            {"operation": "PUT", "key": "a", "content": {"type": "UDF", "colour": "x"}},
            "row a: content: a content has no field colour",
        ),
        (
            {"operation": "PUT", "key": "a", "content": "{"},
            "row a: content: line 1 column 2 is not JSON",
        ),
        (
            {
                "operation": "PUT",
                "key": "a",
                "content": {
                    "type": "ICEBERG_VIEW",
                    "metadata_location": "m",
                    "schema_id": 1,
                    "version_id": "x",
                },
            },
            "row a: content: version_id: 'x' is not an integer",
        ),
    ],
)
def test_an_invalid_row_is_named(row: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        operation_of(row)
    assert message in refused.value.message
    assert "\n" not in refused.value.message


# -- the writer, as Spark drives it ---------------------------------------------------------------


def write(
    url: str,
    given: list[dict[str, Any]],
    columns: str = "operation string, key string, content string",
    **options: str,
) -> None:
    """Two tasks read the rows, the driver commits."""
    schema = StructType()
    for column in columns.split(", "):
        name, type_ = column.split(" ")
        schema = schema.add(name, type_)
    writer = NessieDataSource({"url": url, "message": "from Spark", **options}).writer(
        schema, overwrite=False
    )
    arrow = to_arrow_schema(schema)
    halves = [given[::2], given[1::2]]
    messages = [
        writer.write(iter([pa.RecordBatch.from_pylist(half, arrow)] if half else []))
        for half in halves
    ]
    writer.commit([*messages])


def test_a_frame_is_one_commit(store: str) -> None:
    import json

    def put(name: str, number: int) -> dict[str, Any]:
        return {
            "operation": "PUT",
            "key": name,
            "content": json.dumps(content_json(table(number))),
        }

    with connect(store) as repository:
        catalog = Catalog(repository)
        before = catalog.head()
        write(
            store,
            [put("db.new", 1), put("db.newer", 2), {"operation": "DELETE", "key": "db.t5"}],
            author="bea",
        )
        (entry, *_) = catalog.log()
        assert (entry.parent, entry.meta.message, entry.meta.authors) == (
            before,
            "from Spark",
            ("bea",),
        )
        assert [type(operation) for operation in repository.commit_at("main").operations or ()] == [
            Delete,
            Put,
            Put,
        ]

        # Dropped and created again, so it has a new content id.
        old = catalog.id("main", "db.t6")
        write(store, [put("db.t6", 9), {"operation": "DELETE", "key": "db.t6"}])
        assert catalog.id("main", "db.t6") != old

        head = catalog.head()
        write(store, [put("db.dry", 1)], dryrun="true")
        gone = [
            {"operation": "UNCHANGED", "key": "db.gone"},
            {"operation": "DELETE", "key": "db.lost"},
        ]
        with pytest.raises(
            TaskError,
            match=r"2 of its keys in conflict: KEY_DOES_NOT_EXIST db.lost.*KEY_DOES_NOT_EXIST db.gone",
        ):
            write(store, [*gone, put("db.fine", 1)], dryrun="true")
        with pytest.raises(
            TaskError,
            match=r"^nessie: sqlite:.*, commit on the default branch: 2 of its keys in conflict: ",
        ):
            write(store, [put("db.fine", 1), *gone])
        with pytest.raises(TaskError, match=r"existing key 'db.t3' has no content ID"):
            write(store, [put("db.t3", 1), put("db.fine", 1)])
        assert catalog.head() == head

        request = "a-request-of-a-job"
        write(store, [put("db.once", 1)], requestid=request)
        once = catalog.head()
        write(store, [put("db.once", 1)], requestid=request)
        assert catalog.head() == once


def test_the_state_that_a_frame_was_computed_from(store: str) -> None:
    with connect(store) as repository:
        catalog = Catalog(repository)
        seen = catalog.head()
        catalog.write("main", {"db.t1": 4711})
        with pytest.raises(TaskError, match=r"db\.t1"):
            write(store, [{"operation": "DELETE", "key": "db.t1"}], expectedhash=seen)
        write(store, [{"operation": "DELETE", "key": "db.t3"}], expectedhash=seen, ref="main")
        assert key("db.t3") not in repository.contents("main", [key("db.t3")])


def test_rows_that_were_read_can_be_written(store: str) -> None:
    from tests.spark.reading import Frame

    frame = Frame(store, table="contents", ref="dev", prefix="raw")
    schema = (
        StructType()
        .add("operation", "string")
        .add("key", frame.schema["elements"].dataType)
        .add("content", CONTENT)
    )
    found = [
        {"operation": "PUT", "key": row["elements"], "content": {**row["content"], "id": None}}
        for row in frame.rows()
    ]
    writer = NessieDataSource({"url": store, "message": "copy"}).writer(schema, overwrite=False)
    assert isinstance(found[0]["content"]["properties"], dict)
    for row in found:
        properties = row["content"]["properties"]
        row["content"]["properties"] = None if properties is None else list(properties.items())
    writer.commit(
        [writer.write(iter([pa.RecordBatch.from_pylist(found, to_arrow_schema(schema))]))]
    )

    def states(ref: str) -> list[tuple[str, str, str]]:
        return [
            (row["key"], row["type"], row["content"]["metadata_location"])
            for row in rows(store, table="contents", ref=ref, prefix="raw")
        ]

    assert states("main") == states("dev")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            "operation string, key string, expectedContent string",
            "column expectedContent: operations have no such column. Hint: select operation, key, content",
        ),
        ("operation string, content string", "column key is missing"),
        (
            "operation integer, key string",
            "column 'operation' is int, but must be a string: PUT, DELETE, UNCHANGED",
        ),
        ("operation string, key long", "column 'key' is bigint, but must be a string"),
        (
            "operation string, key string, content double",
            "column content is double, but must be a struct",
        ),
    ],
)
def test_an_unknown_column_is_refused_before_the_job(
    store: str, columns: str, message: str
) -> None:
    with pytest.raises(TaskError) as refused:
        write(store, [], columns)
    assert message in str(refused.value)


def test_an_empty_frame_is_refused(store: str) -> None:
    with pytest.raises(TaskError, match="the frame has no rows"):
        write(store, [])


def test_a_commit_replaces_nothing(store: str) -> None:
    source = NessieDataSource({"url": store, "message": "x"})
    with pytest.raises(
        TaskError,
        match=r'mode overwrite: commits are only appended\. Hint: use \.mode\("append"\)',
    ):
        source.writer(StructType().add("operation", "string").add("key", "string"), overwrite=True)
