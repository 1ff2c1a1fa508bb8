"""The frame of the command line: global options on both sides, exit codes, one JSON document
whatever happens, help, suggestions."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.command.process import fresh


@pytest.fixture
def nessie(tmp_path):
    """Here every command is started as a user starts it."""
    return fresh(tmp_path, None)


def test_option_and_command_print_the_version(nessie):
    option, command = nessie.ok("--version"), nessie.ok("version")

    assert option.out == command.out
    assert option.out.startswith("nessie 1.")


@pytest.mark.parametrize(
    "args",
    [
        ("version", "--json"),
        ("--json", "version"),
        ("--version", "--json"),
        ("--json", "--version"),
    ],
)
def test_version_is_one_json_document_wherever_the_option_stands(nessie, args):
    assert set(nessie.ok(*args).json) == {"version", "python", "storeFormat"}


def test_global_options_work_before_between_and_after_subcommands(catalog):
    listings = [
        catalog.ok(*args).json["entries"]
        for args in (
            ("--json", "content", "list"),
            ("content", "--json", "list"),
            ("content", "list", "--json"),
        )
    ]

    assert listings[0] == listings[1] == listings[2]
    assert [".".join(entry["name"]["elements"]) for entry in listings[0]] == ["db", "db.orders"]


def test_the_later_of_two_global_options_wins(catalog):
    assert catalog("--ref", "nowhere", "content", "list", "--ref", "main").code == 0


def test_an_option_as_the_value_of_another_is_a_value(catalog):
    outcome = catalog.ok("content", "delete", "db.orders", "-m", "--json")

    assert outcome.out.startswith("main ")
    assert (
        catalog.ok("log", "-n", "1", "--json").json["logEntries"][0]["commitMeta"]["message"]
        == "--json"
    )


def test_directory_option_works_as_if_started_there(nessie, tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)

    nessie.ok("-C", str(tmp_path / "a"), "-C", "b", "init")

    assert (tmp_path / "a" / "b" / ".nessie" / "HEAD").read_text() == "main\n"


def test_a_missing_directory_is_invalid_input(nessie):
    outcome = nessie("-C", "missing", "version")

    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == "nessie: -C missing: No such file or directory\n"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("versoin",), "did you mean 'version'?"),
        (("content", "lst"), "did you mean 'list'?"),
        (("version", "--colour"), "no such option: --colour"),
        (("version", "too", "many"), "too many arguments: too many"),
        (("content", "put"), "KEY"),
        (("--color", "green", "version"), "must be one of auto, always, never"),
        (("content", "list", "--json", "--jsonl"), "cannot be used together"),
        (("content", "list", "--type"), "requires an argument"),
        (
            ("content", "put", "k", "--snapshot-id", "many"),
            "'--snapshot-id': 'many' is not an integer",
        ),
    ],
)
def test_usage_errors_are_one_line_and_a_hint_with_exit_2(nessie, args, words):
    outcome = nessie(*args)

    assert (outcome.code, outcome.out) == (2, "") if "--json" not in args else outcome.code == 2
    first, *hint = outcome.err.splitlines()
    assert first.startswith("nessie: ")
    assert words.lower() in first.lower()
    assert len(hint) <= 1


@pytest.mark.parametrize(
    "args",
    [
        ("versoin", "--json"),
        ("--json", "versoin"),
        ("version", "--colour", "--json"),
        ("content", "--json"),
    ],
)
def test_usage_errors_are_a_json_document_too(nessie, args):
    outcome = nessie(*args)

    assert outcome.code == 2
    assert outcome.error["status"] == 400
    assert outcome.error["errorCode"] == "BAD_REQUEST"
    assert outcome.err.startswith("nessie: ")


def test_no_command_shows_the_commands_on_stderr(nessie):
    outcome = nessie()

    assert (outcome.code, outcome.out) == (2, "")
    assert "content" in outcome.err


def test_help_goes_to_stdout_and_lists_every_section(nessie):
    outcome = nessie.ok("--help")

    assert outcome.err == ""
    for word in ("Workspace:", "init", "Branches and tags:", "merge", "History:", "--store"):
        assert word in outcome.out


def test_help_of_a_command_has_examples_to_copy(nessie):
    out = nessie.ok("content", "put", "--help", env={"COLUMNS": "40"}).out

    assert "\n  nessie content put finance --type namespace -m 'add finance'\n" in out


def test_without_a_store_the_error_says_how_to_create_one(nessie):
    outcome = nessie("status", "--json")

    assert outcome.code == 4
    assert outcome.error["errorCode"] == "STORE_NOT_FOUND"
    assert len(outcome.err.splitlines()) == 1
    assert "nessie init" in outcome.err


def test_a_closed_pipe_is_141_and_silent(catalog):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as stdout:
        done = subprocess.run(
            catalog.command("content", "list"),
            cwd=catalog.folder,
            env=catalog.environment,
            stdout=stdout,
            stderr=subprocess.PIPE,
            check=False,
        )

    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_result_that_cannot_be_written_is_a_failure(catalog):
    with Path("/dev/full").open("wb") as stdout:
        done = subprocess.run(
            catalog.command("content", "list"),
            cwd=catalog.folder,
            env=catalog.environment,
            stdout=stdout,
            stderr=subprocess.PIPE,
            check=False,
        )

    assert done.returncode == 1
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


def test_debug_shows_the_traceback_and_the_same_line(nessie):
    outcome = nessie("status", "--debug")

    assert outcome.code == 4
    assert "Traceback" in outcome.err
    assert outcome.err.splitlines()[-1].startswith("nessie: no store")


def test_unknown_references_and_keys_get_a_suggestion(catalog):
    reference = catalog("content", "list", "--at", "mian")
    key = catalog("content", "show", "db.order")

    assert (reference.code, key.code) == (4, 4)
    assert "Did you mean 'main'?" in reference.err
    assert "Did you mean 'db.orders'?" in key.err


def test_quiet_leaves_remarks_out(workspace):
    args = ("content", "put", "db", "--type", "namespace")

    assert workspace.ok(*args).err != ""
    assert workspace.ok(*args, "-q").err == ""


def test_a_text_that_the_locale_lacks_is_escaped(workspace):
    outcome = workspace.ok(
        "content", "put", "żółw", "--type", "namespace", env={"PYTHONIOENCODING": "ascii"}
    )

    assert "\\u017c\\xf3\\u0142w" in outcome.out


def test_control_characters_of_others_never_reach_the_terminal(catalog):
    catalog.ok("content", "delete", "db.orders", "-m", "red \x1b[31malert")

    assert "\x1b" not in catalog.ok("log", "-n", "1").out


def test_an_unreachable_server_is_one_line(nessie):
    outcome = nessie("status", env={"NESSIE_ENDPOINT": "http://127.0.0.1:9/api/v2"})

    assert outcome.code == 7
    assert "http://127.0.0.1:9/api/v2" in outcome.err
    assert len(outcome.err.splitlines()) <= 2
