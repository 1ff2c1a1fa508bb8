"""Every golden answer conforms to the published JSON Schema of its command without unknown
attributes. Attributes are added, never renamed or removed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from manual import schemas
from nessie_cli.cli.registry import COMMANDS
from nessie_cli.wire import schemas as rest
from tests.json import golden
from tests.json.test_golden import GOLDEN, commands

ROOT = Path(__file__).parents[2]
SCHEMAS = schemas.schemas()
REST = rest.schemas()
CLOSED = {name: schemas.closed(schema) for name, schema in SCHEMAS.items()}


def command_of(words: list[str]) -> str:
    """Returns the command of a command line, or any command if it names none: it is an error."""
    known = {" ".join(command) for command in commands(COMMANDS)}
    return next((name for name in (" ".join(words[:2]), words[0]) if name in known), "version")


def faults(schema: dict[str, Any], value: Any) -> list[str]:
    return [
        f"{error.json_path}: {error.message[:200]}"
        for error in Draft202012Validator(schema).iter_errors(value)
    ]


def _answers(name: str) -> Iterator[tuple[dict[str, Any], Any]]:
    """Returns each document of a golden file with its strict schema."""
    case = golden.case_of(GOLDEN[name])
    schema = CLOSED[command_of(case.words)]
    answer = golden.concrete(GOLDEN[name]["stdout"])
    if not isinstance(answer, list):
        yield schema, answer
    elif schemas.LINE in schema["$defs"]:
        yield from (
            ({**schema["$defs"][schemas.LINE], "$defs": schema["$defs"]}, line) for line in answer
        )
    else:
        yield from ((schema, line) for line in answer)


@pytest.mark.parametrize("name", GOLDEN)
def test_the_answer_conforms_to_the_schema_of_its_command(name):
    assert [fault for schema, answer in _answers(name) for fault in faults(schema, answer)] == []


def test_the_schemas_are_valid():
    Draft202012Validator.check_schema({"$defs": schemas.definitions()})
    Draft202012Validator.check_schema({**SCHEMAS["log"], "$defs": {}})


def test_every_command_has_a_schema():
    found = {" ".join(command) for command in commands(COMMANDS)}

    assert found == set(schemas.ANSWERS)


def test_the_files_are_generated_from_the_types():
    wanted = schemas.files()
    there = {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for path in (ROOT / schemas.FOLDER).iterdir()
    }

    assert sorted(there) == sorted(wanted), "`make docs` writes them"
    assert [name for name, text in wanted.items() if there[name] != text] == [], (
        "`make docs` writes them"
    )


def test_no_attribute_is_ever_renamed_or_removed():
    there, recorded = set(schemas.fields()), set(golden.FIELDS.read_text().splitlines())

    assert recorded - there == set(), "scripts read these: keep them"
    assert there - recorded == set(), (
        "`python -m tests.json.make --fields` records what is new, for ever"
    )


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ({"hash": None}, "is not valid under any"),
        ({"hash": "ABC"}, "is not valid under any"),
        ({"surplus": 1}, "is not valid under any"),
    ],
)
def test_the_strict_schema_refuses_invalid_documents(broken, words):
    (schema, answer), *_ = _answers("branch-create")

    assert faults(schema, answer) == []
    assert words in faults(schema, {"reference": answer["reference"] | broken})[0]


def test_published_schemas_allow_new_attributes():
    (_, answer), *_ = _answers("branch-create")

    assert faults(SCHEMAS["branch"], {"reference": answer["reference"] | {"surplus": 1}}) == []


SHARED = {
    "AnyContent": "ForeignContent",
    "CommitMeta": "CommitMeta",
    "CommitResponse": "Committed",
    "Conflict": "Conflict",
    "ContentResponse": "ShownContent",
    "DeltaLakeTable": "DeltaLakeTable",
    "DiffEntry": "DiffEntry",
    "DiffResponse": "Diff",
    "EntriesResponse": "Entries",
    "Entry": "Entry",
    "IcebergTable": "IcebergTable",
    "IcebergView": "IcebergView",
    "LogEntry": "Logged",
    "LogResponse": "Log",
    "MergeDetail": "MergeDetail",
    "MergeResponse": "Merge",
    "Namespace": "Namespace",
    "ReferenceMetadata": "ReferenceMetadata",
    "ReferencesResponse": "References",
    "SingleReferenceResponse": "SingleReference",
    "Udf": "Udf",
}
"""Shapes that the REST API and the command line share: the schema's name there, and here."""


@pytest.mark.parametrize("name", SHARED)
def test_the_command_line_has_every_attribute_of_the_rest_api(name):
    assert set(REST[name]["properties"]) <= set(schemas.definitions()[SHARED[name]]["properties"])


def test_the_index_lists_every_file():
    page = (ROOT / schemas.FOLDER / "index.md").read_text(encoding="utf-8")

    assert [
        path.name for path in (ROOT / schemas.FOLDER).glob("*.json") if f"({path.name})" not in page
    ] == []
    assert (
        json.loads((ROOT / schemas.FOLDER / "log.json").read_text())["$schema"] == schemas.DIALECT
    )
