"""Workflows name actions by commit, and no dependency has a known vulnerability."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_workflows_name_actions_by_commit() -> None:
    """A tag of an action can be moved to other code."""
    texts = [path.read_text() for path in (ROOT / ".github" / "workflows").glob("*.yml")]
    used = [one for text in texts for one in re.findall(r"uses:\s*(\S+)", text)]
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", one)] == []


def test_authlib_verifies_tokens_correctly() -> None:
    """Versions before 1.6.11 have GHSA-jj8c-mmj3-mmgv."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "authlib>=1.6.11" in project["dependencies"]
