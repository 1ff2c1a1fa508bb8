"""Replays exchanges recorded from the original server; `exceptions.json` lists the
differences.

The recordings and their replayer are not part of this project. NESSIE_CONFORMANCE names their
folder; the default is beside the checkout (`../shared/conformance`). Without it, these tests are
skipped. Each exception has the reason that `docs/reference/differences.md` explains.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from tests.server.serving import serving

ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("NESSIE_CONFORMANCE") or ROOT.parent / "shared" / "conformance")
FILES = sorted((FOLDER / "exchanges").glob("*.jsonl*"))
EXCEPTIONS = json.loads((Path(__file__).parent / "exceptions.json").read_text(encoding="utf-8"))
DIFFERENCES = ROOT / "docs" / "reference" / "differences.md"


@cache
def replayer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("replay", FOLDER / "replay.py")
    assert spec
    assert spec.loader
    module = sys.modules["replay"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(bool(FILES), reason="the recordings are there")
def test_recordings_exist():
    pytest.skip(
        f"no recordings of the original server in {FOLDER}; set NESSIE_CONFORMANCE to the folder"
        " that holds replay.py and exchanges/"
    )


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_server_answers_as_recorded(file: Path):
    replay = replayer()
    exceptions = replay.Exceptions([entry for entry in EXCEPTIONS if entry["file"] == file.name])
    with serving() as url:
        outcomes = replay.replay_file(url, file)
    exceptions.apply(file.name, outcomes)
    wrong = [outcome for outcome in outcomes if outcome.verdict in ("differ", "skipped")]
    assert not wrong, f"{len(wrong)} of {len(outcomes)} exchanges differ:\n" + "\n".join(
        map(described, wrong[:20])
    )
    assert exceptions.stale([file.name]) == []


def described(outcome) -> str:
    lines = [
        f"  {d.path}: expected {d.expected}, actual {d.actual}"
        for d in outcome.differences
        if not d.message_only
    ][:4]
    return "\n".join([f"#{outcome.number} {outcome.note}: {outcome.verdict}", *lines])


def test_exceptions_and_documented_differences_refer_to_each_other():
    rows = re.findall(r"^\| (D\d+) \|", DIFFERENCES.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == len(set(rows))
    assert {entry["reason"].partition(":")[0] for entry in EXCEPTIONS} == set(rows)


def test_an_exception_has_one_file_and_a_reason():
    for entry in EXCEPTIONS:
        assert not set("*?[") & set(entry["file"]), entry
        assert re.match(r"D\d+: ", entry["reason"]), entry
