"""The program of examples/pipeline does what its page says."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nessie_cli import ContentKey, ReferenceType, connect
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
    assert pipeline.SETTINGS["spark.jars.packages"] == COORDINATES

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
    with connect(str(tmp_path / "lake" / "catalog.sqlite")) as repository:
        failed, *others = repository.references(ReferenceType.BRANCH, prefix="run/")
        tags = {tag.name for tag in repository.references(ReferenceType.TAG)}
        assert failed.name.startswith("run/ingest-2026-11-20-")
        assert (others, tags) == ([], {"release-2026-11-19", "release-2026-11-21"})
        orders = ContentKey.parse("shop.orders")
        assert repository.content("release-2026-11-19", orders) == repository.content(
            f"{failed.name}~1", orders
        )
        head = repository.reference("main").hash

        # A repetition publishes nothing again.
        assert pipeline.main(tmp_path / "lake", [FOLDER / "orders" / "2026-11-21.csv"]) == 0
        assert repository.reference("main").hash == head
