"""Spark's commands and plain PySpark on the branch of a run, in processes of their own."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.served import Served
from tests.runs.environment.served_run import FIRST_ROWS, ServedRun, served_lake
from tests.spark.iceberg import MISSING, RUNTIME
from tests.spark.sessions import SETTINGS, environment
from tests.spark.test_submit import SUBMIT

pytestmark = pytest.mark.skipif(not RUNTIME.path.exists(), reason=MISSING)

LOAD = """
import json
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.sql("INSERT INTO shop.orders VALUES (3, 'eve', 30)")
spark.sql("MERGE INTO lake.shop.orders t USING (SELECT 1L AS id) s ON t.id = s.id"
          " WHEN MATCHED THEN UPDATE SET cents = 11")
token = spark.sql("SET spark.sql.catalog.lake.token").first()[1]
print(json.dumps([token, spark.conf.get("spark.own.setting")]))
"""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    with served_lake(tmp_path_factory.mktemp("lake")) as running:
        yield running


@pytest.fixture
def run(tmp_path: Path, lake: tuple[Served, str]) -> ServedRun:
    return ServedRun(lake[0], tmp_path, lake[1])


def user_configuration(folder: Path) -> Path:
    """Makes a configuration folder whose catalog is somewhere else."""
    settings = {
        **SETTINGS,
        "spark.master": "local[1]",
        "spark.jars": str(RUNTIME.path),
        "spark.own.setting": "of the user",
        "spark.sql.defaultCatalog": "spark_catalog",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.catalog-impl": "org.apache.iceberg.nessie.NessieCatalog",
        "spark.sql.catalog.lake.uri": "http://127.0.0.1:1/api/v2",
        "spark.sql.catalog.lake.ref": "main",
    }
    folder.mkdir()
    lines = [f"{key} {value}" for key, value in settings.items()]
    (folder / "spark-defaults.conf").write_text("\n".join(lines))
    (folder / "spark-env.sh").write_text(f"SPARK_CONF_DIR={folder}\n")
    return folder


@pytest.mark.parametrize("program", [SUBMIT, sys.executable])
def test_a_program_without_settings(run: ServedRun, tmp_path: Path, program: str) -> None:
    user = user_configuration(tmp_path / "conf")
    with environment(tmp_path):
        out = run.run(program, run.script(LOAD), **os.environ, SPARK_CONF_DIR=str(user))

    assert json.loads(out.splitlines()[-1]) == ["*********(redacted)", "of the user"]
    assert run.rows(run.access.branch) == [(1, "ann", 11), *FIRST_ROWS[1:], (3, "eve", 30)]
    assert run.rows("main") == FIRST_ROWS
    assert run.target_is_untouched()
