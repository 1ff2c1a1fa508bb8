"""The scripts of the manual's pages work as described, in a real shell."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.manual.conftest import ROOT, table

TEXTS = sorted((ROOT / "manual/texts").glob("*.md"))
_FENCE = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SCRIPTS = {
    text.stem: found
    for text in TEXTS
    if (found := _FENCE.findall(text.read_text(encoding="utf-8")))
}


@pytest.fixture
def shell(place):
    """Runs a script in which `nessie` is this program; returns its exit code and output."""
    if shutil.which("jq", path=os.defpath) is None:
        pytest.skip("jq is not installed")
    programs = place.folder / "programs"
    programs.mkdir()
    (programs / "nessie").write_text(f'#!/bin/sh\nexec {sys.executable} -m nessie_cli "$@"\n')
    (programs / "nessie").chmod(0o755)

    def run(script, **environment):
        found = {**place.environment, "PATH": f"{programs}{os.pathsep}{os.defpath}", **environment}
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=place.folder,
            env=found,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.returncode, done.stdout.strip()

    return run


def test_every_script_is_run_here():
    assert {name: len(found) for name, found in SCRIPTS.items()} == {"nessie-exit-status": 1}


def test_a_script_branches_on_the_exit_code(place, shell):
    (script,) = SCRIPTS["nessie-exit-status"]

    assert shell(script, BRANCH="nowhere") == (1, "")
    assert shell(script, BRANCH="feature") == (0, "merged")
    table(place, "db.orders", 30, "--ref", "release", "-m", "release")
    table(place, "db.orders", 31, "-m", "main")
    assert shell(script, BRANCH="release") == (0, "VALUE_DIFFERS db.orders")
