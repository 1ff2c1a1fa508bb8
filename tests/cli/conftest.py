"""The command line, run in this process on a real SQLite store in a new folder."""

import itertools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from nessie_cli.cli.main import run
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

EVA = "Eva <eva@example.org>"
START = 1_780_000_000_000_000
"""2026-05-28T20:26:40Z in microseconds; each step of the clock is one minute."""


class Ran(NamedTuple):
    """How a command line ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def records(self) -> list[list[str]]:
        """The cells of lines that tabs divide."""
        return [line.split("\t") for line in self.lines]

    @property
    def rows(self) -> list[list[str]]:
        """The cells of a table without its headings, if it has any."""
        table = cells(self.lines)
        return table[1:] if table and "".join(table[0]).replace(" ", "").isupper() else table

    @property
    def subjects(self) -> list[str]:
        """The subjects of a log."""
        return re.findall(r"^Date: .*\n\n    (.*)$", self.out, re.MULTILINE)

    @property
    def changed(self) -> list[tuple[str, str]]:
        """The changes of a diff or a history: what happened to which key."""
        return re.findall(r"^(created|updated|deleted|renamed) (.+?)  \S+$", self.out, re.MULTILINE)

    @property
    def fields(self) -> dict[tuple[str, str], list[str]]:
        """The value of each field of a diff, or its values before and after, by key and label."""
        found: dict[tuple[str, str], list[str]] = {}
        key = ""
        for line in self.lines:
            if line.startswith("  "):
                label, value = re.split(" {2,}", line.strip(), maxsplit=1)
                before, arrow, after = value.partition("->")
                found[key, label] = [before.strip(), after.strip()] if arrow else [value]
            else:
                key = line.partition(" ")[2].partition("  ")[0]
        return found

    @property
    def states(self) -> dict[str, list[str]]:
        """The fields of a conflict report on stderr, with their values in the three states."""
        block = itertools.takewhile(
            lambda line: not line.startswith(("  changed by", "  resolve", "  or")),
            self.err.partition("\n")[2].splitlines()[1:],
        )
        return {label: values for label, *values in cells(list(block)) if label}

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """The error in that document."""
        return self.json["error"]


def cells(lines: list[str]) -> list[list[str]]:
    """Returns the cells of the lines of a table.

    Columns are divided by two blanks or more that all lines have at the same place.
    """
    width = max(map(len, lines), default=0)
    blank = "".join(
        " " if all(line[place : place + 1] in ("", " ") for line in lines) else "x"
        for place in range(width)
    )
    ends = [0, *(gap.end() for gap in re.finditer(" {2,}", blank)), width]
    cut = [[line[start:end].strip() for start, end in itertools.pairwise(ends)] for line in lines]
    return [row[1:] if cut[0][0] == "" else row for row in cut]


Nessie = Callable[..., Ran]


@pytest.fixture
def nessie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Nessie:
    """Runs one command line in a new folder and a clean environment.

    stdin is not a terminal.
    """
    for name in (
        "NESSIE_STORE",
        "NESSIE_ENDPOINT",
        "NESSIE_REF",
        "NO_COLOR",
        "CLICOLOR_FORCE",
        "PAGER",
        "NESSIE_PAGER",
        "COLUMNS",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NESSIE_AUTHOR", EVA)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / "config"))
    monkeypatch.chdir(tmp_path)

    def call(*argv: str) -> Ran:
        capsys.readouterr()
        code = run(list(argv))
        return Ran(code, *capsys.readouterr())

    return call


def key(text: str) -> ContentKey:
    return ContentKey.parse(text)


def table(file: str, snapshot: int, id: str | None = None) -> IcebergTable:
    return IcebergTable(id=id, metadata_location=f"s3://lake/{file}.json", snapshot_id=snapshot)


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
def catalog(nessie: Nessie, tmp_path: Path) -> Iterator[Catalog]:
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
