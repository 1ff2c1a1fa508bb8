"""The locations that a server has to allow for imported tables."""

from __future__ import annotations

import pytest

from nessie_cli.importing.allowed_locations import locations_to_allow
from nessie_cli.model import ContentKey, ImportedTable


def row(name: str, location: str) -> ImportedTable:
    elements = tuple(name.split("."))
    return ImportedTable(elements, ContentKey(elements), location, "x", "x")


@pytest.mark.parametrize(
    ("tables", "allowed", "expected"),
    [
        ([("db.t", "s3://lake/wh/db/t")], [], ["s3://lake/wh"]),
        ([("db.t", "s3://lake/wh/db.db/t")], [], ["s3://lake/wh"]),
        ([("db.t", "s3://lake/wh/db/t_0b1c")], [], ["s3://lake/wh"]),
        ([("a.b.t", "s3://lake/wh/a/b/t/")], [], ["s3://lake/wh"]),
        # Only a whole bucket or file system would be left.
        ([("db.t", "s3://lake/db/t")], [], ["s3://lake/db"]),
        ([("t", "s3://lake/t")], [], ["s3://lake/t"]),
        ([("db.t", "/db/t")], [], ["/db"]),
        # The folders have other names than the table.
        ([("db.t", "s3://lake/custom/place")], [], ["s3://lake/custom/place"]),
        ([("db.t", "s3://lake/db/other")], [], ["s3://lake/db/other"]),
        ([("db.t", "s3://a/wh/db/t"), ("db.u", "s3://b/wh/db/u")], [], ["s3://a/wh", "s3://b/wh"]),
        ([("db.t", "s3://a/wh/db/t"), ("db.u", "s3a://a/wh/x/u")], [], ["s3://a/wh"]),
        ([("db.t", "s3://a/wh/db/t")], ["s3://a"], []),
        ([("db.t", "s3://a/wh/db/t")], ["s3://a/w"], ["s3://a/wh"]),
        ([(f"db.t{n}", f"s3://a/data/{n}") for n in range(10)], [], ["s3://a/data"]),
        ([(f"db.t{n}", f"s3://a/{n}") for n in range(10)], [], [f"s3://a/{n}" for n in range(10)]),
        ([("db.t", "ftp://host/db/t"), ("db.u", "relative/u")], [], []),
    ],
)
def test_the_fewest_folders(
    tables: list[tuple[str, str]], allowed: list[str], expected: list[str]
) -> None:
    assert locations_to_allow([row(*table) for table in tables], (), allowed) == expected


def test_places_of_new_files_count() -> None:
    assert locations_to_allow([row("db.t", "s3://a/wh/db/t")], ["s3://b/data/", "s3://a/wh/x"]) == [
        "s3://a/wh",
        "s3://b/data",
    ]
