"""Each change names the type of its answer: mypy knows the result of `submit`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

# The answer of mypy does not depend on the version of Python that runs it.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PROGRAM = """
from typing import assert_type
from collections.abc import Mapping
from nessie_cli.model import CommitMeta, CommitResult, MergeResult, Reference, ReferenceType
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import (
    AssignReference, Commit, CreateReference, DeleteReference, Merge, PutSettings, RenameReference,
    Transplant,
)
from nessie_cli.repository.draft import Draft

def answers(catalog: Repository) -> None:
    assert_type(catalog.submit(Commit("b", [], CommitMeta("m"))), CommitResult)
    assert_type(catalog.submit(Merge("b", "s")), MergeResult)
    assert_type(catalog.submit(Transplant("b", ["h"])), MergeResult)
    assert_type(catalog.submit(CreateReference(ReferenceType.TAG, "t", "h")), Reference)
    assert_type(catalog.submit(AssignReference("b", "h", "e")), Reference)
    assert_type(catalog.submit(RenameReference("b", "c", "e")), Reference)
    assert_type(catalog.submit(DeleteReference("b", "e")), Reference)
    assert_type(catalog.submit(PutSettings({})), Mapping[str, str | None])
    assert_type(catalog.draft(Merge("b", "s")), Draft[MergeResult])
"""


def checked(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / "program.py"
    file.write_text(program)
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_type_of_a_change_determines_the_type_of_its_answer(tmp_path: Path) -> None:
    result = checked(PROGRAM, tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_wrong_type_of_an_answer_is_an_error(tmp_path: Path) -> None:
    wrong = PROGRAM.replace('(Merge("b", "s")), MergeResult', '(Merge("b", "s")), CommitResult')
    result = checked(wrong, tmp_path)
    assert "assert-type" in result.stdout, result.stdout + result.stderr
