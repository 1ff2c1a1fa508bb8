"""Which data files equality deletes can reach, and which changes combine with them."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest

from nessie_cli.iceberg.combination.decision import merge_files
from nessie_cli.iceberg.combination.equality import EqualityScope
from nessie_cli.iceberg.combination.states import FileContent, Identity, TableFile
from tests.iceberg.combination.model import Table, check_merge
from tests.iceberg.row_diff.tables import column, schema

SCOPE = EqualityScope(
    [
        schema(
            column(1, "id", "long", required=True),
            column(2, "text", "string"),
            column(3, "x", "double", required=True),
            column(4, "u", "uuid", required=True),
            column(5, "b", "int", required=True),
            column(6, "c", "int", required=True),
            column(8, "d", "no type that is known", required=True),
        ),
        # A promotion, and a column that has become optional.
        schema(column(5, "b", "long", required=True), column(6, "c", "int")),
    ]
)


def long(value: int) -> bytes:
    return struct.pack("<q", value)


def file(
    *bounds: tuple[int, bytes, bytes],
    keys: tuple[int, ...] = (),
    nulls: dict[int, int] | None = None,
    spec: int = 0,
    **partition: Any,
) -> TableFile:
    """A file with bounds of columns: of equality deletes with `keys`, otherwise of data."""
    content = FileContent.EQUALITY_DELETES if keys else FileContent.DATA
    row = {
        "equality_ids": list(keys) or None,
        "null_value_counts": [{"key": id_, "value": count} for id_, count in (nulls or {}).items()],
        "lower_bounds": [{"key": id_, "value": lower} for id_, lower, _ in bounds],
        "upper_bounds": [{"key": id_, "value": upper} for id_, _, upper in bounds],
    }
    values = tuple((name, f"{type(v).__name__} {v!r}") for name, v in sorted(partition.items()))
    return TableFile(Identity(f"f{random.random()}"), content, spec, values, 1, 1, 1, 1, row)


ONE_TO_FIVE = (1, long(1), long(5))


@pytest.mark.parametrize(
    ("bounds", "is_reached"),
    [
        ((1, long(6), long(9)), False),
        ((1, long(-9), long(0)), False),
        ((1, long(5), long(9)), True),
        ((1, long(2), long(2)), True),
        # From before a promotion from int.
        ((1, struct.pack("<i", 7), struct.pack("<i", 9)), False),
        # No number.
        ((1, b"123", b"123"), True),
        ((2, b"a", b"b"), True),
    ],
)
def test_bounds_of_columns(bounds: tuple[int, bytes, bytes], is_reached: bool) -> None:
    assert SCOPE.reaches(file(ONE_TO_FIVE, keys=(1,)), file(bounds)) is is_reached


def test_one_column_that_differs_is_enough() -> None:
    deletes = file(ONE_TO_FIVE, (2, b"k", b"m"), keys=(1, 2))
    assert not SCOPE.reaches(deletes, file(ONE_TO_FIVE, (2, b"x", b"z"), nulls={2: 0}))
    assert not SCOPE.reaches(deletes, file((1, long(6), long(6)), (2, b"k", b"k")))
    # The bounds of another column say nothing.
    assert SCOPE.reaches(file(ONE_TO_FIVE, (2, b"k", b"m"), keys=(1,)), file((2, b"x", b"z")))


@pytest.mark.parametrize(
    ("of_deletes", "of_data", "is_reached"),
    [
        ({2: 0}, {2: 1}, False),
        ({2: 1}, {2: 0}, False),
        ({2: 1}, {2: 1}, True),
        ({}, {}, True),
        ({2: 0}, {}, False),
    ],
)
def test_nulls_are_equal(
    of_deletes: dict[int, int], of_data: dict[int, int], is_reached: bool
) -> None:
    deletes = file((2, b"a", b"c"), keys=(2,), nulls=of_deletes)
    assert SCOPE.reaches(deletes, file((2, b"x", b"z"), nulls=of_data)) is is_reached


@pytest.mark.parametrize(
    ("id_", "low", "high"),
    [
        (3, struct.pack("<d", 1), struct.pack("<d", 9)),
        (4, bytes(16), b"\xff" * 16),
        (5, struct.pack("<i", 1), struct.pack("<i", 9)),
        (6, struct.pack("<i", 1), struct.pack("<i", 9)),
        (7, long(1), long(9)),
        (8, long(1), long(9)),
    ],
)
def test_values_that_cannot_be_compared(id_: int, low: bytes, high: bytes) -> None:
    """NaN is in no bounds. Column 7 is in no schema."""
    assert SCOPE.reaches(file((id_, low, low), keys=(id_,)), file((id_, high, high)))


@pytest.mark.parametrize(
    ("deletes", "data", "is_reached"),
    [
        ({"p": 1}, {"p": 1}, True),
        ({"p": 1}, {"p": 2}, False),
        ({"p": 1}, {"p": None}, False),
        ({"p": 1, "q": "a"}, {"p": 1, "q": "b"}, False),
        # A date as a number.
        ({"p": 1}, {"p": "1970-01-02"}, True),
        # Deletes of an unpartitioned table reach all files, also later ones with partitions.
        ({}, {"p": 1, "spec": 1}, True),
        # Void transforms give nulls.
        ({"p": None}, {"p": 2, "spec": 1}, True),
        ({"p": 1}, {"p": 1, "spec": 1}, False),
    ],
)
def test_partitions(deletes: dict[str, Any], data: dict[str, Any], is_reached: bool) -> None:
    assert SCOPE.reaches(file(keys=(1,), **deletes), file(**data)) is is_reached


def test_deletes_of_one_row() -> None:
    one, other = file(ONE_TO_FIVE, keys=(1,)), file((1, long(9), long(9)), keys=(1,))
    assert SCOPE.meets(one, one)
    assert not SCOPE.meets(one, other)
    # By different columns, they can name one row.
    assert SCOPE.meets(one, file((2, b"a", b"b"), keys=(2,)))
    assert not SCOPE.meets(file(keys=(1,), p=1), file(keys=(1,), p=2))
    assert SCOPE.meets(file(keys=(1,), p=1), file(keys=(1,)))


# -- decisions -------------------------------------------------------------------------------------


def sides() -> tuple[Table, Table, Table]:
    """A table of three data files with the keys 0, 1 and 2, and both sides."""
    base = Table(random.Random(1), 2)
    for key in range(3):
        base.commit("append", (((f"b{key}", key),),))
    return base, base.fork("o"), base.fork("t")


def change(side: Table, kind: str, key: int) -> None:
    path = next((p for p in side.paths if any(k == key for _, (_, k) in side.live(p))), "")
    token = f"{side.name}{key}"
    match kind:
        case "append":
            side.commit("append", (((token, key),),))
        case "delete equal":
            side.commit("delete", keys=frozenset({key}))
        case "upsert":
            side.commit("overwrite", (((token, key),),), keys=frozenset({key}), upserted=token)
        case "delete":
            side.commit("delete", positions={path: frozenset({0})})
        case "drop":
            side.commit("delete", removed=(path,))
        case "compact":
            side.commit("replace", (tuple(row for _, row in side.live(path)),), (path,))


KINDS = ["append", "delete equal", "upsert", "delete", "drop", "compact"]


@pytest.mark.parametrize("equality", ["delete equal", "upsert"])
@pytest.mark.parametrize("kind", KINDS)
def test_changes_of_other_rows_combine(kind: str, equality: str) -> None:
    for turned in (False, True):
        base, ours, theirs = sides()
        change(theirs if turned else ours, kind, 0)
        change(ours if turned else theirs, equality, 2)
        assert check_merge(base, ours, theirs) is not None


@pytest.mark.parametrize(
    ("kind", "equality", "combines"),
    [
        ("append", "delete equal", False),
        ("append", "upsert", False),
        ("delete equal", "delete equal", True),
        ("delete equal", "upsert", False),
        ("upsert", "upsert", False),
        ("delete", "delete equal", True),
        ("delete", "upsert", False),
        ("drop", "delete equal", True),
        ("drop", "upsert", False),
        ("compact", "delete equal", True),
        ("compact", "upsert", True),
    ],
)
def test_changes_of_the_same_rows(kind: str, equality: str, combines: bool) -> None:
    base, ours, theirs = sides()
    change(ours, kind, 1)
    change(theirs, equality, 1)
    assert (check_merge(base, ours, theirs) is not None) is combines
    if kind == "compact":
        assert (check_merge(base, theirs, ours) is not None) is combines


def test_a_row_that_was_changed_before_its_file_was_compacted_is_a_conflict() -> None:
    base, ours, theirs = sides()
    (path,) = (p for p in base.paths if base.live(p)[0][1] == ("b1", 1))
    theirs.delete(path, theirs.live(path)[0], is_updated=True)
    theirs.commit("replace", ((),), (path,))
    change(ours, "upsert", 1)
    for pair in ((ours, theirs), (theirs, ours)):
        assert check_merge(base, *pair) is None


def test_a_conflict_names_the_files_that_are_reached() -> None:
    base, ours, theirs = sides()
    change(ours, "append", 2)
    change(theirs, "delete equal", 2)
    states = [side.state(base) for side in (base, ours, theirs)]
    (conflict,) = merge_files(*states, fork_sequence=base.last, scope=EqualityScope([])).conflicts
    (deletes,) = (f for f in states[2].files.values() if f.content == FileContent.EQUALITY_DELETES)
    assert [f.path for f in conflict.files] == [deletes.path, *set(ours.paths) - set(base.paths)]
