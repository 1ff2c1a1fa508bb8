"""There is always one JSON document on stdout, also in cases that golden command lines
cannot create: Ctrl-C, a full disk, `--help`, no command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from nessie_cli.cli.registry import COMMANDS
from tests.command.outcome import Outcome
from tests.command.process import Nessie, fresh
from tests.json import golden
from tests.json.test_golden import commands
from tests.json.test_schemas import SCHEMAS, faults
from tests.remote.listening import CUT, Answer, Request, forward, listening
from tests.server.serving import serving


@pytest.fixture(scope="module")
def nessie(tmp_path_factory, forker):
    found = fresh(tmp_path_factory.mktemp("happens"), forker)
    found.ok("init")
    found.ok("content", "put", "db", "--type", "namespace", "-m", "db")
    return found


def interrupt(nessie: Nessie, fifo: Path, *args: str) -> Outcome:
    """Sends Ctrl-C while the command waits for the other end of a pipe."""
    process = subprocess.Popen(
        nessie.command(*args),
        cwd=nessie.folder,
        env=nessie.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    # Opening returns when the command has opened the other end; then it waits for data that never
    # arrives.
    with fifo.open("wb"):
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    return Outcome(process.returncode, out.decode(), err.decode())


@pytest.fixture
def fifo(tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


def is_golden(name: str, nessie: Nessie, outcome: Outcome, **server: str) -> None:
    """Compares an answer with its golden file, whose `run` and `env` describe the case."""
    document = golden.read(golden.HAPPENS + name)
    found = golden.named(
        outcome,
        {str(nessie.folder): "<folder>", **{url: f"<{word}>" for word, url in server.items()}},
    )
    assert golden.document_of(golden.case_of(document), found) == document


@pytest.mark.parametrize("option", ["--json", "--jsonl"])
def test_an_interrupt_is_reported_in_one_document(nessie, fifo, option):
    before = nessie.ok("log", "--json").out

    outcome = interrupt(nessie, fifo, "commit", "-m", "x", "--batch", str(fifo), option)

    is_golden("interrupted", nessie, outcome)
    assert nessie.ok("log", "--json").out == before


def test_an_interrupt_without_json_is_silent(nessie, fifo):
    assert interrupt(nessie, fifo, "commit", "-m", "x", "--batch", str(fifo)) == (130, "", "")


def test_an_unknown_outcome_is_reported_in_one_document(nessie):
    gone = False

    def dying(request: Request) -> Answer:
        nonlocal gone
        gone = gone or request.path.endswith("/history/commit")
        return CUT if gone else forward(behind, request)

    with serving() as behind, listening(dying) as url:
        outcome = nessie(
            "content",
            "put",
            "late",
            "--type",
            "namespace",
            "-m",
            "late",
            "--json",
            env={"NESSIE_ENDPOINT": f"{url}/api/v2"},
        )

    assert gone
    is_golden("outcome-unknown", nessie, outcome, server=url)


@pytest.mark.parametrize("command", [" ".join(command) for command in commands(COMMANDS)])
def test_help_is_a_document(nessie, command):
    outcome = nessie(*command.split(), "--help", "--json")

    assert (outcome.code, outcome.err) == (0, "")
    assert faults(SCHEMAS[command], outcome.json) == []
    assert f"Usage: nessie {command}" in outcome.json["text"]


@pytest.mark.parametrize(
    "args",
    [("--json",), ("--json", "content"), ("content", "--json"), ("--jsonl", "stash", "nothing")],
)
def test_a_missing_command_is_reported_in_one_line(nessie, args):
    outcome = nessie(*args)

    assert outcome.code == 2
    assert "\n" not in outcome.error["message"]
    assert len(outcome.out.splitlines()) == 1


@pytest.mark.parametrize("command", [" ".join(command) for command in commands(COMMANDS)])
def test_an_unknown_option_is_reported_in_one_document(nessie, command):
    outcome = nessie(*command.split(), "--no-such-option", "--json")

    assert outcome.code == 2
    assert outcome.error["errorCode"] == "BAD_REQUEST"
    assert outcome.err.splitlines()[0] == f"nessie: {outcome.error['message']}"
    assert len(outcome.err.splitlines()) == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_reported_in_one_line(nessie):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            nessie.command("log", "--json"),
            cwd=nessie.folder,
            env=nessie.environment,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )

    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1


def test_values_of_other_options_do_not_request_json(nessie):
    outcome = nessie("content", "show", "nowhere", "--", "--json")

    assert outcome.code == 2
    assert outcome.out == ""


def test_json_is_ascii_in_every_locale(nessie):
    nessie.ok("reset")
    nessie.ok("content", "put", "żółw", "--type", "namespace", "-m", "ż")

    out = nessie.ok("content", "show", "żółw", "--json", env={"PYTHONIOENCODING": "ascii"}).out

    assert out.isascii()
    assert json.loads(out)["content"]["elements"] == ["żółw"]
