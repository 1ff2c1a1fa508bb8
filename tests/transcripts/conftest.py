"""The command line in real processes, in an environment of their own: nothing of the machine's user, no NESSIE_ variable."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest


class Outcome(NamedTuple):
    """How one process ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """The error in that document."""
        return self.json["error"]


class Nessie:
    """`nessie ARGS...` in a folder. Every call is a process of its own."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        self.environment = {
            "PATH": os.defpath,
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / "config"),
            "LOGNAME": "tester",
            "LC_ALL": "C.UTF-8",
        }

    def command(self, *args: str) -> list[str]:
        return [sys.executable, "-m", "nessie_cli", *args]

    def __call__(self, *args: str, env: Mapping[str, str] | None = None, stdin: str | None = None, cwd: Path | None = None) -> Outcome:
        done = subprocess.run(
            self.command(*args),
            cwd=cwd or self.folder,
            env={**self.environment, **(env or {})},
            input=stdin if stdin is not None else "",
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        assert "Traceback" not in done.stderr or "--debug" in args, done.stderr
        return Outcome(done.returncode, done.stdout, done.stderr)

    def ok(self, *args: str, **more: Any) -> Outcome:
        """As a call, for steps that have to work."""
        outcome = self(*args, **more)
        assert outcome.code == 0, (args, outcome)
        return outcome

    def table(self, key: str, snapshot: int, *more: str) -> Outcome:
        """Put an Iceberg table."""
        location = f"s3://lake/{snapshot}.json"
        return self.ok("content", "put", key, "--type", "iceberg-table", "--metadata-location", location, "--snapshot-id", str(snapshot), *more)

    def snapshot(self, key: str, *more: str) -> int:
        """The snapshot id of a table as it is committed."""
        found: int = self.ok("content", "show", key, *more, "--json").json["content"]["snapshotId"]
        return found

    def messages(self, *more: str) -> list[str]:
        """The commit messages of the current reference, newest first."""
        return [entry["commitMeta"]["message"] for entry in self.ok("log", "--json", *more).json["logEntries"]]

    def staged(self) -> list[tuple[str, str]]:
        """Type and key of every staged operation."""
        operations = self.ok("status", "--json").json["batch"]["operations"]
        return [(operation["type"], ".".join(operation["key"]["elements"])) for operation in operations]


@pytest.fixture
def nessie(tmp_path: Path) -> Nessie:
    """The command in an empty folder without a workspace."""
    home = tmp_path / "home"
    folder = tmp_path / "work"
    home.mkdir()
    folder.mkdir()
    return Nessie(folder, home)


@pytest.fixture
def workspace(nessie: Nessie) -> Nessie:
    """The command in a folder with a fresh workspace."""
    nessie.ok("init")
    return nessie


@pytest.fixture
def catalog(workspace: Nessie) -> Nessie:
    """A workspace whose main holds the namespace `db` and the table `db.orders` with snapshot 1."""
    workspace.ok("content", "put", "db", "--type", "namespace")
    workspace.table("db.orders", 1, "-m", "first tables")
    return workspace
