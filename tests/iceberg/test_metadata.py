"""Contents read from PyIceberg's metadata files, compared with what PyIceberg reads."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.serializers import FromInputFile
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType
from pyiceberg.view.metadata import ViewMetadata

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.metadata import in_state, read_content
from nessie_cli.model import IcebergTable, IcebergView


def as_pyiceberg_reads(location: str) -> IcebergTable:
    metadata: TableMetadata = FromInputFile.table_metadata(PyArrowFileIO().new_input(location))
    return IcebergTable(
        metadata_location=location,
        snapshot_id=-1 if metadata.current_snapshot_id is None else metadata.current_snapshot_id,
        schema_id=metadata.current_schema_id,
        spec_id=metadata.default_spec_id,
        sort_order_id=metadata.default_sort_order_id,
    )


def edited(folder: Path, source: str, name: str = "edited.metadata.json", **changes: Any) -> str:
    """Returns a copy of a metadata file with changed attributes.

    None removes an attribute. `_` stands for `-` in names.
    """
    document = json.loads(Path(source).read_text())
    for attribute, value in changes.items():
        document.pop(attribute.replace("_", "-"), None)
        if value is not None:
            document[attribute.replace("_", "-")] = value
    path = folder / name
    path.write_text(json.dumps(document))
    return str(path)


# -- tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2])
def test_every_metadata_file_of_a_growing_table_reads_as_pyiceberg_reads_it(
    tmp_path, folder_catalog, rows, version
):
    catalog = folder_catalog(tmp_path)
    table = catalog.create_table("db.t", rows.schema, properties={"format-version": str(version)})
    table.append(rows)
    with table.update_schema() as update:
        update.add_column("amount", LongType())
    with table.update_spec() as update:
        update.add_field("name", IdentityTransform())
    table.append(pa.table({"id": [4], "name": ["d"], "amount": [7]}))
    files = sorted((tmp_path / "db" / "t" / "metadata").glob("*.metadata.json"))
    assert len(files) == 5
    contents = [read_content(str(file)) for file in files]
    assert contents == [as_pyiceberg_reads(str(file)) for file in files]
    assert [c.snapshot_id == -1 for c in contents] == [True, False, False, False, False]
    assert (contents[-1].schema_id, contents[-1].spec_id) == (1, 1)
    assert contents[-1].metadata_location == catalog.load_table("db.t").metadata_location
    assert contents[-1].id is None


def test_a_table_of_version_3_with_partitions_and_a_sort_order_reads_as_pyiceberg_reads_it(
    tmp_path, folder_catalog, rows
):
    spec = PartitionSpec(
        PartitionField(source_id=2, field_id=1000, transform=IdentityTransform(), name="name")
    )
    order = SortOrder(SortField(source_id=1, transform=IdentityTransform()))
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))
    table = folder_catalog(tmp_path).create_table(
        "db.t", schema, partition_spec=spec, sort_order=order
    )
    table.append(rows)
    # PyIceberg reads version 3 and does not write it yet.
    path = edited(tmp_path, table.metadata_location, format_version=3, next_row_id=3)
    content = read_content(path)
    assert content == as_pyiceberg_reads(path)
    assert content.snapshot_id != -1
    assert (content.spec_id, content.sort_order_id) == (0, 1)


@pytest.mark.parametrize("current", [None, -1])
def test_no_current_snapshot_is_minus_one_however_it_is_written(
    tmp_path, folder_catalog, rows, current
):
    table = folder_catalog(tmp_path).create_table("db.t", rows.schema)
    path = edited(
        tmp_path, table.metadata_location, **({"current_snapshot_id": current} if current else {})
    )
    document = json.loads(Path(path).read_text())
    if current is None:
        Path(path).write_text(json.dumps(document | {"current-snapshot-id": None}))
    assert read_content(path).snapshot_id == -1
    assert read_content(path) == as_pyiceberg_reads(path)


def test_version_1_without_the_later_attributes_uses_its_only_schema_and_spec(
    tmp_path, folder_catalog, rows
):
    table = folder_catalog(tmp_path).create_table(
        "db.t", rows.schema, properties={"format-version": "1"}
    )
    schema = json.loads(Path(table.metadata_location).read_text())["schema"]
    absent = dict.fromkeys(
        (
            "schemas",
            "current_schema_id",
            "partition_specs",
            "default_spec_id",
            "sort_orders",
            "default_sort_order_id",
            "table_uuid",
            "snapshots",
        )
    )
    for schema_id in (None, 0, 4):
        named = {k: v for k, v in schema.items() if k != "schema-id"} | (
            {} if schema_id is None else {"schema-id": schema_id}
        )
        path = edited(tmp_path, table.metadata_location, schema=named, partition_spec=[], **absent)
        content = read_content(path)
        assert (content.snapshot_id, content.schema_id, content.spec_id, content.sort_order_id) == (
            -1,
            schema_id or 0,
            0,
            0,
        )
        # PyIceberg takes 0, a schema that is not in the file. Java takes the id of the schema.
        assert schema_id == 4 or content == as_pyiceberg_reads(path)


def test_compressed_metadata_is_read_whatever_its_name(tmp_path, folder_catalog, rows):
    table = folder_catalog(tmp_path).create_table("db.t", rows.schema)
    table.append(rows)
    plain = Path(table.metadata_location)
    for name in ("00001-x.gz.metadata.json", "v1.metadata.json.gz", "misnamed.metadata.json"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(plain.read_bytes()))
        assert read_content(str(path)).snapshot_id == read_content(str(plain)).snapshot_id
    assert read_content(str(tmp_path / "00001-x.gz.metadata.json")) == as_pyiceberg_reads(
        str(tmp_path / "00001-x.gz.metadata.json")
    )


def test_a_location_is_unchanged_and_a_relative_path_becomes_absolute(
    tmp_path, folder_catalog, rows, monkeypatch
):
    table = folder_catalog(tmp_path).create_table("db.t", rows.schema)
    path = Path(table.metadata_location)
    for given in (f"file:{path}", f"file://{path}", f"file://localhost{path}", str(path)):
        assert read_content(given).metadata_location == given
    monkeypatch.chdir(tmp_path)
    for given in (str(path.relative_to(tmp_path)), f"./{path.relative_to(tmp_path)}"):
        assert read_content(given).metadata_location == str(path)


def test_a_file_uri_names_the_literal_path_before_the_percent_decoded_one(
    tmp_path, folder_catalog, rows
):
    table = folder_catalog(tmp_path).create_table("db.t", rows.schema)
    text = Path(table.metadata_location).read_text()
    (tmp_path / "a b.metadata.json").write_text(text)
    assert (
        read_content(f"file:{tmp_path}/a%20b.metadata.json").metadata_location
        == f"file:{tmp_path}/a%20b.metadata.json"
    )
    (tmp_path / "a%20b.metadata.json").write_text("{}")
    with pytest.raises(InvalidInput, match="format-version"):
        read_content(f"file:{tmp_path}/a%20b.metadata.json")


# -- views ----------------------------------------------------------------------------------------


def view_document(*representations: dict[str, str]) -> dict[str, Any]:
    fields = [{"id": 1, "name": "n", "required": False, "type": "long"}]
    versions = [
        {
            "version-id": number,
            "timestamp-ms": 1_700_000_000_000 + number,
            "schema-id": number - 1,
            "summary": {"engine-name": "spark"},
            "default-namespace": ["db"],
            "representations": list(representations)
            if number == 2
            else [{"type": "sql", "sql": "select 0", "dialect": "old"}],
        }
        for number in (1, 2)
    ]
    return {
        "view-uuid": "0f0b2b5e-6f0c-4b38-8dd6-bd36a2e6a1e4",
        "format-version": 1,
        "location": "s3://bucket/db/v",
        "current-version-id": 2,
        "versions": versions,
        "version-log": [
            {"version-id": number, "timestamp-ms": 1_700_000_000_000 + number} for number in (1, 2)
        ],
        "schemas": [{"type": "struct", "schema-id": number, "fields": fields} for number in (0, 1)],
    }


SPARK = {"type": "sql", "sql": "select count(1) from t", "dialect": "spark"}
TRINO = {"type": "sql", "sql": "select count(*) from t", "dialect": "trino"}


@pytest.mark.parametrize(
    ("representations", "text", "dialect"),
    [((SPARK,), "select count(1) from t", "spark"), ((SPARK, TRINO), None, None), ((), None, None)],
)
def test_a_view_gives_its_current_version_and_its_only_text(
    tmp_path, representations, text, dialect
):
    document = view_document(*representations)
    path = tmp_path / "v.metadata.json"
    path.write_text(json.dumps(document))
    if representations:
        theirs = ViewMetadata.model_validate_json(path.read_text())
        assert (
            theirs.current_version_id,
            theirs.versions[1].version_id,
            theirs.versions[1].schema_id,
        ) == (2, 2, 1)
    assert read_content(str(path)) == IcebergView(
        metadata_location=str(path), version_id=2, schema_id=1, sql_text=text, dialect=dialect
    )


# -- invalid files --------------------------------------------------------------------------------


def message_for(path: Path | str) -> str:
    with pytest.raises(InvalidInput) as caught:
        read_content(str(path))
    assert caught.value.message.startswith(str(path))
    assert "\n" not in caught.value.message
    return caught.value.message.removeprefix(str(path)).removeprefix(":").lstrip()


NO_METADATA = {
    "": "empty, not an Iceberg metadata file",
    " \n": "empty, not an Iceberg metadata file",
    "hello": "not an Iceberg metadata file: invalid JSON at line 1 column 1",
    "{}": "not an Iceberg metadata file: 'format-version' is missing",
    "[]": "not an Iceberg metadata file: it is not a JSON object",
    "null": "not an Iceberg metadata file: it is not a JSON object",
    '{"name": "left-pad", "version": "1.0.0"}': "not an Iceberg metadata file: 'format-version' is missing",
    '{"format-version": 4}': "Iceberg table metadata of format version 4, which is not supported; supported: 1 to 3",
    '{"format-version": 2, "view-uuid": "x"}': "Iceberg view metadata of format version 2, which is not supported; supported: 1 to 1",
    '{"format-version": 0}': "not an Iceberg metadata file: 'format-version' is 0",
    '{"format-version": "2"}': "not an Iceberg metadata file: 'format-version' is not an integer",
    '{"format-version": true}': "not an Iceberg metadata file: 'format-version' is not an integer",
    '{"format-version": 2, "location": 5}': "not an Iceberg metadata file: 'location' is not a string",
    '{"format-version": 2}': "not an Iceberg metadata file: 'location' is missing",
    '{"format-version": 2, "location": "x"}': "not an Iceberg metadata file: 'last-column-id' is missing",
    '{"format-version" 2}': "not an Iceberg metadata file: invalid JSON at line 1 column 19",
    '{"format-version": nope, "a": 1}': "not an Iceberg metadata file: invalid JSON at line 1 column 20",
    "[" * 100_000: "its JSON has more than 200 levels",
    '{"a": '
    + "1" * 5000
    + "}": "not an Iceberg metadata file: its JSON is nested too deeply or has a number with too many digits",
}


@pytest.mark.parametrize("text", NO_METADATA, ids=lambda text: text[:40])
def test_other_text_is_refused_with_the_missing_part(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(text)
    assert message_for(path) == NO_METADATA[text]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            b"Obj\x01\x04\x14avro.codec",
            "an Avro file (a manifest or a manifest list), not an Iceberg metadata file",
        ),
        (b"PAR1\x15\x04", "a Parquet data file, not an Iceberg metadata file"),
        (b"\xff\xfe{\x00", "not an Iceberg metadata file: it is not UTF-8 text"),
        (gzip.compress(b"{}" * 500)[:-9], "truncated: the compressed data ends too early"),
        (b"\x1f\x8b" + b"x" * 40, "damaged: it cannot be decompressed with gzip"),
    ],
    ids=["avro", "parquet", "utf-16", "cut gzip", "broken gzip"],
)
def test_other_bytes_are_refused_and_named(tmp_path, data, message):
    path = tmp_path / "x.metadata.json"
    path.write_bytes(data)
    assert message_for(path) == message


def test_a_metadata_file_truncated_anywhere_is_refused(tmp_path, folder_catalog, rows):
    table = folder_catalog(tmp_path).create_table("db.t", rows.schema)
    whole = Path(table.metadata_location).read_bytes()
    path = tmp_path / "cut.metadata.json"
    for length in range(1, len(whole)):
        path.write_bytes(whole[:length])
        assert message_for(path).startswith("truncated"), length


ID_ATTRIBUTES = ["current_schema_id", "default_spec_id", "default_sort_order_id"]


@pytest.mark.parametrize("attribute", [*ID_ATTRIBUTES, "schemas", "partition_specs", "sort_orders"])
def test_version_2_without_a_required_attribute_is_refused_and_the_attribute_named(
    tmp_path, folder_catalog, rows, attribute
):
    table = folder_catalog(tmp_path).create_table("db.t", rows.schema)
    path = edited(tmp_path, table.metadata_location, **{attribute: None})
    assert (
        message_for(path)
        == f"not an Iceberg metadata file: '{attribute.replace('_', '-')}' is missing"
    )


@pytest.mark.parametrize("attribute", [*ID_ATTRIBUTES, "current_snapshot_id"])
def test_an_id_that_names_nothing_in_the_file_is_refused(tmp_path, folder_catalog, rows, attribute):
    table = folder_catalog(tmp_path).create_table("db.t", rows.schema)
    table.append(rows)
    path = edited(tmp_path, table.metadata_location, **{attribute: 77})
    assert f"'{attribute.replace('_', '-')}' is 77, which is not among its" in message_for(path)


def test_a_number_beyond_its_range_is_refused(tmp_path):
    document = view_document(SPARK)
    document["versions"][1]["schema-id"] = 2**31
    path = tmp_path / "v.metadata.json"
    path.write_text(json.dumps(document))
    assert "schemaId: must be an integer of 32 bits" in message_for(path)


def test_a_path_that_is_not_a_file_is_refused_with_a_hint(tmp_path, folder_catalog, rows):
    table = folder_catalog(tmp_path).create_table("db.t", rows.schema)
    assert message_for(tmp_path / "none.metadata.json") == "no such file"
    assert message_for(f"file:{tmp_path}/none.metadata.json") == "no such file"
    assert message_for(f"{table.metadata_location}/x") == "no such file"
    assert message_for(tmp_path) == "is a folder. Hint: name the metadata file in it"
    assert (
        message_for(tmp_path / "db" / "t")
        == f"is a folder. Hint: name the metadata file in it, for example {table.metadata_location}"
    )
    assert message_for("/dev/zero") == "is not a regular file"
    assert "cannot be read" in message_for("/" + "x" * 5000)
    assert "is a relative URI" in message_for("file:x.metadata.json")
    assert "names the host" in message_for("file://elsewhere/x.metadata.json")


def test_a_name_that_would_break_the_line_is_quoted():
    with pytest.raises(InvalidInput) as caught:
        read_content("/no\nsuch\x00file")
    assert caught.value.message.startswith("'/no\\nsuch\\x00file' cannot be read: ")


def test_an_empty_name_is_refused():
    with pytest.raises(InvalidInput, match="empty"):
        read_content(" ")


def test_a_file_too_large_for_metadata_is_refused_without_reading_it_whole(tmp_path):
    path = tmp_path / "huge.metadata.json"
    with path.open("wb") as file:
        file.truncate(300 * 2**20)
    assert message_for(path) == "is larger than 256 MiB, the limit for metadata files"


# -- other file systems ---------------------------------------------------------------------------


def test_a_remote_name_that_nothing_can_read_is_invalid_input():
    assert message_for("foo://bucket/x.metadata.json").startswith(
        "PyIceberg does not support foo: locations"
    )
    assert message_for("s3://") == "does not name a file"


def run(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_a_table_without_uuid_has_that_of_its_content() -> None:
    document = {"format-version": 1, "location": "s3://b/t"}
    content = IcebergTable(metadata_location="s3://b/t/1.metadata.json")
    own = "0a1b2c3d-0000-4000-8000-000000000001"
    assert "table-uuid" not in in_state(document, content)
    assert in_state(document, content.with_id(own))["table-uuid"] == own
    named, other = (in_state(document, content.with_id(id_)) for id_ in ("orders", "sales"))
    assert str(UUID(named["table-uuid"])) == named["table-uuid"] != other["table-uuid"]
    given = in_state({**document, "table-uuid": "its own"}, content.with_id(own))
    assert given["table-uuid"] == "its own"


def test_without_pyiceberg_a_remote_file_names_the_extra():
    code = (
        "import sys; sys.modules['pyiceberg'] = None\n"
        "from nessie_cli.errors import InvalidInput\n"
        "from nessie_cli.iceberg.metadata import read_content\n"
        "try: read_content('s3://bucket/x.metadata.json')\n"
        "except InvalidInput as error: print(error.message)"
    )
    assert (
        run(code)
        == "s3://bucket/x.metadata.json: PyIceberg is needed to read s3: locations. Hint: `pip install 'nessie-cli[iceberg]'`"
    )


def test_a_local_file_is_read_without_pyiceberg_or_pyarrow(tmp_path, folder_catalog, rows):
    table = folder_catalog(tmp_path).create_table("db.t", rows.schema)
    code = (
        "import sys\n"
        "from nessie_cli.iceberg.metadata import read_content\n"
        f"print(read_content({table.metadata_location!r}).snapshot_id, 'pyiceberg' in sys.modules,"
        " 'pyarrow' in sys.modules)"
    )
    assert run(code) == "-1 False False"
