"""The commands that README.md begins with work, one after the other, as they stand there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def lines(section: str) -> list[str]:
    """The command lines of one section."""
    text = README.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    (block,) = re.findall(r"^```console\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [line.removeprefix("$ ") for line in block.splitlines()]


class Shell:
    """A folder, and a shell in it that has `nessie` on its PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        programs = folder / "bin"
        programs.mkdir()
        (programs / "nessie").write_text(f'#!/bin/sh\nexec {sys.executable} -m nessie_cli "$@"\n')
        (programs / "nessie").chmod(0o755)
        self.environment = {
            "PATH": f"{programs}{os.pathsep}{os.defpath}",
            "HOME": str(folder),
            "LC_ALL": "C.UTF-8",
        }

    def __call__(self, line: str) -> str:
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        return done.stdout


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    metadata = tmp_path / "lake/db/orders/metadata"
    metadata.mkdir(parents=True)
    for number in (1, 2):
        shutil.copy(
            ROOT / "tests/manual/table-metadata.json", metadata / f"0000{number}-….metadata.json"
        )
    return Shell(tmp_path)


def test_the_quick_start(shell: Shell) -> None:
    said = {line.split("  ")[0]: shell(line) for line in lines("Quick start")}

    assert "new snapshot" in said["nessie log --graph --oneline"]
    assert "new snapshot" not in shell("nessie log --graph --oneline"), "it ends with `nessie undo`"
    assert "00002-" in said["nessie diff main experiment"]


def test_a_server_and_a_client(shell: Shell) -> None:
    for line in lines("Quick start"):
        shell(line)
    serve, log = (line.partition("  #")[0] for line in lines("Servers"))
    # Port 0 is any free one.
    command = ["bash", "-c", f"exec {serve} --port 0"]
    with subprocess.Popen(
        command,
        cwd=shell.folder,
        env=shell.environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            said = process.stderr.readline()
            address = re.search(r"http://127\.0\.0\.1:\d+", said)
            assert address, said
            assert "register orders" in shell(log.replace("http://127.0.0.1:19120", address[0]))
        finally:
            process.terminate()
