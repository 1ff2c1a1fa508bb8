"""The plan of a garbage collection as Spark jobs: listings by tasks, and an anti-join."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from pyspark import StorageLevel
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody gives it
from pyspark.sql.types import BooleanType, LongType, StringType, TimestampType

from nessie_cli.gc.datasets import Dataset
from nessie_cli.gc.mark import PhaseProgress
from nessie_cli.gc.parts import GcFinding
from nessie_cli.gc.plan import (
    CHECKSUM,
    PLAN_FINDINGS,
    CandidateScope,
    base_counts,
    finding_into,
    rows_below,
    scope_of,
)
from nessie_cli.gc.removal import METADATA
from nessie_cli.gc.run import Run, RunSettings
from nessie_cli.gc.schemas import FINDINGS
from nessie_cli.gc.table_files import Rows
from nessie_cli.spark.datasets import columns_of, read, write
from nessie_cli.spark.errors import at

Properties = Mapping[str, str]
Values: TypeAlias = tuple[Any, ...]

_LISTED = columns_of(
    "path", "location", size=LongType(), modified=TimestampType(), base=StringType()
)
# A finding has its kind in `finding` and its message in `path`.
_ROW = columns_of("finding", "path", "location", "base", size=LongType(), modified=TimestampType())


def gc_plan(
    run: Run, settings: RunSettings, properties: Properties, progress: PhaseProgress
) -> dict[str, int]:
    """Like `gc.plan.plan`, with a task for each listed location, and an anti-join."""
    spark = SparkSession.builder.getOrCreate()
    with run.dataset(PLAN_FINDINGS).writing(FINDINGS) as add:
        findings = Rows(FINDINGS, add)
        scope = scope_of(run, settings, finding_into(findings))
        progress("listing locations of tables", 0, len(scope.roots))
        counts = _list(spark, run.dataset("listed"), scope, properties, finding_into(findings))
        findings.flush()
    progress("comparing", 0, None)
    return {**base_counts(scope, settings), **counts, **_differ(spark, run, scope)}


def _list(
    spark: SparkSession,
    listed: Dataset,
    scope: CandidateScope,
    properties: Properties,
    find: Callable[[GcFinding], None],
) -> dict[str, int]:
    shared, given = spark.sparkContext.broadcast(scope), dict(properties)

    def below(root: str) -> Iterator[Values]:
        with at("listing"):
            for row in rows_below(root, shared.value, given):
                if isinstance(row, GcFinding):
                    yield row.kind, row.message, row.location, None, None, None
                else:
                    path, location, size, modified, base = row
                    yield None, path, location, base, size, modified

    roots = spark.sparkContext.parallelize(scope.roots, max(1, len(scope.roots)))
    listing = spark.createDataFrame(roots.flatMap(below), _ROW, verifySchema=False).persist(
        StorageLevel.MEMORY_AND_DISK
    )
    try:
        files = listing.where("finding is null").select(*_LISTED.names)
        rows = write(files, files.count(), listed)
        for row in listing.where("finding is not null").sort("location").collect():
            find(GcFinding(row["finding"], location=row["location"], message=row["path"]))
        size = listing.agg(F.coalesce(F.sum("size"), F.lit(0))).first()
        assert size is not None
        return {"listed": rows, "listedBytes": size[0]}
    finally:
        listing.unpersist()


def _differ(spark: SparkSession, run: Run, scope: CandidateScope) -> dict[str, int]:
    listed = read(spark, run.dataset("listed"), _LISTED)
    live = read(spark, run.marks().live, columns_of("path"))
    untouched = scope.untouched
    is_free = F.udf(lambda path: untouched.around(path) is None, BooleanType())
    owners = [(base, list(ids)) for base, ids in scope.owners.items()] or [("", [""])]
    of_base = F.broadcast(spark.createDataFrame(owners, "base string, content_ids array<string>"))
    whose = F.regexp_replace(listed["path"], CHECKSUM, "/$1")
    rest = listed.join(live, whose == live["path"], "left_anti").withColumns(
        {"free": is_free("path"), "old": F.col("modified") <= F.lit(scope.youngest)}
    )
    rest = rest.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        counts = rest.agg(
            _sum(F.col("free") & F.col("old")).alias("candidates"),
            _sum(F.col("free") & F.col("old"), F.col("size")).alias("candidateBytes"),
            _sum(F.col("free") & ~F.col("old")).alias("young"),
            _sum(~F.col("free")).alias("untouched"),
        ).first()
        assert counts is not None
        chosen = (
            rest.where("free and old")
            .join(of_base, "base", "left")
            .select(*listed.columns, "content_ids")
        )
        last = _any([F.col("path").endswith(end) for end in METADATA])
        write(chosen.sort(last, "path"), counts["candidates"], run.dataset("candidates"))
        return dict(counts.asDict())
    finally:
        rest.unpersist()


def _sum(condition: Column, value: Column | None = None) -> Column:
    return F.coalesce(
        F.sum(F.when(condition, F.lit(1) if value is None else value).otherwise(0)), F.lit(0)
    )


def _any(conditions: list[Column]) -> Column:
    any_of = F.lit(False)
    for condition in conditions:
        any_of |= condition
    return any_of
