"""Operations on a table, each as Spark or Java commits it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.spark.sides import Sides, Table

Change = Callable[[Table, str], object]
"""Changes a table. The text is the name of the side: new tokens begin with it."""


class Operation(NamedTuple):
    """A change of one commit. `kind` is the operation of Iceberg's Java library."""

    name: str
    kind: str
    change: Change
    since: int = 1
    """The first format version in which it exists."""
    filter: str = ""
    """The rows that a command selects, as `column = number AND ...`."""


def base_table(sides: Sides, version: int) -> Table:
    """Returns a table with two partitions of two files, and deletions of rows in two files."""
    table = sides.create(version)
    for ids, partition in (((1, 2, 3), 0), ((4, 5, 6), 0), ((11, 12, 13), 1), ((14, 15), 1)):
        table.sql("INSERT INTO {} VALUES " + values(*ids, partition=partition, side="b"))
    if version > 1:
        table.sql("DELETE FROM {} WHERE p = 0 AND id = 3")
        table.sql("DELETE FROM {} WHERE p = 1 AND id = 13")
    return table


def values(*ids: int, partition: int, side: str) -> str:
    return ", ".join(f"({id_}, {partition}, '{side}{id_}', 'x')" for id_ in ids)


def _sql(statement: str) -> Change:
    return lambda table, side: table.sql(statement.replace("<side>", side))


def _copying(statement: str) -> Change:
    """Returns a change that rewrites files."""
    run = _sql(statement)

    def change(table: Table, side: str) -> None:
        table.with_properties(
            lambda: run(table, side),
            write_delete_mode="copy-on-write",
            write_update_mode="copy-on-write",
        )

    return change


def _call(procedure: str, arguments: str = "") -> Change:
    def change(table: Table, side: str) -> None:
        table.sides.sql(
            f"CALL lake.system.{procedure}(table => 'db.{table.name}'{arguments and ', '}{arguments})"
        )

    return change


def _wide(table: Table, side: str) -> None:
    table.with_properties(
        lambda: table.sql("DELETE FROM {} WHERE id IN (1, 4, 11)"),
        write_delete_granularity="partition",
    )


def _update(id_: int) -> str:
    return f"UPDATE {{}} SET token = concat(token, '-<side>') WHERE p = {id_ // 10} AND id = {id_}"


def _delete(id_: int) -> str:
    return f"DELETE FROM {{}} WHERE p = {id_ // 10} AND id = {id_}"


def _commands() -> Iterator[Operation]:
    for id_ in (1, 2, 4, 11):
        where = f"p = {id_ // 10} AND id = {id_}"
        yield Operation(f"delete {id_}, files", "copy", _copying(_delete(id_)), filter=where)
        yield Operation(f"update {id_}, files", "copy", _copying(_update(id_)), filter=where)
        yield Operation(f"delete {id_}", "delete rows", _sql(_delete(id_)), 2, where)
        yield Operation(f"update {id_}", "update rows", _sql(_update(id_)), 2, where)


_NAMES = "(id, p, token)"
_REWRITE = "options => map('rewrite-all', 'true')"
OPERATIONS = (
    Operation(
        "append",
        "append",
        _sql(f"INSERT INTO {{}} {_NAMES} VALUES (90, 0, '<side>90'), (92, 2, '<side>92')"),
    ),
    Operation("drop partition", "drop", _sql("DELETE FROM {} WHERE p = 1"), filter="p = 1"),
    Operation(
        "overwrite partition",
        "replace partitions",
        _sql(f"INSERT OVERWRITE {{}} {_NAMES} VALUES (80, 0, '<side>80')"),
    ),
    *_commands(),
    Operation("delete in many files", "delete rows", _wide, 2),
    Operation("delete equal", "equality", lambda table, _: table.delete_equal(1, 0), 2),
    Operation("upsert", "equality", lambda table, side: table.delete_equal(2, 0, f"b2-{side}"), 2),
    Operation("compact", "rewrite", _call("rewrite_data_files", _REWRITE)),
    Operation(
        "compact partition", "rewrite", _call("rewrite_data_files", f"where => 'p = 1', {_REWRITE}")
    ),
    Operation("rewrite deletes", "rewrite", _call("rewrite_position_delete_files", _REWRITE), 2),
    Operation("rewrite manifests", "manifests", _call("rewrite_manifests")),
    Operation("add column", "definition", _sql("ALTER TABLE {} ADD COLUMN <side>_w string")),
    Operation("rename column", "definition", _sql("ALTER TABLE {} RENAME COLUMN v TO <side>_v")),
    Operation("drop column", "definition", _sql("ALTER TABLE {} DROP COLUMN v")),
    Operation(
        "set property", "definition", _sql("ALTER TABLE {} SET TBLPROPERTIES ('team' = '<side>')")
    ),
    Operation(
        "change partitions", "definition", _sql("ALTER TABLE {} ADD PARTITION FIELD bucket(2, id)")
    ),
)
