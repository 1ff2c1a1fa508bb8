"""The command line in real processes, and hooks that are real shell scripts."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command.process import Nessie
from tests.transcripts.conftest import catalog, made_once, nessie, workspace

__all__ = ["catalog", "made_once", "nessie", "workspace"]

RUN = f"{sys.executable} -m nessie_cli"
"""The program that hooks of a test run as `nessie`."""


class Hooks:
    """The hooks of one workspace. Each stores its input in `NAME.json`, and appends a line to
    `ran` for each run."""

    def __init__(self, nessie: Nessie) -> None:
        self.folder = nessie.folder / ".nessie" / "hooks"
        self.folder.mkdir()

    def add(self, name: str, script: str = "") -> Path:
        kept = (
            f'cat > "{self.folder}/$NESSIE_HOOK.json"; echo "$NESSIE_HOOK" >> "{self.folder}/ran"\n'
        )
        return self.write(name, f"#!/bin/sh\n{kept}{script}\n")

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def given(self, name: str):
        return json.loads((self.folder / f"{name}.json").read_text())

    @property
    def ran(self) -> list[str]:
        path = self.folder / "ran"
        return path.read_text().split() if path.exists() else []


@pytest.fixture
def hooks(catalog: Nessie) -> Hooks:
    """The hooks of `catalog`, none at first."""
    return Hooks(catalog)


HashOf = Callable[[str], str]


@pytest.fixture
def head(catalog: Nessie) -> HashOf:
    """Returns the hash of a branch."""

    def of(name: str) -> str:
        found: str = catalog.ok("log", name, "-n", "1", "--json").json["logEntries"][0][
            "commitMeta"
        ]["hash"]
        return found

    return of


@pytest.fixture
def dev(catalog: Nessie) -> Nessie:
    """`catalog` with a branch dev that changes db.orders to snapshot 2 and creates db.items."""
    catalog.ok("branch", "dev")
    catalog.table("db.orders", 2, "-m", "change orders", "--ref", "dev")
    catalog.table("db.items", 7, "-m", "add items", "--ref", "dev")
    return catalog
