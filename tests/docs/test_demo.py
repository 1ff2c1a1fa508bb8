"""The guide about the demo shows what a fresh run of the demo prints."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[2]


def _transcript_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "demo_transcript", ROOT / "demo" / "transcript.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_guide_shows_what_the_demo_prints() -> None:
    transcript = _transcript_module()
    shown = transcript.in_page(transcript.PAGE.read_text(encoding="utf-8"))
    assert transcript.normalised(shown) == transcript.normalised(transcript.run()), (
        "`make docs` writes the new transcript"
    )


def test_in_a_pipe_the_demo_prints_what_a_terminal_shows() -> None:
    transcript = _transcript_module()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [ROOT / "demo" / "run"],
        env={**os.environ, "PATH": path},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    shown = transcript.in_page(transcript.PAGE.read_text(encoding="utf-8"))
    found = transcript.SCRATCH.sub("/lake", done.stdout.lstrip("\n"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert transcript.normalised(found) == transcript.normalised(shown)
