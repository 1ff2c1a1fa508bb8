"""Concurrent runs that append to one table and to tables of their own.

`NESSIE_TEST_WRITERS=50` sets their number.
"""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from nessie_cli import connect, create, run
from nessie_cli.errors import NessieError
from nessie_cli.iceberg.catalog import NessieCatalog
from nessie_cli.model.runs import RunState
from tests.command.outcome import Outcome
from tests.command.process import Forker

WRITERS = int(os.environ.get("NESSIE_TEST_WRITERS", "6"))
PROCESSES = int(os.environ.get("NESSIE_TEST_WRITERS", "3"))
SCHEMA = pa.schema([pa.field("id", pa.int64())])


LOAD = """
import sys
import pyarrow as pa
from pyiceberg.catalog import load_catalog

catalog = load_catalog()
rows = pa.table({"id": pa.array([int(sys.argv[1])], pa.int64())})
catalog.load_table("db.shared").append(rows)
catalog.create_table(f"db.own{sys.argv[1]}", rows.schema).append(rows)
"""


class Boom(Exception):
    """Raised in the block of a run."""


def ids(store: str, warehouse: str, name: str) -> list[int]:
    with closing(NessieCatalog("lake", uri=store, warehouse=warehouse)) as catalog:
        return sorted(catalog.load_table(name).scan().to_arrow()["id"].to_pylist())


@pytest.mark.slow
def test_every_append_of_a_landed_run_is_there_once(tmp_path: Path) -> None:
    store, warehouse = str(tmp_path / "store.sqlite"), str(tmp_path / "lake")
    create(store).close()
    with closing(NessieCatalog("lake", uri=store, warehouse=warehouse)) as catalog:
        catalog.create_namespace("db")
        catalog.create_table("db.shared", SCHEMA)

    def load(number: int) -> str:
        """Appends to both tables, and returns how the run ended."""
        with connect(store) as repository:
            try:
                with run(repository, warehouse=warehouse, key=f"run {number}") as active:
                    with closing(active.catalog()) as catalog:
                        rows = pa.table({"id": [number]}, schema=SCHEMA)
                        catalog.load_table("db.shared").append(rows)
                        catalog.create_table(f"db.own{number}", SCHEMA).append(rows)
                    if number % 5 == 4:
                        raise Boom  # noqa: TRY301 - as the program of a block would
            except Boom:
                return "failed"
            except NessieError as error:
                sys.stderr.write(f"run {number}: {error.message}\n")
                return "reported"
        return "landed"

    with ThreadPoolExecutor(min(WRITERS, 16)) as threads:
        ends = list(threads.map(load, range(WRITERS)))
    landed = [number for number, end in enumerate(ends) if end == "landed"]
    print({end: ends.count(end) for end in set(ends)})
    assert ids(store, warehouse, "db.shared") == landed
    with (
        connect(store) as repository,
        closing(NessieCatalog("lake", uri=store, warehouse=warehouse)) as catalog,
    ):
        names = {table[1] for table in catalog.list_tables("db")}
        assert names == {"shared", *(f"own{number}" for number in landed)}
        states = {record.run.key: record.run.state for record in repository.runs.all()}
    for number, end in enumerate(ends):
        expected = RunState.PUBLISHED if end == "landed" else RunState.FAILED
        assert states[f"run {number}"] is expected


@pytest.mark.slow
def test_runs_as_processes_land_or_can_be_resumed(tmp_path: Path, forker: Forker) -> None:
    """Each has its server. A target that moves too often is exit code 5, and nothing is lost."""
    environment = {**os.environ, "HOME": str(tmp_path)}

    def nessie(*words: str) -> Outcome:
        return forker.run(words, tmp_path, environment)

    assert nessie("init").code == 0
    store, warehouse = str(tmp_path / ".nessie" / "store.sqlite"), str(tmp_path / "warehouse")
    with closing(NessieCatalog("lake", uri=store, warehouse=warehouse)) as catalog:
        catalog.create_namespace("db")
        catalog.create_table("db.shared", SCHEMA)
    (tmp_path / "load.py").write_text(LOAD)

    def load(number: int) -> int:
        command = (sys.executable, "load.py", str(number))
        done = nessie("run", "--check", "true", "--", *command)
        assert "Traceback" not in done.err, done.err
        return done.code

    with ThreadPoolExecutor(min(PROCESSES, 8)) as threads:
        codes = list(threads.map(load, range(PROCESSES)))
    assert set(codes) <= {0, 5}
    landed = [number for number, code in enumerate(codes) if code == 0]
    assert ids(store, warehouse, "db.shared") == landed
    runs = json.loads(nessie("run", "--list", "--json").out)["runs"]
    waiting = [run["id"] for run in runs if run["state"] == "failed"]
    assert len(waiting) == PROCESSES - len(landed)
    for id_ in waiting:
        assert nessie("run", "--resume", id_).code == 0
    assert ids(store, warehouse, "db.shared") == list(range(PROCESSES))
    branches = json.loads(nessie("branch", "--json").out)["references"]
    assert [branch["name"] for branch in branches] == ["main"]
