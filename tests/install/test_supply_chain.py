"""Workflows name actions by commit, and no dependency has a known vulnerability."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_workflows_name_actions_by_commit() -> None:
    """A tag of an action can be moved to other code."""
    texts = [path.read_text() for path in (ROOT / ".github" / "workflows").glob("*.yml")]
    used = [one for text in texts for one in re.findall(r"uses:\s*(\S+)", text)]
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", one)] == []


def test_the_published_image_is_built_on_a_digest(tmp_path: Path) -> None:
    """A program in the place of Docker records what the workflow asks of it."""
    workflow = (ROOT / ".github" / "workflows" / "image.yml").read_text()
    [step] = re.findall(r"build on the digest.*?run: \|\n(.*?)\n      - ", workflow, re.DOTALL)
    digest = f"sha256:{'ab' * 32}"
    docker = tmp_path / "docker"
    docker.write_text(
        f'#!/bin/sh\necho "$@" >>{tmp_path}/calls\n[ "$1" != image ] || echo python@{digest}\n'
    )
    docker.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-e", "-c", step], cwd=ROOT, env=environment, check=True)
    build = (tmp_path / "calls").read_text().splitlines()[-1]
    assert f"--build-arg PYTHON=python@{digest}" in build
    assert f"base.digest={digest}" in build
    stages = re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert stages == ["${PYTHON}"] * 2


def test_authlib_verifies_tokens_correctly() -> None:
    """Versions before 1.6.11 have GHSA-jj8c-mmj3-mmgv."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "authlib>=1.6.11" in project["dependencies"]
