"""Programs that name no branch work on the branch of a run, on a server with tokens."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tests.engines.served import EXTENSIONS, Served, extension
from tests.runs.environment.served_run import FIRST_ROWS, ServedRun, served_lake

THIRD = (3, "eve", 30)
PYICEBERG = """
import pyarrow as pa
from pyiceberg.catalog import load_catalog

orders = load_catalog({name}).load_table("shop.orders")
row = {{"id": [3], "client": ["eve"], "cents": [30]}}
orders.append(pa.table(row, schema=orders.schema().as_arrow()))
"""
DUCKDB = """
import os, duckdb

with open(os.environ["NESSIE_RUN_DUCKDB"]) as file:
    duckdb.execute(file.read())
duckdb.execute("INSERT INTO lake.shop.orders VALUES (3, 'eve', 30)")
"""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    with served_lake(tmp_path_factory.mktemp("lake")) as running:
        yield running


@pytest.fixture
def run(tmp_path: Path, lake: tuple[Served, str]) -> ServedRun:
    return ServedRun(lake[0], tmp_path, lake[1])


def the_row_is_on_the_branch_only(run: ServedRun) -> None:
    assert run.rows(run.access.branch) == [*FIRST_ROWS, THIRD]
    assert run.rows("main") == FIRST_ROWS
    assert run.target_is_untouched()


@pytest.mark.parametrize("name", ["", "'lake'", "'Lake'"])
def test_pyiceberg(run: ServedRun, name: str) -> None:
    run.run(sys.executable, run.script(PYICEBERG.format(name=name)))

    the_row_is_on_the_branch_only(run)


@pytest.mark.parametrize("key", ["credential: ada:secret", "auth:\n      type: noop"])
def test_pyiceberg_beside_a_file_and_variables_of_the_user(run: ServedRun, key: str) -> None:
    run.script(
        f"""
default-catalog: prod
catalog:
  prod:
    uri: http://127.0.0.1:1/iceberg
  LAKE:
    type: sql
    uri: sqlite:////nowhere/x.sqlite
    warehouse: other
    oauth2-server-uri: http://127.0.0.1:1/tokens
    {key}
""",
        ".pyiceberg.yaml",
    )
    run.run(
        sys.executable,
        run.script(PYICEBERG.format(name="")),
        PYICEBERG_CATALOG__LAKE__URI="http://127.0.0.1:1/iceberg",
        PYICEBERG_CATALOG__LAKE__AUDIENCE="other",
        PYICEBERG_DEFAULT_CATALOG="prod",
    )

    the_row_is_on_the_branch_only(run)


def test_pyiceberg_with_an_underscore_in_the_name(run: ServedRun) -> None:
    run.access = run.access._replace(catalog="my_lake")
    run.run(sys.executable, run.script(PYICEBERG.format(name="")))

    the_row_is_on_the_branch_only(run)


@pytest.mark.parametrize("warehouse", ["lake", None])
def test_duckdb(run: ServedRun, tmp_path: Path, warehouse: str | None) -> None:
    run.access = run.access._replace(warehouse=warehouse)
    folder = tmp_path / ".duckdb/extensions"
    with duckdb.connect(config={"extension_directory": str(folder)}) as connection:
        # In place of the download.
        for name in EXTENSIONS:
            connection.execute(f"INSTALL '{extension(name)}'")
    run.run(sys.executable, run.script(DUCKDB))

    the_row_is_on_the_branch_only(run)


def test_nessie(run: ServedRun) -> None:
    nessie = (sys.executable, "-m", "nessie_cli")
    inherited = {"NESSIE_STORE": "sqlite:///nowhere.sqlite", "NESSIE_PROFILE": "prod"}

    assert run.run(*nessie, "status", **inherited).startswith(f"on branch {run.access.branch}")
    run.run(*nessie, "content", "put", "raw", "--type", "namespace", "-m", "add raw", **inherited)
    assert "add raw" in run.run(*nessie, "log", **inherited)
    assert run.target_is_untouched()
