"""The mark of a garbage collection as Spark jobs, with the same datasets as on one machine.

The driver walks the history. Tasks read metadata files, manifest lists and manifests, each once,
and write the results to the run's folder as Parquet, so the driver never holds them. The tasks are
those of RDDs, because Arrow functions of PySpark 4.1 need pandas. Options of file systems are sent
with the tasks, never in a plan.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import structs
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that everybody gives it
from pyspark.sql.types import BooleanType, LongType, StringType

from nessie_cli.errors import StoreUnavailable
from nessie_cli.gc.datasets import make_durable
from nessie_cli.gc.history import TableState
from nessie_cli.gc.mark import Marked, PhaseProgress, contents_of
from nessie_cli.gc.parts import GcFinding
from nessie_cli.gc.run import MarkDatasets, RunSettings
from nessie_cli.gc.table_files import (
    TRIES,
    BaseLocations,
    bases_of,
    broken,
    dead_places,
    folder_of,
    other_format,
    write_places,
)
from nessie_cli.iceberg.files import Files
from nessie_cli.iceberg.locations import probable_location
from nessie_cli.iceberg.reachable import (
    BrokenFile,
    Fault,
    FileKind,
    Manifest,
    ReferencedFile,
    SnapshotScope,
    manifests_of,
    needed,
    read_manifest,
    read_manifest_list,
    read_table,
)
from nessie_cli.repository.base import Repository
from nessie_cli.spark.datasets import columns_of, read, write, write_files
from nessie_cli.spark.errors import at

Properties = Mapping[str, str]

_FILES_PER_TASK = 20
_MOST_TASKS = 2_000
_WHOLE = "_whole"
"""The file that marks a complete stage."""


_RESULTS = columns_of(
    "what",
    "path",
    "kind",
    "location",
    "content_id",
    "key",
    "reference",
    "fault",
    "message",
    number=LongType(),
)
"""The results of tasks.

`what` is FILE (a live file), LIST or MANIFEST (a live file that must be read), BASE, BROKEN, or a
kind of finding. `number` is the length of a manifest, otherwise the number of the state in the
dataset `contents`.
"""
_FILE, _LIST, _MANIFEST, _BASE, _BROKEN = "FILE", "LIST", "MANIFEST", "BASE", "BROKEN"
_STATE = TableState.__struct_fields__
_CONTENTS = columns_of(
    "content_id",
    "key",
    "type",
    "metadata_location",
    snapshot_id=LongType(),
    live=BooleanType(),
    reference=StringType(),
    commit=StringType(),
)

Values: TypeAlias = tuple[Any, ...]


def _result(result: str, number: int = 0, **values: str | None) -> Values:
    return result, *(values.get(name) for name in _RESULTS.names[1:-1]), number


# -- mark -----------------------------------------------------------------------------------------


def gc_mark(
    repository: Repository,
    settings: RunSettings,
    marks: MarkDatasets,
    properties: Properties,
    progress: PhaseProgress,
) -> Marked:
    """Like `gc.mark.mark`, but Spark's executors read the files.

    They need access to the files and to the folder of the run.
    """
    marked = contents_of(repository, settings, marks, progress)
    counts = _Following(
        SparkSession.builder.getOrCreate(),
        properties,
        SnapshotScope(settings.snapshots),
        progress,
        marks.live.parts,
    ).follow(marks)
    return structs.replace(marked, counts={**marked.counts, **counts})


class _Following:
    """The jobs of a mark.

    The folder `stages` has the results of each stage, because several datasets need them. An
    interrupted mark resumes after the last finished stage.
    """

    def __init__(
        self,
        spark: SparkSession,
        properties: Properties,
        snapshots: SnapshotScope,
        progress: PhaseProgress,
        stages: Path,
    ) -> None:
        self._spark = spark
        self._properties = dict(properties)
        self._snapshots = snapshots
        self._progress = progress
        self._stages = stages

    def follow(self, marks: MarkDatasets) -> dict[str, int]:
        """Writes the datasets `live`, `bases` and `findings`."""
        states = read(self._spark, marks.contents, _CONTENTS).withColumn(
            "number", F.monotonically_increasing_id()
        )
        followed = F.col("type").isin(["ICEBERG_TABLE", "ICEBERG_VIEW"])
        live = states.where("live").where(followed)
        tables = self._stage(
            "metadata files", live, _follow_state(self._properties, self._snapshots)
        )
        lists = self._stage(
            "manifest lists", _once(tables, _LIST), _follow_list(self._properties), tables
        )
        manifests = self._stage(
            "manifests",
            _once(tables.unionByName(lists), _MANIFEST),
            _follow_manifest(self._properties),
            tables,
        )
        needed_files = (
            tables.unionByName(lists)
            .unionByName(manifests)
            .where(F.col("what").isin([_FILE, _LIST, _MANIFEST]))
        )
        needed_paths = needed_files.groupBy("path").agg(
            F.min("kind").alias("kind"), F.min("content_id").alias("content_id")
        )
        counts = {"live": write(needed_paths, needed_paths.count(), marks.live)}
        places, findings = self._places(states.where(~F.col("live")).where(followed), tables)
        self._breakages(places, tables, lists, manifests)
        foreign_ones = [
            other_format(_state(row)) for row in states.where("live").where(~followed).collect()
        ]
        counts |= write_places(marks, places, [*foreign_ones, *findings])
        shutil.rmtree(self._stages, ignore_errors=True)
        return counts

    def _stage(
        self,
        file_kind: str,
        frame: DataFrame,
        work: Callable[[Iterable[Row]], Iterator[Values]],
        tables: DataFrame | None = None,
    ) -> DataFrame:
        """Returns the results of tasks for the rows of a frame, also those of an earlier process.

        `tables` are the results about the metadata files, None for the stage that reads them.
        """
        folder = self._stages / file_kind.replace(" ", "-")
        if not (folder / _WHOLE).exists():
            count = frame.count()
            self._progress(f"reading {file_kind}", 0, count)
            tasks = max(1, min(_MOST_TASKS, -(-count // _FILES_PER_TASK)))
            done = self._spark.createDataFrame(
                frame.repartition(tasks).rdd.mapPartitions(work), _RESULTS, verifySchema=False
            )
            done.persist(StorageLevel.MEMORY_AND_DISK)
            try:
                rows = done.count()
                _need_answers(done, tables or done)
                write_files(done, rows, folder)
            finally:
                done.unpersist()
            make_durable(folder)
            (folder / _WHOLE).touch()
            self._progress(f"reading {file_kind}", count, count)
        return self._spark.read.schema(_RESULTS).parquet(folder.as_uri())

    def _places(self, dead: DataFrame, tables: DataFrame) -> tuple[BaseLocations, list[GcFinding]]:
        """Returns the bases of contents, and findings about dead contents.

        A dead content is read if no live state of it is in the same folder.
        """
        folder = F.regexp_replace("metadata_location", "/[^/]*$", "").alias("folder")
        settled = (
            tables.where(F.col("what") == "SETTLED")
            .select("content_id", F.col("path").alias("folder"))
            .distinct()
        )
        tried = F.sort_array(F.collect_list(F.struct("number", *_STATE)))
        groups = (
            dead.select("*", folder)
            .join(settled, ["content_id", "folder"], "left_anti")
            .groupBy("content_id", "folder")
        )
        looked = self._stage(
            "locations of dropped tables",
            groups.agg(F.slice(tried, 1, TRIES).alias("states")),
            _look_for(self._properties),
            tables,
        )
        places = BaseLocations()
        dead_bases = (
            tables.unionByName(looked).where(F.col("what") == _BASE).groupBy("content_id", "path")
        )
        for row in (
            dead_bases.agg(F.min(F.struct("number", "key")).alias("first"))
            .sort("first.number", "path")
            .collect()
        ):
            places.add(row["content_id"], row["first"]["key"], [row["path"]])
        unknown = looked.where(F.col("what") != _BASE).sort("number").collect()
        return places, [
            GcFinding(
                row["what"],
                row["content_id"],
                row["key"],
                row["reference"],
                row["location"],
                None,
                row["message"],
            )
            for row in unknown
        ]

    @staticmethod
    def _breakages(
        places: BaseLocations, tables: DataFrame, lists: DataFrame, manifests: DataFrame
    ) -> None:
        """Returns a finding for each broken file and each content that needs it."""
        is_broken = F.col("what") == _BROKEN
        if not tables.unionByName(lists).unionByName(manifests).where(is_broken).take(1):
            return
        fault = ["path", "location", "fault", "message"]
        users = tables.where(F.col("what").isin([_LIST, _MANIFEST])).select(
            "what", "path", "content_id", "key", "reference", "number"
        )
        # In `lists` a manifest has the path of its list as `key`.
        of_list = lists.where(F.col("what") == _MANIFEST).select(
            F.col("path").alias("manifest"), F.col("key").alias("path")
        )
        in_lists = (
            users.join(of_list, "path")
            .select("manifest", "content_id", "key", "reference", "number")
            .withColumnRenamed("manifest", "path")
        )
        direct = users.select("path", "content_id", "key", "reference", "number")
        broken_lists = lists.where(is_broken).select(*fault).join(direct, "path")
        broken_manifests = (
            manifests.where(is_broken).select(*fault).join(direct.unionByName(in_lists), "path")
        )
        rows = tables.where(is_broken).select(*fault, "content_id", "key", "reference", "number")
        rows = rows.unionByName(broken_lists).unionByName(broken_manifests)
        first = F.min(F.struct("number", "key", "reference", "fault", "message")).alias("first")
        for row in (
            rows.groupBy("content_id", "location")
            .agg(first)
            .sort("first.number", "location")
            .collect()
        ):
            first_use = row["first"]
            state = TableState(
                row["content_id"],
                first_use["key"],
                "",
                "",
                None,
                live=True,
                reference=first_use["reference"],
                commit="",
            )
            places.add_broken(
                broken(
                    state,
                    BrokenFile(Fault(first_use["fault"]), row["location"], first_use["message"]),
                )
            )


def _need_answers(done: DataFrame, tables: DataFrame) -> None:
    """Raises `StoreUnavailable` if a file system has stopped answering."""
    silent = done.where(F.col("fault") == Fault.NO_ANSWER.value)
    for row in (
        silent.groupBy(_authority("location").alias("authority"))
        .agg(F.min("message").alias("message"))
        .collect()
    ):
        if (
            tables.where(F.col("what") == "SETTLED")
            .where(_authority("path") == row["authority"])
            .take(1)
        ):
            raise StoreUnavailable(row["message"])


def _authority(column: str) -> Column:
    # S3 has several schemes, and the normal form of a location has one of them.
    return F.lower(
        F.regexp_replace(
            F.regexp_extract(column, "^[A-Za-z][A-Za-z0-9+.-]+:(//[^/]*)?", 0), "^s3[an]:", "s3:"
        )
    )


def _once(frame: DataFrame, result: str) -> DataFrame:
    """Returns the files of a kind that must be read, each once."""
    chosen = [
        F.min("location").alias("location"),
        F.min("content_id").alias("content_id"),
        F.max("number").alias("number"),
    ]
    return frame.where(F.col("what") == result).groupBy("path").agg(*chosen)


def _state(row: Row) -> TableState:
    return TableState(**{name: row[name] for name in _STATE})


def _follow_state(
    properties: Properties, selection: SnapshotScope
) -> Callable[[Iterable[Row]], Iterator[Values]]:
    def work(rows: Iterable[Row]) -> Iterator[Values]:
        files = Files(properties)
        for row in rows:
            yield from _of_state(files, _state(row), row["number"], selection)

    return work


def _of_state(
    files: Files, state: TableState, number: int, selection: SnapshotScope
) -> Iterator[Values]:
    location = state.metadata_location
    common = {"content_id": state.content_id, "key": state.key, "reference": state.reference}
    try:
        yield _result(
            _FILE,
            number,
            path=needed(location, FileKind.METADATA, location).path,
            kind=FileKind.METADATA.value,
            **common,
        )
        table = read_table(files, location)
        bases = bases_of(table, location)
    except BrokenFile as error:
        yield _result(_BASE, number, path=probable_location(location), **common)
        yield _broken(error, number, **common)
        return
    for base in bases:
        yield _result(_BASE, number, path=base, **common)
    yield _result("SETTLED", number, path=folder_of(location), **common)
    if (missing := table.missing(state.snapshot_id, location)) is not None:
        yield _broken(missing, number, **common)
    snapshots = table.chosen(state.snapshot_id, selection)
    for file in table.statistics_of(snapshots, selection):
        yield _result(_FILE, number, path=file.path, kind=file.kind.value, **common)
    for snapshot in snapshots:
        try:
            if snapshot.manifest_list is not None:
                file = needed(snapshot.manifest_list, FileKind.MANIFEST_LIST, location)
                yield _result(
                    _LIST,
                    number,
                    path=file.path,
                    kind=file.kind.value,
                    location=file.location,
                    **common,
                )
                continue
            for manifest in manifests_of(files, snapshot, location):
                file = manifest.file
                yield _result(
                    _MANIFEST,
                    0,
                    path=file.path,
                    kind=file.kind.value,
                    location=file.location,
                    **common,
                )
        except BrokenFile as error:
            yield _broken(error, number, **common)


def _broken(error: BrokenFile, number: int, **values: str | None) -> Values:
    return _result(
        _BROKEN,
        number,
        location=error.location,
        fault=error.fault.value,
        message=error.message,
        **values,
    )


def _follow_list(properties: Properties) -> Callable[[Iterable[Row]], Iterator[Values]]:
    def work(rows: Iterable[Row]) -> Iterator[Values]:
        files = Files(properties)
        for row in rows:
            try:
                for manifest in read_manifest_list(files, row["location"]):
                    file, content_id = manifest.file, row["content_id"]
                    values = {
                        "path": file.path,
                        "kind": file.kind.value,
                        "location": file.location,
                        "content_id": content_id,
                        "key": row["path"],
                    }
                    yield _result(_MANIFEST, manifest.length, **values)
            except BrokenFile as error:
                yield _broken(error, 0, path=row["path"])

    return work


def _follow_manifest(properties: Properties) -> Callable[[Iterable[Row]], Iterator[Values]]:
    def work(rows: Iterable[Row]) -> Iterator[Values]:
        files = Files(properties)
        for row in rows:
            manifest = Manifest(
                ReferencedFile(row["location"], row["path"], FileKind.MANIFEST), row["number"]
            )
            try:
                for file in read_manifest(files, manifest):
                    yield _result(
                        _FILE, path=file.path, kind=file.kind.value, content_id=row["content_id"]
                    )
            except BrokenFile as error:
                yield _broken(error, 0, path=row["path"])

    return work


def _look_for(properties: Properties) -> Callable[[Iterable[Row]], Iterator[Values]]:
    def work(rows: Iterable[Row]) -> Iterator[Values]:
        files = Files(properties)
        for row in rows:
            first, number = _state(row["states"][0]), row["states"][0]["number"]
            with at("locations of dropped tables"):
                bases, findings = dead_places(files, [_state(state) for state in row["states"]])
            for base in bases:
                yield _result(_BASE, number, path=base, content_id=first.content_id, key=first.key)
            for finding in findings:
                values = {
                    "content_id": finding.content_id,
                    "key": finding.key,
                    "reference": finding.reference,
                    "location": finding.location,
                    "message": finding.message,
                }
                yield _result(finding.kind, number, **values)

    return work
