"""The oldest and the newest release of Typer that pyproject.toml allows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from nessie_cli.cli.registry import COMMANDS

ROOT = Path(__file__).parents[2]


def oldest() -> str:
    """Returns the lower bound in pyproject.toml. The upper one is only for the speed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bound = next(one for one in project["dependencies"] if one.startswith("typer"))
    return re.fullmatch(r"typer>=([0-9.]+),<[0-9.]+", bound)[1]


@pytest.fixture(scope="module", params=["oldest", "newest"])
def nessie(request, tmp_path_factory):
    """Runs `nessie` with a release of Typer."""
    wanted = f"typer=={oldest()}" if request.param == "oldest" else "typer"
    folder = tmp_path_factory.mktemp(request.param)
    install = [
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--target",
        str(folder / "typer"),
        wanted,
    ]
    subprocess.run([sys.executable, "-m", "pip", *install], check=True)
    environment = os.environ | {
        "PYTHONPATH": f"{folder / 'typer'}:{ROOT}",
        "HOME": str(folder),
        "COLUMNS": "80",
    }

    def call(*words, program=("-m", "nessie_cli")):
        command = [sys.executable, *program, *words]
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    assert call("init")[0] == 0
    return call


def commands(table=COMMANDS, path=()):
    for name, entry in table.items():
        yield (*path, name)
        yield from commands(entry.children or {}, (*path, name))


HELP_OF_EACH = """
import sys
from nessie_cli.cli.main import run
for line in sys.argv[1:]:
    print(f"exit code {run([*line.split(), '--help'])}")
"""


def test_the_help_of_every_command_is_the_same(nessie):
    lines = [" ".join(words) for words in commands()]
    code, out, err = nessie(*lines, program=("-c", HELP_OF_EACH))
    assert (code, err) == (0, "")
    helps = out.split("exit code 0\n")
    assert helps.pop() == ""
    here = [sys.executable, "-c", HELP_OF_EACH, *lines]
    wanted = subprocess.run(
        here,
        cwd=ROOT,
        env=os.environ | {"COLUMNS": "80"},
        capture_output=True,
        check=True,
        text=True,
    )
    expected = wanted.stdout.split("exit code 0\n")
    for line, text, same in zip(lines, helps, expected, strict=False):
        assert text.startswith(f"Usage: nessie {line} "), line
        assert text == same


def test_commands_work_and_errors_are_one_line_with_a_hint(nessie):
    assert nessie("content", "put", "db", "--type", "namespace", "-m", "make db")[0] == 0
    assert nessie("--json", "log", "-n", "1", "--color", "never")[1].count('"hash"') == 1
    code, out, err = nessie("log", "-n", "x")
    assert (code, out) == (2, "")
    assert ": 'x' is not an integer\n`nessie log --help` shows" in err
    assert ": 'foo' is not one of 'bash', 'zsh', 'fish'\n" in nessie("completion", "foo")[2]
    assert ": -1 must be 0 or more\n" in nessie("log", "-n", "-1")[2]
    assert ": 70000 must be " in nessie("serve", "--port", "70000")[2]
    assert (
        nessie("brnch")[2]
        == "nessie: no such command 'brnch'; did you mean 'branch'?\n`nessie --help` lists the commands\n"
    )
    assert nessie("log", "--onelin")[0] == 2
    assert nessie("merge")[0] == 2
    assert (
        nessie("__complete", "--", "log", "--one")[1]
        == "--oneline\tShow the hash and subject of each commit on one line.\n"
    )
