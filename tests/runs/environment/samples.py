"""Accesses and environments that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nessie_cli.runs.environment import Environment, RunAccess, environment_of

ACCESS = RunAccess(
    id="20261130-0145-x7k2",
    api="http://127.0.0.1:40123/api/v2",
    iceberg="http://127.0.0.1:40123/iceberg",
    branch="run/20261130-0145-x7k2",
    base="2e1cfa82" * 8,
    token="t0ken",
    warehouse="lake",
)
BRANCH_URI = "http://127.0.0.1:40123/iceberg/run%2F20261130-0145-x7k2"


def made(
    tmp_path: Path,
    command: Sequence[str] = ("true",),
    access: RunAccess = ACCESS,
    **inherited: str,
) -> Environment:
    """Returns the environment of a command; its files are in the folder `run`."""
    return environment_of(
        access, command, {"PATH": "", **inherited}, tmp_path / "run", tmp_path / "work"
    )


def shared(**changes: Any) -> RunAccess:
    """Returns an access to a shared server."""
    server = "https://catalog.example.com"
    return ACCESS._replace(api=f"{server}/api/v2", iceberg=f"{server}/iceberg", **changes)
