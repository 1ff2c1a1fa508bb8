"""Whether Iceberg accepts two changes as concurrent commits to one table.

A change was committed by Spark on the base. It is committed again by Iceberg's Java library on a
table that the other change was committed to, with the validations of Spark under snapshot
isolation, starting from the base's snapshot.

https://iceberg.apache.org/docs/latest/spark-writes/#isolation-levels
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError

from tests.spark.operations import Operation
from tests.spark.sides import Sides, Table, path_of


def refusal(sides: Sides, operation: Operation, base: str, ours: str, theirs: str) -> str:
    """Returns why Iceberg refuses the change of theirs on ours, or ""."""
    table, origin, change = map(sides.register, (ours, base, theirs))
    try:
        if operation.kind == "definition":
            _check_requirements(sides, table, origin, change)
        elif operation.kind != "manifests" and _snapshot(change) != _snapshot(origin):
            _commit(sides, operation, table.java, origin.java, change.java)
    except Py4JJavaError as error:
        java = error.java_exception
        name = str(java.getClass().getSimpleName())
        if name not in ("ValidationException", "CommitFailedException"):
            raise
        return f"{name}: {java.getMessage()}"
    return ""


def _snapshot(table: Table) -> int:
    return int(table.java.currentSnapshot().snapshotId())


def _check_requirements(sides: Sides, table: Table, origin: Table, change: Table) -> None:
    """Checks what a client of Iceberg REST requires for a change of definitions."""
    before, after = (each.java.operations().current() for each in (origin, change))
    metadata = sides.iceberg.TableMetadata
    builder = metadata.buildFrom(before)
    if after.currentSchemaId() != before.currentSchemaId():
        builder = builder.setCurrentSchema(after.schema(), after.lastColumnId())
    if after.defaultSpecId() != before.defaultSpecId():
        builder = builder.setDefaultPartitionSpec(after.spec())
    changes = builder.setProperties(after.properties()).build().changes()
    for requirement in sides.iceberg.UpdateRequirements.forUpdateTable(before, changes):
        requirement.validate(table.java.operations().current())


def _commit(sides: Sides, operation: Operation, table: Any, origin: Any, change: Any) -> None:
    start = origin.currentSnapshot().snapshotId()
    snapshot, io = change.currentSnapshot(), change.io()
    assert snapshot.parentId() == start
    data = sides.iceberg.util.DataFileSet.of
    deletes = sides.iceberg.util.DeleteFileSet.of
    added, removed = data(snapshot.addedDataFiles(io)), data(snapshot.removedDataFiles(io))
    added_deletes = deletes(snapshot.addedDeleteFiles(io))
    removed_deletes = deletes(snapshot.removedDeleteFiles(io))
    where = _expression(sides, operation.filter)
    match operation.kind:
        case "append":
            new = _each(table.newAppend().appendFile, added)
        case "drop":
            new = table.newDelete().deleteFromRowFilter(where)
        case "replace partitions":
            new = table.newReplacePartitions()
            _each(new.addFile, added)
            new = new.validateFromSnapshot(start).validateNoConflictingDeletes()
        case "copy":
            new = table.newOverwrite().deleteFiles(removed, removed_deletes)
            _each(new.addFile, added)
            new = new.validateFromSnapshot(start).conflictDetectionFilter(where)
            new = new.validateNoConflictingDeletes()
        case "rewrite":
            new = table.newRewrite()
            new = new.rewriteFiles(removed, removed_deletes, added, added_deletes)
            new = new.validateFromSnapshot(start)
            if added.size():
                new = new.dataSequenceNumber(origin.currentSnapshot().sequenceNumber())
        case "equality":
            new = table.newRowDelta()
            _each(new.addRows, added)
            _each(new.addDeletes, added_deletes)
        case "delete rows" | "update rows":
            new = table.newRowDelta()
            _each(new.addRows, added)
            _each(new.addDeletes, added_deletes)
            _each(new.removeDeletes, removed_deletes)
            paths = sides.jvm.java.util.ArrayList()
            for file in added_deletes:
                for path in _targets(sides, file):
                    paths.add(path)
            new = new.conflictDetectionFilter(where).validateDataFilesExist(paths)
            new = new.validateFromSnapshot(start)
            if operation.kind == "update rows":
                new = new.validateDeletedFiles().validateNoConflictingDeleteFiles()
        case other:
            raise AssertionError(other)
    new.commit()


def _targets(sides: Sides, file: Any) -> Collection[str]:
    """Returns the data files in which a delete file deletes rows."""
    target = sides.iceberg.util.ContentFileUtil.referencedDataFile(file)
    if target is not None:
        return [str(target)]
    return set(pq.read_table(path_of(file.location())).column("file_path").to_pylist())


def _each(function: Any, files: Any) -> Any:
    """Calls a function of an operation with each file. Returns the operation."""
    result = None
    for file in files:
        result = function(file)
    return result


def _expression(sides: Sides, text: str) -> Any:
    """Returns `column = number AND ...` as an expression of Iceberg."""
    expressions = sides.iceberg.expressions.Expressions
    made = expressions.alwaysTrue()
    for condition in filter(None, text.split(" AND ")):
        column, _, number = condition.partition(" = ")
        made = getattr(expressions, "and")(made, expressions.equal(column, int(number)))
    return made
