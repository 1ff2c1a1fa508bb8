"""Statistics as Spark jobs: commits are counted where they are read, operations are brought together by key, tables measured where they are read."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec import structs
from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from nessie_cli.audit.sizes import Size, Sizes
from nessie_cli.audit.statistics import Changes, Churn, CommitCount, Commits, History, KeyChanges, KeyList, Step, assembled, there_is
from nessie_cli.model import ContentKey
from nessie_cli.spark.audit import examined

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_CHANGES = ("created", "updated", "deleted", "tables", "contents")
_DAY = StructType([StructField("day", StringType()), *(StructField(name, LongType()) for name in _CHANGES)])
_CHURN = StructType(
    [
        StructField("type", StringType()),
        *(StructField(name, LongType()) for name in ("commits", "created", "updated", "deleted", "last")),
        StructField("days", ArrayType(_DAY)),
    ]
)


def history_of(spark: SparkSession, url: str, at: str, since: str | None, most: int) -> History:
    """The history of a commit, or what it has above `since`, one of its ancestors: what `audit.statistics.history` says of it.

    All operations on one key are held together in the memory of a task.
    """
    options = {"url": url, "ref": f"@{at}"} | ({"from": f"@{since}"} if since else {})

    def table(name: str) -> DataFrame:
        return spark.read.format("nessie").options(**options, table=name).load()

    count = _commits(table("log"))
    # Numbers, not times: Spark gives times to Python in the zone of its machine.
    time = F.unix_micros("commit_time").alias("time")
    # Within a commit a key is deleted before it is made anew.
    turn = F.expr("if(operation = 'PUT', 1, 0)").alias("turn")
    operations = table("operations").select("elements", F.struct(time, turn, "hash", F.col("content.type").alias("type")).alias("step"))
    start = Changes()
    if since:
        before = spark.read.format("nessie").options(url=url, table="entries", ref=f"@{since}").load()
        for row in before.groupBy("type").count().collect():
            start += _times(there_is(row["type"]), row["count"])
        found = F.struct(F.lit(-1).cast("bigint").alias("time"), F.lit(-1).alias("turn"), F.lit("").alias("hash"), "type").alias("step")
        operations = operations.unionByName(before.select("elements", found))
    steps = F.sort_array(F.collect_list("step"), asc=False)
    churned = operations.groupBy("elements").agg(F.udf(_churned, _CHURN, useArrow=False)("elements", steps).alias("churn"))
    churned = churned.where("churn is not null").persist(StorageLevel.DISK_ONLY)
    try:
        days = (
            churned.select(F.explode("churn.days").alias("day")).select("day.*").groupBy("day").agg(*(F.sum(name).alias(name) for name in _CHANGES))
        )
        by_day = {row["day"]: Changes(*(row[name] for name in _CHANGES)) for row in days.collect()}
        top = churned.orderBy(F.desc("churn.commits"), "elements").limit(most).collect()
        return assembled(count, by_day, start, KeyList(churned.count(), map(_key_changes, top)), most)
    finally:
        churned.unpersist()


def _times(changes: Changes, times: int) -> Changes:
    return Changes(*(value * times for value in structs.astuple(changes)))


def _commits(log: DataFrame) -> CommitCount:
    author = F.expr("coalesce(nullif(get(authors, 0), ''), committer, '')").alias("author")
    day = F.expr("cast(date_from_unix_date(cast(floor(unix_micros(commit_time) / 86400000000) as int)) as string)").alias("day")
    named = log.select(author, day, F.unix_micros("commit_time").alias("time"))
    counted = named.groupBy("author", "day").agg(F.count("*").alias("commits"), F.min("time").alias("first"), F.max("time").alias("last"))
    found = CommitCount()
    for row in counted.toLocalIterator():
        found.add_all(row["author"], row["day"], Commits(row["commits"], _instant(row["first"]), _instant(row["last"])))
    return found


def _micros(time: datetime | None) -> int | None:
    return None if time is None else (time - _EPOCH) // _MICROSECOND


def _instant(micros: int) -> datetime:
    return _EPOCH + micros * _MICROSECOND


def _churned(elements: Iterable[str], steps: Iterable[Row]) -> dict[str, Any] | None:
    """What became of one key, newest first. Runs in a task; None for a key that nothing happened to."""
    key, churn, before = ContentKey(tuple(elements)), Churn(), {}
    for step in steps:
        if step["turn"] < 0:
            before[key] = step["type"]
        else:
            churn.add(key, Step(step["hash"], _instant(step["time"]), step["type"]))
    for change in churn.end(before):
        days = [{"day": day, **structs.asdict(changes)} for day, changes in churn.days.items()]
        return structs.asdict(change) | {"last": _micros(change.last), "days": days}
    return None


def _key_changes(row: Row) -> KeyChanges:
    churn = row["churn"]
    commits, created, updated, deleted = (churn[name] for name in ("commits", "created", "updated", "deleted"))
    return KeyChanges(ContentKey(tuple(row["elements"])), churn["type"], commits, created, updated, deleted, _instant(churn["last"]))


def sizes_of(spark: SparkSession, url: str, at: str, most: int) -> Sizes:
    """The Iceberg tables of a commit: what `audit.sizes.sizes` says of them."""
    found = examined(spark, url, at, "sizes").select("elements", "rows", "files", "bytes", "problem").persist(StorageLevel.DISK_ONLY)
    try:
        told = found.where("problem is null")
        sums = told.agg(F.count("*"), *(F.coalesce(F.sum(name), F.lit(0)) for name in ("rows", "files", "bytes"))).first()
        assert sums is not None
        readable, rows, files, total = (int(value) for value in sums)
        order = F.desc_nulls_last("bytes"), F.coalesce("rows", F.lit(0)).desc(), F.asc("elements")
        largest = [
            Size(ContentKey(tuple(row["elements"])), row["rows"], row["files"], row["bytes"]) for row in told.orderBy(*order).limit(most).collect()
        ]
        every = found.count()
        return Sizes(every, every - readable, rows, files, total, tuple(largest))
    finally:
        found.unpersist()
