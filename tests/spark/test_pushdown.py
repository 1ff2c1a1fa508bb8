"""Filters: push-down and Spark's evaluation together return the rows that match the filters."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from nessie_cli import create
from nessie_cli.spark.pushdown import ColumnKind, push_down
from tests.repository.vocabulary import Catalog
from tests.spark.conftest import fill
from tests.spark.reading import Frame, Rows

COMPARED: dict[type[Filter], Callable[[Any, Any], bool]] = {
    EqualTo: operator.eq,
    EqualNullSafe: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
    In: lambda value, values: value in values,
    StringStartsWith: lambda value, start: value.startswith(start),
}


def holds(filter_: Filter, row: dict[str, Any]) -> bool:
    """Whether a row matches in Spark, where a comparison with null is not true."""
    if isinstance(filter_, Not):
        return not holds(filter_.child, row)
    value = row[filter_.attribute[0]]  # type: ignore[attr-defined]
    if isinstance(filter_, IsNotNull):
        return value is not None
    wanted = filter_.value  # type: ignore[attr-defined]
    return value is not None and COMPARED[type(filter_)](value, wanted)


def kept(rows: Rows, filters: list[Filter]) -> Rows:
    return [row for row in rows if all(holds(filter_, row) for filter_ in filters)]


def in_order(rows: Rows) -> list[str]:
    return sorted(map(repr, rows))


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    url = f"sqlite:///{tmp_path_factory.mktemp('narrowing')}/catalog.sqlite"
    with create(url) as repository:
        fill(Catalog(repository))
    return url


CASES = {
    "log": ("reference", "commit_time"),
    "operations": ("reference", "commit_time", "key"),
    "contents": ("reference", "key"),
    "diff": ("key",),
}


def some_filters(chance: random.Random, columns: tuple[str, ...], rows: Rows) -> Iterator[Filter]:
    for _ in range(chance.randint(1, 3)):
        column = chance.choice(columns)
        value = chance.choice(rows)[column] if rows else None
        if isinstance(value, datetime):
            value += timedelta(microseconds=chance.choice([-1, 0, 0, 1]))
            yield chance.choice(
                [EqualTo, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual]
            )((column,), value)
            continue
        other = chance.choice(["nowhere", "a..b", '"db".t1', "", "db"])
        yield chance.choice(
            [
                EqualTo((column,), value),
                EqualNullSafe((column,), value),
                In((column,), (value, other)),
                StringStartsWith((column,), str(value)[:3]),
                IsNotNull((column,)),
                Not(EqualTo((column,), value)),
                EqualTo((column,), other),
            ]
        )


@pytest.mark.parametrize("table", CASES)
def test_reads_with_push_down_return_the_matching_rows(catalog: str, table: str) -> None:
    more = {"from_": "main", "to": "dev"} if table == "diff" else {"ref": "*"}
    frame = Frame(catalog, table=table, **more)
    everything = frame.rows()
    narrowed = 0
    for seed in range(60):
        filters = list(some_filters(random.Random(seed), CASES[table], everything))
        found, left = frame.read(filters)
        narrowed += len(left) < len(filters)
        assert in_order(kept(found, left)) == in_order(kept(everything, filters)), (seed, filters)
    assert narrowed > 20


def test_the_history_of_a_key_reads_no_segments(catalog: str) -> None:
    frame = Frame(catalog, table="operations", rowsPerPartition="1")
    _, left = frame.read([EqualTo(("key",), "db.t1")])
    assert (left, len(frame.parts)) == ([], 1)
    frame.rows()
    assert len(frame.parts) > 30


def test_filters_that_match_nothing_read_nothing(catalog: str) -> None:
    frame = Frame(catalog, table="contents")
    for filters in (
        [EqualTo(("key",), "a..b")],
        [EqualTo(("key",), "db"), EqualTo(("key",), "db.t1")],
        [In(("reference",), ())],
    ):
        assert frame.read(filters) == ([], [])
        assert frame.parts == []


def test_filters_on_other_columns_are_evaluated_by_spark() -> None:
    columns = {"key": ColumnKind.KEY, "commit_time": ColumnKind.TIME}
    others = [
        EqualTo(("content", "id"), "x"),
        EqualTo(("message",), "x"),
        EqualTo(("key",), 5),
        EqualTo(("commit_time",), "x"),
    ]
    assert push_down(others, columns)[1] == others


def test_a_time_without_a_zone_is_utc() -> None:
    found, left = push_down(
        [GreaterThan(("commit_time",), datetime(2026, 1, 1))], {"commit_time": ColumnKind.TIME}
    )
    assert (found.after, left) == (datetime(2026, 1, 1, tzinfo=UTC), [])


@pytest.mark.parametrize("when", [datetime.min, datetime.min + timedelta(days=400), datetime.max])
def test_the_earliest_and_latest_times(catalog: str, when: datetime) -> None:
    frame = Frame(catalog, table="log")
    every = frame.rows()
    for kind in (GreaterThanOrEqual, GreaterThan, EqualTo, LessThan, LessThanOrEqual):
        filters: list[Filter] = [kind(("commit_time",), when.replace(tzinfo=UTC))]
        found, left = frame.read(filters)
        assert kept(found, left) == kept(every, filters)


def test_the_references_table_by_name(catalog: str, tmp_path: Path) -> None:
    frame = Frame(catalog, table="references")
    found, left = frame.read([In(("name",), ("dev", "v1", "gone"))])
    assert ([row["name"] for row in found], left) == (["dev", "v1"], [])
