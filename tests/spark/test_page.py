"""The examples of docs/spark.md, in the one session that there is."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


def test_the_examples_of_the_page_give_what_they_say(spark: SparkSession) -> None:
    assert spark.version.startswith("4.1.")
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert tried > 20
    assert not failed
