"""A warehouse with one table and unreachable files, and garbage collection runs over it, for
golden files. Its sizes do not depend on the path."""

from __future__ import annotations

import itertools
import json
import os
from datetime import UTC, datetime
from pathlib import Path

from nessie_cli import CommitMeta, ContentKey, Put, Repository, connect, create
from nessie_cli.gc import phases
from nessie_cli.gc.apply import approve
from nessie_cli.gc.mark import mark
from nessie_cli.gc.plan import plan
from nessie_cli.gc.run import Run, Runs, RunSettings
from nessie_cli.model import IcebergTable

BEGIN = datetime(2025, 1, 1, tzinfo=UTC)
SIZE = 4096


def make(folder: Path) -> None:
    """Creates a workspace whose branch has one table without a snapshot; two files are
    unreachable."""
    base = folder / "warehouse/db/t"
    (base / "metadata").mkdir(parents=True)
    (base / "data").mkdir()
    metadata = base / "metadata/00000.metadata.json"
    metadata.write_text(json.dumps(_metadata(str(base))).ljust(SIZE))
    (base / "data/garbage.parquet").write_text("garbage")
    (base / "metadata/old.metadata.json").write_text("{}")
    for path in (folder / "warehouse").rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    (folder / ".nessie").mkdir()
    (folder / ".nessie/HEAD").write_text("main\n")
    numbers = itertools.count(1)
    clock = lambda: int(BEGIN.timestamp() * 1_000_000)  # noqa: E731 - one line of a signature
    with create(
        str(_store(folder)),
        who="Ann",
        clock=clock,
        random=lambda size: next(numbers).to_bytes(size, "big"),
    ) as repository:
        content = IcebergTable(
            metadata_location=str(metadata), snapshot_id=-1, schema_id=0, spec_id=0, sort_order_id=0
        )
        repository.commit(
            "main",
            [Put(ContentKey.parse("db"), _namespace())],
            CommitMeta("a place for tables", authors=("Ann",)),
        )
        repository.commit(
            "main",
            [Put(ContentKey.parse("db.t"), content)],
            CommitMeta("a table", authors=("Ann",)),
        )


def _namespace() -> object:
    from nessie_cli.model import Namespace

    return Namespace(elements=("db",))


def _store(folder: Path) -> Path:
    return folder / ".nessie/store.sqlite"


def begun(folder: Path) -> None:
    """Adds a run that was stopped at its beginning."""
    make(folder)
    with connect(str(_store(folder))) as repository:
        Runs(folder / ".nessie/gc").new(_settings(folder, repository), BEGIN)


def planned(folder: Path) -> None:
    """Adds a run that has found the unreachable files."""
    _planned(folder)


def approved(folder: Path) -> None:
    """Adds a run that Ann has approved."""
    run = _planned(folder)
    with run.changing():
        approve(run, "Ann", BEGIN)


def _settings(folder: Path, repository: Repository) -> RunSettings:
    return RunSettings(
        store=repository.url,
        reference_time=BEGIN,
        default_cutoff="1",
        warehouse=(str(folder / "warehouse"),),
    )


def _planned(folder: Path) -> Run:
    make(folder)
    with connect(str(_store(folder))) as repository:
        settings = _settings(folder, repository)
        run = Runs(folder / ".nessie/gc").new(settings, BEGIN)
        with run.changing():
            phases.mark(
                run, lambda marks: mark(repository, settings, marks, {}, _ignore), lambda: BEGIN
            )
            phases.plan(run, lambda: plan(run, settings, {}, _ignore), settings, lambda: BEGIN)
    return run


def _ignore(_what: str, _done: int, _total: int | None) -> None:
    """Ignores progress."""


def _metadata(location: str) -> dict[str, object]:
    """Returns the metadata file of an Iceberg table without a snapshot."""
    return {
        "format-version": 2,
        "table-uuid": "4a5e1bd4-7d1c-4b56-93a9-5fa0ddf92d25",
        "location": location,
        "last-sequence-number": 0,
        "last-updated-ms": 0,
        "last-column-id": 1,
        "current-schema-id": 0,
        "schemas": [
            {
                "type": "struct",
                "schema-id": 0,
                "fields": [{"id": 1, "name": "n", "required": False, "type": "long"}],
            }
        ],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
    }
