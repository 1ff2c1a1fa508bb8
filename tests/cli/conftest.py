"""The command line, run in this process on a real SQLite store in a new folder."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nessie_cli.model import (
    CommitMeta,
    ContentKey,
    Delete,
    IcebergTable,
    Namespace,
    Operation,
    Put,
    ReferenceType,
)
from nessie_cli.repository.base import Repository
from nessie_cli.repository.opening import connect, create
from tests.cli.lake import Lake
from tests.command.in_process import InProcess
from tests.command.process import Forker
from tests.command.terminal import END_OF_INPUT, Running, Shown

if TYPE_CHECKING:
    from tests.server.iceberg_rest.lake import Lake as ServedLake

EVA = "Eva <eva@example.org>"
START = 1_780_000_000_000_000
"""2026-05-28T20:26:40Z in microseconds; each step of the clock is one minute."""


@pytest.fixture
def nessie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> InProcess:
    """Runs command lines in a new folder and a clean environment."""
    return InProcess(tmp_path, EVA, monkeypatch, capsys)


class Answering:
    """Runs a command in the current folder on a terminal where answers are typed."""

    def __init__(self, forker: Forker) -> None:
        self._forker = forker

    def __call__(
        self,
        answers: str,
        *args: str,
        meanwhile: Callable[[], object] | None = None,
        **environment: str,
    ) -> Shown:
        """Types the answers and the end of input, `meanwhile` after the first question."""
        variables = {**os.environ, "NO_COLOR": "1", **environment}
        running = Running(self._forker, args, Path.cwd(), variables, width=80, height=200)
        if meanwhile is not None:
            running.wait_for("help:")
            meanwhile()
        running.type(answers + END_OF_INPUT)
        return running.end()


@pytest.fixture
def answering(nessie: InProcess, forker: Forker) -> Answering:
    return Answering(forker)


def key(text: str) -> ContentKey:
    return ContentKey.parse(text)


def table(file: str, snapshot: int, id: str | None = None) -> IcebergTable:
    return IcebergTable(id=id, metadata_location=f"s3://lake/{file}.json", snapshot_id=snapshot)


def staged(nessie: InProcess) -> list[str]:
    """Returns the keys of the staged batch."""
    operations = nessie("status", "--json").json["batch"]["operations"]
    return [".".join(operation["key"]["elements"]) for operation in operations]


class Catalog:
    """The store of the workspace, filled without the command line.

    The clock gives the same hashes in every run.
    """

    def __init__(self, path: Path) -> None:
        self.url = str(path)
        clock, chance = itertools.count(START, 60_000_000), itertools.count(1)
        create(self.url).close()
        self.repository: Repository = connect(
            self.url,
            who="etl",
            clock=lambda: next(clock),
            random=lambda size: next(chance).to_bytes(size, "big"),
        )

    def commit(self, branch: str, message: str, *operations: Operation, author: str = EVA) -> str:
        return self.repository.commit(
            branch, operations, CommitMeta(message, authors=(author,))
        ).reference.hash

    def create(self, branch: str, name: str, snapshot: int = 1) -> str:
        return self.commit(branch, f"create {name}", Put(key(name), table(name, snapshot)))

    def update(self, branch: str, name: str, snapshot: int, author: str = EVA) -> str:
        found = self.repository.content(branch, key(name))
        return self.commit(
            branch,
            f"update {name}",
            Put(key(name), table(f"{name}-{snapshot}", snapshot, found.id)),
            author=author,
        )

    def rename(self, branch: str, old: str, new: str) -> str:
        found = self.repository.content(branch, key(old))
        return self.commit(branch, f"rename {old}", Delete(key(old)), Put(key(new), found))

    def drop(self, branch: str, name: str) -> str:
        return self.commit(branch, f"drop {name}", Delete(key(name)))

    def branch(
        self, name: str, at: str = "main", type_: ReferenceType = ReferenceType.BRANCH
    ) -> str:
        return self.repository.create_reference(type_, name, self.repository.resolve(at).hash).hash

    def head(self, name: str) -> str:
        return self.repository.reference(name).hash

    def snapshot(self, branch: str, name: str) -> int | None:
        found = self.repository.contents(branch, [key(name)]).get(key(name))
        return found.snapshot_id if isinstance(found, IcebergTable) else None


@pytest.fixture
def catalog(nessie: InProcess, tmp_path: Path) -> Iterator[Catalog]:
    """A workspace on `main`: the namespace `db`, the tables `db.orders` and `db.items`, the tag
    `v1` there."""
    assert nessie("init").code == 0
    found = Catalog(tmp_path / ".nessie" / "store.sqlite")
    found.commit("main", "namespace", Put(key("db"), Namespace(elements=("db",))))
    found.commit(
        "main",
        "tables\n\nwith a body",
        Put(key("db.orders"), table("orders", 1)),
        Put(key("db.items"), table("items", 1)),
    )
    found.branch("v1", type_=ReferenceType.TAG)
    yield found
    found.repository.close()


@pytest.fixture
def lake(nessie: InProcess, tmp_path: Path) -> Lake:
    """Two branches of one real table, which are combined."""
    assert nessie("config", "unset", "--user", "merge.tables").code == 0
    assert nessie("init").code == 0
    return Lake(str(tmp_path / ".nessie" / "store.sqlite"), tmp_path)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedLake]:
    """A server with a warehouse, and a table with an append on each of two branches."""
    from tests.server.iceberg_rest.appends import two_appends

    with two_appends(tmp_path / "warehouse") as lake:
        yield lake


@pytest.fixture
def remote(nessie: InProcess, served: ServedLake) -> InProcess:
    """The command with this server as its store."""
    assert nessie("config", "unset", "--user", "merge.tables").code == 0
    assert nessie("init", "--store", served.url).code == 0
    return nessie
