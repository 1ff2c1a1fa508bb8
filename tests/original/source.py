"""The data source of Spark over the original server, without Java: it has the same tables as
over our store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nessie_cli import NO_ANCESTOR, connect, create
from nessie_cli.spark.tables import TABLES
from tests.original.server import Original
from tests.repository.vocabulary import Catalog
from tests.spark.conftest import fill
from tests.spark.reading import rows

OF_FILES = {"audit", "sizes"}
"""Columns from metadata files, which do not depend on the server; the tables of this catalog
have no files."""
SEEN = {
    "references": ("name", "type", "commits", "ahead", "behind"),
    "log": ("message",),
    "operations": ("operation", "key"),
    "entries": ("key", "type"),
    "contents": ("key", "type", "content.metadata_location"),
    "diff": ("key", "change", "before.metadata_location", "after.metadata_location"),
    "conflicts": ("key", "conflict", "actual.metadata_location"),
}
"""Columns that both servers have; ids and times differ, and the original has no reflog."""


def test_every_table_is_the_same(server: Original, tmp_path: Path) -> None:
    ours, theirs = f"sqlite:///{tmp_path}/catalog.sqlite", f"{server.url}/api/v2"
    create(ours).close()
    with connect(theirs) as repository:
        for reference in list(repository.references()):
            if reference.name != "main":
                repository.delete_reference(reference.name, expected_hash=reference.hash)
        repository.assign_reference(
            "main", NO_ANCESTOR, expected_hash=repository.reference("main").hash
        )
        fill(Catalog(repository))
    with connect(ours) as repository:
        fill(Catalog(repository))

    assert SEEN.keys() == TABLES.keys() - {"reflog"} - OF_FILES
    for name, columns in SEEN.items():
        options = {
            "table": name,
            **({"from_": "dev", "to": "main"} if name in ("diff", "conflicts") else {}),
        }
        assert seen(theirs, columns, **options) == seen(ours, columns, **options), name
    for more in (
        {"ref": "*"},
        {"ref": "late,dev", "prefix": "raw"},
        {"at": "2999-01-01T00:00:00Z"},
        {"at": "1999-01-01T00:00:00Z"},
    ):
        assert seen(theirs, SEEN["entries"], table="entries", **more) == seen(
            ours, SEEN["entries"], table="entries", **more
        ), more


def seen(url: str, columns: tuple[str, ...], **options: str) -> list[str]:
    return sorted(str([column(row, name) for name in columns]) for row in rows(url, **options))


def column(row: dict[str, Any], name: str) -> Any:
    """Returns a column, or a field of a struct; None for a missing struct."""
    first, _, field = name.partition(".")
    return (row[first] or {}).get(field) if field else row[first]
