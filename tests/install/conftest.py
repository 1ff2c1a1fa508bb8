"""The released files, built once: the wheel, the source distribution, and a folder of wheels
for installers without a registry."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.environment import given

ROOT = Path(__file__).parents[2]
PATIENCE = 600


def run(*words: str | Path, env: dict[str, str], cwd: Path) -> str:
    """Returns the stdout of a program; a failure shows all of its output."""
    done = subprocess.run(
        [str(word) for word in words],
        env=env,
        cwd=cwd,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


class Released(NamedTuple):
    """The files of one release."""

    wheel: Path
    source: Path


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory) -> Released:
    """The wheel and the source distribution of the checkout."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, env=given(), cwd=ROOT)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Released(wheel, source)


@pytest.fixture(scope="session")
def wheels(released: Released, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel, its requirements, and pip. Only this fixture needs a network, or
    pip's cache."""
    folder = tmp_path_factory.mktemp("wheels")
    words = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--retries",
        "10",
        "--dest",
        str(folder),
        "pip",
        str(released.wheel),
    ]
    done = subprocess.run(
        words,
        env=given(),
        cwd=folder,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=PATIENCE,
        check=False,
    )
    if done.returncode:
        unreachable = (
            "No matching distribution found for pip",
            "Max retries exceeded",
            "Connection",
        )
        assert any(word in done.stderr for word in unreachable), done.stderr
        pytest.skip(f"no package registry is reachable: {done.stderr.strip().splitlines()[-1]}")
    return folder
