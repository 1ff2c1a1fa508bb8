"""What runs must not leave behind: servers, folders, tokens."""

from __future__ import annotations

import os
from pathlib import Path

from nessie_cli.repository.base import Repository
from tests.server.waiting import until


def processes(store: Path) -> list[str]:
    """The command lines of servers of runs whose parent has ended, or which name the store."""
    lines = []
    for folder in Path("/proc").iterdir():
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            environment = (folder / "environ").read_bytes()
        except (OSError, UnicodeDecodeError):
            continue
        if f"NESSIE_TEST_MARK={store}".encode() in environment.split(b"\0"):
            lines.append(f"{folder.name} {line}")
    return lines


def nothing_is_left(mark: Path, temporary: Path) -> None:
    """Waits until all processes with a mark in their environment and all folders are gone."""
    until(lambda: not processes(mark))
    until(lambda: not any(temporary.iterdir()))
    assert os.listdir(temporary) == []  # noqa: PTH208


def no_token_works(repository: Repository) -> None:
    """Asserts that no record of an ended run has a token."""
    for record in repository.runs.all():
        if record.run.state != "running":
            assert record.run.tokens == ()
