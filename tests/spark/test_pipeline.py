"""The program of examples/pipeline does what its page says."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nessie_cli import ContentKey, connect
from tests.spark.iceberg import COORDINATES, MISSING, RUNTIME

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = Path(__file__).parents[2] / "examples" / "pipeline"


@pytest.mark.skipif(not RUNTIME.path.exists(), reason=MISSING)
def test_wrong_data_stays_on_its_branch(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = importlib.util.spec_from_file_location("pipeline", FOLDER / "pipeline.py")
    assert found
    assert found.loader
    pipeline = importlib.util.module_from_spec(found)
    found.loader.exec_module(pipeline)
    assert pipeline.ICEBERG == COORDINATES

    with pytest.raises(SystemExit, match=r"pipeline: nowhere\.csv: no such file"):
        pipeline.main(tmp_path / "lake", [Path("nowhere.csv")])
    assert not (tmp_path / "lake").exists()

    # `getOrCreate` in the program uses the current session.
    assert pipeline.main(tmp_path / "lake", sorted((FOLDER / "orders").glob("*.csv"))) == 1

    (said,) = re.findall(
        r"```text\n(.*?)```", (FOLDER / "README.md").read_text(encoding="utf-8"), re.DOTALL
    )
    shown = capsys.readouterr().out
    assert shown.startswith(said)
    assert re.findall(r"\|\s+(\d+)\|\s+(\w+)\|\s*(\d+)\|", shown) == [
        ("1", "ann", "1000"),
        ("2", "bob", "2550"),
        ("3", "ann", "599"),
        ("4", "zoe", "725"),
        ("5", "bob", "100"),
    ]
    with connect(str(tmp_path / "lake" / "catalog.sqlite")) as repository:
        names = {reference.name for reference in repository.references()}
        assert names == {"main", "ingest-2026-11-20", "release-2026-11-19", "release-2026-11-21"}
        orders = ContentKey.parse("shop.orders")
        assert repository.content("release-2026-11-19", orders) == repository.content(
            "ingest-2026-11-20~1", orders
        )
