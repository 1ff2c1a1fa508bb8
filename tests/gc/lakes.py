"""Real tables on several branches, the runs over them, and a plain oracle of live files."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.exceptions import NamespaceAlreadyExistsError
from pyiceberg.table import StaticTable

from nessie_cli.errors import NessieError
from nessie_cli.gc import phases
from nessie_cli.gc.apply import Applied, apply, approve
from nessie_cli.gc.foreign import ForeignTables
from nessie_cli.gc.mark import mark
from nessie_cli.gc.marker import RepositoryMarker
from nessie_cli.gc.plan import plan
from nessie_cli.gc.run import MarkDatasets, Run, Runs, RunSettings
from nessie_cli.iceberg.locations import normalised
from nessie_cli.model import IcebergTable, LogEntry, Put, ReferenceType
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import MergeOptions
from tests.iceberg.lake import Lake, new_store

ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})
READ = dict[tuple[str, int], list[dict[str, Any]]]


def now() -> datetime:
    return datetime.now(UTC)


def later() -> datetime:
    """Returns a time when all moves so far have left the reflog."""
    return now() + timedelta(days=91)


def silent(what: str, done: int, total: int | None) -> None:
    """Ignores progress."""


class Shore(Lake):
    """A lake and the runs of its garbage collection."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        super().__init__(new_store(folder), folder, stack)
        self.runs = Runs(folder / "runs")
        self._catalogs: dict[str, Any] = {}

    def on(self, branch: str = "main") -> Any:
        """Returns the catalog of a branch, with a namespace `db`."""
        if branch not in self._catalogs:
            self._catalogs[branch] = self.catalog(branch)
        with suppress(NamespaceAlreadyExistsError):
            self._catalogs[branch].create_namespace("db")
        return self._catalogs[branch]

    def create(self, name: str, branch: str = "main", version: str = "2", **properties: str) -> Any:
        """Creates a table with one append. Its location depends on the name alone."""
        place = f"{self.warehouse}/db/{name}"
        table = self.on(branch).create_table(
            ("db", name), ROWS.schema, place, properties={"format-version": version, **properties}
        )
        table.append(ROWS)
        return table

    def branch_off(self, name: str, source: str = "main") -> None:
        self.repository.create_reference(
            ReferenceType.BRANCH, name, self.repository.reference(source).hash
        )

    def settings(self, cutoff: str = "NONE", snapshots: str = "listed", **more: Any) -> RunSettings:
        given = {"warehouse": (str(self.warehouse),), "reference_time": later()} | more
        return RunSettings(
            store=self.repository.url, default_cutoff=cutoff, snapshots=snapshots, **given
        )

    def planned(self, settings: RunSettings, marking: Any = mark, planning: Any = plan) -> Run:
        """Returns a run that is marked and planned."""
        foreign = ForeignTables(self.repository, {}).locations()
        settings = settings.with_plan(settings.warehouse, settings.grace, foreign)
        run = self.runs.new(settings, now())
        with run.changing():
            phases.mark(
                run, lambda marks: marking(self.repository, settings, marks, {}, silent), now
            )
            phases.plan(run, lambda: planning(run, settings, {}, silent), settings, now)
        return run

    def applied(self, run: Run, marking: Any = mark) -> Applied:
        """Approves and applies a planned run."""
        with run.changing():
            approve(run, "Ann", now())
            return apply(run, self.marker(run, marking), {}, now, lambda _done, _total: None)

    def marker(self, run: Run, marking: Any = mark) -> RepositoryMarker:
        return RepositoryMarker(self.repository, run.info.settings, {}, silent, engine=marking)

    def files(self) -> set[str]:
        return {normalised(str(path)) for path in self.warehouse.rglob("*") if path.is_file()}


@contextmanager
def shore(folder: Path) -> Iterator[Shore]:
    with ExitStack() as stack:
        yield Shore(folder, stack)


def candidates(run: Run) -> list[str]:
    return [record["path"] for record in run.dataset("candidates").records(["path"])]


def findings(marks: MarkDatasets) -> list[dict[str, Any]]:
    return list(marks.findings.records())


# -- what is needed -------------------------------------------------------------------------------


def live_commits(repository: Repository, commits: int | None) -> Iterator[LogEntry]:
    """Returns the newest commits of every reference."""
    for reference in repository.references():
        for number, entry in enumerate(repository.log(reference.name, operations=True)):
            if commits is None or number < commits:
                yield entry


def live_tables(repository: Repository, commits: int | None) -> set[tuple[str, int]]:
    """Returns metadata file and snapshot of each table that live commits put or contain."""
    tables = set()
    for entry in live_commits(repository, commits):
        contents = [
            operation.content for operation in entry.operations or () if isinstance(operation, Put)
        ]
        contents += [held.content for held in repository.entries(f"@{entry.hash}", content=True)]
        tables |= {
            (content.metadata_location, content.snapshot_id)
            for content in contents
            if isinstance(content, IcebergTable)
        }
    return tables


def opened(location: str, snapshot_id: int, *, listed: bool) -> tuple[set[str], READ]:
    """Returns the files that PyIceberg opens to read a table, and the rows of each snapshot."""
    table = StaticTable.from_metadata(location)
    files, rows = {location}, {}
    for snapshot in table.snapshots():
        if not listed and snapshot.snapshot_id not in (
            snapshot_id,
            table.metadata.current_snapshot_id,
        ):
            continue
        manifests = snapshot.manifests(table.io)
        data = [
            entry.data_file.file_path
            for manifest in manifests
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True)
        ]
        files |= {
            snapshot.manifest_list,
            *(manifest.manifest_path for manifest in manifests),
            *data,
        }
        scanned = table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().to_pylist()
        rows[location, snapshot.snapshot_id] = sorted(
            scanned, key=lambda row: (row["id"], row["name"])
        )
    return {normalised(file) for file in files}, rows


def needed(repository: Repository, commits: int | None, *, listed: bool) -> tuple[set[str], READ]:
    files: set[str] = set()
    rows: READ = {}
    for location, snapshot_id in live_tables(repository, commits):
        more, read = opened(location, snapshot_id, listed=listed)
        files |= more
        rows |= read
    return files, rows


# -- random histories -----------------------------------------------------------------------------


def scribble(lake: Shore, chance: random.Random, steps: int) -> None:
    """Makes random changes to tables on branches."""
    # The last table is inside the location of the first one.
    names = ["a", "b", "a/inner"]
    for step in range(steps):
        branches = [
            reference.name
            for reference in lake.repository.references()
            if reference.type is ReferenceType.BRANCH and not reference.name.startswith("lake")
        ]
        branch, name = chance.choice(branches), chance.choice(names)
        catalog = lake.on(branch)
        key = ("db", name)
        there = catalog.table_exists(key)
        match chance.randrange(12):
            case 0 | 1:
                lake.branch_off(f"b{step}", branch)
            case 2 if there:
                catalog.drop_table(key)
            case 3 if there and not catalog.table_exists("db.renamed"):
                catalog.rename_table(key, "db.renamed")
            case 4:
                with suppress(NessieError):
                    lake.repository.merge(branch, chance.choice(branches), MergeOptions())
            case 5 if branch != "main":
                head = lake.repository.reference(branch)
                lake.repository.delete_reference(branch, expected_hash=head.hash)
            case 6:
                lake.repository.create_reference(
                    ReferenceType.TAG, f"tag{step}", lake.repository.reference(branch).hash
                )
            case 7 if there:
                catalog.load_table(key).overwrite(ROWS)
            case 8 if there:
                catalog.load_table(key).delete("id = 2")
            case _ if there:
                catalog.load_table(key).append(ROWS)
            case _:
                lake.create(name, branch, chance.choice("12"))
