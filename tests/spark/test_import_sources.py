"""A warehouse of Spark's Hadoop catalog as the source of an import."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nessie_cli.importing.opening import open_source
from nessie_cli.importing.source import SourceNamespace
from tests.spark.iceberg import MISSING, RUNTIME
from tests.spark.sessions import SMALL_TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.skipif(not RUNTIME.path.exists(), reason=MISSING)

COMPRESSED = "TBLPROPERTIES ('write.metadata.compression-codec'='gzip')"


def test_a_warehouse_of_hadoops_catalog_is_a_source(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"
    session = spark.newSession()
    for name, value in {
        **SMALL_TABLES,
        "spark.sql.catalog.hadoop": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.hadoop.type": "hadoop",
        "spark.sql.catalog.hadoop.warehouse": f"file:{warehouse}",
    }.items():
        session.conf.set(name, value)
    for statement in (
        "CREATE NAMESPACE hadoop.shop.eu",
        "CREATE NAMESPACE hadoop.empty",
        "CREATE TABLE hadoop.shop.orders (id BIGINT, day STRING) USING iceberg",
        "INSERT INTO hadoop.shop.orders VALUES (1, 'a'), (2, 'b')",
        "INSERT INTO hadoop.shop.orders VALUES (3, 'c')",
        f"CREATE TABLE hadoop.shop.eu.items (id BIGINT) USING iceberg {COMPRESSED}",
        "INSERT INTO hadoop.shop.eu.items VALUES (1)",
        "CREATE TABLE hadoop.shop.dropped (id BIGINT) USING iceberg",
        "DROP TABLE hadoop.shop.dropped",
    ):
        session.sql(statement)
    source = open_source(f"file:{warehouse}")
    listing = source.listing([])
    assert not listing.problems
    assert not listing.left_out
    assert [(content.name, content.guess) for content in listing.contents] == [
        (("shop", "eu", "items"), ""),
        (("shop", "orders"), ""),
    ]
    assert [content.metadata_location.rpartition("/")[2] for content in listing.contents] == [
        "v2.gz.metadata.json",
        "v3.metadata.json",
    ]
    assert listing.namespaces == [SourceNamespace(("shop",)), SourceNamespace(("shop", "eu"))]
    # The hint may lag behind, and may be missing.
    hint = warehouse / "shop/orders/metadata/version-hint.text"
    for text, guess in (("1", False), (None, True)):
        hint.unlink()
        if text:
            hint.write_text(text)
        orders = source.listing([("shop",)]).contents[1]
        assert orders.metadata_location == listing.contents[1].metadata_location
        assert bool(orders.guess) is guess
