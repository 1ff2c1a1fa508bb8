"""Random histories of two branches: merges, picked and reverted commits combine a table.

Each row has an id of its own, so the expected rows of a merge are those of ours without those that
theirs removed, with those that theirs added. `NESSIE_TEST_BRANCHES=N` is the number of histories,
`NESSIE_TEST_BRANCHES=FIRST:N` those from a number on.
Some of them end with the laws of merges, picks and reverts.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from nessie_cli.cli.main import run
from nessie_cli.iceberg.catalog import NessieCatalog
from nessie_cli.model import ReferenceType
from nessie_cli.repository.base import Repository
from nessie_cli.repository.opening import connect
from nessie_cli.revisions import Revision

FIRST, COUNT = map(int, f"0:{os.environ.get('NESSIE_TEST_BRANCHES', '12')}".split(":")[-2:])
STEPS = 14
CONFLICT = 3
BRANCHES = ("main", "dev")


class History:
    """A table on two branches, with the ids of its rows at each commit."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.folder = folder
        self.store = str(folder / ".nessie" / "store.sqlite")
        assert run(["init"]) == 0
        self.ids = count(1)
        self.rows: dict[str, frozenset[int]] = {}
        self.outcomes: Counter[str] = Counter()
        with closing(self.catalog("main")) as catalog:
            catalog.create_namespace("db")
            with catalog.create_table_transaction(
                "db.t", rows().schema, properties={"format-version": str(self.rng.choice([1, 2]))}
            ) as transaction:
                transaction.append(rows(*(next(self.ids) for _ in range(4))))
        with connect(self.store) as repository:
            head = repository.reference("main").hash
            repository.create_reference(ReferenceType.BRANCH, "dev", head)
        self.rows[head] = self.read("main")

    def catalog(self, branch: str) -> NessieCatalog:
        return NessieCatalog(
            "lake", uri=self.store, warehouse=str(self.folder / "lake"), ref=branch
        )

    # -- reading ---------------------------------------------------------------------------------

    def head(self, branch: str) -> str:
        with connect(self.store) as repository:
            return repository.reference(branch).hash

    def read(self, branch: str) -> frozenset[int]:
        """Returns the ids of the rows on a branch. Each id is there once."""
        with closing(self.catalog(branch)) as catalog:
            ids = catalog.load_table("db.t").scan().to_arrow()["id"].to_pylist()
        assert len(ids) == len(set(ids)), f"rows exist twice: {sorted(ids)}"
        return frozenset(ids)

    def check(self) -> None:
        """Checks that the rows at the heads are those that the steps left."""
        for branch in BRANCHES:
            assert self.read(branch) == self.rows[self.head(branch)], branch

    # -- laws ------------------------------------------------------------------------------------

    def check_directions(self) -> None:
        """Both directions of a merge give the same rows, and a second merge changes nothing."""
        for branch in BRANCHES:
            assert run(["branch", f"{branch}-copy", branch]) == 0
        made = [
            ours
            for ours, theirs in (("main-copy", "dev"), ("dev-copy", "main"))
            if run(["merge", theirs, "--into", ours, "-q"]) == 0
        ]
        rows = [self.read(branch) for branch in made]
        assert rows[1:] == rows[:-1]
        for branch in made:
            head = self.head(branch)
            theirs = "dev" if branch == "main-copy" else "main"
            assert run(["merge", theirs, "--into", branch, "-q"]) == 0
            assert self.head(branch) == head
        self.outcomes[f"directions: {len(made)}"] += 1

    def check_unchanged_side(self) -> None:
        """A merge whose one side did not change the table gives the table of the other one."""
        assert run(["branch", "changed", "main"]) == 0
        with closing(self.catalog("changed")) as catalog:
            catalog.load_table("db.t").append(rows(next(self.ids)))
        with closing(self.catalog("main")) as catalog:
            catalog.create_namespace("other")
        for theirs, ours in (("changed", "main"), ("main", "changed")):
            assert run(["branch", f"{ours}-merged", ours]) == 0
            assert run(["merge", theirs, "--into", f"{ours}-merged", "-q"]) == 0
            assert self.table(f"{ours}-merged") == self.table("changed")

    def check_pick_and_revert(self) -> None:
        """The revert of a picked commit gives the rows before."""
        before, head = self.read("main"), self.head("main")
        present = sorted(self.read("dev"))
        with closing(self.catalog("dev")) as catalog:
            table = catalog.load_table("db.t")
            if present and self.rng.random() < 0.5:
                table.delete(f"id == {self.rng.choice(present)}")
            else:
                table.append(rows(next(self.ids)))
        run(["transplant", self.head("dev"), "--onto", "main", "-q"])
        picked = self.head("main")
        reverted = picked != head and run(["--ref", "main", "revert", picked, "-q"]) == 0
        assert not reverted or self.read("main") == before
        self.outcomes[f"pick and revert: {'done' if reverted else 'refused'}"] += 1

    def table(self, branch: str) -> str:
        """Returns the location of the table's metadata file."""
        with closing(self.catalog(branch)) as catalog:
            return str(catalog.load_table("db.t").metadata_location)

    # -- steps -----------------------------------------------------------------------------------

    def step(self) -> None:
        ours, theirs = self.rng.sample(BRANCHES, 2)
        kind = self.rng.choices(
            ["append", "delete", "rewrite", "property", "merge", "pick", "revert", "restore"],
            [6, 3, 1, 1, 3, 2, 2, 0.5],
        )[0]
        if kind == "restore":
            self.restore(ours, theirs)
            return
        if kind in ("append", "delete", "rewrite", "property"):
            with closing(self.catalog(ours)) as catalog:
                after = self.write(kind, catalog, self.rows[self.head(ours)])
            self.rows[self.head(ours)] = after
            return
        with connect(self.store) as repository:
            if kind == "merge":
                base = repository.merge_base(ours, theirs)
                sides, command = (base, self.head(theirs)), ["merge", theirs, "--into", ours]
            else:
                commit = self.commit_of(repository, theirs if kind == "pick" else ours)
                if commit is None:
                    return
                parent = repository.commit_at(Revision(None, commit)).parent
                sides = (parent, commit) if kind == "pick" else (commit, parent)
                command = (
                    ["transplant", commit, "--onto", ours]
                    if kind == "pick"
                    else ["--ref", ours, "revert", commit]
                )
        self.combine(kind, ours, sides, command)

    def restore(self, ours: str, theirs: str) -> None:
        """Gives ours the table of theirs, in a commit of its own."""
        if self.rows[self.head(ours)] != self.rows[self.head(theirs)]:
            restore = ["--ref", ours, "restore", "db.t", "--source", theirs, "-q"]
            if run(restore) == 0:
                run(["--ref", ours, "commit", "-m", "restore", "-q"])
            self.rows[self.head(ours)] = self.read(ours)

    def write(self, kind: str, catalog: Catalog, present: frozenset[int]) -> frozenset[int]:
        """Changes the table. Returns the ids of its rows."""
        table: Table = catalog.load_table("db.t")
        if kind == "append":
            ids = [next(self.ids) for _ in range(self.rng.randint(1, 3))]
            table.append(rows(*ids))
            return present.union(ids)
        if kind == "delete" and present:
            id_ = self.rng.choice(sorted(present))
            table.delete(f"id == {id_}")
            return present - {id_}
        if kind == "rewrite" and present:
            # All rows are the same, in one new file.
            table.overwrite(table.scan().to_arrow())
        elif kind == "property":
            with table.transaction() as transaction:
                transaction.set_properties(note=str(next(self.ids)))
        return present

    def commit_of(self, repository: Repository, branch: str) -> str | None:
        """Returns a commit of a branch with one parent, but not the first ones."""
        entries = [
            entry.hash
            for entry in repository.log(branch)
            if len(entry.meta.parents) == 1 and entry.parent in self.rows
        ]
        return self.rng.choice(entries) if entries else None

    def combine(self, kind: str, ours: str, sides: tuple[str, str], command: list[str]) -> None:
        head = self.head(ours)
        present = self.rows[head]
        base, theirs = (self.rows[commit] for commit in sides)
        before = set(self.folder.rglob("*.parquet"))
        code = run([*command, "-q"])
        assert set(self.folder.rglob("*.parquet")) == before
        if code != 0:
            # A revert of what is reverted already is invalid input.
            assert code == CONFLICT or kind == "revert"
            assert self.head(ours) == head
            self.outcomes[f"{kind}: refused"] += 1
            return
        self.outcomes[f"{kind}: done"] += 1
        after = self.rows[self.head(ours)] = self.read(ours)
        assert after == (present - (base - theirs)) | (theirs - base), (
            kind,
            sorted(present),
            sorted(base),
            sorted(theirs),
        )


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": list(ids), "v": ["x"] * len(ids)}, schema=SCHEMA)


SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])


def histories(
    first: int, count: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[History]:
    """Runs some histories."""
    monkeypatch.setenv("NESSIE_AUTHOR", "ann")
    for seed in range(first, first + count):
        own = folder / str(seed)
        own.mkdir()
        monkeypatch.chdir(own)
        history = History(own, seed)
        for _ in range(STEPS):
            history.step()
        yield history


def test_no_row_is_lost_or_doubled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes: Counter[str] = Counter()
    for history in histories(FIRST, COUNT, tmp_path, monkeypatch):
        history.check()
        outcomes += history.outcomes
        capsys.readouterr()
    print(outcomes)
    done = sum(number for name, number in outcomes.items() if name.endswith("done"))
    # A program that refuses all would pass, too.
    assert done > 0.5 * outcomes.total()


def test_laws_hold_after_random_histories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes: Counter[str] = Counter()
    for history in histories(FIRST, max(1, COUNT // 6), tmp_path, monkeypatch):
        history.outcomes.clear()
        history.check_directions()
        history.check_unchanged_side()
        history.check_pick_and_revert()
        outcomes += history.outcomes
        capsys.readouterr()
    print(outcomes)
