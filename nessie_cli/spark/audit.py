"""The audit as Spark jobs: tasks check the contents of ranges of keys, and what several contents share is found by their uuids."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from nessie_cli.audit.checks import shared_uuid
from nessie_cli.audit.findings import Counts, Finding, FindingKind
from nessie_cli.model import ContentKey

CONTENTS_PER_TASK = 500
"""A content costs some requests to a file system, so the pieces are small."""


def audited(spark: SparkSession, url: str, at: str, prefix: ContentKey | None, counts: Counts) -> Iterator[Finding]:
    """What is wrong with the contents of a commit, or those below `prefix`: what `audit.local.findings` finds, in the same order.

    `counts` is complete before the first of them is told. Memory of the driver: a page of findings.
    """
    checked = examined(spark, url, at, "audit", prefix).select("elements", "content_id", "uuid", "files", "findings").persist(StorageLevel.DISK_ONLY)
    try:
        sums = checked.agg(F.count("*"), F.count(F.when(F.col("files") > 0, 1)), F.coalesce(F.sum("files"), F.lit(0))).first()
        assert sums is not None
        counts.contents, counts.with_files, counts.files = (int(value) for value in sums)
        for row in checked.where(F.size("findings") > 0).orderBy("elements").toLocalIterator():
            yield from _findings(row)
        yield from sorted(_shared(checked), key=lambda finding: finding.key)
    finally:
        checked.unpersist()


def examined(spark: SparkSession, url: str, at: str, table: str, prefix: ContentKey | None = None) -> DataFrame:
    """A table about the files of a commit's contents, cut for work that waits for them."""
    options: dict[str, str | int] = {"url": url, "table": table, "ref": f"@{at}", "rowsPerPartition": CONTENTS_PER_TASK}
    if prefix is not None:
        options["prefix"] = str(prefix)
    return spark.read.format("nessie").options(**options).load()


def _findings(row: Row) -> Iterator[Finding]:
    key = ContentKey(tuple(row["elements"]))
    for item in row["findings"]:
        yield Finding(FindingKind(item["kind"]), key, row["content_id"], item["where"], item["message"])


def _shared(checked: DataFrame) -> Iterator[Finding]:
    holders = F.sort_array(F.collect_list(F.struct("elements", "content_id"))).alias("holders")
    grouped = checked.where("uuid is not null").groupBy("uuid").agg(holders).where(F.size("holders") > 1)
    for row in grouped.toLocalIterator():
        yield from shared_uuid(row["uuid"], [(ContentKey(tuple(item["elements"])), item["content_id"]) for item in row["holders"]])
