"""The examples of docs/reference/spark-data-source.md and docs/guides/spark-sql.md."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nessie_cli import create
from tests.engines.served import serving
from tests.engines.test_page import duckdb_block, python_block
from tests.server.processes import started
from tests.spark.iceberg import MISSING, RUNTIME

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).parents[2] / "docs"


def examples_hold(page: str, **replaced: str) -> int:
    """Runs the examples of a page and returns their number. `replaced` has other texts for here."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for here in replaced.items():
        assert here[0] in text
        text = text.replace(*here)
    runner = doctest.DocTestRunner()
    output: list[str] = []
    runner.run(doctest.DocTestParser().get_doctest(text, {}, page, page, 0), out=output.append)
    assert not runner.failures, "".join(output)
    return runner.tries


def test_the_examples_of_the_data_source(spark: SparkSession) -> None:
    assert spark.version.startswith("4.1.")
    assert examples_hold("reference/spark-data-source.md") > 20


@pytest.mark.skipif(not RUNTIME.path.exists(), reason=MISSING)
def test_the_examples_of_engines(spark: SparkSession, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/catalog.sqlite"
    create(store).close()
    here = {"sqlite:////data/catalog.sqlite": store, "/data/warehouse": str(tmp_path / "warehouse")}
    with started("--store", store) as (_, url):
        assert examples_hold("guides/spark-sql.md", **here, **{"http://127.0.0.1:19120": url}) > 20


@pytest.mark.skipif(not RUNTIME.path.exists(), reason=MISSING)
def test_the_blocks_of_iceberg_rest(spark: SparkSession, tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        served.nessie("branch", "feature/x", "main")
        duckdb_block(served)
        python_block("PyIceberg", served)
        python_block("Spark", served)
