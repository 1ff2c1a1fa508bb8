"""The scripts of the manual's pages work as described, in a real shell."""

from __future__ import annotations

import os
import re
import shutil

import pytest

from tests.command.process import run
from tests.manual.conftest import ROOT, table

TEXTS = sorted((ROOT / "manual/texts").glob("*.md"))
_FENCE = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SCRIPTS = {
    text.stem: found
    for text in TEXTS
    if (found := _FENCE.findall(text.read_text(encoding="utf-8")))
}


@pytest.fixture
def shell(place, forker):
    """Runs a script in which `nessie` is this program; returns its exit code and output."""
    if shutil.which("jq", path=os.defpath) is None:
        pytest.skip("jq is not installed")
    programs = place.folder / "programs"
    programs.mkdir()
    forker.write_program(programs / "nessie")

    def shell(script, **environment):
        path = {"PATH": f"{programs}{os.pathsep}{os.defpath}"}
        done = run(
            script,
            cwd=place.folder,
            env={**place.environment, **path, **environment},
            program=("bash", "-c"),
        )
        return done.code, done.out.strip()

    return shell


def test_every_script_is_run_here():
    assert {name: len(found) for name, found in SCRIPTS.items()} == {"nessie-exit-status": 1}


def test_a_script_branches_on_the_exit_code(place, shell):
    (script,) = SCRIPTS["nessie-exit-status"]

    assert shell(script, BRANCH="nowhere") == (1, "")
    assert shell(script, BRANCH="feature") == (0, "merged")
    table(place, "db.orders", 30, "--ref", "release", "-m", "release")
    table(place, "db.orders", 31, "-m", "main")
    assert shell(script, BRANCH="release") == (0, "VALUE_DIFFERS db.orders")
