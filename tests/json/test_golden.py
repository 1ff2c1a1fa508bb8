"""Every command and every error has its golden answer to `--json`: one document on stdout,
one line on stderr, the exit code."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from nessie_cli import errors
from nessie_cli.cli.errors.messages import text_for_people
from nessie_cli.cli.registry import COMMANDS, CommandEntry
from nessie_cli.model import ConflictType
from tests.json import golden

GOLDEN = {name: golden.read(name) for name in golden.every()}
ADD = (
    "look at what `python -m tests.json.make {name} 'nessie {command} ... --json'` writes to"
    " tests/json/golden/, and commit it"
)


def commands(
    table: Mapping[str, CommandEntry] = COMMANDS, above: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    for name, entry in table.items():
        yield from (
            [(*above, name)] if entry.children is None else commands(entry.children, (*above, name))
        )


def _errors() -> Iterator[dict[str, Any]]:
    for document in GOLDEN.values():
        answers = (
            document["stdout"] if isinstance(document["stdout"], list) else [document["stdout"]]
        )
        yield from (answer["error"] for answer in answers if "error" in answer)


def _conflicts() -> Iterator[str]:
    for error in _errors():
        yield from (
            conflict["conflictType"]
            for conflict in error.get("errorDetails", {}).get("conflicts", ())
        )


@pytest.mark.parametrize("name", golden.of_command_lines())
def test_the_answer_equals_the_golden_file(name, runner):
    case = golden.case_of(GOLDEN[name])

    _, outcome = runner.run(case)

    again = f"python -m tests.json.make {name}"
    assert golden.document_of(case, outcome) == {"exit": None, **GOLDEN[name]}, (
        f"if this is what is meant to be, write it down: {again}"
    )


@pytest.mark.parametrize("command", list(commands()), ids=" ".join)
def test_every_command_has_a_golden_file(command):
    found = [
        name
        for name, document in GOLDEN.items()
        if tuple(golden.case_of(document).words[: len(command)]) == command
    ]
    done = [name for name in found if GOLDEN[name]["exit"] in (0, 1)]

    assert done or (found and command in (("serve",), ("ui",))), ADD.format(
        name="-".join(command), command=" ".join(command)
    )


@pytest.mark.parametrize(
    "name", [name for name, document in GOLDEN.items() if "--jsonl" not in document["run"]]
)
def test_there_is_exactly_one_document(name):
    assert isinstance(GOLDEN[name]["stdout"], dict)


@pytest.mark.parametrize(
    "name", [name for name in GOLDEN if name.startswith(("errors/", golden.HAPPENS))]
)
def test_an_error_is_also_printed_on_stderr(name):
    document = GOLDEN[name]
    answer = document["stdout"][-1] if isinstance(document["stdout"], list) else document["stdout"]

    assert document["exit"] != 0
    assert document["stderr"][0] == f"nessie: {text_for_people(answer['error']['message'])}"


def _subclasses(kind: type[errors.NessieError]) -> Iterator[type[errors.NessieError]]:
    for below in kind.__subclasses__():
        yield below
        yield from _subclasses(below)


def test_every_code_of_an_error_has_a_golden_file():
    """UNKNOWN has no golden file: it is an internal error, or a result that cannot be written,
    so stdout is empty."""
    codes = {
        kind.code for kind in _subclasses(errors.NessieError) if kind.__module__ == errors.__name__
    }

    assert codes - {error["errorCode"] for error in _errors()} <= {"UNKNOWN"}


def test_every_exit_code_has_a_golden_file():
    assert {document["exit"] for document in GOLDEN.values()} >= {0, 1, 2, 3, 4, 5, 6, 7}


def test_every_type_of_conflict_has_a_golden_file():
    """KEY_CONFLICT and UNKNOWN are for keys without their own conflict in the REST API; the
    command line omits these keys."""
    assert {type_.value for type_ in ConflictType} - set(_conflicts()) == {
        "KEY_CONFLICT",
        "UNKNOWN",
    }


LISTINGS = [
    name
    for name, document in GOLDEN.items()
    if isinstance(document["stdout"], dict) and "hasMore" in document["stdout"]
]


@pytest.mark.parametrize("name", LISTINGS)
def test_lines_equal_the_records_of_the_document(name, runner):
    document = GOLDEN[name]
    (records,) = [value for value in document["stdout"].values() if isinstance(value, list)]
    case = golden.case_of(document)

    _, outcome = runner.run(case._replace(run=case.run.replace("--json", "--jsonl")))

    assert _normal(map(json.loads, outcome.out.splitlines())) == _normal(records)


def _normal(records: Any) -> list[str]:
    """Returns text with numbered names as they are: both answers number them alike."""
    return [json.dumps(record, sort_keys=True) for record in records]
