"""`nessie run --check-sql --engine spark`: queries of Spark on the commit that is published."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.iceberg import MISSING, RUNTIME
from tests.spark.sessions import SETTINGS, environment

LOAD = """
import pyarrow as pa
from pyiceberg.catalog import load_catalog

catalog = load_catalog()
orders = pa.table({"id": [1, 2], "cents": [10, -5]})
catalog.create_namespace_if_not_exists("shop")
catalog.create_table_if_not_exists("shop.orders", orders.schema).append(orders)
"""
NEW_ROWS = "SELECT * FROM lake.shop.orders MINUS SELECT * FROM base.shop.orders"


def nessie(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    with environment(folder):
        return subprocess.run(
            [sys.executable, "-m", "nessie_cli", *arguments],
            cwd=folder,
            env={**os.environ, "HOME": str(folder), "SPARK_CONF_DIR": str(folder / "conf")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A workspace, a program that loads two orders, and a configuration of Spark."""
    (tmp_path / "load.py").write_text(LOAD)
    (tmp_path / "conf").mkdir()
    configure(tmp_path, **SETTINGS, **{"spark.jars": str(RUNTIME.path)})
    assert nessie(tmp_path, "init").returncode == 0
    shop = nessie(tmp_path, "content", "put", "shop", "--type", "namespace", "-m", "add shop")
    assert shop.returncode == 0
    return tmp_path


def configure(folder: Path, **settings: str) -> None:
    lines = [f"{key} {value}" for key, value in {"spark.master": "local[1]", **settings}.items()]
    (folder / "conf" / "spark-defaults.conf").write_text("\n".join(lines))


@pytest.mark.skipif(not RUNTIME.path.exists(), reason=MISSING)
def test_a_query_of_spark_sees_the_run_and_its_base(lake: Path) -> None:
    check = ("--engine", "spark", "--check-sql")
    first = nessie(
        lake,
        "run",
        *check,
        "SELECT * FROM shop.orders WHERE id = 3",
        "--",
        sys.executable,
        "load.py",
    )
    assert first.returncode == 0, first
    assert "passed  spark-sql: SELECT * FROM shop.orders WHERE id = 3\n" in first.stderr

    query = "SELECT id, cents FROM lake.shop.orders o WHERE cents < (SELECT sum(cents) FROM base.shop.orders)"
    second = nessie(lake, "run", *check, query, "--", sys.executable, "load.py")
    assert second.returncode == 1, second
    assert f"failed  spark-sql: {query}\n        id | cents\n        2 | -5\n" in second.stderr


def test_without_the_runtime_of_iceberg_the_check_says_so(lake: Path) -> None:
    configure(lake, **SETTINGS)
    ran = nessie(
        lake, "run", "--engine", "spark", "--check-sql", NEW_ROWS, "--", sys.executable, "load.py"
    )
    assert ran.returncode == 1
    assert "        Spark has no Iceberg runtime: add `spark.jars.packages" in ran.stderr
