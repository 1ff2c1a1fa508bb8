"""Metadata that Iceberg's own parser refuses is refused, with its place in the file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.exceptions import ValidationError

from nessie_cli.audit.checks import audit_content
from nessie_cli.audit.findings import FindingKind
from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder import table, view
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.metadata import content_of, read_content
from nessie_cli.iceberg.validity.metadata import check_metadata
from nessie_cli.model import ContentKey, IcebergTable, IcebergView
from tests.iceberg.lake import Lake
from tests.iceberg.mutants import Document, Mutant, bases, mutants, recorded

NOW = 1_800_000_000_000
PROPERTY = [{"action": "set-properties", "updates": {"k": "v"}}]
SAMPLE = 61
"""Every so many of the files is also tried in slower ways."""
ONLY_ICEBERG_ACCEPTS = (
    "snapshot-log",  # Iceberg takes any other value for an empty log.
    "metadata-log",
    "versions/0/default-namespace",  # Iceberg takes any value for a text.
    "versions/0/default-namespace/0",
    "format-version",  # Iceberg accepts 0 and less if the other members are there.
    "edit:format version 4",  # This version is not supported yet.
)
"""Places where files are refused that Iceberg accepts."""
ONLY_ICEBERG_IGNORES = ": schema has several fields with the id "
"""The fault of a member of version 1 that Iceberg ignores and PyIceberg reads."""


def refusal(document: Document) -> str:
    """Returns why metadata is refused, empty if it is not."""
    try:
        content_of(document, "file:/x")
        check_metadata(document)
    except InvalidInput as error:
        return error.message
    return ""


def judged(step: int = 1) -> Iterator[tuple[Mutant, str]]:
    """Yields each file, or one of every `step`, with Iceberg's verdict."""
    verdicts = recorded()
    for one in mutants(step):
        yield one, verdicts[one.base, one.place, one.number]


def test_exactly_the_files_are_refused_that_iceberg_refuses() -> None:
    differing, counts, ignored = [], Counter[str](), 0
    for one, verdict in judged():
        counts[verdict] += 1
        if verdict == "A" and one.place in ONLY_ICEBERG_ACCEPTS:
            continue
        # Iceberg cannot change a table without its default spec, for example.
        why = refusal(one.document)
        if verdict == "A" and one.base == "v1" and ONLY_ICEBERG_IGNORES in why:
            ignored += 1
            continue
        if verdict != "U" and bool(why) != (verdict == "R"):
            differing.append((verdict, one.base, one.place, one.number, why))
    assert differing == []
    assert counts["R"] > 10_000
    assert counts["A"] > 1000
    assert 0 < ignored <= 20


def test_every_accepted_file_can_be_changed() -> None:
    changed = 0
    for one, verdict in judged():
        if verdict == "R" or refusal(one.document):
            continue
        if one.base == "view":
            made = view.updated(one.document, PROPERTY, NOW)
        else:
            made = table.updated(one.document, PROPERTY, NOW, "file:/x")
        assert (made["properties"]["k"], refusal(made)) == ("v", ""), one[:3]
        changed += 1
    assert changed > 1000


def place_of(base: str, path: str, value: Any) -> str:
    """Returns the reason why a valid file with another value is refused."""
    document = bases()[base]
    around: Any = document
    *outer, last = path.split("/")
    for name in outer:
        around = around[int(name)] if isinstance(around, list) else around[name]
    if value is ...:
        del around[last]
    else:
        around[last] = value
    return refusal(document)


@pytest.mark.parametrize(
    ("base", "path", "value", "why"),
    [
        ("v2", "last-partition-id", ..., "last-partition-id is missing"),
        ("v2", "schemas/1/fields/3/type/fields/0/id", "x",
         "schemas[1].fields[3].type.fields[0].id is not an integer"),
        ("v2", "schemas/1/fields/0/type", "bigint",
         "schemas[1].fields[0].type: there is no type 'bigint'"),
        ("v2", "schemas/1/fields/4/type", {"type": "list"},
         "schemas[1].fields[4].type.element-id is missing"),
        ("v2", "partition-specs/1/fields", None, "partition-specs[1].fields is not a list"),
        ("v2", "partition-specs/0/spec-id", 2**31, "partition-specs[0].spec-id is beyond 32 bits"),
        ("v2", "snapshots/0/parent-snapshot-id", None,
         "snapshots[0].parent-snapshot-id is not an integer"),
        ("v2", "refs/old/max-ref-age-ms", 0, "refs.old.max-ref-age-ms is not positive"),
        ("v2", "properties/owner", 1, "properties.owner is not a string"),
        ("v2", "properties/a b\n", 1, 'properties["a b\\n"] is not a string'),
        ("v1", "default-spec-id", ..., "default-spec-id is missing"),
        ("v1-old", "schema/type", ..., "schema is not a schema: its type is not struct"),
        ("v3", "next-row-id", ..., "next-row-id is missing"),
        ("v3", "schemas/1/fields/9/initial-default", "1.5",
         "schemas[1].fields[9].initial-default is not a value of type decimal(9, 2)"),
        ("view", "versions/0/representations/0/sql", ...,
         "versions[0].representations[0].sql is missing"),
    ],
)  # fmt: skip
def test_the_reason_names_the_place(base: str, path: str, value: Any, why: str) -> None:
    assert place_of(base, path, value) == f"not valid Iceberg metadata: {why}"


def nested(levels: int) -> dict[str, Any]:
    """Returns a schema with structs inside structs."""
    type_: Any = "int"
    for number in range(levels, 0, -1):
        field = {"id": number, "name": f"f{number}", "required": False, "type": type_}
        type_ = {"type": "struct", "fields": [field]}
    return {**type_, "schema-id": 0}


def test_a_schema_with_too_many_levels_is_refused() -> None:
    document = bases()["v2"]
    document["schemas"][0] = nested(20)
    assert refusal(document) == ""
    document["schemas"][0] = nested(5000)
    assert refusal(document) == "not valid Iceberg metadata: it is nested too deeply"


def test_a_long_type_costs_no_time() -> None:
    # A pattern with two repetitions of the same character would need hours.
    for type_ in (
        "geometry(" + " " * 200_000,
        "decimal(" + " " * 200_000 + "x",
        "fixed[" + "9" * 4000,
    ):
        assert "there is no type" in place_of("v2", "schemas/1/fields/0/type", type_)


def files(folder: Path) -> Iterator[tuple[Mutant, str, Path]]:
    """Yields a sample of the files, with Iceberg's verdict."""
    for number, (one, verdict) in enumerate(judged(SAMPLE)):
        path = folder / f"{number:05}-x.metadata.json"
        path.write_text(json.dumps(one.document).replace('"s3://b/', f'"file://{folder}/'))
        yield one, verdict, path


def test_a_content_is_made_of_a_valid_file_only(tmp_path: Path) -> None:
    for one, verdict, path in files(tmp_path):
        if verdict != "R":
            continue
        with pytest.raises(InvalidInput) as caught:
            read_content(str(path))
        assert caught.value.message.startswith(f"{path}: not "), one[:3]


def test_an_audit_reports_the_files_that_iceberg_refuses(tmp_path: Path) -> None:
    reader = Files({})
    for one, verdict, path in files(tmp_path):
        content: IcebergTable | IcebergView = IcebergTable(metadata_location=str(path), id="1")
        if one.base == "view":
            content = IcebergView(metadata_location=str(path), id="1", version_id=1, schema_id=1)
        kinds = {
            found.kind for found in audit_content(ContentKey(("t",)), content, reader).findings
        }
        refused = FindingKind.METADATA_UNREADABLE in kinds
        assert refused == bool(refusal(one.document)), one[:3]
        assert refused or verdict != "R"


@pytest.mark.filterwarnings("ignore:Encountered invalid snapshot summary")
def test_pyicebergs_catalog_registers_valid_tables_only(embedded: Lake, tmp_path: Path) -> None:
    catalog = embedded.catalog()
    catalog.create_namespace("db")
    registered = 0
    for number, (one, verdict, path) in enumerate(files(tmp_path)):
        if one.base == "view":
            continue
        name = f"db.t{number}"
        try:
            made = catalog.register_table(name, str(path))
        except ValidationError as error:
            refused = "PyIceberg cannot load" in str(error) or refusal(one.document)
            assert refused, one[:3]
            continue
        assert (verdict, one.base) in {("A", "v1"), ("A", "v2")}, one[:3]
        with made.transaction() as transaction:
            transaction.set_properties({"k": "v"})
        assert catalog.load_table(name).properties["k"] == "v"
        registered += 1
    assert registered > 5


def test_a_column_inside_itself_is_refused_also_where_only_pyiceberg_reads_it() -> None:
    """PyIceberg would take all memory."""
    document = bases()["v1"]
    schema = document["schemas"][-1]
    inside = {**schema["fields"][1], "type": {"type": "struct", "fields": schema["fields"][1:2]}}
    document["schema"] = {**schema, "fields": [schema["fields"][0], inside]}
    assert refusal(document).endswith("schema has several fields with the id 2")
    document["schema"] = schema
    assert refusal(document) == ""
