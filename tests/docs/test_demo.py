"""The guide about the demo shows what a fresh run of the demo prints."""

from __future__ import annotations

import importlib.util
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
