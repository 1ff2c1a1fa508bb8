"""`nessie run` in this process at a server in this process, and the programs that it runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nessie_cli import connect
from nessie_cli.model import CommitMeta, ContentKey, IcebergTable, Put
from nessie_cli.repository.base import Repository
from nessie_cli.runs import lifecycle
from tests.command.in_process import InProcess
from tests.command.outcome import Outcome
from tests.server.serving import serving

WRITER = (sys.executable, "-I", "-S", str(Path(__file__).with_name("writer.py")))


def writer(*words: str) -> tuple[str, ...]:
    """The command that writes tables: `KEY=NUMBER`."""
    return (*WRITER, *words)


def state(repository: Repository, ref: str = "main") -> dict[str, int]:
    """The tables of a reference with their numbers."""
    return {
        entry.key.plain: entry.content.snapshot_id
        for entry in repository.entries(ref, content=True)
        if isinstance(entry.content, IcebergTable)
    }


def write(repository: Repository, branch: str, name: str, number: int) -> str:
    """Commits a table, and returns the hash of the commit."""
    key = ContentKey.parse(name)
    content = repository.contents(branch, [key]).get(key)
    table = IcebergTable(
        metadata_location=f"s3://lake/{name}-{number}.json",
        snapshot_id=number,
        id=content.id if content else None,
    )
    put = Put(key, table)
    return repository.commit(branch, [put], CommitMeta(f"write {name}")).reference.hash


class Runs:
    """The command at a server whose main has the table a=1."""

    def __init__(self, nessie: InProcess, repository: Repository) -> None:
        self.nessie, self.repository = nessie, repository

    def __call__(self, *args: str, **environment: str) -> Outcome:
        """Runs `nessie run ARGS...`."""
        return self.nessie("run", *args, **environment)

    def json(self, *args: str) -> Any:
        """The document of `nessie run --json ARGS...`."""
        return self("--json", *args).json

    @property
    def main(self) -> dict[str, int]:
        return state(self.repository)

    @property
    def branches(self) -> list[str]:
        """The branches of runs."""
        names = [reference.name for reference in self.repository.references()]
        return [name for name in names if name.startswith("run/")]

    @property
    def tags(self) -> list[str]:
        return [ref.name for ref in self.repository.references() if ref.type == "TAG"]

    def only(self) -> Any:
        """The record of the only run."""
        (record,) = self.repository.runs.all()
        return record.run


@pytest.fixture
def runs(nessie: InProcess, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runs]:
    # All command lines are of this process, so that of a run seems to live on after its end.
    monkeypatch.setattr(lifecycle, "SILENCE", 0.0)
    with connect("memory:") as repository, serving(repository) as url:
        write(repository, "main", "a", 1)
        assert nessie("init", "--store", f"{url}/api/v2").code == 0
        yield Runs(nessie, repository)
